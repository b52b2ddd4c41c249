"""A graph as DOT text, for graphviz and whatever else reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lpsched.analysis.cycles import delay_free_order
from lpsched.analysis.dataflow import Arc
from lpsched.core.graph import DelayName, Edge, Graph, Op, OpId

__all__ = ["delay_text", "dot_text"]


def dot_text(
    graph: Graph,
    *,
    laps: Mapping[OpId, int] | None = None,
    colours: Mapping[str, str] | None = None,
) -> str:
    """Write a graph with its delays as a DOT digraph.

    Nodes are ops, labelled with duration and lap; their attributes ``duration`` and
    ``kind`` are plain. Edges that carry one delay between the same two ops are one,
    labelled ``D``, ``2D`` or the delay's name, and their attribute ``delay`` is plain.
    Edges against the flow do not count for the ranks.

    Parameters
    ----------
    laps : mapping of OpId to int, optional
        Lap of each op.
    colours : mapping of str to str, optional
        Fill colour by kind of op.
    """
    lines = [
        f"digraph {_quoted(graph.name)} {{",
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled", fillcolor="white"];',
        *(f"  {_node(op, laps, colours or {})};" for op in graph.ops),
        *(f"  {line};" for line in _edges(graph)),
        "}",
    ]
    return "\n".join(lines) + "\n"


def delay_text(delay: int | DelayName) -> str:
    """Return a delay as pictures have it: nothing, ``D``, ``2D`` or its name."""
    if isinstance(delay, str):
        return str(delay)
    return "" if delay == 0 else "D" if delay == 1 else f"{delay}D"


def _node(op: Op, laps: Mapping[OpId, int] | None, colours: Mapping[str, str]) -> str:
    time = _duration(op)
    lines = [op.id, time] if laps is None else [op.id, time, f"lap {laps[op.id]}"]
    attributes = {"label": "\n".join(lines), "kind": op.kind, "duration": time}
    if laps is not None:
        attributes["lap"] = str(laps[op.id])
    if op.kind in colours:
        attributes["fillcolor"] = colours[op.kind]
    return f"{_quoted(op.id)} {_attributes(attributes)}"


def _duration(op: Op) -> str:
    if isinstance(op.duration, int):
        return str(op.duration)
    return ", ".join(f"{device}: {time}" for device, time in op.duration.items())


def _edges(graph: Graph) -> Iterator[str]:
    position = _positions(graph)
    merged: dict[tuple[OpId, OpId, int | DelayName, int], Edge] = {}
    for edge in graph.edges:
        merged.setdefault((edge.src, edge.dst, edge.delay, edge.lag), edge)
    for (src, dst, delay, lag), edge in merged.items():
        label = f"{delay_text(delay)} +{lag}".strip() if lag else delay_text(delay)
        attributes = {"delay": str(delay)}
        if label:
            attributes["label"] = label
        if lag:
            attributes["lag"] = str(lag)
        if edge.tensor is None:
            attributes["style"] = "dashed"
        if delay != 0 and position[dst] <= position[src]:
            attributes["constraint"] = "false"
        yield f"{_quoted(src)} -> {_quoted(dst)} {_attributes(attributes)}"


def _positions(graph: Graph) -> dict[OpId, int]:
    """Place of each op in an order that edges without delay lead forward in."""
    number = {op.id: i for i, op in enumerate(graph.ops)}
    arcs = [
        Arc(number[e.src], number[e.dst], 0, int(e.delay != 0), None)
        for e in graph.edges
    ]
    order = delay_free_order(len(number), arcs)
    return {graph.ops[node].id: i for i, node in enumerate(order)}


def _attributes(attributes: Mapping[str, str]) -> str:
    return f"[{', '.join(f'{k}={_quoted(v)}' for k, v in attributes.items())}]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
