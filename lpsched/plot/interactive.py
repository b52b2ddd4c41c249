"""Pictures through plotly: one page of HTML with everything in it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from lpsched.plot.bars import Bar
from lpsched.plot.colours import INK, PALE, QUIET, KindStyle, style_of
from lpsched.plot.picture import Panel, Picture

if TYPE_CHECKING:
    from plotly.graph_objects import Bar as Trace
    from plotly.graph_objects import Figure

__all__ = ["figure_of", "render"]

#: Pixels of a lane, of the strip above a panel, of a line of notes, of the axis.
LANE, STRIP, NOTE, AXIS = 30, 58, 18, 50
NOTE_CHARACTERS = 150
#: Share of a lane's height that its bars fill.
FILL = 0.86
#: What is shown under the pointer; the numbers are exact.
HOVER = (
    "<b>%{customdata[0]}</b><br>layer %{customdata[1]}<br>device %{customdata[2]}<br>"
    "iteration %{customdata[3]}, lap %{customdata[4]}<br>"
    "start %{customdata[5]}<br>duration %{customdata[6]}<extra></extra>"
)


def render(picture: Picture) -> bytes:
    """Return a page that needs nothing from elsewhere; the same for the same input."""
    page: str = figure_of(picture).to_html(
        include_plotlyjs=True, full_html=True, div_id="gantt"
    )
    return page.encode("utf-8")


def figure_of(picture: Picture) -> Figure:
    """Draw the picture as a plotly figure: one y axis a panel, one x axis for all."""
    from plotly.graph_objects import Figure  # noqa: PLC0415 - an optional package

    heading = _heading(picture)
    header = 70 + NOTE * heading.count("<br>")
    heights = [STRIP + LANE * max(1, len(p.lanes)) for p in picture.panels]
    total = sum(heights)
    figure = Figure()
    top = total
    for index, panel in enumerate(picture.panels):
        bottom = top - heights[index]
        domain = (bottom / total, (top - STRIP) / total)
        figure.add_traces(_traces(picture, panel, index))
        _add_frame(figure, picture, panel, index, domain)
        top = bottom
    _name_once(figure)
    figure.update_layout(
        title={
            "text": heading,
            "font": {"size": 15},
            "x": 0.01,
            "y": 1,
            "yanchor": "top",
            "pad": {"t": 14},
        },
        template="plotly_white",
        barmode="overlay",
        height=header + total + AXIS,
        margin={"l": 120, "r": 80, "t": header, "b": AXIS},
        uniformtext={"minsize": 8, "mode": "hide"},
        font={"color": INK, "size": 12},
        legend={
            "orientation": "h",
            "x": 1,
            "xanchor": "right",
            "y": 1,
            "yanchor": "bottom",
        },
    )
    return figure


def _heading(picture: Picture) -> str:
    notes = "".join(
        f"<br><span style='font-size:12px;color:{QUIET}'>{escape(line)}</span>"
        for note in picture.notes
        for line in wrap(note, NOTE_CHARACTERS)
    )
    return f"<b>{escape(picture.title)}</b>{notes}"


def _axis(index: int) -> str:
    return "y" if index == 0 else f"y{index + 1}"


def _name_once(figure: Figure) -> None:
    """Show each kind once in the legend, whichever panel has it first."""
    seen: set[str] = set()
    for trace in figure.data:
        trace.showlegend = trace.name not in seen
        seen.add(trace.name)


# -- bars ------------------------------------------------------------------------


def _traces(picture: Picture, panel: Panel, index: int) -> list[Trace]:
    rows = [(row, bar) for row, lane in enumerate(panel.lanes) for bar in lane.bars]
    return [
        _trace(picture, style, [r for r in rows if style_of(r[1].kind) == style], index)
        for style in picture.kinds
    ]


def _trace(
    picture: Picture, style: KindStyle, rows: Sequence[tuple[int, Bar]], index: int
) -> Trace:
    """All bars of a kind in a panel: numbers on a numeric axis, never dates."""
    from plotly.graph_objects import Bar as Trace  # noqa: PLC0415 - optional

    number = picture.scale.number
    return Trace(
        orientation="h",
        y=[row for row, _ in rows],
        base=[number(bar.start) for _, bar in rows],
        x=[number(bar.length) for _, bar in rows],
        width=FILL,
        yaxis=_axis(index),
        marker={"color": style.colour, "line": {"color": "white", "width": 0.5}},
        text=[f"{escape(bar.op)} <i>{picture.when(bar)}</i>" for _, bar in rows],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        insidetextfont={"color": INK},
        customdata=[_hover(picture, bar) for _, bar in rows],
        hovertemplate=HOVER,
        name=style.name,
        legendgroup=style.name,
    )


def _hover(picture: Picture, bar: Bar) -> list[str]:
    unit = escape(picture.unit)
    start = bar.start if picture.unrolled else bar.first_start
    wrapped = " (runs across the end of the period)" if bar.wrapped else ""
    return [
        escape(bar.op),
        escape(bar.layer or "none"),
        escape(bar.device or "none"),
        picture.when(bar),
        str(bar.lap),
        f"{start:,} {unit}",
        f"{bar.duration:,} {unit}{wrapped}",
    ]


# -- axes, titles, the period ----------------------------------------------------


def _add_frame(
    figure: Figure,
    picture: Picture,
    panel: Panel,
    index: int,
    domain: tuple[float, float],
) -> None:
    """Add the lanes' names and shares, the title, and the lines in time."""
    number, axis = picture.scale.number, _axis(index)
    rows = list(range(len(panel.lanes)))
    figure.update_layout({"xaxis": _time_axis(picture, len(picture.panels))})
    figure.update_layout(
        {
            f"yaxis{'' if index == 0 else index + 1}": {
                "domain": domain,
                "range": [len(rows) - 0.5, -0.5],
                "tickvals": rows,
                "ticktext": [escape(lane.name) for lane in panel.lanes],
                "showgrid": False,
                "zeroline": False,
                "fixedrange": True,
            }
        }
    )
    figure.add_annotation(
        text=f"<b>{escape(panel.title)}</b>  {escape(panel.facts)}",
        **_place("paper", 0, "paper", domain[1], "left", 36),
    )
    for row, lane in enumerate(panel.lanes):
        if lane.busy is not None:
            share = f"{float(lane.busy):.1%}"
            figure.add_annotation(
                text=share, **_place("paper", 1, axis, row, "left", 0)
            )
    for section in panel.sections:
        middle = (number(section.begin) + number(section.end)) / 2
        figure.add_annotation(
            text=escape(section.text),
            **_place("x", middle, "paper", domain[1], "center", 12),
        )
    ends = {t for s in panel.sections for t in (s.begin, s.end)}
    for time in sorted(ends | set(panel.grid)):
        figure.add_shape(_time_line(number(time), axis, bold=time in ends))


def _place(
    xref: str, x: float, yref: str, y: float, anchor: str, up: int
) -> dict[str, Any]:
    """Return where an annotation stands, `up` pixels above its point."""
    return {
        "xref": xref,
        "x": x,
        "yref": yref,
        "y": y,
        "xanchor": anchor,
        "yanchor": "middle",
        "yshift": up,
        "xshift": 6 if anchor == "left" and x == 1 else 0,
        "showarrow": False,
    }


def _time_axis(picture: Picture, panels: int) -> dict[str, Any]:
    begin, end = picture.scale.number(picture.begin), picture.scale.number(picture.end)
    return {
        "type": "linear",
        "range": [begin, end],
        "title": {"text": f"time in {escape(picture.scale.unit(picture.unit))}"},
        "anchor": _axis(panels - 1),
        "zeroline": False,
        "gridcolor": PALE,
    }


def _time_line(x: float, axis: str, *, bold: bool) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "x",
        "yref": f"{axis} domain",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": 1,
        "line": {
            "color": INK if bold else QUIET,
            "width": 1 if bold else 0.5,
            "dash": "dash" if bold else "dot",
        },
    }
