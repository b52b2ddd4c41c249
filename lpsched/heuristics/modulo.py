"""Iterative modulo scheduling: devices and starts at one period, op by op."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lpsched.analysis.cycles import relax, sweep_order
from lpsched.analysis.dataflow import flow_of
from lpsched.analysis.reservation import Reservation
from lpsched.analysis.sites import Site, Sites
from lpsched.core.graph import Edge, Graph, OpId
from lpsched.core.over import Over, never
from lpsched.core.schedule import Placed

__all__ = ["ModuloScheduler"]

#: Placements in all before an attempt is given up, evicted ops counted again: so many
#: per op, and fewer, but not below the second figure, on a graph of many ops.
MAX_ROUNDS, MIN_ROUNDS, ROUNDED_OPS = 12, 2, 2000


class _Use(NamedTuple):
    """An edge that can bind, seen from one of its ends."""

    other: int
    edge: Edge
    delay: int


@dataclass(frozen=True, slots=True)
class _Choice:
    """A place for an op: with whether its consumers are met, and when it ends."""

    late: bool
    end: int
    sent: int
    start: int
    site: Site

    @property
    def rank(self) -> tuple[bool, int, int]:
        return self.late, self.end, self.sent


class ModuloScheduler:
    """A graph prepared for attempts at several periods.

    Ops are taken by the longest way that hangs on them, each put on the device where
    it ends first (of equals, where least is sent). An op that fits nowhere takes its
    place by force, and what is in its way, or now too early, is scheduled again.
    Named delays stand at their maximum; those without limit bind nothing.

    Source: Rau, *Iterative modulo scheduling* (MICRO 1994); the choice of device is
    ours.
    """

    def __init__(self, graph: Graph, sites: Sites) -> None:
        self.graph = graph
        self.sites = sites
        self.ids: Sequence[OpId] = [op.id for op in graph.ops]
        number = {op: i for i, op in enumerate(self.ids)}
        self.mates = [
            [number[m] for m in sites.groups[sites.group_of[op]] if m != op]
            for op in self.ids
        ]
        self.incoming: list[list[_Use]] = [[] for _ in self.ids]
        self.outgoing: list[list[_Use]] = [[] for _ in self.ids]
        for edge in graph.edges:
            _, delay = graph.delay_range(edge.delay)
            u, v = number[edge.src], number[edge.dst]
            if delay is not None and u != v:
                self.incoming[v].append(_Use(u, edge, delay))
                self.outgoing[u].append(_Use(v, edge, delay))
        flow = flow_of(graph)
        self._reversed = [arc._replace(src=arc.dst, dst=arc.src) for arc in flow.arcs]
        self._sweep = sweep_order(len(self.ids), self._reversed)
        self._times = flow.times

    def attempt(self, period: int, over: Over = never) -> dict[OpId, Placed] | None:
        """Place every op and start it, or give up: None says nothing of feasibility.

        With flush all starts and ends lie within 0 .. T.
        """
        heights = self._heights(period)
        if heights is None or any(time > period for time in self._longest()):
            return None
        return _Attempt(self, period, heights).run(over)

    def _longest(self) -> Sequence[int]:
        """Least durations of the ops that occupy a device."""
        pairs = zip(self.ids, self._times, strict=True)
        return [t for op, t in pairs if self.sites.allowed[op] != (None,)]

    def _heights(self, period: int) -> Sequence[int] | None:
        """Longest way from each op's start on, ``delay * T`` less; None if endless."""
        lengths = [arc.weight - arc.delay * period for arc in self._reversed]
        heights = list(self._times)
        loops = relax(self._reversed, lengths, heights, self._sweep)
        return None if loops else heights


class _Attempt:
    """The state of one attempt at one period."""

    def __init__(
        self, scheduler: ModuloScheduler, period: int, heights: Sequence[int]
    ) -> None:
        self._of = scheduler
        self._period = period
        self._busy = {p: Reservation(period) for p in scheduler.graph.device_ids}
        self._start: dict[int, int] = {}
        self._site: dict[int, Site] = {}
        self._last: dict[int, int] = {}
        self._heights = heights
        self._queue: list[tuple[int, int]] = []
        for op in range(len(heights)):
            self._enqueue(op)

    def run(self, over: Over) -> dict[OpId, Placed] | None:
        num_ops = len(self._of.ids)
        rounds = ROUNDED_OPS // max(1, num_ops)
        budget = num_ops * min(MAX_ROUNDS, max(MIN_ROUNDS, rounds))
        while self._queue:
            if budget == 0 or over():
                return None
            budget -= 1
            _, op = heapq.heappop(self._queue)
            choices = [self._choice(op, site) for site in self._sites(op)]
            fitting = [choice for choice in choices if choice is not None]
            if not fitting:
                fitting = [self._forced(op)]
            best = min(fitting, key=lambda choice: choice.rank)
            if self._of.graph.flush and best.end > self._period:
                return None
            self._place(op, best)
        ids = self._of.ids
        return {ids[i]: Placed(self._site[i], s) for i, s in self._start.items()}

    def _sites(self, op: int) -> Sequence[Site]:
        """Devices left to an op: that of its colocated ops once one is placed."""
        for mate in self._of.mates[op]:
            if mate in self._site:
                return (self._site[mate],)
        return self._of.sites.allowed[self._of.ids[op]]

    def _choice(self, op: int, site: Site) -> _Choice | None:
        """Return the earliest free place on a device; None if there is none."""
        duration = self._of.graph.duration(self._of.ids[op], site)
        ready = self._ready(op, site)
        start: int | None = ready
        if site is not None:
            start = self._busy[site].earliest(ready, duration)
        if start is None or (self._of.graph.flush and start + duration > self._period):
            return None
        late = any(start > latest for _, latest in self._limits(op, site, duration))
        return _Choice(late, start + duration, self._sent(op, site), start, site)

    def _ready(self, op: int, site: Site) -> int:
        """Tick at which the operands that are scheduled are there, at least 0."""
        times = [
            self._start[use.other]
            + self._of.graph.duration(use.edge.src, self._site[use.other])
            + self._of.graph.transfer_ticks(
                use.edge.tensor, self._site[use.other], site
            )
            + use.edge.lag
            - use.delay * self._period
            for use in self._of.incoming[op]
            if use.other in self._start
        ]
        return max([0, *times])

    def _limits(self, op: int, site: Site, duration: int) -> Iterator[tuple[int, int]]:
        """Consumers already scheduled, each with the latest start that it allows."""
        for use in self._of.outgoing[op]:
            if use.other in self._start:
                c = self._of.graph.transfer_ticks(
                    use.edge.tensor, site, self._site[use.other]
                )
                due = self._start[use.other] + use.delay * self._period
                yield use.other, due - duration - c - use.edge.lag

    def _sent(self, op: int, site: Site) -> int:
        """Size of what an op on a device sends and receives, as far as is known."""
        return sum(
            use.edge.tensor.size
            for use in (*self._of.incoming[op], *self._of.outgoing[op])
            if use.edge.tensor is not None
            and self._site.get(use.other, site) not in (site, None)
        )

    def _forced(self, op: int) -> _Choice:
        """Return the place to take by force: later than the last time, so as to end."""
        ready, order = min(
            (self._ready(op, site), i) for i, site in enumerate(self._sites(op))
        )
        site = self._sites(op)[order]
        start = max(ready, self._last.get(op, -1) + 1)
        end = start + self._of.graph.duration(self._of.ids[op], site)
        return _Choice(True, end, 0, start, site)

    def _place(self, op: int, choice: _Choice) -> None:
        """Put an op in its place; take out what overlaps it or starts too early."""
        duration = choice.end - choice.start
        if choice.site is not None:
            for other in self._busy[choice.site].conflicts(choice.start, duration):
                self._remove(other)
            self._busy[choice.site].reserve(choice.start, duration, op)
        limits = list(self._limits(op, choice.site, duration))
        for other in {other for other, latest in limits if choice.start > latest}:
            self._remove(other)
        self._start[op] = self._last[op] = choice.start
        self._site[op] = choice.site

    def _remove(self, op: int) -> None:
        start, site = self._start.pop(op), self._site.pop(op)
        if site is not None:
            duration = self._of.graph.duration(self._of.ids[op], site)
            self._busy[site].release(start, duration, op)
        self._enqueue(op)

    def _enqueue(self, op: int) -> None:
        heapq.heappush(self._queue, (-self._heights[op], op))
