"""The front of two objectives as a picture: steps, bounds, and methods beside it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lpsched.core.io import write_bytes
from lpsched.errors import UnsupportedError
from lpsched.plot.colours import INK, KINDS, QUIET
from lpsched.plot.gantt import check_output
from lpsched.plot.text import FAMILY
from lpsched.plot.units import Scale, scale_of
from lpsched.solve import Front, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["check_front_output", "draw_front", "front_picture"]

#: Inches, and dots of an inch.
_SIZE, _DPI = (7.5, 4.8), 150
_LINE, _METHOD = KINDS["F"].colour, KINDS["B"].colour
_SUFFIXES = (".png", ".svg", ".pdf")


def check_front_output(path: str | Path) -> str:
    """Return the suffix of a file that `draw_front` can write.

    Raises
    ------
    UnsupportedError
        If it is none of .png, .svg and .pdf.
    MissingExtraError
        If matplotlib is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        kinds = ", ".join(_SUFFIXES)
        text = f"{path}: cannot draw a front as {suffix or 'a file without extension'}"
        raise UnsupportedError(f"{text}; use {kinds}")
    return check_output(path)


def draw_front(front: Front, path: str | Path, *, rows: Sequence[Row] = ()) -> None:
    """Draw a front with at least one point to a file, written whole or not at all.

    Parameters
    ----------
    rows : sequence of Row
        Methods compared, each a mark of its own.

    Raises
    ------
    UnsupportedError, MissingExtraError
        As `check_front_output`.
    """
    write_bytes(path, front_picture(front, check_front_output(path), rows=rows))


def front_picture(
    front: Front, suffix: str = ".png", *, rows: Sequence[Row] = ()
) -> bytes:
    """Return the picture as the bytes of a file; arguments as those of `draw_front`."""
    check_front_output(f"front{suffix}")
    import matplotlib.style  # noqa: PLC0415 - an optional package
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional package

    rows = [row for row in rows if row.schedule is not None]
    x, y = (_scale(front, rows, name) for name in front.objectives)
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    style = {"svg.hashsalt": "lpsched", "font.family": FAMILY}
    buffer = io.BytesIO()
    with matplotlib.style.context(["default", style]):
        figure = Figure(figsize=_SIZE, facecolor="white", layout="constrained")
        axes = figure.add_subplot()
        _draw_steps(axes, front, x, y)
        _draw_methods(axes, front, x, y, rows)
        _draw_frame(axes, front, x, y)
        figure.savefig(
            buffer, format=suffix[1:], dpi=_DPI, metadata=undated.get(suffix)
        )
    return buffer.getvalue()


def _scale(front: Front, rows: Sequence[Row], name: str) -> Scale:
    values = [point.objective[name] for point in front.points]
    return scale_of(max([*values, *(row.objective[name] for row in rows)]))


def _draw_steps(axes: Axes, front: Front, x: Scale, y: Scale) -> None:
    """The least found up to each value, marks at the points, and what is open."""
    first, second = front.objectives
    across = [x.number(point.objective[first]) for point in front.points]
    up = [y.number(point.objective[second]) for point in front.points]
    axes.step(across, up, where="post", color=_LINE, linewidth=1.5, zorder=2)
    for proved, name in ((True, "proved"), (False, "not proved, with its bound")):
        shown = [i for i, p in enumerate(front.points) if p.proved is proved]
        if shown:
            axes.plot(
                [across[i] for i in shown],
                [up[i] for i in shown],
                "o",
                color=_LINE,
                markerfacecolor=_LINE if proved else "white",
                markersize=5,
                clip_on=False,
                label=name,
                zorder=3,
            )
    for at, top, point in zip(across, up, front.points, strict=True):
        low = y.number(point.bound[second])
        if low < top:
            axes.plot([at, at], [low, top], color=QUIET, linewidth=1, zorder=1)


def _draw_methods(
    axes: Axes, front: Front, x: Scale, y: Scale, rows: Sequence[Row]
) -> None:
    first, second = front.objectives
    for row in rows:
        at = x.number(row.objective[first]), y.number(row.objective[second])
        axes.plot(*at, "x", color=_METHOD, markersize=7, clip_on=False, zorder=4)
        axes.annotate(
            row.method,
            at,
            xytext=(5, 5),
            textcoords="offset points",
            fontsize=8,
            color=INK,
            parse_math=False,
        )


def _draw_frame(axes: Axes, front: Front, x: Scale, y: Scale) -> None:
    graph = front.graph
    units = {"period": graph.time_unit, "makespan": graph.time_unit, "staleness": ""}
    labels = [
        f"{name.replace('_', ' ')} ({scale.unit(units.get(name, graph.size_unit))})"
        for name, scale in zip(front.objectives, (x, y), strict=True)
    ]
    axes.set_xlabel(labels[0].replace(" ()", ""), parse_math=False)
    axes.set_ylabel(labels[1].replace(" ()", ""), parse_math=False)
    whole = "" if front.complete else " (there may be more points)"
    title = f"{graph.name} on {len(graph.devices)} devices{whole}"
    axes.set_title(title, loc="left", fontsize=11, color=INK, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
