"""What a notebook shows of an answer, a schedule, a comparison or a graph."""

from __future__ import annotations

from base64 import b64encode
from functools import singledispatch
from typing import Any

from lpsched.analysis.metrics import measure
from lpsched.core.answer import Answer
from lpsched.core.graph import Graph
from lpsched.core.result import Result
from lpsched.core.schedule import Schedule
from lpsched.errors import MissingExtraError, UnsupportedError
from lpsched.plot.comparison import cells, columns
from lpsched.plot.figures import number
from lpsched.plot.gantt import gantt_picture
from lpsched.plot.graph import graph_picture
from lpsched.plot.html import html_table
from lpsched.solve import Comparison

__all__ = ["bundle"]

#: A graph of more ops is told in numbers; its picture could not be read.
MOST_BOXES = 120
WIDTH = 1000

_PLAIN = [("", "left"), ("value", "right"), ("proved bound", "right"), ("", "left")]


def bundle(thing: Answer | Schedule | Graph | Comparison) -> dict[str, Any]:
    """Return what Jupyter calls a MIME bundle: plain text, and HTML with pictures.

    The text is a line: `repr` of a graph would fill pages.
    """
    return {"text/plain": line_of(thing), "text/html": html_of(thing)}


def line_of(thing: Answer | Schedule | Graph | Comparison) -> str:
    """Say in a line what a thing is."""
    match thing:
        case Answer(result=result, schedule=schedule):
            period = "" if schedule is None else f", period {number(schedule.period)}"
            return f"<Answer by {result.method}: {result.status}{period}>"
        case Schedule(graph=name, period=period):
            return f"<Schedule of {name}: period {number(period)}>"
        case Graph(name=name, ops=ops, devices=devices):
            return f"<Graph {name}: {len(ops)} ops, {len(devices)} devices>"
        case _:
            return repr(thing)


@singledispatch
def html_of(thing: object) -> str:
    """Return the HTML of one of lpsched's objects."""
    raise TypeError(f"no display of {type(thing).__name__}")


@html_of.register
def _comparison(rows: Comparison) -> str:
    graphs = list(dict.fromkeys(row.graph.name for row in rows))
    units = {(row.graph.time_unit, row.graph.size_unit) for row in rows}
    caption = ", ".join(graphs)
    if len(units) == 1:
        ((time, size),) = units
        caption += f": time in {time}, sizes in {size}"
    return html_table(
        columns(rows.baseline), [cells(row) for row in rows], caption=caption
    )


@html_of.register
def _answer(answer: Answer) -> str:
    if answer.schedule is None:
        reason = answer.conflict["reason"] if answer.conflict else ""
        row = [[str(answer.result.status), str(reason)]]
        return html_table([("status", "left"), ("", "left")], row)
    return _schedule(answer.schedule)


@html_of.register
def _schedule(schedule: Schedule) -> str:
    graph, result = schedule.graph_document, schedule.result
    method = result.method if result else schedule.graph
    title = f"{schedule.graph} by {method}" if result else schedule.graph
    if result:
        title += f": {result.status}"
    if graph is None:
        rows = [["period", number(schedule.period), "", ""]]
        return html_table(_PLAIN, rows, caption=title)
    table = html_table(_PLAIN, _figures(graph, schedule, result), caption=title)
    return f"{table}\n{_image(gantt_picture, [(method, graph, schedule)])}"


def _figures(
    graph: Graph, schedule: Schedule, result: Result | None
) -> list[list[str]]:
    """One row a figure: its value, the bound proved and the kind of proof."""
    figures = measure(graph, schedule).figures()
    rows = []
    for name, value in figures.items():
        bound = result.bound.get(name) if result else None
        proof = result.proof.get(name) if result else None
        rows.append(
            [
                name.replace("_", " "),
                str(value) if "/" in str(value) else number(int(value)),
                "" if bound is None else number(bound),
                f"by {proof.kind}" if proof else "",
            ]
        )
    return rows


@html_of.register
def _graph(graph: Graph) -> str:
    rows = [
        ["ops", number(len(graph.ops))],
        ["edges", number(len(graph.edges))],
        ["devices", number(len(graph.devices))],
        ["named delays", number(len(graph.delays))],
    ]
    heads = [("", "left"), ("count", "right")]
    table = html_table(heads, rows, caption=graph.name)
    if len(graph.ops) > MOST_BOXES:
        return table
    return f"{table}\n{_image(graph_picture, graph)}"


def _image(draw: Any, subject: object) -> str:  # noqa: ANN401 - either drawing function
    """Return a picture inside the page; without matplotlib, what to install."""
    try:
        png = b64encode(draw(subject, ".png")).decode()
    except (MissingExtraError, UnsupportedError) as error:
        return f"<p>No picture: {error}</p>"
    source = f"data:image/png;base64,{png}"
    return f'<img alt="" src="{source}" style="max-width:{WIDTH}px;width:100%">'
