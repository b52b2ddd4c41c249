"""Positive cycles and the maximum cycle ratio in exact integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import networkx as nx

from lpsched.analysis.dataflow import Arc

__all__ = [
    "Ratio",
    "delay_free_order",
    "max_cycle_ratio",
    "predecessor_cycles",
    "relax",
    "sweep_order",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """The greatest weight per delay of any cycle, with both sides of its proof.

    Attributes
    ----------
    value : Fraction or None
        The maximum, or the floor if no cycle exceeds it; None (without bound) if a
        cycle of positive weight carries no delay.
    cycle : tuple of int
        Arc numbers of a cycle that attains the value, in order of travel; empty if
        no cycle exceeds the floor.
    potentials : tuple of int
        h with ``h[dst] >= h[src] + weight·q - delay·p`` on every arc, value = p/q:
        added up around a cycle this says that its weight/delay is at most p/q.
    """

    value: Fraction | None
    cycle: tuple[int, ...]
    potentials: tuple[int, ...] = ()


def max_cycle_ratio(
    num_nodes: int, arcs: Sequence[Arc], *, floor: Fraction = Fraction(0)
) -> Ratio:
    r"""Find the maximum cycle ratio :math:`\max_C \sum w / \sum k` exactly.

    Newton's method on the ratio: at λ = p/q, relax the lengths w·q - k·p until the
    predecessor graph closes a cycle, which then has positive length; the greatest
    ratio among the cycles closed is the next λ. When relaxation comes to rest instead,
    its potentials prove λ. Every round raises λ to the ratio of a cycle, so it ends.
    Integers throughout; no enumeration. Measured: 2,000 nodes and 6,000 arcs in 0.1 to
    0.5 s, 20,000 and 60,000 in 2 s.

    Sources: Lawler, *Combinatorial Optimization* (1976), sec. 3.13, for the parametric
    search; Dasdan, *Experimental analysis of the fastest optimum cycle ratio and mean
    algorithms* (2004), for stopping at the predecessor graph's cycles (Howard).
    """
    value = floor
    cycle: tuple[int, ...] = ()
    order = sweep_order(num_nodes, arcs)
    part = _components(num_nodes, arcs)
    inner = [i for i in order if part[arcs[i].src] == part[arcs[i].dst]]
    heights = [0] * num_nodes
    while found := relax(arcs, _lengths(arcs, value), heights, inner):
        for candidate in found:
            delay = sum(arcs[i].delay for i in candidate)
            if delay == 0:
                return Ratio(value=None, cycle=candidate)
            ratio = Fraction(sum(arcs[i].weight for i in candidate), delay)
            if ratio > value:
                value, cycle = ratio, candidate
        heights = [0] * num_nodes
    relax(arcs, _lengths(arcs, value), heights, order)
    return Ratio(value=value, cycle=cycle, potentials=tuple(heights))


def _lengths(arcs: Sequence[Arc], ratio: Fraction) -> list[int]:
    p, q = ratio.numerator, ratio.denominator
    return [arc.weight * q - arc.delay * p for arc in arcs]


def relax(
    arcs: Sequence[Arc],
    lengths: Sequence[int],
    heights: list[int],
    order: Sequence[int],
    via: list[int] | None = None,
) -> list[tuple[int, ...]]:
    """Raise heights until ``h[dst] >= h[src] + length`` on every arc of `order`.

    Bellman-Ford in sweeps over `order`; after each, the predecessor graph is searched
    for cycles, all of which have positive length. `heights` is changed in place, and so
    is `via`, the arc that raised each node last (-1: none).

    Returns
    -------
    list of tuple of int
        Cycles as arc numbers, in order of travel; empty once all arcs are satisfied.
    """
    sources = [arc.src for arc in arcs]
    steps = [(arcs[i].src, arcs[i].dst, lengths[i], i) for i in order]
    via = [-1] * len(heights) if via is None else via
    moving = True
    while moving:
        moving = False
        for src, dst, length, i in steps:
            height = heights[src] + length
            if height > heights[dst]:
                heights[dst] = height
                via[dst] = i
                moving = True
        if moving and (found := predecessor_cycles(sources, via)):
            return found
    return []


def predecessor_cycles(
    sources: Sequence[int], via: Sequence[int]
) -> list[tuple[int, ...]]:
    """List the cycles of a graph in which each node has at most one arc coming in.

    Parameters
    ----------
    sources : sequence of int
        Source node of each arc.
    via : sequence of int
        For each node the arc that comes in, or -1.
    """
    seen = [-1] * len(via)
    cycles = []
    for start in range(len(via)):
        node = start
        while seen[node] < 0 and via[node] >= 0:
            seen[node] = start
            node = sources[via[node]]
        if seen[node] == start and via[node] >= 0:
            cycles.append(_trace(sources, via, node))
    return cycles


def _trace(sources: Sequence[int], via: Sequence[int], start: int) -> tuple[int, ...]:
    cycle = [via[start]]
    while (node := sources[cycle[-1]]) != start:
        cycle.append(via[node])
    return tuple(reversed(cycle))


def delay_free_order(num_nodes: int, arcs: Sequence[Arc]) -> list[int]:
    """Order the nodes so that arcs without delay lead forward, where they can.

    A reverse postorder by depth first: topological if no cycle is free of delay.
    """
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from((arc.src, arc.dst) for arc in arcs if arc.delay == 0)
    return list(nx.dfs_postorder_nodes(graph))[::-1]


def sweep_order(num_nodes: int, arcs: Sequence[Arc]) -> list[int]:
    """Arc numbers in the order in which a sweep carries heights furthest.

    Delayed arcs first: what they raise then runs along all paths without delay, so that
    the predecessor graph ends a sweep with long cycles, not with the innermost ones.
    """
    rank = [0] * num_nodes
    for position, node in enumerate(delay_free_order(num_nodes, arcs)):
        rank[node] = position
    return sorted(
        range(len(arcs)), key=lambda i: (arcs[i].delay == 0, rank[arcs[i].src], i)
    )


def _components(num_nodes: int, arcs: Sequence[Arc]) -> list[int]:
    """Number of the strongly connected component of each node."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from((arc.src, arc.dst) for arc in arcs)
    component = [0] * num_nodes
    for number, nodes in enumerate(nx.strongly_connected_components(graph)):
        for node in nodes:
            component[node] = number
    return component
