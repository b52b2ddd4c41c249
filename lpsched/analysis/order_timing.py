"""Exact times for ops that run in a fixed order on each device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from lpsched.analysis.precedence import PlacedArc, PlacedGraph
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.io import graph_digest
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import NoScheduleError, UnsupportedError

__all__ = ["time_in_order"]


def time_in_order(graph: Graph, orders: Mapping[DeviceId, Sequence[OpId]]) -> Schedule:
    """Give an order of the ops on each device the least period, then the least starts.

    A device runs one whole iteration after another. Starts are longest paths over
    the edges and from each op to the next of its device; with flush the period is the
    makespan. Otherwise the last op of a device precedes the first one of the next
    iteration, and the least period is the greatest mean around cycles of these arcs
    (Newton's method: a cycle that the period under test cannot meet gives the next).
    Memory is not looked at. Ops without a device need not be listed.

    Raises
    ------
    UnsupportedError
        The graph has named delays.
    NoScheduleError
        The orders wait for each other, or for an edge, in a cycle.
    """
    if graph.delays:
        raise UnsupportedError("ops in a fixed order need fixed delays")
    placement = {op: device for device, ops in orders.items() for op in ops}
    placed = PlacedGraph.of(graph, placement)
    timer = _Timer(placed, list(orders.values()))
    period, starts = timer.whole() if graph.flush else timer.steady()
    number, devices = placed.number, placed.devices
    return Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=period,
        ops={
            op.id: Placed(devices[number[op.id]], starts[number[op.id]])
            for op in graph.ops
        },
        graph_document=graph,
    )


class _Timer:
    """Arcs of a placed graph and of the orders; those without delay sorted to one pass.

    Attributes
    ----------
    inner : list of (dst, sources)
        Ops in topological order of the arcs without delay, each with its arcs.
    outer : list of PlacedArc
        Arcs with a delay.
    """

    def __init__(self, placed: PlacedGraph, orders: Sequence[Sequence[OpId]]) -> None:
        number, self._durations = placed.number, placed.durations
        rows = [[number[op] for op in ops] for ops in orders if ops]
        edges = [arc for arc in placed.arcs if not _is_implied(placed, arc)]
        arcs = [*edges, *_order_arcs(rows, placed.durations)]
        self._outer = [arc for arc in arcs if arc.delay != 0]
        self._inner = _sorted([arc for arc in arcs if arc.delay == 0], len(number))

    def whole(self) -> tuple[int, list[int]]:
        """Makespan and least starts of one iteration on its own."""
        starts = [0] * len(self._durations)
        self._settle(starts, [None] * len(starts))
        ends = (s + t for s, t in zip(starts, self._durations, strict=True))
        return max(1, max(ends, default=0), self._longest_wait(starts)), starts

    def _longest_wait(self, starts: Sequence[int]) -> int:
        """Least period for the arcs with a delay, the starts being what they are."""
        waits = [starts[a.src] + a.ticks - starts[a.dst] for a in self._outer]
        delays = [_whole(a) for a in self._outer]
        return max((-(-w // k) for w, k in zip(waits, delays, strict=True)), default=0)

    def steady(self) -> tuple[int, list[int]]:
        """Least period of iterations that follow each other, and least starts."""
        period = 1
        while True:
            starts = [0] * len(self._durations)
            longer = self._refute(period, starts)
            if longer is None:
                return period, starts
            period = longer

    def _refute(self, period: int, starts: list[int]) -> int | None:
        """Raise starts until all arcs are met; or return the period of a cycle."""
        via: list[PlacedArc | None] = [None] * len(starts)
        while True:
            self._settle(starts, via)
            late = []
            for arc in self._outer:
                start = starts[arc.src] + arc.ticks - _whole(arc) * period
                if start > starts[arc.dst]:
                    starts[arc.dst], via[arc.dst] = start, arc
                    late.append(arc.dst)
            if not late:
                return None
            cycles = (_cycle_period(via, op) for op in late)
            longest = max((t for t in cycles if t is not None), default=0)
            if longest > period:
                return longest

    def _settle(self, starts: list[int], via: list[PlacedArc | None]) -> None:
        """Meet all arcs without delay, in one pass."""
        for op, arcs in self._inner:
            start = starts[op]
            for arc in arcs:
                ready = starts[arc.src] + arc.ticks
                if ready > start:
                    start = ready
                    via[op] = arc
            starts[op] = start


def _is_implied(placed: PlacedGraph, arc: PlacedArc) -> bool:
    """Whether a device's iterations keep an arc anyway, as they do not overlap."""
    home = placed.devices[arc.src]
    together = home is not None and home == placed.devices[arc.dst]
    return together and arc.delay != 0 and arc.ticks <= placed.durations[arc.src]


def _whole(arc: PlacedArc) -> int:
    if not isinstance(arc.delay, int):
        raise TypeError(f"delay {arc.delay!r} is not fixed")
    return arc.delay


def _order_arcs(
    rows: Sequence[Sequence[int]], durations: Sequence[int]
) -> Iterator[PlacedArc]:
    """From each op to the next on its device, and from the last to the first."""
    for row in rows:
        for u, v in pairwise(row):
            yield PlacedArc(u, v, durations[u], 0)
        yield PlacedArc(row[-1], row[0], durations[row[-1]], 1)


def _sorted(
    arcs: Sequence[PlacedArc], num_ops: int
) -> list[tuple[int, list[PlacedArc]]]:
    """Ops in topological order, each with the arcs that enter it."""
    incoming: list[list[PlacedArc]] = [[] for _ in range(num_ops)]
    after: list[list[int]] = [[] for _ in range(num_ops)]
    waits = [0] * num_ops
    for arc in arcs:
        incoming[arc.dst].append(arc)
        after[arc.src].append(arc.dst)
        waits[arc.dst] += 1
    ready = [op for op, count in enumerate(waits) if count == 0]
    order = []
    while ready:
        op = ready.pop()
        order.append((op, incoming[op]))
        for follower in after[op]:
            waits[follower] -= 1
            if waits[follower] == 0:
                ready.append(follower)
    if len(order) < num_ops:
        raise NoScheduleError("the orders of the devices wait for each other")
    return order


def _cycle_period(via: Sequence[PlacedArc | None], op: int) -> int | None:
    """Least period of the cycle that leads back to an op along `via`; None if none."""
    ticks = delay = 0
    seen = set()
    at = op
    while (arc := via[at]) is not None and at not in seen:
        seen.add(at)
        ticks, delay = ticks + arc.ticks, delay + _whole(arc)
        at = arc.src
        if at == op:
            return -(-ticks // delay)
    return None
