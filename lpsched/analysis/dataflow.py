"""From a graph to nodes, weights and delays: the form that all analysis runs on."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import networkx as nx

from lpsched.analysis.sites import Sites
from lpsched.core.graph import DelayName, Graph
from lpsched.errors import Fault, InstanceError

__all__ = [
    "AnyGraph",
    "Arc",
    "Flow",
    "MultiDiGraph",
    "Node",
    "fixed_delay",
    "flow_of",
    "require_fixed_delays",
    "to_networkx",
]

#: A hashable name: an op id, or whatever a networkx graph has for nodes.
Node: TypeAlias = Any
MultiDiGraph: TypeAlias = "nx.MultiDiGraph[Any]"
AnyGraph: TypeAlias = "Graph | nx.MultiDiGraph[Any]"


class Arc(NamedTuple):
    """A precedence between two numbered nodes.

    `weight` is the least number of ticks from the start of `src` to that of `dst`
    of the iteration `delay` later; `key` names the edge in the graph it came from.
    """

    src: int
    dst: int
    weight: int
    delay: int
    key: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A dataflow graph as plain integers.

    Attributes
    ----------
    nodes : tuple of hashable
        Names: op ids, or the nodes of a networkx graph.
    times : tuple of int
        Least duration of each node, in ticks.
    arcs : tuple of Arc
        Edges that can bind: one whose delay has no upper limit is left out.
    """

    nodes: tuple[Node, ...]
    times: tuple[int, ...]
    arcs: tuple[Arc, ...]

    def names(self, path: Sequence[int]) -> tuple[tuple[Node, ...], tuple[Any, ...]]:
        """Name the sources and the edges of a sequence of arc numbers."""
        arcs = [self.arcs[i] for i in path]
        return tuple(self.nodes[a.src] for a in arcs), tuple(a.key for a in arcs)


def flow_of(graph: AnyGraph) -> Flow:
    """Read a graph's nodes, least weights and greatest delays.

    A `Graph` weighs an edge with `Sites.edge_weight` and keys it by its index in
    ``graph.edges``; named delays stand at their maximum, and edges whose delay has
    no limit are left out since they bind nothing. A networkx graph gives the node
    attribute ``duration`` and the edge attributes ``delay`` and, if wanted,
    ``lag``; its edges are keyed by ``(u, v, key)``.

    Raises
    ------
    InstanceError
        If an attribute is missing, no integer, or negative; with every such fault.
    """
    return _graph_flow(graph) if isinstance(graph, Graph) else _bare_flow(graph)


def _graph_flow(graph: Graph) -> Flow:
    number = {op.id: i for i, op in enumerate(graph.ops)}
    sites = Sites.of(graph)
    arcs = []
    for index, edge in enumerate(graph.edges):
        _, delay = graph.delay_range(edge.delay)
        if delay is not None:
            weight = sites.edge_weight(edge)
            arcs.append(Arc(number[edge.src], number[edge.dst], weight, delay, index))
    times = tuple(sites.least_duration(op) for op in number)
    return Flow(nodes=tuple(number), times=times, arcs=tuple(arcs))


def _bare_flow(graph: MultiDiGraph) -> Flow:
    number = {node: i for i, node in enumerate(graph.nodes)}
    faults: list[Fault] = []
    times = [
        _natural(data, "duration", f"node {node!r}", faults)
        for node, data in graph.nodes(data=True)
    ]
    arcs = []
    for u, v, key, data in graph.edges(keys=True, data=True):
        where = f"edge {u!r} -> {v!r}"
        delay = _natural(data, "delay", where, faults)
        lag = _natural(data, "lag", where, faults) if "lag" in data else 0
        weight = times[number[u]] + lag
        arcs.append(Arc(number[u], number[v], weight, delay, (u, v, key)))
    if faults:
        raise InstanceError(faults)
    return Flow(nodes=tuple(number), times=tuple(times), arcs=tuple(arcs))


def _natural(
    data: Mapping[str, Any], name: str, where: str, faults: list[Fault]
) -> int:
    """Read an integer >= 0 of any integer type; note a fault otherwise."""
    value: Any = data.get(name)
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        text = f"expected an integer >= 0, got {value!r}"
        faults.append(Fault(f"{where}.{name}", text))
        return 0
    return number


def require_fixed_delays(graph: AnyGraph) -> None:
    """Refuse a graph with named delays: what follows needs their values.

    Raises
    ------
    InstanceError
        Naming each delay without a value.
    """
    if isinstance(graph, Graph) and graph.delays:
        text = "a named delay; give it a value first (fix_delays)"
        raise InstanceError([Fault(f"delays.{name}", text) for name in graph.delays])


def fixed_delay(delay: int | DelayName) -> int:
    """Return the value of an edge's delay, which must have one."""
    if isinstance(delay, str):
        raise TypeError(f"the delay {delay!r} has no value")
    return delay


def to_networkx(graph: Graph) -> MultiDiGraph:
    """Return the graph's ops and precedences as a networkx graph.

    Node attributes: ``duration`` (the least over the devices allowed, in ticks),
    ``kind``, ``layer``. Edge attributes: ``delay`` (iterations), ``lag`` (ticks,
    with transfers that no placement avoids), ``tensor`` (its id, or None). Keys are
    the indices of ``graph.edges``.

    Raises
    ------
    InstanceError
        If the graph has named delays; fix them with `fix_delays`.
    """
    require_fixed_delays(graph)
    result: MultiDiGraph = nx.MultiDiGraph(name=graph.name)
    flow = flow_of(graph)
    for op, time in zip(graph.ops, flow.times, strict=True):
        result.add_node(op.id, duration=time, kind=op.kind, layer=op.layer)
    for arc, edge in zip(flow.arcs, graph.edges, strict=True):
        result.add_edge(
            edge.src,
            edge.dst,
            key=arc.key,
            delay=arc.delay,
            lag=arc.weight - flow.times[arc.src],
            tensor=None if edge.tensor is None else edge.tensor.id,
        )
    return result
