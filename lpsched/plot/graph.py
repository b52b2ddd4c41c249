"""Pictures of graphs: boxes, delays on the wires, laps in the boxes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from lpsched.analysis.layers import layers_of
from lpsched.core.graph import Graph, OpId
from lpsched.core.io import write_bytes
from lpsched.errors import MissingExtraError, UnsupportedError
from lpsched.plot.colours import INK, PALE, QUIET, style_of
from lpsched.plot.curves import Curve, Frame
from lpsched.plot.flow import Box, Chart, Wire, chart_of
from lpsched.plot.graphviz import has_graphviz, render_by_graphviz
from lpsched.plot.layout import LABEL, NAME, NOTE, Layout, layout_of
from lpsched.plot.text import FAMILY, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["GRAPH_SUFFIXES", "check_graph_output", "draw_graph", "graph_picture"]

#: Who lays a graph out.
Engine: TypeAlias = Literal["auto", "dot", "own"]

#: Kinds of files that a graph can be drawn as.
GRAPH_SUFFIXES = (".svg", ".png", ".pdf")

DPI = 150
TITLE = 11.0
#: No side of a bitmap is longer, in dots.
LONGEST = 60_000
#: Points around the picture and for its title.
MARGIN, HEAD = 10.0, 24.0
#: Room between the title and what is drawn, and below it for the names of stages.
GAP, FOOT = 18.0, 22.0
#: Delayed wires are drawn in this colour, others in INK.
DELAYED = "#b3261e"


def check_graph_output(path: str | Path) -> str:
    """Return the suffix of a file that `draw_graph` can write.

    Raises
    ------
    UnsupportedError
        If the suffix is none of `GRAPH_SUFFIXES`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in GRAPH_SUFFIXES:
        raise UnsupportedError(
            f"{path}: cannot draw a graph as {suffix or 'a file without extension'}; "
            f"use {', '.join(GRAPH_SUFFIXES)}"
        )
    return suffix


def draw_graph(
    graph: Graph,
    path: str | Path,
    *,
    laps: Mapping[OpId, int] | None = None,
    stages: Mapping[OpId, int] | None = None,
    engine: Engine = "auto",
) -> None:
    """Draw a graph with its delays, and with laps if given.

    A training graph of layers stands on a grid: forwards on top from left to right,
    backwards below from right to left, weight gradients between them, so that the
    loops through the weights can be seen. Any other graph is laid out by graphviz where
    that is installed, else in ranks by a plain layout of our own.

    Parameters
    ----------
    path
        A ``.svg``, ``.png`` or ``.pdf``. Written whole or not at all.
    laps : mapping of OpId to int, optional
        Such as a schedule's `schedule_retiming`.
    stages : mapping of OpId to int, optional
        Stages of a training graph, shown as bands where they are whole layers in order.
    engine : {"auto", "dot", "own"}
        By graphviz's dot, or our own, in any case.

    Raises
    ------
    UnsupportedError
        For an unknown extension or too many ops; if graphviz fails.
    MissingExtraError
        If matplotlib is needed and missing.
    """
    suffix = check_graph_output(path)
    picture = graph_picture(graph, suffix, laps=laps, stages=stages, engine=engine)
    write_bytes(path, picture)


def graph_picture(
    graph: Graph,
    suffix: str = ".png",
    *,
    laps: Mapping[OpId, int] | None = None,
    stages: Mapping[OpId, int] | None = None,
    engine: Engine = "auto",
) -> bytes:
    """Return the picture as the bytes of a file of the kind `suffix` (``.png``).

    Errors as those of `draw_graph`.
    """
    chart = chart_of(graph, laps)
    own = engine == "own" or (engine == "auto" and _has_grid(graph))
    if not own and (engine == "dot" or has_graphviz()):
        return render_by_graphviz(graph, suffix, laps=laps)
    return _render_own(graph, chart, suffix, stages)


def _has_grid(graph: Graph) -> bool:
    try:
        layers_of(graph)
    except UnsupportedError:
        return False
    return True


def _render_own(
    graph: Graph, chart: Chart, suffix: str, stages: Mapping[OpId, int] | None
) -> bytes:
    try:
        import matplotlib.style  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtraError(package="matplotlib", extra="plot") from error

    layout = layout_of(graph, chart, stages)
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    style = {"svg.hashsalt": "lpsched", "font.family": FAMILY}
    buffer = io.BytesIO()
    with matplotlib.style.context(["default", style]):
        figure = figure_of(chart, layout)
        longest = max(figure.get_size_inches())
        figure.savefig(
            buffer,
            format=suffix[1:],
            dpi=min(DPI, LONGEST / longest),
            metadata=undated.get(suffix),
        )
    return buffer.getvalue()


def figure_of(chart: Chart, layout: Layout) -> Figure:
    """Draw a chart on a matplotlib figure of its own, one unit a point."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional package

    head = max(width(chart.title, TITLE, bold=True), width(chart.facts, NOTE))
    across = max(layout.width, head) + 2 * MARGIN
    top = layout.top - HEAD - GAP
    low = layout.bottom + (FOOT if layout.bands else 0)
    up = low - top + 2 * MARGIN
    figure = Figure(figsize=(across / 72, up / 72), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-MARGIN, across - MARGIN)
    axes.set_ylim(low + MARGIN, top - MARGIN)
    axes.set_axis_off()
    _draw_head(axes, chart, top)
    _draw_bands(axes, layout, low)
    for wire, curve in layout.curves:
        _draw_wire(axes, wire, curve)
    for box in chart.boxes:
        _draw_box(axes, box, layout.frames[box.id])
    for wire, curve in layout.curves:
        _draw_label(axes, wire, curve)
    return figure


def _draw_head(axes: Axes, chart: Chart, top: float) -> None:
    for y, text, size, bold in (
        (top, chart.title, TITLE, True),
        (top + 17, chart.facts, NOTE, False),
    ):
        axes.text(
            0,
            y,
            text,
            size=size,
            weight="bold" if bold else "normal",
            color=INK if bold else QUIET,
            va="top",
            parse_math=False,
        )


def _draw_bands(axes: Axes, layout: Layout, low: float) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - an optional package

    top = layout.top - GAP / 2
    for i, band in enumerate(layout.bands):
        across = band.right - band.left
        if i % 2 == 0:
            axes.add_patch(
                Rectangle((band.left, top), across, low - top, color=PALE, zorder=0)
            )
        if i > 0:
            axes.vlines(band.left, top, low, colors=QUIET, lw=0.8, ls=(0, (4, 3)))
        axes.text(
            band.left + across / 2,
            low - 5,
            band.name,
            size=NOTE + 1,
            color=QUIET,
            ha="center",
            va="bottom",
            parse_math=False,
        )


def _draw_wire(axes: Axes, wire: Wire, curve: Curve) -> None:
    from matplotlib.patches import FancyArrowPatch  # noqa: PLC0415 - optional
    from matplotlib.path import Path as Line  # noqa: PLC0415 - optional

    points = curve.points
    codes = [Line.MOVETO] + [Line.CURVE4] * (len(points) - 1)
    axes.add_patch(
        FancyArrowPatch(
            path=Line(points, codes),
            arrowstyle="-|>,head_length=3.2,head_width=1.5",
            color=DELAYED if wire.is_delayed else INK,
            lw=0.9 if wire.is_delayed else 0.7,
            shrinkA=0,
            shrinkB=0,
            zorder=1,
        )
    )


def _draw_box(axes: Axes, box: Box, frame: Frame) -> None:
    from matplotlib.patches import FancyBboxPatch  # noqa: PLC0415 - optional

    axes.add_patch(
        FancyBboxPatch(
            (frame.x - frame.width / 2, frame.y - frame.height / 2),
            frame.width,
            frame.height,
            boxstyle="round,pad=0,rounding_size=5",
            facecolor=style_of(box.kind).colour,
            edgecolor=INK,
            lw=0.7,
            zorder=2,
        )
    )
    for text, up, size, bold in ((box.id, -5, NAME, True), (box.note, 7, NOTE, False)):
        axes.text(
            frame.x,
            frame.y + up,
            text,
            size=size,
            weight="bold" if bold else "normal",
            color=INK,
            ha="center",
            va="center_baseline",
            zorder=3,
            parse_math=False,
        )


def _draw_label(axes: Axes, wire: Wire, curve: Curve) -> None:
    if not wire.label:
        return
    axes.text(
        *curve.middle,
        wire.label,
        size=LABEL,
        weight="bold",
        color=DELAYED if wire.is_delayed else INK,
        ha="center",
        va="center_baseline",
        zorder=4,
        parse_math=False,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.9},
    )
