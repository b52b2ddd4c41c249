"""`--pareto` from the command line: table, JSON, CSV, picture, and what it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from lpsched.cli import main

PAIR = "period,communication"

#: A chain of two layers. Whole on one device: 20 ticks, nothing sent. Else W1 alone may
#: leave (it receives g1 and sends w1), or a whole layer: 10 ticks for a1 and g1.
NETWORK = """
schema: lpsched/network/1
name: two
layers:
  - {name: a, forward: 5, weight_grad: 5, output: 3, parameters: 4}
  - {name: b, forward: 4, input_grad: 3, weight_grad: 3, output: 1, parameters: 9}
"""


@pytest.fixture
def network(tmp_path: Path) -> str:
    path = tmp_path / "two.yaml"
    path.write_text(NETWORK)
    return str(path)


def test_the_front_is_printed_and_saved(
    network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A layer each: 10 ticks, a and both halves of g sent, 3 + 3; or all together."""
    table, picture = tmp_path / "front.csv", tmp_path / "front.png"
    argv = ["solve", network, "--devices", "2", "--pareto", PAIR]
    assert main([*argv, "--csv", str(table), "--plot", str(picture)]) == 0
    assert "the whole front" in capsys.readouterr().out
    rows = list(csv.DictReader(table.read_text().splitlines()))
    values = [(int(r["period"]), int(r["communication"])) for r in rows]
    assert values == [(10, 6), (20, 0)]
    assert all(row["status"] == "optimal" for row in rows)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_front_is_one_json_document(
    network: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", network, "--devices", "2", "--pareto", PAIR, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["complete"] is True
    assert document["objectives"] == ["period", "communication"]
    assert document["points"][0]["bound"] == {"period": 10, "communication": 6}


@pytest.mark.parametrize(
    "options",
    [
        ["--pareto", "period"],
        ["--pareto", PAIR, "-o", "x.json"],
        ["--pareto", PAIR, "--objective", "period"],
        ["--pareto", PAIR, "--plot", "front.html"],
        ["--csv", "front.csv"],
    ],
)
def test_what_does_not_go_together_is_refused(
    network: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", network, "--devices", "2", *options]) == 2
    assert capsys.readouterr().out == ""


def test_compare_sets_the_methods_beside_the_front(
    network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "front.svg"
    argv = ["compare", network, "--devices", "2", "--pareto", PAIR, "--json"]
    assert main([*argv, "--methods", "pipedream", "--plot", str(picture)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in document["rows"]] == ["pipedream"]
    (front,) = document["fronts"]
    values = [(p["period"], p["communication"]) for p in front["points"]]
    assert values == [(10, 6), (20, 0)]
    assert "pipedream" in picture.read_text()
