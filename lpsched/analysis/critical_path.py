"""The critical path: what one iteration takes from its first start to its last end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lpsched.analysis.cycles import delay_free_order, relax
from lpsched.analysis.dataflow import AnyGraph, Flow, Node, flow_of
from lpsched.analysis.iteration_bound import LoopWithoutDelayError

__all__ = ["CriticalPath", "clock_period", "critical_path"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalPath:
    """A longest path without delay.

    Attributes
    ----------
    length : int
        Ticks from the start of its first node to the end of its last.
    nodes, edges : tuple of hashable
        The path; one edge fewer than nodes. Edges are indices into ``graph.edges``,
        or ``(u, v, key)``.
    """

    length: int
    nodes: tuple[Node, ...]
    edges: tuple[Any, ...]


def critical_path(graph: AnyGraph) -> CriticalPath:
    r"""Find the longest path without delay.

    .. math:: \max_{\text{paths } u_0 \dots u_n,\; k = 0}
       \sum_{i < n} w_{u_i u_{i+1}} + t_{u_n}

    in ticks. It is the clock period of the graph as a synchronous circuit, and no
    iteration has a shorter makespan. Weights as in `iteration_bound`.

    Raises
    ------
    LoopWithoutDelayError
        If a loop takes time but carries no delay.

    Notes
    -----
    Source: Parhi, *VLSI Digital Signal Processing Systems* (1999), sec. 2.2; Leiserson
    and Saxe, *Retiming synchronous circuitry* (1991), algorithm CP.
    """
    flow = flow_of(graph)
    heights, via = _arrivals(flow)
    ends = [height + time for height, time in zip(heights, flow.times, strict=True)]
    if not ends:
        return CriticalPath(length=0, nodes=(), edges=())
    last = max(range(len(ends)), key=ends.__getitem__)
    path: list[int] = []
    node = last
    while via[node] >= 0:
        path.append(via[node])
        node = flow.arcs[via[node]].src
    nodes, edges = flow.names(path[::-1])
    return CriticalPath(
        length=ends[last], nodes=(*nodes, flow.nodes[last]), edges=edges
    )


def clock_period(graph: AnyGraph) -> int:
    """Length of the `critical_path`, in ticks."""
    return critical_path(graph).length


def _arrivals(flow: Flow) -> tuple[list[int], list[int]]:
    """Earliest starts within one iteration, and the arc that sets each (or -1)."""
    rank = [0] * len(flow.nodes)
    for position, node in enumerate(delay_free_order(len(flow.nodes), flow.arcs)):
        rank[node] = position
    order = [i for i, arc in enumerate(flow.arcs) if arc.delay == 0]
    order.sort(key=lambda i: rank[flow.arcs[i].src])
    heights, via = [0] * len(flow.nodes), [-1] * len(flow.nodes)
    weights = [arc.weight for arc in flow.arcs]
    for loop in relax(flow.arcs, weights, heights, order, via):
        raise LoopWithoutDelayError(*flow.names(loop))
    return heights, via
