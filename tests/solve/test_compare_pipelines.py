"""Published schedules and the optimum side by side, at equal memory."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from pipelines import Times, pipeline

from lpsched.cli import main
from lpsched.solve import (
    OVER_MEMORY,
    PIPELINE_METHODS,
    SolveParams,
    compare,
    with_memory,
)

PERIOD = SolveParams(objective=("period",), time_limit=20)
INSTANCE = (
    Path(__file__).parents[2] / "instances/synchronous/f10-i10-w10-c1-p4-m8-2p.yaml"
)


def test_methods_that_do_not_fit_show_the_memory_they_need() -> None:
    """F +2 on 4 stages of 8 microbatches: GPipe holds all 16, ZB-H2 7 of them."""
    graph = pipeline(4, 8, Times(10, 10, 10, 1), memory=8)
    rows = {row.method: row for row in compare(graph, params=PERIOD)}
    assert set(rows) <= set(PIPELINE_METHODS)
    over = {m: row for m, row in rows.items() if row.status == OVER_MEMORY}
    assert {m: row.objective["peak_memory"] for m, row in over.items()} == {
        "gpipe": 16,
        "interleaved": 14,
        "zb-h2": 14,
    }
    assert all(not row.verified and row.schedule is None for row in over.values())
    fit = [row for row in rows.values() if row.method not in over]
    assert all(row.objective["peak_memory"] <= 8 for row in fit)
    assert rows["zb-h1"].objective["period"] == rows["optimal"].objective["period"]


def test_without_a_limit_every_peak_is_what_a_method_needs() -> None:
    graph = with_memory(pipeline(4, 8, Times(10, 10, 10, 1), memory=8), None)
    methods = ("gpipe", "1f1b", "zb-h1", "zb-h2")
    rows = compare(graph, methods=methods, params=PERIOD)
    assert [row.objective["peak_memory"] for row in rows] == [16, 8, 8, 14]


def test_speed_ups_refer_to_1f1b_and_bubbles_to_what_they_divide_by() -> None:
    """Without transfers fused 1F1B idles (p - 1) P of a makespan of (m + p - 1) P."""
    graph = pipeline(4, 8, Times(10, 10, 10), fuse_backward=True, flush=True)
    rows = compare(graph, methods=("1f1b",))
    assert rows.baseline == "1f1b"
    row = next(row for row in rows if row.method == "1f1b")
    assert row.speedup == 1
    assert row.bubble_ratio == Fraction(3, 11)
    assert row.bubble_to_work == Fraction(3, 8)
    assert row.document()["bubble_to_work"] == 0.375


def test_in_a_v_the_baseline_is_gpipe() -> None:
    graph = pipeline(2, 3, Times(2, 2, 2), stages=4, arrangement="v")
    rows = compare(graph, params=PERIOD)
    assert rows.baseline == "gpipe"
    assert [row.method for row in rows] == ["gpipe", "zb-v", "dualpipe-v", "optimal"]


def test_the_command_line_sets_the_memory(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["compare", str(INSTANCE), "--memory", "14", "-q"]) == 0
    table = capsys.readouterr().out
    assert "zb-h2" in table
    assert "over memory" in table  # GPipe
    assert main(["compare", str(INSTANCE), "--memory", "none", "-q"]) == 0
    assert "over memory" not in capsys.readouterr().out
    assert main(["compare", str(INSTANCE), "--methods", "gpipe", "-q"]) == 5
    assert main(["compare", str(INSTANCE), "--memory", "-3", "-q"]) == 2
