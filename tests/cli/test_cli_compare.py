"""`lpsched compare` where not all is found: what there is, is written all the same."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from lpsched import compare, pareto_front
from lpsched.cli import main
from lpsched.core.graph import Graph
from lpsched.solve import Comparison, Front


def outputs(folder: Path) -> list[str]:
    """Name a table, a picture and a page to write."""
    return [
        *("--csv", str(folder / "rows.csv")),
        *("--plot", str(folder / "rows.png")),
        *("--html", str(folder / "rows.html")),
    ]


@pytest.mark.parametrize("at", [2, 3])
def test_ctrl_c_keeps_the_rows_of_all_device_counts_so_far(
    at: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It comes as the comparison on `at` devices begins: those before have rows."""

    def interrupted(graph: Graph, **options: object) -> Comparison:
        if len(graph.devices) == at:
            options["interrupt"].set()  # type: ignore[attr-defined]
        return compare(graph, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("lpsched.cli.comparing.compare", interrupted)
    argv = ["compare", "tiny-mlp", "--devices", "2..4", "--methods", "pipedream,list"]
    assert main([*argv, *outputs(tmp_path)]) == 130
    rows = list(csv.DictReader((tmp_path / "rows.csv").read_text().splitlines()))
    assert [row["devices"] for row in rows] == ["2"] * (2 if at == 3 else 0)
    assert (tmp_path / "rows.html").exists()
    assert (tmp_path / "rows.png").exists() is (at == 3)
    told = capsys.readouterr().err
    assert ("rows.png written, of 2 devices" if at == 3 else "not written") in told


def test_ctrl_c_in_the_front_is_told_by_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> Front:
        options["interrupt"].set()  # type: ignore[attr-defined]
        return pareto_front(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("lpsched.cli.front.pareto_front", interrupted)
    argv = ["compare", "tiny-mlp", "--devices", "2", "--methods", "pipedream"]
    argv += ["--pareto", "period,communication"]
    assert main([*argv, *outputs(tmp_path)]) == 130
    assert (tmp_path / "rows.png").exists()
    assert (tmp_path / "rows.html").exists()


def test_methods_that_all_need_too_much_memory_have_a_page_and_no_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["compare", "tiny-mlp", "--devices", "2", "--methods", "pipedream"]
    assert main([*argv, "--memory", "1", *outputs(tmp_path)]) == 5
    assert not (tmp_path / "rows.png").exists()
    assert "over memory" in (tmp_path / "rows.html").read_text()
    assert "rows.png not written" in capsys.readouterr().err


def test_gap_and_speed_up_have_six_digits(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["compare", "tiny-mlp", "--devices", "3", "--methods", "sequential,list"]
    assert main([*argv, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    exact = [(row["period"] - row["bound"]["period"]) / row["period"] for row in rows]
    assert [row["gap"] for row in rows] == [round(gap, 6) for gap in exact]
    assert any(round(gap, 6) != gap for gap in exact)
