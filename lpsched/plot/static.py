"""Pictures through matplotlib, without a display: png, svg, pdf."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from lpsched.plot.colours import INK, PALE, QUIET, style_of
from lpsched.plot.labels import LEADING, MARGIN, first_that_fits, forms
from lpsched.plot.picture import Lane, Panel, Picture, Section
from lpsched.plot.sheet import EDGE, SIZES, STRIP, Sheet, sheet_of
from lpsched.plot.text import FAMILY, shorten, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["figure_of", "render"]

DPI = 150
#: Share of a lane's height that its bars fill.
FILL = 0.86
#: Matplotlib's own line height, as a multiple of the size of this family.
LINE_HEIGHT = 1.16
#: Bars narrower than this (points) are not set apart: white lines would hide them.
SET_APART_FROM = 3.0
#: Points between the ends of a lane and the texts beside it, arrows in between.
BESIDE = 8.0
#: Inches from the top of a panel to its title and to its dimension line.
TITLE_Y, DIMENSION_Y = 0.1, 0.39


def render(picture: Picture, suffix: str) -> bytes:
    """Return the picture as the bytes of a file of the kind `suffix` (``.png``).

    The same picture gives the same bytes with the same matplotlib.
    """
    import matplotlib.style  # noqa: PLC0415 - an optional package

    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    style = {"svg.hashsalt": "lpsched", "font.family": FAMILY}
    buffer = io.BytesIO()
    with matplotlib.style.context(["default", style]):
        figure_of(picture).savefig(
            buffer, format=suffix[1:], dpi=DPI, metadata=undated.get(suffix)
        )
    return buffer.getvalue()


def figure_of(picture: Picture) -> Figure:
    """Draw the picture on a matplotlib figure of its own."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional package

    sheet = sheet_of(picture)
    figure = Figure(figsize=(sheet.width, sheet.height), facecolor="white")
    _draw_header(figure, picture, sheet)
    for index, panel in enumerate(picture.panels):
        axes = figure.add_axes(sheet.box(index))
        # Inches down from the top of the panel: lanes stand where the sheet says.
        top, bottom = sheet.panels[index]
        axes.set_ylim(bottom - top, 0)
        _draw_axis(axes, picture, last=index == len(picture.panels) - 1)
        _draw_frame(axes, panel, picture, sheet)
        for row, lane in enumerate(panel.lanes):
            y = STRIP + (row + 0.5) * sheet.lane
            _draw_bars(axes, y, lane, picture, sheet)
            _draw_labels(axes, y, lane, picture, sheet)
    return figure


def _draw_header(figure: Figure, picture: Picture, sheet: Sheet) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415 - an optional package

    for line in sheet.header:
        figure.text(
            EDGE / sheet.width,
            1 - line.y / sheet.height,
            line.text,
            size=line.size,
            weight="bold" if line.bold else "normal",
            color=INK if line.bold else QUIET,
            va="top",
            parse_math=False,
        )
    handles = [Patch(color=style.colour, label=style.name) for style in picture.kinds]
    if handles:
        figure.legend(
            handles=handles,
            loc="upper right",
            bbox_to_anchor=(1 - EDGE / sheet.width, 1 - EDGE / sheet.height),
            ncols=len(handles),
            frameon=False,
            fontsize=SIZES.note,
            handlelength=1.2,
            columnspacing=1.2,
            borderpad=0,
            borderaxespad=0,
        )


def _draw_axis(axes: Axes, picture: Picture, *, last: bool) -> None:
    number = picture.scale.number
    axes.set_xlim(number(picture.begin), number(picture.end))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(QUIET)
    axes.set_yticks([])
    axes.tick_params(axis="x", labelbottom=last, labelsize=SIZES.note, colors=QUIET)
    axes.tick_params(axis="x", labelcolor=INK)
    if last:
        unit = picture.scale.unit(picture.unit)
        axes.set_xlabel(f"time in {unit}", size=SIZES.note, color=INK, parse_math=False)


def _draw_frame(axes: Axes, panel: Panel, picture: Picture, sheet: Sheet) -> None:
    """Draw all of a panel but its bars."""
    number = picture.scale.number
    begin, end = number(panel.begin), number(panel.end)
    for row, lane in enumerate(panel.lanes):
        y = STRIP + (row + 0.5) * sheet.lane
        _draw_lane(axes, y, lane, (begin, end), sheet)
    if any(lane.busy is not None for lane in panel.lanes):
        _beside(axes, DIMENSION_Y, "busy", QUIET)
    low, high = STRIP, STRIP + len(panel.lanes) * sheet.lane
    times = [number(time) for time in panel.grid]
    axes.vlines(times, low, high, colors=QUIET, lw=0.4, ls=(0, (2, 3)), zorder=0.5)
    for section in panel.sections:
        _draw_section(axes, section, high, picture, sheet)
    title = shorten(panel.title, SIZES.panel, sheet.axis_points / 3, bold=True)
    shift = (width(title, SIZES.panel, bold=True) + 8) / sheet.axis_points
    _title(axes, 0, title, INK, bold=True)
    room = sheet.axis_points * (1 - shift) + 72 * (sheet.width - sheet.right - EDGE)
    _title(axes, shift, shorten(panel.facts, SIZES.note, room), INK)


def _title(axes: Axes, x: float, text: str, color: str, *, bold: bool = False) -> None:
    axes.text(
        x,
        TITLE_Y,
        text,
        transform=axes.get_yaxis_transform(),
        size=SIZES.panel if bold else SIZES.note,
        weight="bold" if bold else "normal",
        color=color,
        va="center_baseline",
        parse_math=False,
    )


def _draw_lane(
    axes: Axes, y: float, lane: Lane, span: tuple[float, float], sheet: Sheet
) -> None:
    """Draw the empty lane: its ground, its name, its busy share."""
    height = FILL * sheet.lane
    axes.broken_barh(
        [(span[0], span[1] - span[0])],
        (y - height / 2, height),
        facecolors=PALE,
        zorder=0,
    )
    room = 72 * (sheet.left - EDGE) - BESIDE
    _beside(axes, y, shorten(lane.name, SIZES.lane, room), INK, left=True)
    if lane.busy is not None:
        _beside(axes, y, f"{float(lane.busy):.1%}", QUIET)


def _beside(axes: Axes, y: float, text: str, color: str, *, left: bool = False) -> None:
    axes.annotate(
        text,
        (0 if left else 1, y),
        xycoords=axes.get_yaxis_transform(),
        xytext=(-BESIDE if left else BESIDE, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center_baseline",
        size=SIZES.lane,
        color=color,
        parse_math=False,
    )


def _draw_section(
    axes: Axes, section: Section, bottom: float, picture: Picture, sheet: Sheet
) -> None:
    """Draw a dimension line above the lanes, its ends down through them."""
    begin, end = (picture.scale.number(time) for time in (section.begin, section.end))
    axes.vlines(
        [begin, end],
        DIMENSION_Y - 0.06,
        bottom,
        colors=INK,
        lw=0.9,
        ls=(0, (4, 2)),
        zorder=1.5,
        clip_on=False,
    )
    axes.annotate(
        "",
        (begin, DIMENSION_Y),
        (end, DIMENSION_Y),
        arrowprops={
            "arrowstyle": "<->",
            "lw": 0.7,
            "color": INK,
            "shrinkA": 0,
            "shrinkB": 0,
        },
        annotation_clip=False,
    )
    room = (end - begin) * _points_per_unit(picture, sheet) - 20
    for text in (section.text, section.text.split(":")[0]):
        if width(text, SIZES.lane) <= room:
            axes.text(
                (begin + end) / 2,
                DIMENSION_Y,
                text,
                ha="center",
                va="center_baseline",
                size=SIZES.lane,
                color=INK,
                parse_math=False,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )
            break


# -- bars ------------------------------------------------------------------------


def _points_per_unit(picture: Picture, sheet: Sheet) -> float:
    return sheet.axis_points / picture.scale.number(picture.end - picture.begin)


def _draw_bars(
    axes: Axes, y: float, lane: Lane, picture: Picture, sheet: Sheet
) -> None:
    """Draw a lane's bars, one collection per kind: thousands take no time."""
    number, per_unit = picture.scale.number, _points_per_unit(picture, sheet)
    height = FILL * sheet.lane
    for style in picture.kinds:
        run = [bar for bar in lane.bars if style_of(bar.kind) == style]
        if not run:
            continue
        axes.broken_barh(
            [(number(bar.start), number(bar.length)) for bar in run],
            (y - height / 2, height),
            facecolors=style.colour,
            edgecolors=style.colour,
            linewidths=0.1,
            label=style.name,
            zorder=2,
        )
    wide = [b for b in lane.bars if number(b.length) * per_unit >= SET_APART_FROM]
    ends = sorted({number(time) for bar in wide for time in (bar.start, bar.end)})
    low, high = y - height / 2, y + height / 2
    axes.vlines(ends, low, high, colors="white", lw=0.6, zorder=2.5)
    for bar in lane.bars:
        sides = ((bar.cut_left, bar.start, "<"), (bar.cut_right, bar.end, ">"))
        for cut, time, side in sides:
            if cut:
                _draw_arrow(axes, number(time), y, side)


def _draw_arrow(axes: Axes, x: float, y: float, side: str) -> None:
    """Point out of the window, where a run goes on beyond it."""
    from matplotlib.markers import CARETLEFTBASE, CARETRIGHTBASE  # noqa: PLC0415 - optional

    axes.plot(
        [x],
        [y],
        marker=CARETLEFTBASE if side == "<" else CARETRIGHTBASE,
        markersize=4.5,
        color=INK,
        clip_on=False,
        zorder=4,
    )


def _draw_labels(
    axes: Axes, y: float, lane: Lane, picture: Picture, sheet: Sheet
) -> None:
    number, per_unit = picture.scale.number, _points_per_unit(picture, sheet)
    height = 72 * FILL * sheet.lane - MARGIN
    for bar in lane.bars:
        room = number(bar.length) * per_unit - 2 * MARGIN
        texts = forms(bar, picture.when(bar), unrolled=picture.unrolled)
        label = first_that_fits(texts, room, height)
        if label is not None:
            axes.text(
                number(bar.start) + number(bar.length) / 2,
                y,
                label.text,
                rotation=label.rotation,
                ha="center",
                va="center",
                size=label.size,
                linespacing=LEADING / LINE_HEIGHT,
                color=INK,
                zorder=5,
                parse_math=False,
            )
