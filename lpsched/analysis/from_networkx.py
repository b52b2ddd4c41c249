"""A networkx graph of durations and delays as a graph that can be scheduled."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx

from lpsched.analysis.dataflow import flow_of
from lpsched.core.graph import Graph
from lpsched.core.io import graph_from_document
from lpsched.errors import Fault, InstanceError

__all__ = ["from_networkx"]


def from_networkx(graph: nx.DiGraph[Any], *, devices: int) -> Graph:
    """Read nodes with ``duration`` and edges with ``delay`` and, if wanted, ``lag``.

    The converse of `to_networkx` for graphs without tensors: edges become order
    without data, which costs no transfer and no memory. Any device may run any op.

    Parameters
    ----------
    graph : networkx.DiGraph or networkx.MultiDiGraph
        Attributes are integers >= 0. Names of nodes become the ops' ids as text;
        the node attributes ``kind`` and ``layer`` are kept.
    devices : int
        Number of equal devices; 0 for ops that occupy none.

    Raises
    ------
    InstanceError
        If an attribute is missing or wrong, or two nodes have one name; with every
        such fault.
    """
    flow = flow_of(nx.MultiDiGraph(graph))
    names = [str(node) for node in flow.nodes]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        text = "the name of several nodes"
        raise InstanceError([Fault(f"node {name!r}", text) for name in twice])
    document: dict[str, Any] = {
        "schema": "lpsched/graph/1",
        "name": str(graph.graph.get("name") or "graph"),
        "devices": [{"id": f"d{i}"} for i in range(devices)],
        "ops": [
            {"id": name, "kind": "op", "duration": time, **_labels(graph.nodes[node])}
            for name, node, time in zip(names, flow.nodes, flow.times, strict=True)
        ],
        "dependences": [
            {
                "src": names[arc.src],
                "dst": names[arc.dst],
                "delay": arc.delay,
                "lag": arc.weight - flow.times[arc.src],
            }
            for arc in flow.arcs
        ],
    }
    if not devices:
        document["ops"] = [{**op, "devices": []} for op in document["ops"]]
    return graph_from_document(document, source=document["name"]).replace()


def _labels(data: dict[str, Any]) -> dict[str, str]:
    return {k: str(data[k]) for k in ("kind", "layer") if data.get(k) is not None}
