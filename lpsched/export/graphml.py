"""A graph as GraphML, for graph editors and networkx, and back without loss."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from lpsched.core.graph import Graph, OpId
from lpsched.core.io import graph_to_document
from lpsched.errors import UnsupportedError

__all__ = ["graphml_text"]

#: Characters that no XML 1.0 document can hold.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")

_Named = Mapping[str, Any]


def graphml_text(graph: Graph, *, laps: Mapping[OpId, int] | None = None) -> str:
    """Write a graph as GraphML; `read_graphml` gives it back.

    Nodes are ops; edges are uses of tensors (``tensor`` is its id) and plain
    dependences. Attributes have the names of `lpsched/graph/1`, and ``duration`` and
    ``delay`` are integers where the graph's are, so that networkx reads a graph that
    `iteration_bound` takes. What is neither number nor text is JSON, under a name
    that ends in ``.json``; all that belongs to no node or edge is data of the graph.

    Parameters
    ----------
    laps : mapping of OpId to int, optional
        Written as ``lap`` of each node, which the reader passes over.

    Raises
    ------
    UnsupportedError
        If a name has characters that XML cannot hold.
    """
    document = graph_to_document(graph.replace())  # canonical, whatever was read
    ops: Sequence[_Named] = document.pop("ops")
    nodes = [(op["id"], _without(op, "id")) for op in ops]
    if laps is not None:
        nodes = [(name, data | {"lap": laps[name]}) for name, data in nodes]
    edges = [
        (tensor["producer"], use["op"], {"tensor": tensor["id"]} | _edge(use))
        for tensor in document.get("tensors", ())
        for use in tensor.get("consumers", ())
    ]
    edges += [
        (order["src"], order["dst"], _edge(order))
        for order in document.get("dependences", ())
    ]
    text = "\n".join(_lines(_outline(document), nodes, edges)) + "\n"
    if (bad := _ILLEGAL.search(text)) is not None:
        raise UnsupportedError(f"GraphML cannot hold the character {bad.group()!r}")
    return text


def _edge(use: _Named) -> dict[str, Any]:
    """What is said of an edge besides its ends; the delay in any case."""
    return {"delay": 0} | _without(use, "op", "src", "dst")


def _without(entry: _Named, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in keys}


def _outline(document: _Named) -> dict[str, Any]:
    """Return the document without what nodes and edges say."""
    outline = _without(document, "dependences")
    if "tensors" in outline:
        outline["tensors"] = [
            _without(tensor, "consumers") for tensor in outline["tensors"]
        ]
    return outline


def _lines(
    outline: _Named,
    nodes: Sequence[tuple[str, _Named]],
    edges: Sequence[tuple[str, str, _Named]],
) -> Iterator[str]:
    keys: dict[tuple[str, str, str], str] = {}  # domain, name, type: the key's id

    def mark_of(domain: str, name: str, kind: str) -> str:
        if (domain, name, kind) not in keys:
            keys[domain, name, kind] = _fresh(domain, name, kind, keys.values())
        return keys[domain, name, kind]

    def data(domain: str, entry: _Named) -> str:
        found = []
        for key, value in entry.items():
            name, kind, text = _attribute(key, value)
            mark = mark_of(domain, name, kind)
            safe = escape(text, {"\r": "&#13;"})
            found.append(f"<data key={quoteattr(mark)}>{safe}</data>")
        return "".join(found)

    body = [f"    {data('graph', outline)}"]
    body += [
        f"    <node id={quoteattr(name)}>{data('node', entry)}</node>"
        for name, entry in nodes
    ]
    body += [
        f'    <edge id="e{i}" source={quoteattr(src)} target={quoteattr(dst)}>'
        f"{data('edge', entry)}</edge>"
        for i, (src, dst, entry) in enumerate(edges)
    ]
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    yield from (_key(*place, mark) for place, mark in keys.items())
    yield '  <graph edgedefault="directed">'
    yield from body
    yield "  </graph>"
    yield "</graphml>"


def _attribute(key: str, value: object) -> tuple[str, str, str]:
    """Name, GraphML type and text of a value."""
    if isinstance(value, bool):
        return key, "boolean", str(value).lower()
    if isinstance(value, int):
        return key, "long", str(value)
    if isinstance(value, str):
        return key, "string", value
    return f"{key}.json", "string", json.dumps(value, ensure_ascii=False)


def _fresh(domain: str, name: str, kind: str, taken: Collection[str]) -> str:
    """Return an id for a key: its name, with more of it where that is taken."""
    marks = (name, f"{domain}.{name}", f"{domain}.{name}.{kind}")
    return next(mark for mark in marks if mark not in taken)


def _key(domain: str, name: str, kind: str, mark: str) -> str:
    return (
        f"  <key id={quoteattr(mark)} for={quoteattr(domain)}"
        f" attr.name={quoteattr(name)} attr.type={quoteattr(kind)}/>"
    )
