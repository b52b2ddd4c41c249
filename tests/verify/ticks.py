"""A second opinion on a schedule: run it tick by tick and look (tiny graphs only).

Iterations far to both sides of 0 are played out as single events, each copy of each
tensor as an object of its own, and the ticks of one period in the middle are
inspected. No formula of the verifier is used: no interval arithmetic modulo T, no
closed form for copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from lpsched.core.graph import DeviceId, Graph, OpId, Tensor
from lpsched.core.io import graph_digest
from lpsched.core.schedule import Schedule

__all__ = ["broken_rules", "figures", "memory_by_tick"]


@dataclass(frozen=True)
class _Instance:
    """One iteration of an op: the device and the ticks from begin up to end."""

    device: DeviceId | None
    begin: int
    end: int


def _instance(graph: Graph, schedule: Schedule, op: OpId, n: int) -> _Instance:
    placed = schedule.ops[op]
    ticks = graph.op_by_id[op].duration
    if not isinstance(ticks, int):
        assert placed.device is not None
        ticks = ticks[placed.device]
    begin = placed.start + n * schedule.period
    return _Instance(placed.device, begin, begin + ticks)


def _arrival(
    graph: Graph, tensor: Tensor, made: _Instance, device: DeviceId | None
) -> int:
    """Tick at which a value is on a device, counted out in packets."""
    if device is None or made.device is None or device == made.device:
        return made.end
    link = graph.links.get((made.device, device), graph.link)
    tick = made.end + link.latency
    left = tensor.size
    while link.units_per_tick is not None and left > 0:
        left -= link.units_per_tick
        tick += 1
    return tick


def _is_covered(graph: Graph, schedule: Schedule) -> bool:
    if {op.id for op in graph.ops} != set(schedule.ops):
        return False
    everywhere = {device.id for device in graph.devices}
    for op in graph.ops:
        allowed = everywhere if op.devices is None else set(op.devices)
        legal: set[DeviceId | None] = {*allowed} or {None}
        if schedule.ops[op.id].device not in legal:
            return False
    return True


def _is_delays_legal(graph: Graph, schedule: Schedule) -> bool:
    return set(graph.delays) == set(schedule.delays) and all(
        delay.min <= schedule.delays[name]
        and (delay.max is None or schedule.delays[name] <= delay.max)
        for name, delay in graph.delays.items()
    )


def _reach(graph: Graph, schedule: Schedule) -> range:
    """Iterations enough that everything alive in ticks 0 .. T - 1 is among them."""
    ticks = [0]
    for op in graph.ops:
        run = _instance(graph, schedule, op.id, 0)
        ticks += [abs(run.begin), abs(run.end)]
    longest = 2 * max(ticks) + 50  # starts apart, transfers and lags
    delays = [*schedule.delays.values(), 3]
    count = longest // schedule.period + max(delays) + 3
    return range(-count, count + 1)


def _is_exclusive(graph: Graph, schedule: Schedule) -> bool:
    window = range(schedule.period)
    busy: Counter[tuple[DeviceId, int]] = Counter()
    for op in graph.ops:
        for n in _reach(graph, schedule):
            run = _instance(graph, schedule, op.id, n)
            if run.device is not None:
                for tick in range(run.begin, run.end):
                    busy[run.device, tick] += tick in window
    return all(count <= 1 for count in busy.values())


def _is_in_order(graph: Graph, schedule: Schedule) -> bool:
    for n in range(4):
        for tensor in graph.tensors:
            for use in tensor.consumers:
                k = schedule.delay(use.delay)
                user = _instance(graph, schedule, use.op, n)
                made = _instance(graph, schedule, tensor.producer, n - k)
                if user.begin < _arrival(graph, tensor, made, user.device) + use.lag:
                    return False
        for order in graph.dependences:
            k = schedule.delay(order.delay)
            before = _instance(graph, schedule, order.src, n - k)
            if _instance(graph, schedule, order.dst, n).begin < before.end + order.lag:
                return False
    return True


def _is_colocated(graph: Graph, schedule: Schedule) -> bool:
    return all(
        len({schedule.ops[op].device for op in group}) <= 1 for group in graph.colocate
    )


def _is_flushed(graph: Graph, schedule: Schedule) -> bool:
    if not graph.flush or not graph.ops:
        return True
    first = [_instance(graph, schedule, op.id, 0) for op in graph.ops]
    second = [_instance(graph, schedule, op.id, 1) for op in graph.ops]
    return max(run.end for run in first) <= min(run.begin for run in second)


def _copies(
    graph: Graph, schedule: Schedule
) -> Iterator[tuple[Tensor, DeviceId, int, int]]:
    """Every copy of every iteration: its tensor, device, first and last tick + 1."""
    for tensor in graph.tensors:
        for n in _reach(graph, schedule):
            made = _instance(graph, schedule, tensor.producer, n)
            if made.device is None:
                continue
            end_on = {made.device: made.end}
            for use in tensor.consumers:
                k = schedule.delay(use.delay)
                user = _instance(graph, schedule, use.op, n + k)
                if user.device is None:
                    continue
                arrival = _arrival(graph, tensor, made, user.device)
                end_on[made.device] = max(end_on[made.device], arrival)
                before = end_on.get(user.device, arrival)
                end_on[user.device] = max(before, arrival, user.end)
            for device, end in end_on.items():
                yield (
                    tensor,
                    device,
                    made.begin if device == made.device else made.end,
                    end,
                )


def memory_by_tick(graph: Graph, schedule: Schedule) -> dict[DeviceId, list[int]]:
    """Units each device holds at ticks 0 .. T - 1 of the steady state."""
    held = {device.id: [0] * schedule.period for device in graph.devices}
    for resident in graph.residents:
        for device in {schedule.ops[op].device for op in resident.ops} - {None}:
            assert device is not None
            for tick in range(schedule.period):
                held[device][tick] += resident.size
    for tensor, device, begin, end in _copies(graph, schedule):
        for tick in range(max(begin, 0), min(end, schedule.period)):
            held[device][tick] += tensor.size
    return held


def _sent(graph: Graph, schedule: Schedule) -> int:
    """Units of the transfers that begin in ticks 0 .. T - 1."""
    return sum(
        tensor.size
        for tensor, device, begin, _ in _copies(graph, schedule)
        if device != schedule.ops[tensor.producer].device
        and 0 <= begin < schedule.period
    )


def figures(graph: Graph, schedule: Schedule) -> dict[str, Fraction]:
    """Return what can be measured, watched rather than computed."""
    period = schedule.period
    runs = [_instance(graph, schedule, op.id, 0) for op in graph.ops]
    busy = sum(run.end - run.begin for run in runs if run.device is not None)
    slots = len(graph.devices) * period
    peaks = [max(units) for units in memory_by_tick(graph, schedule).values()]
    values: dict[str, int | Fraction] = {
        "period": period,
        "iteration_period": Fraction(period, graph.unfolding),
        "communication": _sent(graph, schedule),
        "staleness": sum(schedule.delays[name] - 1 for name in graph.delays),
        "peak_memory": max(peaks, default=0),
        "makespan": max((r.end for r in runs), default=0)
        - min((r.begin for r in runs), default=0),
        "bubble_ratio": Fraction(slots - busy, slots) if slots else 0,
    }
    return {name: Fraction(value) for name, value in values.items()}


def broken_rules(graph: Graph, schedule: Schedule) -> set[str]:
    """Names of the rules that a schedule breaks.

    One that does not cover the graph or its delays cannot be played out; then only
    ``coverage`` and ``delay`` are looked at.
    """
    basic = {
        "coverage": _is_covered(graph, schedule),
        "delay": _is_delays_legal(graph, schedule),
    }
    broken = {rule for rule, kept in basic.items() if not kept}
    if "coverage" in broken or set(graph.delays) - set(schedule.delays):
        return broken
    limit = {d.id: d.memory for d in graph.devices}
    held = memory_by_tick(graph, schedule)
    kept = {
        "exclusive": _is_exclusive(graph, schedule),
        "precedence": _is_in_order(graph, schedule),
        "colocate": _is_colocated(graph, schedule),
        "flush": _is_flushed(graph, schedule),
        "memory": all(
            most is None or max(held[device]) <= most for device, most in limit.items()
        ),
        "claims": _is_honest(graph, schedule),
    }
    return broken | {rule for rule, fine in kept.items() if not fine}


def _is_honest(graph: Graph, schedule: Schedule) -> bool:
    if (schedule.graph, schedule.graph_digest) != (graph.name, graph_digest(graph)):
        return False
    result = schedule.result
    if result is None:
        return True
    seen = figures(graph, schedule)
    return (
        result.status in ("optimal", "feasible")
        and all(Fraction(value) == seen[k] for k, value in result.objective.items())
        and all(value <= seen[name] for name, value in result.bound.items())
    )
