"""What the rules look at: where and when each op runs, as far as that is legal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from lpsched.core.graph import DelayName, DeviceId, Graph, Op, OpId
from lpsched.core.schedule import Placed, Schedule

__all__ = ["Run", "delay_value", "placement_fault", "runs", "transfer_ticks"]


@dataclass(frozen=True, slots=True)
class Run:
    """Iteration 0 of one op: its device, start s and duration t, in ticks."""

    device: DeviceId | None
    start: int
    duration: int

    @property
    def end(self) -> int:
        """``s + t``."""
        return self.start + self.duration


def placement_fault(graph: Graph, op: Op, placed: Placed) -> str | None:
    """Say what is wrong with an op's device or start; None if nothing is."""
    if type(placed.start) is not int:
        return f"its start {placed.start!r} is no integer"
    allowed = graph.device_ids if op.devices is None else op.devices
    if placed.device is None:
        return f"it needs a device, one of {_listed(allowed)}" if allowed else None
    if not allowed:
        return f"it occupies no device, yet {placed.device!r} is given"
    if placed.device not in allowed:
        return f"{placed.device!r} is not allowed, only {_listed(allowed)}"
    return None


def _listed(devices: tuple[DeviceId, ...]) -> str:
    shown = ", ".join(devices[:8])
    return shown if len(devices) <= 8 else f"{shown} and {len(devices) - 8} more"


def runs(graph: Graph, schedule: Schedule) -> Mapping[OpId, Run]:
    """Every op that stands in the schedule with a legal device and start.

    The others break *coverage*, and the rest of the rules cannot speak of them.
    Every rule asks for them, so they are kept with the schedule, which never changes,
    beside the graph they are of.
    """
    kept = vars(schedule).get("_runs")
    if kept is None or kept[0] is not graph:
        kept = graph, _runs(graph, schedule)
        vars(schedule)["_runs"] = kept
    return cast("Mapping[OpId, Run]", kept[1])


def _runs(graph: Graph, schedule: Schedule) -> dict[OpId, Run]:
    found: dict[OpId, Run] = {}
    for op in graph.ops:
        placed = schedule.ops.get(op.id)
        if placed is None or placement_fault(graph, op, placed) is not None:
            continue
        if isinstance(op.duration, int):
            duration = op.duration
        elif placed.device is None:  # a graph that breaks its own format
            continue
        else:
            duration = op.duration[placed.device]
        found[op.id] = Run(placed.device, placed.start, duration)
    return found


def delay_value(schedule: Schedule, delay: int | DelayName) -> int | None:
    """Value k of an edge's delay, in iterations; None if the schedule omits it."""
    return delay if isinstance(delay, int) else schedule.delays.get(delay)


def transfer_ticks(
    graph: Graph, size: int, src: DeviceId | None, dst: DeviceId | None
) -> int:
    """Ticks c that `size` units take: ``latency + ceil(size / units_per_tick)``.

    0 on one device and where either op occupies none.
    """
    if src is None or dst is None or src == dst:
        return 0
    link = graph.links.get((src, dst), graph.link)
    if link.units_per_tick is None:
        return link.latency
    whole, rest = divmod(size, link.units_per_tick)
    return link.latency + whole + (1 if rest else 0)
