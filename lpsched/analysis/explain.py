"""Why a schedule's period is what it is: binding structure, slack, idle by cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from lpsched.analysis.cycles import max_cycle_ratio
from lpsched.analysis.dataflow import Arc
from lpsched.analysis.metrics import bubble_ratio
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.schedule import Schedule

__all__ = ["CAUSES", "Binding", "Explanation", "Gap", "Slack", "explain", "total_time"]

#: Why a device is idle before an op, in the order shown.
CAUSES = ("data", "delay", "transfer", "nothing")


class Wait(NamedTuple):
    """One constraint ``start(dst) + delay·T >= start(src) + ticks`` and its origin."""

    src: OpId
    dst: OpId
    ticks: int
    delay: int
    why: str  # "data", "order" (same device) or "dependence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What keeps the period from being shorter without changing the structure.

    The structure is the placement, the cyclic order on each device and the named
    delays. Its least period is the maximum of ticks / delay over its cycles.

    Attributes
    ----------
    kind : str
        ``device`` if a fully loaded device binds, ``op`` if a single op does,
        ``cycle`` for a cycle through several waits, ``flush``, or ``slack`` if the
        same structure would run at a shorter period.
    least_period : Fraction
        The structure's least period, in ticks.
    waits : tuple of Wait
        The binding cycle in order, empty for ``flush``.
    device : DeviceId or None
        The full device, for ``device``.
    full : tuple of DeviceId
        Every device that works all of `least_period`.
    """

    kind: str
    least_period: Fraction
    waits: tuple[Wait, ...] = ()
    device: DeviceId | None = None
    full: tuple[DeviceId, ...] = ()

    def sentence(self) -> str:
        """The binding in words."""
        ops = [wait.src for wait in self.waits]
        if self.kind == "device":
            return self._full_sentence()
        if self.kind == "op":
            alone = f"op {ops[0]} alone takes the whole period"
            return f"{alone}; {self._full_sentence()}" if len(self.full) > 1 else alone
        if self.kind == "flush":
            return "iterations may not overlap, and one takes the whole period"
        cycle = " -> ".join([*ops, ops[0]]) if ops else "no cycle"
        if self.kind == "slack":
            return (
                f"nothing binds: the same placement and order would run at"
                f" {self.least_period} ticks (critical cycle {cycle})"
            )
        takes = f"the cycle {cycle} takes {self.least_period} ticks an iteration"
        return f"{takes}; {self._full_sentence()}" if self.full else takes

    def _full_sentence(self) -> str:
        if len(self.full) == 1:
            return (
                f"device {self.full[0]} is full: it works all {self.least_period} ticks"
            )
        names = ", ".join(self.full)
        return f"devices {names} are full: each works all {self.least_period} ticks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """How far one op can move, all others fixed, in ticks; None without limit."""

    earlier: int | None
    later: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Idle time of a device before an op, with its causes in the order of time.

    Attributes
    ----------
    phase : int
        Where the gap begins, in ticks of the period.
    parts : mapping of str to int
        Ticks by cause: ``data`` (the operand is still being made), ``delay`` (so is
        a value of an earlier iteration, weights as a rule), ``transfer`` (it is under
        way, or a lag runs), ``nothing`` (the op could have begun).
    waits_for : OpId or None
        The op whose result arrives last.
    """

    device: DeviceId
    phase: int
    length: int
    op: OpId
    waits_for: OpId | None
    parts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All of it for one schedule."""

    period: int
    makespan: int
    binding: Binding
    slack: Mapping[OpId, Slack]
    gaps: tuple[Gap, ...]
    bubble_ratio: Fraction

    def idle(self) -> dict[DeviceId, dict[str, int]]:
        """Idle ticks per period of each device, by cause."""
        total: dict[DeviceId, dict[str, int]] = {}
        for gap in self.gaps:
            row = total.setdefault(gap.device, dict.fromkeys(CAUSES, 0))
            for cause, ticks in gap.parts.items():
                row[cause] += ticks
        return total

    def document(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "period": self.period,
            "makespan": self.makespan,
            "bubble_ratio": str(self.bubble_ratio),
            "binding": {
                "kind": self.binding.kind,
                "least_period": str(self.binding.least_period),
                "device": self.binding.device,
                "full": list(self.binding.full),
                "cycle": [wait._asdict() for wait in self.binding.waits],
                "sentence": self.binding.sentence(),
            },
            "slack": {
                op: {"earlier": s.earlier, "later": s.later}
                for op, s in self.slack.items()
            },
            "idle": self.idle(),
            "gaps": [
                {
                    "device": gap.device,
                    "phase": gap.phase,
                    "length": gap.length,
                    "op": gap.op,
                    "waits_for": gap.waits_for,
                    "parts": dict(gap.parts),
                }
                for gap in self.gaps
            ],
        }


def total_time(period: int, makespan: int, iterations: int) -> int:
    """Ticks from first start to last end of N iterations: (N - 1)·T + makespan."""
    return (iterations - 1) * period + makespan if iterations else 0


def explain(graph: Graph, schedule: Schedule) -> Explanation:
    """Explain a valid schedule.

    Parameters
    ----------
    graph, schedule
        A schedule that the verifier accepts for this graph.
    """
    data = list(_data_waits(graph, schedule))
    order = list(_order_waits(graph, schedule))
    ends = [_end(graph, schedule, op.id) for op in graph.ops]
    first = min((placed.start for placed in schedule.ops.values()), default=0)
    makespan = max(ends, default=0) - first
    return Explanation(
        period=schedule.period,
        makespan=makespan,
        binding=_binding(graph, schedule, [*order, *data], makespan),
        slack=_slack(graph, schedule, [*order, *data]),
        gaps=tuple(_gaps(graph, schedule, order, data)),
        bubble_ratio=bubble_ratio(graph, schedule),
    )


def _duration(graph: Graph, schedule: Schedule, op: OpId) -> int:
    return graph.duration(op, schedule.ops[op].device)


def _end(graph: Graph, schedule: Schedule, op: OpId) -> int:
    return schedule.ops[op].start + _duration(graph, schedule, op)


def _data_waits(graph: Graph, schedule: Schedule) -> Iterator[Wait]:
    for edge in graph.edges:
        src, dst = schedule.ops[edge.src].device, schedule.ops[edge.dst].device
        ticks = _duration(graph, schedule, edge.src) + edge.lag
        ticks += graph.transfer_ticks(edge.tensor, src, dst)
        why = "data" if edge.tensor is not None else "dependence"
        yield Wait(edge.src, edge.dst, ticks, schedule.delay(edge.delay), why)


def _order_waits(graph: Graph, schedule: Schedule) -> Iterator[Wait]:
    """Each op waits for the one before it on its device, cyclically.

    The delay is chosen so that the constraint names the very next start: the order
    of phases, with the laps in between.
    """
    by_device: dict[DeviceId, list[OpId]] = defaultdict(list)
    for op in graph.ops:
        device = schedule.ops[op.id].device
        if device is not None and _duration(graph, schedule, op.id) > 0:
            by_device[device].append(op.id)
    for ops in by_device.values():
        ops.sort(key=schedule.phase)
        for before, after in zip(ops, [*ops[1:], ops[0]], strict=True):
            wraps = 1 if after == ops[0] else 0
            delay = wraps + schedule.lap(before) - schedule.lap(after)
            ticks = _duration(graph, schedule, before)
            yield Wait(before, after, ticks, delay, "order")


def _binding(
    graph: Graph, schedule: Schedule, waits: list[Wait], makespan: int
) -> Binding:
    """The critical cycle of the structure, by the maximum cycle ratio.

    Delays of order waits can be negative, but their sum on a cycle that binds is
    positive; laps make them non-negative (a retiming changes no cycle's sum).
    """
    number = {op.id: i for i, op in enumerate(graph.ops)}
    laps = {op.id: schedule.lap(op.id) for op in graph.ops}
    arcs = [
        Arc(
            src=number[w.src],
            dst=number[w.dst],
            weight=w.ticks,
            delay=w.delay + laps[w.dst] - laps[w.src],
            key=i,
        )
        for i, w in enumerate(waits)
    ]
    ratio = max_cycle_ratio(len(number), arcs)
    least = ratio.value if ratio.value is not None else Fraction(schedule.period)
    cycle = tuple(waits[i] for i in ratio.cycle)
    if graph.flush and makespan == schedule.period and least < makespan:
        return Binding(kind="flush", least_period=Fraction(makespan))
    if -(-least.numerator // least.denominator) < schedule.period:
        return Binding(kind="slack", least_period=least, waits=cycle)
    if len(cycle) == 1 and cycle[0].why == "order":
        kind = "op"
    elif all(wait.why == "order" for wait in cycle):
        kind = "device"
    else:
        kind = "cycle"
    device = schedule.ops[cycle[0].src].device if kind == "device" else None
    full = tuple(_full_devices(graph, schedule, least))
    return Binding(kind=kind, least_period=least, waits=cycle, device=device, full=full)


def _full_devices(
    graph: Graph, schedule: Schedule, period: Fraction
) -> Iterator[DeviceId]:
    loads: dict[DeviceId, int] = defaultdict(int)
    for op in graph.ops:
        device = schedule.ops[op.id].device
        if device is not None:
            loads[device] += _duration(graph, schedule, op.id)
    for device in graph.device_ids:
        if loads[device] == period:
            yield device


def _slack(graph: Graph, schedule: Schedule, waits: list[Wait]) -> dict[OpId, Slack]:
    later: dict[OpId, int] = {}
    earlier: dict[OpId, int] = {}
    for wait in waits:
        if wait.src == wait.dst:
            continue
        room = (
            schedule.ops[wait.dst].start
            + wait.delay * schedule.period
            - schedule.ops[wait.src].start
            - wait.ticks
        )
        later[wait.src] = min(room, later.get(wait.src, room))
        earlier[wait.dst] = min(room, earlier.get(wait.dst, room))
    return {
        op.id: Slack(earlier=earlier.get(op.id), later=later.get(op.id))
        for op in graph.ops
    }


def _gaps(
    graph: Graph, schedule: Schedule, order: list[Wait], data: list[Wait]
) -> Iterator[Gap]:
    incoming: dict[OpId, list[Wait]] = defaultdict(list)
    for wait in data:
        incoming[wait.dst].append(wait)
    for before in order:
        op = before.dst
        start = schedule.ops[op].start
        begin = schedule.ops[before.src].start + before.ticks
        begin -= before.delay * schedule.period
        device = schedule.ops[op].device
        if begin >= start or device is None:
            continue
        last, parts = _causes(graph, schedule, incoming[op], begin, start)
        yield Gap(
            device=device,
            phase=begin % schedule.period,
            length=start - begin,
            op=op,
            waits_for=last,
            parts=parts,
        )


def _causes(
    graph: Graph, schedule: Schedule, waits: list[Wait], begin: int, start: int
) -> tuple[OpId | None, dict[str, int]]:
    """Divide [begin, start) by what the latest operand was doing at each tick."""

    def arrival(wait: Wait) -> int:
        shift = wait.delay * schedule.period
        return schedule.ops[wait.src].start + wait.ticks - shift

    latest = max(waits, key=arrival, default=None)
    if latest is None:
        return None, {"nothing": start - begin}
    made = _end(graph, schedule, latest.src) - latest.delay * schedule.period
    arrived = min(start, max(begin, arrival(latest)))
    made = min(arrived, max(begin, made))
    parts = {
        "delay" if latest.delay else "data": made - begin,
        "transfer": arrived - made,
        "nothing": start - arrived,
    }
    return latest.src, {cause: ticks for cause, ticks in parts.items() if ticks}
