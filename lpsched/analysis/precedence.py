"""A placed graph as numbered arcs, and the least starts and delays they allow."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from lpsched.analysis.cycles import predecessor_cycles
from lpsched.core.graph import DelayName, DeviceId, Edge, Graph, OpId

__all__ = [
    "Block",
    "PlacedArc",
    "PlacedGraph",
    "Placement",
    "Times",
    "topological_order",
]

#: The device of every op that occupies one; other ops may be absent or None.
Placement: TypeAlias = Mapping[OpId, DeviceId | None]

#: Ops that run back to back on one device, in the same iteration.
Block: TypeAlias = tuple[OpId, ...]


def topological_order(
    graph: Graph, edges: Iterable[Edge] | None = None
) -> tuple[OpId, ...]:
    """Ops so that edges point forward, in the graph's order where these leave room.

    By default the edges are those of delay 0. A cycle of them is entered at its
    first op in the graph's order: whether such a cycle can be met is not decided
    here.
    """
    if edges is None:
        edges = (edge for edge in graph.edges if edge.delay == 0)
    number = {op.id: i for i, op in enumerate(graph.ops)}
    after: list[list[int]] = [[] for _ in number]
    waits = [0] * len(number)
    for edge in edges:
        after[number[edge.src]].append(number[edge.dst])
        waits[number[edge.dst]] += 1
    ready = [i for i, count in enumerate(waits) if count == 0]
    left = [True] * len(number)
    first = 0
    order: list[OpId] = []
    while len(order) < len(number):
        while not ready and not left[first]:
            first += 1
        i = heapq.heappop(ready) if ready else first
        left[i] = False
        order.append(graph.ops[i].id)
        for j in after[i]:
            waits[j] -= 1
            if waits[j] == 0 and left[j]:
                heapq.heappush(ready, j)
    return tuple(order)


class PlacedArc(NamedTuple):
    """A precedence of numbered ops: ``s[dst] + delay * T >= s[src] + ticks``.

    `ticks` is the producer's duration, the transfer and the lag.
    """

    src: int
    dst: int
    ticks: int
    delay: int | DelayName


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Starts in the order of a placed graph's ops, and the least delays for them."""

    starts: Sequence[int]
    delays: Mapping[DelayName, int]

    @property
    def staleness(self) -> int:
        """Sum over named delays of (value - 1)."""
        return sum(self.delays.values()) - len(self.delays)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedGraph:
    """A graph under a placement, as integers.

    Attributes
    ----------
    ops : tuple of OpId
        In topological order of the edges of delay 0; numbers below index it.
    arcs : tuple of PlacedArc
        By source, so that one pass settles whatever has no delay.
    ties : tuple of PlacedArc
        Both directions of ``s[b] = s[a] + t[a]`` for neighbours a, b of a block.
    """

    graph: Graph
    ops: tuple[OpId, ...]
    number: Mapping[OpId, int]
    devices: tuple[DeviceId | None, ...]
    durations: tuple[int, ...]
    arcs: tuple[PlacedArc, ...]
    ties: tuple[PlacedArc, ...]

    @classmethod
    def of(
        cls, graph: Graph, placement: Placement, blocks: Iterable[Block] = ()
    ) -> PlacedGraph:
        """Number the ops and weigh the edges of a graph."""
        ops = topological_order(graph)
        number = {op: i for i, op in enumerate(ops)}
        devices = tuple(placement.get(op) for op in ops)
        durations = tuple(
            graph.duration(op, device) for op, device in zip(ops, devices, strict=True)
        )
        arcs = []
        for edge in graph.edges:
            u, v = number[edge.src], number[edge.dst]
            c = graph.transfer_ticks(edge.tensor, devices[u], devices[v])
            arcs.append(PlacedArc(u, v, durations[u] + c + edge.lag, edge.delay))
        return cls(
            graph=graph,
            ops=ops,
            number=number,
            devices=devices,
            durations=durations,
            arcs=tuple(sorted(arcs, key=lambda arc: arc.src)),
            ties=tuple(_ties(number, durations, blocks)),
        )

    def loads(self) -> dict[DeviceId, int]:
        """Ticks per period that each device works."""
        loads = dict.fromkeys(self.graph.device_ids, 0)
        for device, duration in zip(self.devices, self.durations, strict=True):
            if device is not None:
                loads[device] += duration
        return loads

    def heads(self) -> list[int]:
        """Length of the longest path of delay 0 to each op, in ticks."""
        heads = [0] * len(self.ops)
        for arc in self.arcs:
            if arc.delay == 0:
                heads[arc.dst] = max(heads[arc.dst], heads[arc.src] + arc.ticks)
        return heads

    def tails(self) -> list[int]:
        """Length of the longest path of delay 0 from each op to an end, in ticks."""
        tails = list(self.durations)
        for arc in reversed(self.arcs):
            if arc.delay == 0:
                tails[arc.src] = max(tails[arc.src], tails[arc.dst] + arc.ticks)
        return tails

    def greatest_delays(self) -> dict[DelayName, int | None]:
        """Every named delay at its upper limit; None where there is none."""
        return {name: delay.max for name, delay in self.graph.delays.items()}

    def times(
        self,
        period: int,
        phases: Mapping[OpId, int],
        delays: Mapping[DelayName, int | None],
    ) -> Times | None:
        """Least starts for these phases and delays, then the least delays for them.

        None if there are none, or if the flush fails.
        """
        numbered = [phases.get(op) for op in self.ops]
        starts = self.least_starts(period, numbered, delays)
        if starts is None or (self.graph.flush and self._span(starts) > period):
            return None
        return Times(starts=starts, delays=self.least_delays(period, starts))

    def least_starts(
        self,
        period: int,
        phases: Sequence[int | None],
        delays: Mapping[DelayName, int | None],
    ) -> list[int] | None:
        """Return the least starts >= 0 that keep every arc and every phase.

        Longest paths by Bellman-Ford, each start rounded up to its phase; an op whose
        phase is None takes any tick. An arc whose named delay is None binds nothing.
        None if some cycle cannot be met: then, and only then, the arcs that raised
        each start last come to close a cycle.
        """
        weighted = [
            (arc.src, arc.dst, arc.ticks - k * period)
            for arc in (*self.arcs, *self.ties)
            if (k := delays[arc.delay] if isinstance(arc.delay, str) else arc.delay)
            is not None
        ]
        sources = [u for u, _, _ in weighted]
        starts = [0 if phase is None else phase for phase in phases]
        via = [-1] * len(starts)
        moving = True
        while moving:
            moving = False
            for i, (u, v, weight) in enumerate(weighted):
                start = starts[u] + weight
                if start > starts[v]:
                    phase = phases[v]
                    if phase is not None:
                        start += (phase - start) % period
                    starts[v] = start
                    via[v] = i
                    moving = True
            if moving and predecessor_cycles(sources, via):
                return None
        return starts

    def least_delays(self, period: int, starts: Sequence[int]) -> dict[DelayName, int]:
        """Each named delay the least that is valid for these starts."""
        ranges = self.graph.delays
        return {
            name: max(ranges[name].min, -(-ticks // period))
            for name, ticks in self.waits(starts).items()
        }

    def waits(self, starts: Sequence[int]) -> dict[DelayName, int]:
        """Ticks that each named delay has to bridge for these starts, at least 0."""
        waits = dict.fromkeys(self.graph.delays, 0)
        for arc in self.arcs:
            if isinstance(arc.delay, str):
                late = starts[arc.src] + arc.ticks - starts[arc.dst]
                waits[arc.delay] = max(waits[arc.delay], late)
        return waits

    def _span(self, starts: Sequence[int]) -> int:
        """Ticks from the first start to the last end of an iteration."""
        ends = (s + t for s, t in zip(starts, self.durations, strict=True))
        return max(ends, default=0) - min(starts, default=0)


def _ties(
    number: Mapping[OpId, int], durations: Sequence[int], blocks: Iterable[Block]
) -> Iterator[PlacedArc]:
    for block in blocks:
        for before, after in pairwise(block):
            u, v = number[before], number[after]
            yield PlacedArc(u, v, durations[u], 0)
            yield PlacedArc(v, u, -durations[u], 0)
