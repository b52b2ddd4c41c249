"""Exact times for ops that run in a fixed order on each device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil

import numpy as np
import numpy.typing as npt

from lpsched.analysis.cycles import max_cycle_ratio
from lpsched.analysis.dataflow import Arc
from lpsched.analysis.precedence import PlacedArc, PlacedGraph
from lpsched.core.graph import OpId
from lpsched.errors import NoScheduleError, UnsupportedError

__all__ = ["time_in_order"]

#: Where no path leads.
_NONE = np.int64(-(2**60))


def time_in_order(
    placed: PlacedGraph, orders: Sequence[Sequence[OpId]]
) -> tuple[int, list[int]]:
    """Give an order of the ops on each device the least period, then the least starts.

    A device runs one whole iteration after another. Starts are longest paths over
    the edges and from each op to the next of its device; with flush the period is the
    makespan. Otherwise the last op of a device precedes the first one of the next
    iteration, and the least period is the greatest ratio of ticks to delay around
    cycles of the arcs with a delay and the longest paths between them. Memory is not
    looked at.

    Parameters
    ----------
    orders : sequence of sequence of OpId
        For each device, all its ops. Ops without a device are not listed.

    Returns
    -------
    period : int
    starts : list of int
        In the order of `placed.ops`, in ticks.

    Raises
    ------
    UnsupportedError
        The graph has named delays.
    NoScheduleError
        The orders wait for each other, or for an edge, in a cycle.
    """
    if placed.graph.delays:
        raise UnsupportedError("ops in a fixed order need fixed delays")
    timer = _Timer(placed, [ops for ops in orders if ops])
    period = timer.makespan() if placed.graph.flush else timer.least_period()
    return period, timer.starts(period)


class _Timer:
    """Arcs of a placed graph and of the orders; those without delay sorted to one pass.

    Attributes
    ----------
    inner : list of (op, arcs)
        Ops in topological order of the arcs without delay, each with what enters it.
    outer : list of (src, dst, ticks, delay)
        Arcs with a delay that others do not imply.
    """

    def __init__(self, placed: PlacedGraph, orders: Sequence[Sequence[OpId]]) -> None:
        number, self._durations = placed.number, placed.durations
        rows = [[number[op] for op in ops] for ops in orders]
        arcs = [*placed.arcs, *_order_arcs(rows, placed.durations)]
        self._inner = _sorted([arc for arc in arcs if arc.delay == 0], len(number))
        self._outer = list(_needed(placed, rows, arcs))

    def starts(self, period: int) -> list[int]:
        """Least starts >= 0 at a period that all arcs allow."""
        starts = [0] * len(self._durations)
        moving = True
        while moving:
            for op, arcs in self._inner:
                start = starts[op]
                for src, ticks in arcs:
                    ready = starts[src] + ticks
                    start = max(ready, start)
                starts[op] = start
            moving = False
            for src, dst, ticks, delay in self._outer:
                start = starts[src] + ticks - delay * period
                if start > starts[dst]:
                    starts[dst], moving = start, True
        return starts

    def makespan(self) -> int:
        """Last end of one iteration on its own, or more for an arc with a delay."""
        outer, self._outer = self._outer, []
        starts = self.starts(1)
        self._outer = outer
        ends = (s + t for s, t in zip(starts, self._durations, strict=True))
        waits = (-((starts[v] - starts[u] - t) // k) for u, v, t, k in outer)
        return max(1, max(ends, default=0), max(waits, default=0))

    def least_period(self) -> int:
        r"""Least period of iterations that follow each other.

        From the end of one arc with a delay to the start of another leads a longest
        path, or none; T is at least the ratio of ticks to delay around every cycle of
        both, and no other cycles have a delay.
        """
        heads = list(dict.fromkeys(dst for _, dst, _, _ in self._outer))
        if not heads:
            return 1
        place = {op: i for i, op in enumerate(heads)}
        paths = self._paths(heads)
        arcs = [
            Arc(i, place[dst], int(length) + ticks, delay, None)
            for src, dst, ticks, delay in self._outer
            for i, length in enumerate(paths[src])
            if length >= 0
        ]
        least = Fraction(1)
        return ceil(max_cycle_ratio(len(heads), arcs, floor=least).value or least)

    def _paths(self, sources: Sequence[int]) -> npt.NDArray[np.int64]:
        """Longest paths without delay from each source to each op, by op."""
        lengths = np.full((len(self._durations), len(sources)), _NONE)
        lengths[sources, range(len(sources))] = 0
        for op, arcs in self._inner:
            row = lengths[op]
            for src, ticks in arcs:
                np.maximum(row, lengths[src] + ticks, out=row)
        return lengths


def _order_arcs(
    rows: Sequence[Sequence[int]], durations: Sequence[int]
) -> Iterator[PlacedArc]:
    """From each op to the next on its device, and from the last to the first."""
    for row in rows:
        for u, v in pairwise(row):
            yield PlacedArc(u, v, durations[u], 0)
        yield PlacedArc(row[-1], row[0], durations[row[-1]], 1)


def _needed(
    placed: PlacedGraph, rows: Sequence[Sequence[int]], arcs: Sequence[PlacedArc]
) -> Iterator[tuple[int, int, int, int]]:
    """Arcs with a delay, but those that others imply.

    An arc that stays on a device and has no lag holds as iterations do not overlap
    there. Of arcs from one op to several of a device, alike in ticks and delay, that
    to the first of them implies the others.
    """
    place = {op: (d, i) for d, row in enumerate(rows) for i, op in enumerate(row)}
    ends = {(row[-1], row[0]) for row in rows}
    first: dict[tuple[int, int, int, int], tuple[int, int]] = {}
    for u, v, ticks, delay in arcs:
        if delay == 0 or not isinstance(delay, int):
            continue
        home, at = place.get(v, (-1 - v, 0))  # an op without a device is on its own
        together = u in place and place[u][0] == home
        if together and (u, v) not in ends and ticks <= placed.durations[u]:
            continue
        key = (u, home, ticks, delay)
        first[key] = min(first.get(key, (at, v)), (at, v))
    for (u, _, ticks, delay), (_, v) in first.items():
        yield u, v, ticks, delay


def _sorted(
    arcs: Sequence[PlacedArc], num_ops: int
) -> list[tuple[int, list[tuple[int, int]]]]:
    """Ops in topological order, each with the source and ticks of what enters it."""
    incoming: list[list[tuple[int, int]]] = [[] for _ in range(num_ops)]
    after: list[list[int]] = [[] for _ in range(num_ops)]
    waits = [0] * num_ops
    for src, dst, ticks, _ in arcs:
        incoming[dst].append((src, ticks))
        after[src].append(dst)
        waits[dst] += 1
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
