"""What a picture of a graph says: boxes and wires with their labels, before layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lpsched.core.graph import DelayName, Graph, Op, OpId
from lpsched.errors import UnsupportedError
from lpsched.export.dot import delay_text
from lpsched.plot.units import Scale, scale_of

__all__ = ["MAX_BOXES", "Box", "Chart", "Wire", "chart_of"]

#: More ops than this are no picture any more.
MAX_BOXES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """An op: its name, then a line of what is known of it."""

    id: OpId
    kind: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Edges between two ops that carry the same delay, drawn as one.

    `label` is empty without delay; `is_delayed` tells the two apart.
    """

    src: OpId
    dst: OpId
    label: str
    is_delayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A graph as boxes and wires.

    Attributes
    ----------
    title, facts : str
        The graph's name, and how to read the boxes.
    """

    title: str
    facts: str
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]


def chart_of(graph: Graph, laps: Mapping[OpId, int] | None = None) -> Chart:
    """Say what to draw of a graph.

    Parameters
    ----------
    laps : mapping, optional
        Lap of each op, shown in its box.

    Raises
    ------
    UnsupportedError
        If the graph has more than `MAX_BOXES` ops.
    """
    if len(graph.ops) > MAX_BOXES:
        raise UnsupportedError(
            f"{len(graph.ops)} ops are too many for a picture (limit {MAX_BOXES}): "
            "export the graph to graphml and open it in a graph editor"
        )
    scale = scale_of(max((_longest(op) for op in graph.ops), default=0))
    lap = "" if laps is None else ", then the lap"
    unit = scale.unit(graph.time_unit)
    facts = f"in each box: duration in {unit}{lap}; D: one iteration of delay"
    ranges = ", ".join(f"{name} {_range(graph, name)}" for name in graph.delays)
    return Chart(
        title=graph.name,
        facts=f"{facts}; {ranges}" if 0 < len(graph.delays) <= MOST_RANGES else facts,
        boxes=tuple(
            Box(id=op.id, kind=op.kind, note=_note(op, scale, laps)) for op in graph.ops
        ),
        wires=_wires(graph),
    )


#: Ranges of more delays than this are not listed.
MOST_RANGES = 8


def _note(op: Op, scale: Scale, laps: Mapping[OpId, int] | None) -> str:
    if isinstance(op.duration, int):
        time = _short(scale, op.duration)
    else:
        values = op.duration.values()
        time = f"{_short(scale, min(values))}–{_short(scale, max(values))}"
    return time if laps is None else f"{time} · lap {laps[op.id]}"


def _short(scale: Scale, value: int) -> str:
    return str(value) if scale.factor == 1 else f"{scale.number(value):.3g}"


def _longest(op: Op) -> int:
    return op.duration if isinstance(op.duration, int) else max(op.duration.values())


def _range(graph: Graph, name: DelayName) -> str:
    delay = graph.delays[name]
    if delay.max is None:
        return f"≥ {delay.min}"
    return f"= {delay.min}" if delay.min == delay.max else f"{delay.min}…{delay.max}"


def _wires(graph: Graph) -> tuple[Wire, ...]:
    merged: dict[tuple[OpId, OpId, int | DelayName, int], None] = {}
    for edge in graph.edges:
        merged[edge.src, edge.dst, edge.delay, edge.lag] = None
    return tuple(
        Wire(src=src, dst=dst, label=_label(delay, lag), is_delayed=delay != 0)
        for src, dst, delay, lag in merged
    )


def _label(delay: int | DelayName, lag: int) -> str:
    text = delay_text(delay)
    return f"{text} +{lag}".strip() if lag else text
