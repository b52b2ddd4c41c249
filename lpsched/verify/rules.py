"""The rules on devices, times and delays, one function each; exact integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lpsched.core.graph import DeviceId, Edge, Graph, OpId
from lpsched.core.schedule import Schedule
from lpsched.errors import Violation
from lpsched.verify.runs import (
    Run,
    delay_value,
    placement_fault,
    runs,
    transfer_ticks,
)

__all__ = [
    "check_colocate",
    "check_coverage",
    "check_delay",
    "check_exclusive",
    "check_flush",
    "check_precedence",
]


def check_coverage(graph: Graph, schedule: Schedule) -> tuple[Violation, ...]:
    """Every op exactly once, on an allowed device, with an integer start."""
    found = []
    for op in graph.ops:
        placed = schedule.ops.get(op.id)
        if placed is None:
            found.append(_coverage(op.id, "it is missing from the schedule"))
            continue
        fault = placement_fault(graph, op, placed)
        if fault is not None:
            found.append(_coverage(op.id, fault, device=placed.device))
    known = graph.op_by_id
    found += [
        _coverage(op, "the graph has no such op", device=placed.device)
        for op, placed in schedule.ops.items()
        if op not in known
    ]
    return tuple(found)


def _coverage(op: OpId, text: str, *, device: DeviceId | None = None) -> Violation:
    return Violation(
        rule="coverage", message=f"op {op!r}: {text}", ops=(op,), device=device
    )


def check_exclusive(graph: Graph, schedule: Schedule) -> tuple[Violation, ...]:
    r"""Ops on one device never overlap modulo T, and none is longer than T.

    Op v occupies the ticks :math:`[s_v, s_v + t_v)` modulo T, so it may wrap past
    the end of the period. An op without a device may take longer than T: nothing
    keeps its iterations apart.
    """
    by_device: dict[DeviceId, list[tuple[OpId, Run]]] = {}
    for op, run in runs(graph, schedule).items():
        if run.device is not None and run.duration > 0:
            by_device.setdefault(run.device, []).append((op, run))
    found: list[Violation] = []
    for device in graph.device_ids:
        members = by_device.get(device, [])
        found += _too_long(schedule.period, device, members)
        found += _overlaps(schedule.period, device, members)
    return tuple(found)


def _too_long(
    period: int, device: DeviceId, members: Sequence[tuple[OpId, Run]]
) -> Iterator[Violation]:
    for op, run in members:
        if run.duration > period:
            text = f"op {op!r} takes {run.duration} ticks, the period is {period}"
            yield Violation(
                rule="exclusive",
                message=f"{text}: it overlaps its own next iteration",
                ops=(op,),
                device=device,
                time=run.start % period,
                excess=run.duration - period,
            )


def _overlaps(
    period: int, device: DeviceId, members: Sequence[tuple[OpId, Run]]
) -> Iterator[Violation]:
    """Sweep the phases twice, the second time for what wraps into the next period.

    Each op is held against the one that reaches furthest of those begun before it;
    if any two overlap, some such pair does.
    """
    slots = sorted(
        (run.start % period, run.duration, op)
        for op, run in members
        if run.duration <= period
    )
    reach, holder, seen = 0, None, set()
    for lap in (0, period):
        for phase, duration, op in slots:
            begin, end = phase + lap, phase + lap + duration
            if holder is not None and holder != op and begin < reach:
                pair = frozenset((holder, op))
                if pair not in seen:
                    seen.add(pair)
                    yield _overlap(device, (holder, op), phase, min(reach, end) - begin)
            if end > reach:
                reach, holder = end, op


def _overlap(
    device: DeviceId, pair: tuple[OpId, OpId], phase: int, ticks: int
) -> Violation:
    first, second = pair
    return Violation(
        rule="exclusive",
        message=f"ops {first!r} and {second!r} overlap on {device!r} for {ticks} "
        f"ticks from phase {phase}, when {second!r} begins",
        ops=pair,
        device=device,
        time=phase,
        excess=ticks,
    )


def check_precedence(graph: Graph, schedule: Schedule) -> tuple[Violation, ...]:
    r"""Data arrive in time, and order without data is kept.

    .. math:: s_v + k\,T \ge s_u + t_u + c_{uv} + \mathrm{lag}
        \qquad \forall (u, v) \in E

    with c = 0 on one device and for dependences.
    """
    run = runs(graph, schedule)
    found = []
    for edge in graph.edges:
        u, v = run.get(edge.src), run.get(edge.dst)
        k = delay_value(schedule, edge.delay)
        if u is None or v is None or k is None:
            continue
        c = (
            0
            if edge.tensor is None
            else transfer_ticks(graph, edge.tensor.size, u.device, v.device)
        )
        excess = u.end + c + edge.lag - (v.start + k * schedule.period)
        if excess > 0:
            found.append(_late(edge, u, v, k, c, schedule.period, excess))
    return tuple(found)


def _late(
    edge: Edge, u: Run, v: Run, k: int, c: int, period: int, excess: int
) -> Violation:
    what = "dependence" if edge.tensor is None else f"tensor {edge.tensor.id!r}"
    return Violation(
        rule="precedence",
        message=f"{what}: {edge.dst!r} starts at {v.start} + {k} * {period} = "
        f"{v.start + k * period}, {excess} ticks before {edge.src!r} allows: start "
        f"{u.start} + duration {u.duration} + transfer {c} + lag {edge.lag} = "
        f"{u.end + c + edge.lag}",
        ops=(edge.src, edge.dst),
        device=v.device,
        time=v.start,
        excess=excess,
    )


def check_delay(graph: Graph, schedule: Schedule) -> tuple[Violation, ...]:
    """Every named delay of the graph is given, within its range; no other is."""
    found = []
    for name, allowed in graph.delays.items():
        value = schedule.delays.get(name)
        high = "no limit" if allowed.max is None else str(allowed.max)
        span = f"allowed are {allowed.min} to {high}"
        if type(value) is not int:
            text = "is missing" if value is None else f"is {value!r}, no integer"
            found.append(_delay(f"delay {name!r} {text}; {span}"))
        elif value < allowed.min:
            text = f"delay {name!r} is {value}; {span}"
            found.append(_delay(text, allowed.min - value))
        elif allowed.max is not None and value > allowed.max:
            text = f"delay {name!r} is {value}; {span}"
            found.append(_delay(text, value - allowed.max))
    found += [
        _delay(f"the graph has no delay {name!r}")
        for name in schedule.delays
        if name not in graph.delays
    ]
    return tuple(found)


def _delay(text: str, excess: int | None = None) -> Violation:
    return Violation(rule="delay", message=text, excess=excess)


def check_colocate(graph: Graph, schedule: Schedule) -> tuple[Violation, ...]:
    """Ops of one colocate group share a device; `ops` names one on each device."""
    run = runs(graph, schedule)
    found = []
    for group in graph.colocate:
        first_on: dict[DeviceId | None, OpId] = {}
        for op in group:
            if op in run:
                first_on.setdefault(run[op].device, op)
        if len(first_on) > 1:
            where = ", ".join(
                f"{op!r} on {device!r}" for device, op in first_on.items()
            )
            found.append(
                Violation(
                    rule="colocate",
                    message=f"ops that must share a device do not: {where}",
                    ops=tuple(first_on.values()),
                )
            )
    return tuple(found)


def check_flush(graph: Graph, schedule: Schedule) -> tuple[Violation, ...]:
    """With flush, one whole iteration fits in a period: last end - first start <= T."""
    run = runs(graph, schedule)
    if not graph.flush or not run:
        return ()
    first = min(run, key=lambda op: run[op].start)
    last = max(run, key=lambda op: run[op].end)
    span = run[last].end - run[first].start
    if span <= schedule.period:
        return ()
    text = (
        f"an iteration takes {span} ticks, from the start of {first!r} at "
        f"{run[first].start} to the end of {last!r} at {run[last].end}; "
        f"the period is {schedule.period}"
    )
    return (
        Violation(
            rule="flush",
            message=text,
            ops=(first, last),
            time=run[first].start,
            excess=span - schedule.period,
        ),
    )
