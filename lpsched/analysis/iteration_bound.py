"""The iteration bound of a dataflow graph: its maximum cycle ratio, with the loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lpsched.analysis.cycles import max_cycle_ratio
from lpsched.analysis.dataflow import AnyGraph, Node, flow_of
from lpsched.errors import Fault, InstanceError

__all__ = ["IterationBound", "LoopWithoutDelayError", "iteration_bound"]


class LoopWithoutDelayError(InstanceError):
    """A loop that takes time but carries no delay: no iteration can ever run.

    Attributes
    ----------
    loop : tuple of hashable
        Its nodes (op ids for a `Graph`), each followed by the next and the last by
        the first.
    edges : tuple of hashable
        Its edges: indices into ``graph.edges``, or ``(u, v, key)``.
    """

    def __init__(self, loop: tuple[Node, ...], edges: tuple[Any, ...]) -> None:
        self.loop = loop
        self.edges = edges
        way = " -> ".join(map(str, (*loop, *loop[:1])))
        text = f"not computable: the loop {way} takes time but carries no delay"
        super().__init__([Fault("", text)])


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationBound:
    """The iteration bound and why it holds.

    Attributes
    ----------
    value : Fraction
        Ticks per iteration of the graph; 0 if no loop takes time.
    loop : tuple of hashable
        Nodes of a critical loop in order; empty if `value` is 0.
    edges : tuple of hashable
        Its edges, each leaving the node of the same place: indices into
        ``graph.edges``, or ``(u, v, key)``.
    potential : mapping of node to Fraction
        Starts that every edge allows at this period (devices aside):
        ``potential[v] + value·delay >= potential[u] + weight``. They show that no loop
        has a greater ratio.
    """

    value: Fraction
    loop: tuple[Node, ...]
    edges: tuple[Any, ...]
    potential: Mapping[Node, Fraction]


def iteration_bound(graph: AnyGraph) -> IterationBound:
    r"""Compute the iteration bound, exactly and with a critical loop.

    .. math:: T_\infty = \max_{\text{loops } C}
       \frac{\sum_{(u,v) \in C} w_{uv}}{\sum_{(u,v) \in C} k_{uv}}

    in ticks per iteration of the graph (divide by ``graph.unfolding`` for one of the
    network). No schedule on any number of processors is faster. In a `Graph`, w is the
    least weight over allowed placements (`edge_weight`), k the greatest delay allowed;
    an edge whose delay has no limit bounds nothing. In a networkx graph w is the node
    attribute ``duration`` of u (plus the edge's ``lag``, if it has one) and k the edge
    attribute ``delay``.

    Parameters
    ----------
    graph : Graph or networkx.MultiDiGraph
        The dataflow graph.

    Returns
    -------
    IterationBound
        The bound as a Fraction, a loop that attains it, and potentials that prove it.

    Raises
    ------
    LoopWithoutDelayError
        If a loop takes time but carries no delay.
    InstanceError
        If an attribute of a networkx graph is missing or no integer >= 0.

    Notes
    -----
    Source: Parhi, *VLSI Digital Signal Processing Systems* (1999), ch. 2 (where it is
    computed by LPM or MCM); Ito and Parhi, *Determining the minimum iteration period of
    an algorithm* (1995). Here by `max_cycle_ratio`, in exact integers.
    """
    flow = flow_of(graph)
    ratio = max_cycle_ratio(len(flow.nodes), flow.arcs)
    loop, edges = flow.names(ratio.cycle)
    if ratio.value is None:
        raise LoopWithoutDelayError(loop, edges)
    scale = ratio.value.denominator
    heights = zip(flow.nodes, ratio.potentials, strict=True)
    return IterationBound(
        value=ratio.value,
        loop=loop,
        edges=edges,
        potential={node: Fraction(height, scale) for node, height in heights},
    )
