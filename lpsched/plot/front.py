"""The front of two objectives as a picture: steps, bounds, and methods beside it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import fill
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
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

__all__ = ["check_front_output", "draw_front", "draw_on", "front_picture"]

#: Inches, and dots of an inch.
_SIZE, _DPI = (7.5, 4.8), 150
_LINE, _METHOD = KINDS["F"].colour, KINDS["B"].colour
_SUFFIXES = (".png", ".svg", ".pdf")
#: How many lines a label crosses rather than cover a mark or another text.
_WEIGHT = 5
#: Where a label may stand: points to the right and up from its mark, and alignment.
_SPOTS = [
    (side * right, level * up, across, along)
    for up in range(6, 78, 12)
    for right in (7, 16)
    for side, across in ((1, "left"), (-1, "right"))
    for level, along in ((1, "bottom"), (-1, "top"))
]


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

    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    style = {"svg.hashsalt": "lpsched", "font.family": FAMILY}
    buffer = io.BytesIO()
    with matplotlib.style.context(["default", style]):
        figure = Figure(
            figsize=_SIZE, dpi=_DPI, facecolor="white", layout="constrained"
        )
        draw_on(figure, front, rows)
        figure.savefig(
            buffer, format=suffix[1:], dpi=_DPI, metadata=undated.get(suffix)
        )
    return buffer.getvalue()


def draw_on(figure: Figure, front: Front, rows: Sequence[Row]) -> None:
    """Draw on an empty figure what `front_picture` returns."""
    rows = [row for row in rows if row.schedule is not None]
    x, y = (_scale(front, rows, name) for name in front.objectives)
    axes = figure.add_subplot()
    axes.margins(x=0.06, y=0.18)  # room for labels above the first point
    _draw_steps(axes, front, x, y)
    marks = _marks(front, x, y, rows)
    axes.plot(
        [at for at, _ in marks.values()],
        [up for _, up in marks.values()],
        marker="s",
        linestyle="none",
        color=_METHOD,
        markerfacecolor="none",  # what it surrounds stays to be seen
        markersize=10,
        clip_on=False,
        label="methods" if marks else None,
        zorder=4,
    )
    _draw_frame(axes, front, x, y)
    _label(figure, axes, marks)


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


def _marks(
    front: Front, x: Scale, y: Scale, rows: Sequence[Row]
) -> dict[str, tuple[float, float]]:
    """Return where methods stand; those with the same values share one mark."""
    names: dict[tuple[int, int], list[str]] = {}
    first, second = front.objectives
    for row in rows:
        at = row.objective[first], row.objective[second]
        names.setdefault(at, []).append(row.method)
    return {
        fill(", ".join(found), 40, break_on_hyphens=False): (x.number(a), y.number(b))
        for (a, b), found in names.items()
    }


def _label(
    figure: Figure, axes: Axes, marks: Mapping[str, tuple[float, float]]
) -> None:
    """Write each mark's text beside it, where it covers least of what is there."""
    figure.draw_without_rendering()  # from here on places on the page are known
    taken = _drawn(axes, figure.dpi)
    for text, at in marks.items():
        note = axes.annotate(
            text,
            at,
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=8,
            color=INK,
            parse_math=False,
            zorder=5,
        )
        note.set_in_layout(False)
        covered = []
        for right, up, side, level in _SPOTS:
            note.set(position=(right, up), ha=side, va=level)
            box = note.get_window_extent()
            outside = not all(axes.bbox.contains(*corner) for corner in box.corners())
            covered.append(len(taken) * outside + box.count_overlaps(taken))
        right, up, side, level = _SPOTS[covered.index(min(covered))]
        note.set(position=(right, up), ha=side, va=level)
        taken += _WEIGHT * [note.get_window_extent()]


def _drawn(axes: Axes, dpi: float) -> list[Bbox]:
    """Return where marks, lines and the legend are, in dots of the page."""
    from matplotlib.transforms import Bbox  # noqa: PLC0415 - an optional package

    legend = axes.get_legend()
    found = [] if legend is None else _WEIGHT * [legend.get_window_extent()]
    for line in axes.get_lines():
        places = [(x, y) for x, y in axes.transData.transform(line.get_xydata())]
        if line.get_linestyle() != "None":
            steps = line.get_drawstyle() != "default"
            for (x, y), (to, end) in pairwise(places):
                corner = (to, y) if steps else (x, y)
                found += [Bbox([(x, y), corner]), Bbox([corner, (to, end)])]
        if line.get_marker() != "None":
            r = 0.6 * line.get_markersize() / 72 * dpi
            for x, y in places:
                found += _WEIGHT * [Bbox([(x - r, y - r), (x + r, y + r)])]
    return found


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
