"""Schedules and comparisons as pandas tables."""

from __future__ import annotations

import sys

import pytest
from factories import make_graph, make_op, make_schedule

from lpsched import compare, to_pandas
from lpsched.errors import MissingExtraError, UnsupportedError


def test_a_row_for_each_op_with_exact_times() -> None:
    graph = make_graph([make_op("a", 3, kind="F"), make_op("b", 2)], devices=2)
    schedule = make_schedule(graph, 4, {"a": ("d0", 1), "b": ("d1", 9)})
    with pytest.raises(UnsupportedError, match="graph_document"):
        to_pandas(schedule)
    object.__setattr__(schedule, "graph_document", graph)
    frame = to_pandas(schedule).set_index("op")
    assert frame.loc["a", ["kind", "device", "start", "end"]].tolist() == [
        "F",
        "d0",
        1,
        4,
    ]
    assert frame.loc["b", ["lap", "phase", "duration"]].tolist() == [2, 1, 2]


def test_a_row_for_each_method() -> None:
    graph = make_graph({"a": 3, "b": 2}, devices=2)
    rows = compare(graph, methods=("sequential", "list"), baseline="sequential")
    frame = to_pandas(rows)
    assert frame["method"].tolist() == ["sequential", "list"]
    assert frame["period"].tolist() == [5, 3]
    assert "bound" not in frame


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"lpsched\[notebook\]"):
        to_pandas([])
