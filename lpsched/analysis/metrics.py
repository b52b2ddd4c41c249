"""The figures of a schedule, for solvers, plots and reports; memory over time.

A second implementation, in formulas of its own, of what `lpsched.verify.measure`
measures; the tests hold the two against each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from lpsched.core.graph import DeviceId, Graph, OpId, Tensor, TensorId
from lpsched.core.measures import Measures
from lpsched.core.schedule import Schedule

__all__ = [
    "Copy",
    "bubble_ratio",
    "bubble_to_work",
    "copies",
    "device_loads",
    "level_curve",
    "measure",
    "memory_curve",
    "received_sizes",
    "stash_depth",
]


class Copy(NamedTuple):
    """Iteration 0's copy of `tensor` on `device`: alive from birth up to death."""

    tensor: Tensor
    device: DeviceId
    birth: int
    death: int


def measure(graph: Graph, schedule: Schedule) -> Measures:
    """Measure a schedule that covers all ops and named delays of `graph`.

    Returns
    -------
    Measures
        Exact: times in ticks, sizes in the graph's unit, ratios as fractions.

    Raises
    ------
    KeyError
        An op or named delay is missing from the schedule.
    """
    loads = device_loads(graph, schedule)
    period = schedule.period
    places = schedule.ops
    starts = [places[op.id].start for op in graph.ops]
    ends = [
        places[op.id].start + graph.duration(op.id, places[op.id].device)
        for op in graph.ops
    ]
    lives = copies(graph, schedule)
    return Measures(
        period=period,
        iteration_period=Fraction(period) / graph.unfolding,
        communication=sum(
            life.tensor.size
            for life in lives
            if life.device != places[life.tensor.producer].device
        ),
        staleness=sum(schedule.delays[name] for name in graph.delays)
        - len(graph.delays),
        makespan=max(ends) - min(starts) if starts else 0,
        peak_memory=max(
            (
                max(units for _, units in _curve(graph, schedule, device, own))
                for device, own in _by_device(graph, lives).items()
            ),
            default=0,
        ),
        bubble_ratio=bubble_ratio(graph, schedule),
        utilisation={d: Fraction(load, period) for d, load in loads.items()},
    )


def device_loads(graph: Graph, schedule: Schedule) -> dict[DeviceId, int]:
    """Ticks of work that each device does in a period."""
    loads = dict.fromkeys(graph.device_ids, 0)
    for op in graph.ops:
        device = schedule.ops[op.id].device
        if device is not None:
            loads[device] += graph.duration(op.id, device)
    return loads


def received_sizes(
    graph: Graph, placement: Mapping[OpId, DeviceId | None]
) -> dict[DeviceId, int]:
    """Size units that each device receives per period: a tensor once, if it uses it.

    Ops without a device, which need not be listed, neither send nor receive.
    """
    received = dict.fromkeys(graph.device_ids, 0)
    for tensor in graph.tensors:
        home = placement.get(tensor.producer)
        users = {placement.get(use.op) for use in tensor.consumers}
        for device in users - {home, None} if home is not None else ():
            if device is not None:
                received[device] += tensor.size
    return received


def bubble_ratio(graph: Graph, schedule: Schedule) -> Fraction:
    """Share of all devices' periods in which they idle; 0 without a device."""
    loads = device_loads(graph, schedule).values()
    if not loads:
        return Fraction(0)
    return 1 - Fraction(sum(loads), len(loads) * schedule.period)


def bubble_to_work(graph: Graph, schedule: Schedule) -> Fraction | None:
    """Idle ticks over ticks of work, all devices together; None without work."""
    loads = device_loads(graph, schedule).values()
    work = sum(loads)
    return Fraction(len(loads) * schedule.period - work, work) if work else None


def memory_curve(
    graph: Graph, schedule: Schedule, device: DeviceId
) -> list[tuple[int, int]]:
    """What a device holds over one period of the steady state.

    Returns
    -------
    list of (phase, units)
        The level from each phase to the next one listed (the last: to the end of
        the period), residents included; begins at phase 0 and lists changes only.
    """
    lives = [life for life in copies(graph, schedule) if life.device == device]
    return _curve(graph, schedule, device, lives)


def stash_depth(
    graph: Graph, schedule: Schedule
) -> dict[tuple[TensorId, DeviceId], int]:
    """Versions of each tensor that a device holds at once, at most.

    ``ceil((death - birth) / T)``: successive iterations' copies are T apart. A weight
    read with staleness s shows s + 1 or more where it is made; an activation shows
    the iterations in flight. Tensors of size 0 are counted, too; a copy that lives 0
    ticks counts 0.
    """
    return {
        (life.tensor.id, life.device): -((life.birth - life.death) // schedule.period)
        for life in copies(graph, schedule)
    }


def copies(graph: Graph, schedule: Schedule) -> list[Copy]:
    """List every copy: on the producer's device first, then where it is sent.

    Births and deaths in ticks, as rule 6 of formats.md has them; ops without a device
    make none.
    """
    period, places = schedule.period, schedule.ops
    found: list[Copy] = []
    for tensor in graph.tensors:
        made = places[tensor.producer]
        if made.device is None:
            continue
        done = made.start + graph.duration(tensor.producer, made.device)
        needed: defaultdict[DeviceId, list[int]] = defaultdict(list)
        for use in tensor.consumers:
            user = places[use.op]
            if user.device is not None:
                start = user.start + schedule.delay(use.delay) * period
                needed[user.device].append(start + graph.duration(use.op, user.device))
        sent = {
            d: done + graph.transfer_ticks(tensor, made.device, d)
            for d in needed
            if d != made.device
        }
        last = max([done, *needed[made.device], *sent.values()])
        found.append(Copy(tensor, made.device, made.start, last))
        found += [
            Copy(tensor, d, done, max(arrived, *needed[d]))
            for d, arrived in sent.items()
        ]
    return found


def _by_device(graph: Graph, lives: list[Copy]) -> dict[DeviceId, list[Copy]]:
    by_device: dict[DeviceId, list[Copy]] = {d: [] for d in graph.device_ids}
    for life in lives:
        by_device[life.device].append(life)
    return by_device


def _curve(
    graph: Graph, schedule: Schedule, device: DeviceId, lives: list[Copy]
) -> list[tuple[int, int]]:
    spans = [(birth, death, tensor.size) for tensor, _, birth, death in lives]
    resident = _resident(graph, schedule, device)
    return level_curve(schedule.period, spans, resident)


def level_curve(
    period: int, spans: Iterable[tuple[int, int, int]], level: int = 0
) -> list[tuple[int, int]]:
    r"""Level at each phase where it changes, the first one phase 0.

    Parameters
    ----------
    spans : iterable of (birth, death, units)
        Iteration 0's copies; iteration n's live n periods later. A copy alive in
        :math:`[b, d)` is alive at phase 0 in each iteration n with
        :math:`b + nT \le 0 < d + nT`, and these are
        :math:`\lfloor -b/T \rfloor - \lfloor -d/T \rfloor` iterations. From there
        one more begins at phase b mod T, one ends at d mod T.
    level : int
        What is there at all times.
    """
    steps: Counter[int] = Counter()
    for birth, death, units in spans:
        level += units * ((-birth) // period - (-death) // period)
        steps[birth % period] += units
        steps[death % period] -= units
    steps.pop(0, None)  # counted in the level at phase 0
    curve = [(0, level)]
    for phase in sorted(steps):
        if steps[phase]:
            level += steps[phase]
            curve.append((phase, level))
    return curve


def _resident(graph: Graph, schedule: Schedule, device: DeviceId) -> int:
    return sum(
        r.size
        for r in graph.residents
        if any(schedule.ops[op].device == device for op in r.ops)
    )
