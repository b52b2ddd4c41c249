"""GraphML as nodes and edges with typed attributes, before any meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lpsched.network.readers.source import MAX_NODES, FaultLog, seen
from lpsched.network.readers.xml import Element, elements

__all__ = ["Item", "Marked", "marked_graph"]

#: More edges than this are taken for a mistake.
MAX_EDGES = 1_000_000
_WHOLE = ("int", "long")
_REAL = ("float", "double")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A node (`name`) or an edge (`src`, `dst`) with its attributes and its line."""

    line: int
    data: Mapping[str, Any]
    name: str = ""
    src: str = ""
    dst: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A directed graph with attributes, as it stands in the file."""

    data: Mapping[str, Any]
    nodes: tuple[Item, ...]
    edges: tuple[Item, ...]


def marked_graph(text: str, *, source: str) -> Marked:
    """Read the one graph of a GraphML file.

    Attributes go by ``attr.name`` of their key, or by the key itself where none is
    declared; numbers and truth values are read as their type says. Graphics of editors
    are passed over.

    Raises
    ------
    FormatError
        If the file is no GraphML, holds no or several graphs, undirected or
        hyperedges, nested graphs, values that are not of their type, or edges of
        unknown nodes; with every such fault and its line.
    """
    log = FaultLog(source)
    most = {"node": MAX_NODES, "edge": MAX_EDGES}
    root = elements(text, source=source, most=most)
    graphs = list(root.named("graph"))
    if root.name != "graphml" or len(graphs) != 1:
        found = f"{len(graphs)} graphs" if root.name == "graphml" else f"<{root.name}>"
        raise log.fail(root.line, f"expected <graphml> with one graph, got {found}")
    graph = graphs[0]
    if graph.attributes.get("edgedefault", "directed") != "directed":
        log.add(graph.line, "expected directed edges, got an undirected graph")
    keys = _Keys(root, log)
    marked = Marked(
        data=keys.data(graph),
        nodes=tuple(_nodes(graph, keys, log)),
        edges=tuple(_edges(graph, keys, log)),
    )
    _check(marked, log)
    log.check()
    return marked


class _Keys:
    """Names and types of the attributes that a file declares."""

    def __init__(self, root: Element, log: FaultLog) -> None:
        self._log = log
        self._known: dict[str, tuple[str | None, str]] = {}
        for key in root.named("key"):
            name = key.attributes.get("attr.name")
            kind = key.attributes.get("attr.type", "string")
            self._known[key.attributes.get("id", "")] = (name, kind)

    def data(self, element: Element) -> dict[str, Any]:
        """Return the attributes of a node, an edge or the graph."""
        found = {}
        for data in element.named("data"):
            key = data.attributes.get("key", "")
            name, kind = self._known.get(key, (key, "plain"))
            if name is not None:  # without a name it is for an editor's eyes
                found[name] = self._value(data, name, kind)
        return found

    def _value(self, data: Element, name: str, kind: str) -> object:
        text = data.text
        if kind == "string":
            return text
        text = text.strip()
        value: object = text
        if kind in _WHOLE:
            value = _whole(text)
        elif kind in _REAL:
            value = _real(text)
        elif kind == "boolean":
            value = _TRUTH.get(text.lower())
        if value is None:
            self._log.add(data.line, f"{name}: expected a {kind}, got {seen(text)}")
        return value


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isdecimal() and len(digits) <= 30 else None


def _real(text: str) -> int | float | None:
    """Read a real number; an integer where it is one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else value


def _nodes(graph: Element, keys: _Keys, log: FaultLog) -> Iterator[Item]:
    for node in graph.named("node"):
        for inner in node.named("graph"):
            log.add(inner.line, "a graph inside a node is not supported")
        name = node.attributes.get("id", "")
        yield Item(name=name, line=node.line, data=keys.data(node))


def _edges(graph: Element, keys: _Keys, log: FaultLog) -> Iterator[Item]:
    for edge in graph.named("hyperedge"):
        log.add(edge.line, "a hyperedge is not supported")
    for edge in graph.named("edge"):
        if edge.attributes.get("directed", "true") != "true":
            log.add(edge.line, "expected a directed edge")
        yield Item(
            src=edge.attributes.get("source", ""),
            dst=edge.attributes.get("target", ""),
            line=edge.line,
            data=keys.data(edge),
        )


def _check(marked: Marked, log: FaultLog) -> None:
    known: set[str] = set()
    for node in marked.nodes:
        if node.name in known:
            log.add(node.line, f"a second node {seen(node.name)}")
        known.add(node.name)
    for edge in marked.edges:
        for end in (edge.src, edge.dst):
            if end not in known:
                log.add(edge.line, f"an edge of the unknown node {seen(end)}")
