"""GraphML as a graph: our own, HatScheT's, or that of any tool with durations."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lpsched.core.graph import Graph
from lpsched.core.io import graph_from_document
from lpsched.network.readers.hatschet import hatschet_document
from lpsched.network.readers.marked import Item, Marked, marked_graph
from lpsched.network.readers.source import FaultLog, Imported, network_name

__all__ = ["read_graphml"]

#: What an op and an edge of a graph can say of itself.
_OP = ("kind", "duration", "devices", "layer", "stage", "microbatch", "part")
_EDGE = ("tensor", "delay", "lag")
#: Passed over in silence: laps belong to schedules.
_SILENT = ("lap",)


def read_graphml(
    text: str, *, source: str, resources: str | None = None
) -> Imported[Graph]:
    """Read a dataflow graph.

    Three dialects, told apart by what stands in the file:

    - *ours*, as `graphml_text` writes it: gives the same graph back, edited or not;
    - *HatScheT's* (nodes have ``uses_resource``), which needs its resource model:
      see `hatschet_document`;
    - *any other*: nodes have ``duration``, edges ``delay`` (iterations) and, if wanted,
      ``lag``; as networkx writes a graph that `iteration_bound` takes. Such ops occupy
      no device.

    Other attributes are passed over, and a remark says so.

    Parameters
    ----------
    source : str
        The file's name, for faults and for the name of a graph that has none.
    resources : str, optional
        Text of HatScheT's resource model (XML).

    Raises
    ------
    FormatError
        With every fault that was found, each with its line or path.
    """
    marked = marked_graph(text, source=source)
    log = FaultLog(source)
    if "schema" in marked.data:
        document = _own(marked, log)
    elif any("uses_resource" in node.data for node in marked.nodes):
        return Imported(document=_hatschet(marked, resources, source))
    else:
        document = _bare(marked, log, source)
    log.check()
    # Without what was read: a graph of our own has the digest that it had.
    graph = graph_from_document(document, source=source).replace()
    return Imported(document=graph, remarks=tuple(_remarks(marked)))


def _hatschet(marked: Marked, resources: str | None, source: str) -> Graph:
    if resources is None:
        text = "HatScheT's graphs need their resource model as well (--resources FILE)"
        raise FaultLog(source).fail("", text)
    document = hatschet_document(marked, resources, source=source)
    return graph_from_document(document, source=source).replace()


def _remarks(marked: Marked) -> Iterator[str]:
    for what, items, known in (
        ("nodes", marked.nodes, (*_OP, *_SILENT)),
        ("edges", marked.edges, _EDGE),
    ):
        names = {name.removesuffix(".json"): None for i in items for name in i.data}
        passed = [name for name in names if name not in known]
        if passed:
            yield f"attributes of {what} passed over: {', '.join(passed)}"


# -- ours --------------------------------------------------------------------------


def _own(marked: Marked, log: FaultLog) -> dict[str, Any]:
    document = _plain(marked.data, log, 0)
    document["ops"] = [
        {"id": node.name} | _chosen(_plain(node.data, log, node.line), _OP)
        for node in marked.nodes
    ]
    uses: defaultdict[str, list[Item]] = defaultdict(list)
    orders = []
    for edge in marked.edges:
        if "tensor" in edge.data:
            uses[str(edge.data["tensor"])].append(edge)
        else:
            entry = _chosen(edge.data, ("delay", "lag"))
            orders.append({"src": edge.src, "dst": edge.dst} | entry)
    if orders:
        document["dependences"] = orders
    listed = document.get("tensors", [])
    if isinstance(listed, list) and all(isinstance(t, dict) for t in listed):
        document["tensors"] = [_tensor(t, uses, log) for t in listed]
    for tensor, edges in uses.items():
        for edge in edges:
            log.add(edge.line, f"the graph lists no tensor {tensor!r}")
    return document


def _tensor(
    entry: Mapping[str, Any], uses: dict[str, list[Item]], log: FaultLog
) -> dict[str, Any]:
    """Give a tensor its consumers; take its edges out of `uses`."""
    edges = uses.pop(str(entry.get("id")), [])
    for edge in edges:
        if edge.src != entry.get("producer"):
            text = f"tensor {entry.get('id')!r} is made by {entry.get('producer')!r}"
            log.add(edge.line, f"{text}, not by {edge.src!r}")
    consumers = [
        {"op": edge.dst} | _chosen(edge.data, ("delay", "lag")) for edge in edges
    ]
    return dict(entry) | {"consumers": consumers}


def _plain(data: Mapping[str, Any], log: FaultLog, line: int) -> dict[str, Any]:
    """Read values that are written as JSON."""
    plain = {}
    for name, value in data.items():
        if not name.endswith(".json"):
            plain[name] = value
            continue
        try:
            plain[name.removesuffix(".json")] = json.loads(value)
        except (ValueError, RecursionError):
            log.add(line, f"{name} is no JSON: {value!r:.60}")
    return plain


def _chosen(data: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: data[name] for name in names if name in data}


# -- any other ---------------------------------------------------------------------


def _no_negative(item: Item, names: Sequence[str], log: FaultLog) -> None:
    for name in names:
        value = item.data.get(name)
        if isinstance(value, int) and value < 0:
            log.add(item.line, f"{name}: expected an integer >= 0, got {value}")
        elif isinstance(value, float):
            log.add(item.line, f"{name}: expected an integer, got {value}")


def _bare(marked: Marked, log: FaultLog, source: str) -> dict[str, Any]:
    for node in marked.nodes:
        if "duration" not in node.data:
            log.add(node.line, f"node {node.name!r} has no duration")
        _no_negative(node, ("duration",), log)
    for edge in marked.edges:
        if "delay" not in edge.data:
            log.add(edge.line, f"edge {edge.src!r} -> {edge.dst!r} has no delay")
        _no_negative(edge, ("delay", "lag"), log)
    return {
        "schema": "lpsched/graph/1",
        "name": str(marked.data.get("name") or network_name(source)),
        "devices": [],
        "ops": [
            {"kind": "op"} | _chosen(node.data, _OP) | {"id": node.name, "devices": []}
            for node in marked.nodes
        ],
        "dependences": [
            {"src": edge.src, "dst": edge.dst} | _chosen(edge.data, ("delay", "lag"))
            for edge in marked.edges
        ],
    }
