"""Phases from an order of the ops: packed, started early, or put into gaps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from lpsched.analysis.precedence import Block, PlacedArc, PlacedGraph
from lpsched.analysis.reservation import Reservation
from lpsched.core.graph import DeviceId, OpId

__all__ = [
    "Packer",
    "earliest_phases",
    "gap_phases",
    "pack_phases",
]

#: Gives phases to the ops of an order; None if they do not fit.
Packer: TypeAlias = Callable[
    [PlacedGraph, int, Sequence[Block]], "dict[OpId, int] | None"
]


def pack_phases(
    placed: PlacedGraph, period: int, order: Sequence[Block]
) -> dict[OpId, int]:
    """Run each device's blocks in order, from phase 0 without a gap.

    An op of no duration or without a device occupies nothing; it gets no phase, so
    that it may start at any tick. The result is exclusive whenever each device's load
    is <= T.
    """
    phases: dict[OpId, int] = {}
    cursor = dict.fromkeys(placed.graph.device_ids, 0)
    for op in (op for block in order for op in block):
        i = placed.number[op]
        device, duration = placed.devices[i], placed.durations[i]
        if device is not None and duration > 0:
            phases[op] = cursor[device] % period
            cursor[device] += duration
    return phases


class _Pass:
    """A forward pass: blocks in order, each as early as its operands allow.

    Only arcs of integer delay from ops already started are looked at. An op of no
    duration starts when it can.
    """

    def __init__(self, placed: PlacedGraph, period: int) -> None:
        self.placed = placed
        self.period = period
        self.starts: dict[int, int] = {}
        self._incoming: Mapping[int, list[PlacedArc]] = _incoming(placed)

    def ready(self, block: Sequence[int]) -> int | None:
        """Return when a block's operands are there; None if it need not wait."""
        times: list[int] = []
        offset = 0
        for op in block:
            for arc in self._incoming[op]:
                if arc.src in self.starts and isinstance(arc.delay, int):
                    end = self.starts[arc.src] + arc.ticks
                    times.append(end - arc.delay * self.period - offset)
            offset += self.placed.durations[op]
        return max((time for time in times if time > 0), default=None)

    def start(self, block: Sequence[int], tick: int) -> None:
        """Start the ops of a block back to back."""
        for op in block:
            self.starts[op] = tick
            tick += self.placed.durations[op]

    def phases(self) -> dict[OpId, int]:
        """Phases of the ops that occupy a device."""
        return {
            self.placed.ops[i]: start % self.period
            for i, start in self.starts.items()
            if self.placed.devices[i] is not None and self.placed.durations[i] > 0
        }


def _incoming(placed: PlacedGraph) -> Mapping[int, list[PlacedArc]]:
    arcs: defaultdict[int, list[PlacedArc]] = defaultdict(list)
    for arc in placed.arcs:
        if arc.src != arc.dst:
            arcs[arc.dst].append(arc)
    return arcs


def _numbered(
    placed: PlacedGraph, order: Sequence[Block]
) -> list[tuple[list[int], DeviceId | None, int]]:
    """Blocks as numbers, each with its device and total duration."""
    found = []
    for block in order:
        numbers = [placed.number[op] for op in block]
        total = sum(placed.durations[i] for i in numbers)
        devices = (placed.devices[i] for i in numbers)
        device = next((device for device in devices if device is not None), None)
        found.append((numbers, device, total))
    return found


def earliest_phases(
    placed: PlacedGraph, period: int, order: Sequence[Block]
) -> dict[OpId, int]:
    """Run each device's blocks in order, each as early as idle time allows.

    A device may idle T - load ticks in all. A block waits for its operands out of
    what is left of them; where that is not enough it follows its predecessor without
    a gap, in the first later period in which the operands are there. Exclusive
    whenever each device's load is <= T. With no idle time this is `pack_phases` with
    each device rotated so that its first block starts when it can.
    """
    run = _Pass(placed, period)
    blocks = _numbered(placed, order)
    idle = dict.fromkeys(placed.graph.device_ids, period)
    for _, device, total in blocks:
        if device is not None:
            idle[device] -= total
    end: dict[DeviceId, int] = {}
    for block, device, total in blocks:
        ready = run.ready(block)
        if device is None or total == 0:
            run.start(block, ready or 0)
            continue
        cursor = end.get(device, ready or 0)
        tick = cursor if ready is None else ready
        gap = (tick - cursor) % period
        if gap > idle[device]:
            tick, gap = tick + period - gap, 0
        idle[device] -= gap
        run.start(block, tick)
        end[device] = tick + total
    return run.phases()


def gap_phases(
    placed: PlacedGraph, period: int, order: Sequence[Block]
) -> dict[OpId, int] | None:
    """Start each block in order as early as its device has a gap that holds it.

    None as soon as a block finds no gap: the devices may be free long enough in all,
    yet in pieces too short.
    """
    run = _Pass(placed, period)
    busy = {device: Reservation(period) for device in placed.graph.device_ids}
    for block, device, total in _numbered(placed, order):
        ready = run.ready(block) or 0
        if device is None or total == 0:
            run.start(block, ready)
            continue
        tick = busy[device].earliest(ready, total)
        if tick is None:
            return None
        run.start(block, tick)
        busy[device].reserve(tick, total, block[0])
    return run.phases()
