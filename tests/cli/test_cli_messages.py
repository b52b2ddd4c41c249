"""What people read when something is wrong: one line each, safe, naming the option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lpsched.cli import main

GRAPH = {
    "schema": "lpsched/graph/1",
    "name": "g",
    "devices": [{"id": "d0"}],
    "ops": [
        {"id": "a", "kind": "F", "duration": 3},
        {"id": "b", "kind": "F", "duration": 2},
    ],
    "dependences": [{"src": "a", "dst": "b"}],
}


@pytest.fixture
def graph(tmp_path: Path) -> str:
    """Write a graph of two ops in a row."""
    path = tmp_path / "g.json"
    path.write_text(json.dumps(GRAPH))
    return str(path)


def _err(capsys: pytest.CaptureFixture[str], code: int, *argv: str) -> str:
    assert main(argv) == code
    return capsys.readouterr().err


def test_control_characters_of_a_file_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps(GRAPH | {"\x1b[31mX": 1}))
    err = _err(capsys, 2, "solve", str(path))
    assert "\x1b" not in err
    assert "\\x1b[31mX: unknown key" in err


def test_a_line_feed_in_a_name_leaves_a_fault_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps(GRAPH | {"one\ntwo\x1c": 1}))
    (line,) = _err(capsys, 2, "solve", str(path)).splitlines()
    assert "one\\ntwo\\x1c: unknown key" in line


def test_a_hint_that_breaks_rules_is_told_and_used_as_a_start(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, graph: str
) -> None:
    best = tmp_path / "best.json"
    assert main(["solve", graph, "-o", str(best)]) == 0
    capsys.readouterr()
    argv = ["solve", graph, "--hint", str(best)]
    assert "breaks rules" not in _err(capsys, 0, *argv)
    schedule = json.loads(best.read_text())
    schedule["ops"]["b"]["start"] = schedule["ops"]["a"]["start"]
    best.write_text(json.dumps(schedule))
    assert "the hint breaks rules (exclusive, precedence)" in _err(capsys, 0, *argv)


def test_methods_for_asynchronous_networks_say_so_of_a_pipeline(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "sy.yaml"
    path.write_text(
        "schema: lpsched/instance/1\nname: sy\nnetwork: tiny-mlp\n"
        "devices: {count: 2}\ntraining: {mode: synchronous, microbatches: 2}\n"
    )
    err = _err(capsys, 5, "compare", str(path), "--methods", "list,pipedream")
    assert "this is for asynchronous training" in err


def test_unfolding_beyond_all_measure_is_refused(
    capsys: pytest.CaptureFixture[str], graph: str
) -> None:
    argv = [graph, "--unfold", "100000"]
    for verb in ("analyze", "solve"):
        assert "are 200,000 ops" in _err(capsys, 2, verb, *argv)


def test_an_empty_output_is_no_folder(
    capsys: pytest.CaptureFixture[str], graph: str
) -> None:
    err = _err(capsys, 2, "solve", graph, "-o", "")
    assert "output: expected a file to write, got no name" in err


def test_a_file_of_delays_that_is_no_mapping_is_told_as_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, graph: str
) -> None:
    path = tmp_path / "delays.yaml"
    for text, what in (("- 1\n", "a list"), ("", "nothing")):
        path.write_text(text)
        err = _err(capsys, 2, "analyze", graph, "--delays", str(path))
        assert f"expected a mapping of names of delays to integers, got {what}" in err


def test_a_cutset_of_unknown_ops_names_the_option(
    capsys: pytest.CaptureFixture[str], graph: str
) -> None:
    err = _err(capsys, 2, "analyze", graph, "--cutset", "a,Q")
    assert "--cutset" in err
    assert "the graph has no op 'Q'" in err


def test_one_violation_is_singular(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, graph: str
) -> None:
    best = tmp_path / "best.json"
    assert main(["solve", graph, "-o", str(best)]) == 0
    schedule = json.loads(best.read_text())
    schedule["result"]["objective"]["communication"] = 1
    best.write_text(json.dumps(schedule))
    capsys.readouterr()
    assert main(["verify", graph, str(best)]) == 6
    assert capsys.readouterr().out.startswith("1 violation\n")


@pytest.mark.parametrize(
    ("option", "value"),
    [("--seed", "-1"), ("--max-period", "1e6"), ("--time-limit", "soon")],
)
def test_a_value_out_of_range_is_shown(
    capsys: pytest.CaptureFixture[str], graph: str, option: str, value: str
) -> None:
    err = _err(capsys, 2, "solve", graph, option, value)
    assert option in err
    words = err.replace("│", " ").split()  # a box that breaks lines
    assert f"got '{value}'" in " ".join(words)


def test_a_line_feed_in_the_id_of_an_op_leaves_a_reason_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "g.json"
    name = "one\ntwo\x1b"
    ops = [{"id": name, "kind": "F", "duration": 1}]
    loop = {"ops": ops, "dependences": [{"src": name, "dst": name}]}
    path.write_text(json.dumps(GRAPH | loop))
    for line in _err(capsys, 3, "solve", str(path)).splitlines():
        assert line.startswith("lpsched: ")
        assert "\x1b" not in line


def test_control_characters_do_not_reach_standard_output_either(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "g.json"
    ops = [{"id": "a\x1b[31m", "kind": "F", "duration": 1}]
    path.write_text(json.dumps(GRAPH | {"ops": ops, "dependences": []}))
    for argv in (["analyze"], ["explain"], ["analyze", "--json"], ["build"]):
        main([*argv[:1], str(path), *argv[1:]])
        assert "\x1b" not in "".join(capsys.readouterr())
