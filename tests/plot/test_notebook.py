"""What a notebook shows: tables with exact figures, pictures, nothing unescaped."""

from __future__ import annotations

import re
import sys
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import pytest
from factories import make_graph, make_op, training_chain

from lpsched import SolveParams, compare
from lpsched.core.answer import Answer
from lpsched.core.graph import Graph
from lpsched.core.result import Result, Status
from lpsched.solve import Comparison, solve

PERIOD = SolveParams(objective=("period",))


def shown(thing: Any) -> str:  # noqa: ANN401 - whatever has a display
    """The HTML that Jupyter asks an object for."""
    bundle: Mapping[str, str] = thing._repr_mimebundle_(include=None, exclude=None)
    line = bundle["text/plain"]
    assert line.startswith(f"<{type(thing).__name__} ")
    assert "\n" not in line
    return bundle["text/html"]


def picture_in(html: str) -> bytes:
    (data,) = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    return b64decode(data)


def test_an_answer_shows_its_figures_its_proof_and_a_chart() -> None:
    """Eight ops of 2 ticks, the longest chain two layers: 16 ticks on two devices."""
    html = shown(solve(training_chain(3), PERIOD))
    assert "chain3 by" in html
    assert "optimal" in html
    assert re.search(r">period</td><td[^>]*>8</td><td[^>]*>8</td>", html)
    assert picture_in(html).startswith(b"\x89PNG")


def test_a_schedule_without_its_graph_still_tells_its_period() -> None:
    schedule = solve(training_chain(2), PERIOD).require_schedule()
    bare = type(schedule)(
        graph=schedule.graph,
        graph_digest=schedule.graph_digest,
        period=schedule.period,
        ops=schedule.ops,
    )
    assert f">{schedule.period}</td>" in shown(bare)


def test_an_answer_without_schedule_tells_why() -> None:
    result = Result(method="cpsat", status=Status.INFEASIBLE)
    conflict = {"reason": "a < b"}
    html = shown(Answer(result=result, conflict=conflict))
    assert "infeasible" in html
    assert "a &lt; b" in html


def test_a_comparison_is_a_list_that_shows_itself_as_a_table() -> None:
    graph = training_chain(3)
    rows = compare(graph, methods=("pipedream", "optimal"), params=PERIOD)
    assert isinstance(rows, list)
    assert isinstance(rows, Comparison)
    html = shown(rows)
    assert html.count("<tr>") == 3
    assert "vs pipedream" in html
    assert all(f"{row.objective['period']:,}" in html for row in rows)


def test_a_graph_shows_its_size_and_its_picture() -> None:
    html = shown(training_chain(2))
    assert ">5</td>" in html  # F1, W1, F2, I2, W2
    assert picture_in(html).startswith(b"\x89PNG")


def test_a_great_graph_is_told_in_numbers() -> None:
    html = shown(make_graph([make_op(f"x{i}", 1) for i in range(200)]))
    assert ">200</td>" in html
    assert "<img" not in html


def hostile() -> Graph:
    return make_graph([make_op("x", 1)], name="<script>alert(1)</script>")


def test_names_are_escaped() -> None:
    graph = hostile()
    answer = solve(graph, PERIOD)
    rows = compare(graph, methods=("sequential",), baseline="sequential")
    for thing in (graph, answer, answer.schedule, rows):
        assert "<script>" not in shown(thing)


def test_without_matplotlib_the_table_stands_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schedule = solve(training_chain(2), PERIOD).require_schedule()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    html = shown(schedule)
    assert "<table>" in html
    assert "pip install 'lpsched[plot]'" in html
