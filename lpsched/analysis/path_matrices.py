"""Leiserson and Saxe's W and D: fewest delays between nodes, longest such paths."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lpsched.analysis.clock import Circuit
from lpsched.analysis.cycles import relax
from lpsched.analysis.dataflow import AnyGraph, Node

__all__ = ["path_matrices"]


def path_matrices(
    graph: AnyGraph,
) -> tuple[Mapping[Node, Mapping[Node, int]], Mapping[Node, Mapping[Node, int]]]:
    r"""Compute W and D.

    .. math:: W(u, v) = \min_{p: u \to v} k(p), \qquad
       D(u, v) = \max_{p: u \to v,\; k(p) = W(u, v)} t(p)

    W in iterations; D in ticks, both ends included. ``W[u][v]`` exists where a path
    does; the empty path counts: W(u, u) = 0, D(u, u) = t(u).

    Raises
    ------
    LoopWithoutDelayError
        If a loop takes time but carries no delay.
    InstanceError
        If the graph has named delays; fix them first.

    Notes
    -----
    Source: Leiserson and Saxe, *Retiming synchronous circuitry* (1991), sec. 4,
    algorithm WD; here by Johnson's algorithm, of use for sparse graphs.
    """
    circuit = Circuit.of(graph)
    search = _Search(circuit)
    names: dict[int, list[Node]] = {}
    for name, node in circuit.node_of.items():
        names.setdefault(node, []).append(name)
    fewest: dict[Node, dict[Node, int]] = {}
    longest: dict[Node, dict[Node, int]] = {}
    for source, node in circuit.node_of.items():
        reached = [*search.reach(node)]
        fewest[source] = {n: r.delays for r in reached for n in names[r.node]}
        longest[source] = {n: r.ticks for r in reached for n in names[r.node]}
    return fewest, longest


class _Reach(NamedTuple):
    """A node reached: with the fewest `delays`, and then at most in `ticks`."""

    node: int
    delays: int
    ticks: int


class _Search:
    """Paths of fewest delays, the longest among them, from any node of a circuit.

    An arc counts w - k·M with M above the sum of all weights; a path of greatest count
    then has the fewest delays and among these the greatest weight. Potentials make all
    counts one-signed (Johnson), so that each source takes one run of Dijkstra.
    """

    def __init__(self, circuit: Circuit) -> None:
        self.times = circuit.times
        self.scale = 1 + sum(arc.weight for arc in circuit.arcs)
        counts = [arc.weight - arc.delay * self.scale for arc in circuit.arcs]
        self.heights = [0] * len(circuit.times)
        relax(circuit.arcs, counts, self.heights, range(len(counts)))
        self.after: list[list[tuple[int, int]]] = [[] for _ in circuit.times]
        for arc, count in zip(circuit.arcs, counts, strict=True):
            slack = self.heights[arc.dst] - self.heights[arc.src] - count
            self.after[arc.src].append((arc.dst, slack))

    def reach(self, source: int) -> Iterator[_Reach]:
        """Every node reached from `source`, itself included."""
        settled: set[int] = set()
        queue = [(0, source)]
        while queue:
            slack, node = heapq.heappop(queue)
            if node in settled:
                continue
            settled.add(node)
            count = self.heights[node] - self.heights[source] - slack
            delays, weight = -(count // self.scale), count % self.scale
            yield _Reach(node, delays, weight + self.times[node])
            for successor, more in self.after[node]:
                if successor not in settled:
                    heapq.heappush(queue, (slack + more, successor))
