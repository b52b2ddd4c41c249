"""Where boxes and wires of a graph stand: a grid of layers, or ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lpsched.analysis.layers import Layer, layers_of
from lpsched.core.graph import Graph, OpId
from lpsched.errors import UnsupportedError
from lpsched.plot.curves import Curve, Frame, Point, bent, through
from lpsched.plot.flow import Chart, Wire
from lpsched.plot.layers import Cell, Layers
from lpsched.plot.text import width

__all__ = ["Band", "Layout", "layout_of"]

#: Sizes of text and of what surrounds it, in points.
NAME, NOTE, LABEL = 8.5, 6.5, 7.5
PADDING, HEIGHT = 12.0, 27.0
#: Room between boxes: along the flow and across it.
ALONG, ACROSS = 52.0, 24.0
#: Room between the rows of a grid, and how far wires bend around a box.
ROW, BEND = 44.0, 14.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A stretch of the page from `left` to `right` with a name: a stage."""

    left: float
    right: float
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Everything in its place.

    Attributes
    ----------
    frames : mapping of OpId to Frame
    curves : tuple of (Wire, Curve)
    bands : tuple of Band
        Empty if the stages do not stand apart.
    """

    width: float
    frames: Mapping[OpId, Frame]
    curves: tuple[tuple[Wire, Curve], ...]
    bands: tuple[Band, ...] = ()

    @property
    def top(self) -> float:
        """Height of the topmost thing."""
        return min((y for y in self._heights()), default=0.0)

    @property
    def bottom(self) -> float:
        """Height of the lowest thing."""
        return max((y for y in self._heights()), default=0.0)

    def _heights(self) -> Iterator[float]:
        for frame in self.frames.values():
            yield from (frame.y - frame.height / 2, frame.y + frame.height / 2)
        for _, curve in self.curves:
            yield from (curve.at(i / 8).y for i in range(9))


def layout_of(
    graph: Graph, chart: Chart, stages: Mapping[OpId, int] | None = None
) -> Layout:
    """Lay a chart out: training graphs of layers on a grid, others in ranks."""
    widths = {
        box.id: PADDING
        + max(width(box.id, NAME, bold=True), width(box.note, NOTE), HEIGHT)
        for box in chart.boxes
    }
    try:
        layers = layers_of(graph)
    except UnsupportedError:
        return _ranked(chart, widths)
    return _gridded(chart, widths, layers, stages or {})


# -- training graphs ---------------------------------------------------------------


def _gridded(
    chart: Chart,
    widths: Mapping[OpId, float],
    layers: tuple[Layer, ...],
    stages: Mapping[OpId, int],
) -> Layout:
    """A column a layer; forwards above, weight gradients between, backwards below.

    The flow runs to the right in the top row and to the left in the bottom row.
    """
    places: dict[OpId, tuple[int, int, int]] = {}  # column, row, place in the cell
    for column, layer in enumerate(layers):
        middle = (*layer.weight, *layer.update)
        for row, ops in enumerate((layer.forward, middle, layer.backward)):
            for i, op in enumerate(op for op in ops if op not in middle or row == 1):
                places[op] = (column, row, i)
    deep = [
        1 + max((i for _, r, i in places.values() if r == row), default=0)
        for row in range(3)
    ]
    tops = [0.0, 0.0, 0.0]
    for row in (1, 2):
        tops[row] = tops[row - 1] + deep[row - 1] * (HEIGHT + ACROSS) - ACROSS + ROW
    labels = (width(wire.label, LABEL, bold=True) for wire in chart.wires)
    pitch = max(widths.values()) + max(ALONG, max(labels, default=0) + PADDING)
    frames = {
        op: Frame(
            (column + 0.5) * pitch,
            tops[row] + i * (HEIGHT + ACROSS) + HEIGHT / 2,
            widths[op],
            HEIGHT,
        )
        for op, (column, row, i) in places.items()
    }
    curves = tuple(
        (wire, _grid_curve(wire, frames, places)) for wire in _once(chart.wires, places)
    )
    return Layout(
        width=len(layers) * pitch,
        frames=frames,
        curves=curves,
        bands=_bands(layers, stages, pitch),
    )


def _once(
    wires: Sequence[Wire], places: Mapping[OpId, tuple[int, int, int]]
) -> Iterator[Wire]:
    """Label wires to the parts of an op once, where all carry the same."""
    labelled: set[tuple[OpId, int, int, str]] = set()
    for wire in wires:
        column, row, part = places[wire.dst]
        mark = (wire.src, column, row, wire.label)
        if mark in labelled and part > 0 and wire.src != wire.dst:
            yield replace(wire, label="")
        else:
            yield wire
        labelled.add(mark)


def _grid_curve(
    wire: Wire,
    frames: Mapping[OpId, Frame],
    places: Mapping[OpId, tuple[int, int, int]],
) -> Curve:
    src, dst = frames[wire.src], frames[wire.dst]
    if wire.src == wire.dst:
        return _loop(src)
    (a, row, i), (b, other, j) = places[wire.src], places[wire.dst]
    if a == b:
        if abs(src.y - dst.y) <= ROW + HEIGHT + 1:
            return bent(src, dst, -BEND / 2)
        # Around the boxes between: what forwards send on the right, weights left.
        around = src.width / 2 + BEND
        return bent(src, dst, -around if row == 0 else around)
    if row == other and abs(a - b) > 1:
        # Over the forwards, under the backwards, ever higher the longer the way.
        return bent(src, dst, -(BEND + 5.0 * abs(a - b)))
    if abs(a - b) > 1:
        return bent(src, dst, BEND)
    return bent(src, dst, 0.0 if i == j == 0 else BEND / 4)


def _loop(frame: Frame, *, above: bool = False) -> Curve:
    """A loop at the left side of a box, or on top of it."""
    if above:
        top = frame.y - frame.height / 2
        start, end = Point(frame.x + 6, top), Point(frame.x - 6, top)
        one, two = Point(frame.x + 15, top - 17), Point(frame.x - 15, top - 17)
    else:
        left = frame.x - frame.width / 2
        start, end = Point(left, frame.y + 5), Point(left, frame.y - 5)
        one, two = Point(left - 18, frame.y + 14), Point(left - 18, frame.y - 14)
    return Curve(start, ((one, two, end),))


def _bands(
    layers: tuple[Layer, ...], stages: Mapping[OpId, int], pitch: float
) -> tuple[Band, ...]:
    """Stages as stretches of columns; none if an op stands outside its own."""
    columns: defaultdict[int, list[int]] = defaultdict(list)
    for column, layer in enumerate(layers):
        of_layer = {stages[op] for op in layer.ops if op in stages}
        if len(of_layer) != 1:
            return ()
        columns[of_layer.pop()].append(column)
    if any(own[-1] - own[0] + 1 != len(own) for own in columns.values()):
        return ()
    return tuple(
        Band(left=own[0] * pitch, right=(own[-1] + 1) * pitch, name=f"stage {stage}")
        for stage, own in sorted(columns.items())
    )


# -- other graphs ------------------------------------------------------------------


def _ranked(chart: Chart, widths: Mapping[OpId, float]) -> Layout:
    """Ranks from left to right, each as wide as its widest box."""
    boxes = [box.id for box in chart.boxes]
    layers = Layers(boxes, chart.wires)
    places: dict[Cell, Point] = {}
    left = 0.0
    for cells in layers.ranks:
        widest = max((widths[OpId(c)] for c in cells if isinstance(c, str)), default=0)
        for cell in cells:
            x = left + (ALONG + widest) / 2
            places[cell] = Point(x, layers.rows[cell] * (HEIGHT + ACROSS))
        left += widest + ALONG
    frames = {box: Frame(*places[box], widths[box], HEIGHT) for box in boxes}
    ways = {
        number: [places[cell] for cell in cells]
        for number, cells in layers.passes.items()
    }
    _dock(chart.wires, frames, ways)
    curves = tuple(
        (wire, through(ways[i]) if i in ways else _loop(frames[wire.src], above=True))
        for i, wire in enumerate(chart.wires)
    )
    return Layout(width=left, frames=frames, curves=curves)


def _dock(
    wires: Sequence[Wire],
    frames: Mapping[OpId, Frame],
    ways: Mapping[int, list[Point]],
) -> None:
    """Lead wires to the sides of boxes, in the order from which they come."""
    sides: defaultdict[tuple[OpId, bool], list[tuple[float, int, int]]]
    sides = defaultdict(list)
    for number, way in ways.items():
        wire = wires[number]
        is_right = way[1].x > way[0].x
        sides[wire.src, is_right].append((way[1].y, number, 0))
        sides[wire.dst, not is_right].append((way[-2].y, number, -1))
    docks: dict[tuple[int, int], Point] = {}
    for (box, is_right), ends in sides.items():
        frame = frames[box]
        x = frame.x + (frame.width / 2 if is_right else -frame.width / 2)
        for i, (_, number, end) in enumerate(sorted(ends), 1):
            y = frame.y - frame.height / 2 + frame.height * i / (len(ends) + 1)
            docks[number, end] = Point(x, y)
    for (number, end), dock in docks.items():
        ways[number][end] = dock
