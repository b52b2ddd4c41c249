"""Gantt charts as files: the right kind, whole or not at all, always the same."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from factories import make_graph, make_op, make_schedule

from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import MissingExtraError, UnsupportedError
from lpsched.plot import SUFFIXES, bars, check_output, draw
from lpsched.plot.interactive import figure_of
from lpsched.plot.picture import picture_of

MAGIC = {
    ".png": b"\x89png",
    ".svg": b"<?xml",
    ".pdf": b"%pdf",
    ".html": b"<!doctype html>",
}


def entry() -> tuple[str, Graph, Schedule]:
    """Two devices, one op that wraps, one two laps later."""
    graph = make_graph(
        [make_op("F1", 5, kind="F"), make_op("W<1>", 2_000_000_000, kind="W")],
        devices=2,
        time_unit="MAC",
    )
    places = {"F1": ("d0", 3_999_999_998), "W<1>": ("d1", 8_000_000_001)}
    return "hand", graph, make_schedule(graph, 4_000_000_000, places)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("iterations", [None, 4])
def test_the_extension_says_what_is_written(
    tmp_path: Path, suffix: str, iterations: int | None
) -> None:
    path = tmp_path / f"gantt{suffix}"
    draw([entry()], path, iterations=iterations)
    assert path.read_bytes().lower().startswith(MAGIC[suffix])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_schedule_gives_the_same_file(tmp_path: Path, suffix: str) -> None:
    files = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in files:
        draw([entry()], path)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_picture_does_not_depend_on_the_settings_of_its_reader(
    tmp_path: Path,
) -> None:
    draw([entry()], tmp_path / "a.svg")
    with mpl.rc_context(
        {"font.size": 30, "axes.facecolor": "red", "lines.linewidth": 9}
    ):
        draw([entry()], tmp_path / "b.svg")
        assert mpl.rcParams["font.size"] == 30
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("name", ["gantt.gif", "gantt", "gantt.PNG.txt", ".png"])
def test_an_unknown_extension_is_refused_with_the_right_ones(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(UnsupportedError, match=r"\.png, \.svg, \.pdf, \.html"):
        draw([entry()], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_case_of_an_extension_does_not_matter(tmp_path: Path) -> None:
    assert check_output(tmp_path / "GANTT.PNG") == ".png"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setitem(sys.modules, SUFFIXES[suffix], None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lpsched\[plot\]'"):
        draw([entry()], tmp_path / f"gantt{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_a_refused_picture_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "gantt.svg"
    path.write_text("old")
    with pytest.raises(UnsupportedError):
        draw([], path)
    assert path.read_text() == "old"


# -- the interactive page --------------------------------------------------------


def page_traces(iterations: int | None = None) -> list[dict[str, Any]]:
    """Traces of the page, as its JSON states them."""
    figure = figure_of(picture_of([entry(), entry()], iterations=iterations))
    traces: list[dict[str, Any]] = json.loads(figure.to_json())["data"]
    return traces


def test_an_interactive_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "gantt.html"
    draw([entry()], path)
    text = path.read_text()
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", text)
    assert "W&lt;1&gt;" in text or r"W\u0026lt;1" in text


def test_bars_of_the_page_are_numbers_on_a_numeric_axis() -> None:
    figure = figure_of(picture_of([entry()]))
    assert figure.layout.xaxis.type == "linear"
    assert figure.layout.xaxis.title.text == "time in G MAC"
    found = sorted(
        (trace["name"][0], row, base, base + length)
        for trace in page_traces()
        if trace["yaxis"] == "y"
        for row, base, length in zip(trace["y"], trace["base"], trace["x"], strict=True)
    )
    _, graph, schedule = entry()
    expected = sorted(
        (
            bar.kind,
            int(str(bar.device)[1]),
            bar.start / 1e9,
            bar.start / 1e9 + bar.length / 1e9,
        )
        for bar in bars(graph, schedule)
    )
    assert found == expected


def test_the_pointer_shows_exact_figures() -> None:
    (trace,) = (t for t in page_traces()[:2] if t["name"].startswith("W"))
    assert trace["customdata"] == [
        [
            "W&lt;1&gt;",
            "none",
            "d1",
            "n\N{MINUS SIGN}2",
            "2",
            "8,000,000,001 MAC",
            "2,000,000,000 MAC",
        ]
    ]


def test_the_pointer_tells_that_an_op_runs_across_the_end_of_the_period() -> None:
    (trace,) = (t for t in page_traces()[:2] if t["name"].startswith("F"))
    assert [row[6] for row in trace["customdata"]] == [
        "5 MAC (runs across the end of the period)"
    ] * 2


def test_the_pointer_shows_absolute_starts_in_an_unrolled_run() -> None:
    (trace,) = (t for t in page_traces(iterations=2)[:2] if t["name"][0] == "F")
    assert [row[5] for row in trace["customdata"]] == [
        "3,999,999,998 MAC",
        "7,999,999,998 MAC",
    ]


def test_each_kind_stands_once_in_the_legend_of_the_page() -> None:
    shown = [t["name"] for t in page_traces() if t["showlegend"]]
    assert shown == ["F forward", "W weight gradient"]
