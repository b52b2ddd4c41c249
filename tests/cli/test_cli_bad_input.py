"""Bad input of every kind: a message with its path, exit 2, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lpsched.cli import main

GOOD_OPS = [{"id": "F1", "kind": "F", "duration": 3}]
GOOD = {
    "schema": "lpsched/graph/1",
    "name": "g",
    "devices": [{"id": "d0"}],
    "ops": GOOD_OPS,
}


def _written(folder: Path, **changes: object) -> str:
    path = folder / "graph.json"
    path.write_text(json.dumps(GOOD | changes))
    return str(path)


def _fails(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run, expect exit 2 and nothing on stdout; return stderr."""
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    err = _fails(capsys, "solve", "no-such-file.yaml")
    assert "no-such-file.yaml" in err


def test_broken_yaml_gives_the_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("schema: lpsched/network/1\nname: [unclosed\n")
    assert "line" in _fails(capsys, "solve", str(path), "--devices", "2")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"ops": [{"id": "F1", "kind": "F", "duration": -1}]},
            "ops[0].duration: expected an integer >= 0, got -1",
        ),
        (
            {"ops": [{"id": "F1", "kind": "F", "duration": 1.5}]},
            "ops[0].duration: expected an integer, got 1.5",
        ),
        (
            {"ops": [{"id": "F1", "kind": "F", "duration": 10**30}]},
            "ops[0].duration: expected an integer <= 9007199254740991",
        ),
        ({"devices": []}, "the graph has no device"),
        ({"surprise": 1}, "surprise: unknown key"),
        ({"schema": "lpsched/graph/9"}, "schema"),
        (
            {"dependences": [{"src": "F1", "dst": "F9"}]},
            "dependences[0].dst: unknown op 'F9'",
        ),
    ],
)
def test_a_faulty_graph_is_refused_with_path_and_value(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    changes: dict[str, object],
    expected: str,
) -> None:
    err = _fails(capsys, "solve", _written(tmp_path, **changes))
    assert expected in err


def test_every_fault_of_a_file_is_told_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ops = [
        {"id": "F1", "kind": "F", "duration": -1},
        {"id": "F1", "kind": "F", "duration": "3"},
    ]
    err = _fails(capsys, "solve", _written(tmp_path, ops=ops, flush=1))
    for path in ("ops[0].duration", "ops[1].duration", "ops[1].id", "flush"):
        assert path in err


def test_a_network_without_devices_says_which_option_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "--devices" in _fails(capsys, "solve", "tiny-mlp")


@pytest.mark.parametrize("text", ["0", "-3", "two", "9..2", "1,,x", ""])
def test_a_device_count_must_be_positive(
    capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert "--devices" in _fails(capsys, "compare", "tiny-mlp", f"--devices={text}")


def test_unknown_names_list_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = ("compare", "tiny-mlp", "--devices", "2")
    assert "layerpipe-intra" in _fails(capsys, *base, "--methods", "layerpip")
    assert "staleness" in _fails(capsys, *base, "--objective", "speed")


def test_an_unwritable_output_is_bad_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "no" / "such" / "folder.json"
    err = _fails(capsys, "build", "tiny-mlp", "--devices", "2", "-o", str(target))
    assert "folder.json" in err


def test_a_picture_needs_a_known_ending(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "gantt.bmp"
    base = ("compare", "tiny-mlp", "--devices", "2", "--methods", "sequential")
    assert main([*base, "--plot", str(target)]) == 2
    assert ".png" in capsys.readouterr().err
    assert not target.exists()


def test_an_unknown_verb_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _fails(capsys, "frobnicate")


def test_a_fault_found_while_compiling_names_the_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "n.yaml"
    path.write_text(
        "schema: lpsched/network/1\nname: n\ninput: [3, 8, 8]\n"
        "layers: [{name: a, type: linear, out: 2}]\n"
    )
    err = _fails(capsys, "build", str(path), "--devices", "2")
    assert f"{path}: layers[0]: linear takes" in err


def test_an_instance_where_a_graph_is_wanted_is_called_an_instance(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "i.yaml"
    path.write_text(
        "schema: lpsched/instance/1\ndevices: 1\n"
        "network: {schema: lpsched/network/1, name: n, layers: [{name: a, forward: 1}]}"
    )
    err = _fails(capsys, "verify", str(path), str(path))
    assert "is wanted, not an instance" in err


@pytest.mark.parametrize(
    ("changes", "use"),
    [
        ({"devices": 2, "links": [{"src": "d0", "dst": "d1"}]}, {}),
        ({"ops": [*GOOD_OPS, {"id": "", "kind": "F", "duration": 3}]}, {"dst": "F2"}),
        ({"ops": [*GOOD_OPS, "F2"]}, {"dst": "F2"}),
        ({"delays": 3}, {"delay": "k"}),
    ],
)
def test_a_bad_list_of_names_casts_no_doubt_on_what_refers_to_it(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    changes: dict[str, object],
    use: dict[str, str],
) -> None:
    order = {"src": "F1", "dst": "F1", "delay": 1} | use
    path = _written(tmp_path, **changes, dependences=[order])
    err = _fails(capsys, "solve", path)
    assert len(err.splitlines()) == 1
    assert "unknown" not in err


def test_a_shipped_name_inside_an_instance_is_found(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "i.yaml"
    text = "schema: lpsched/instance/1\nnetwork: {}\ndevices: 2\n"
    path.write_text(text.format("tiny-mlp"))
    assert main(["bound", str(path)]) == 0
    assert "Traceback" not in capsys.readouterr().err
    path.write_text(text.format("tiny-mlpp"))
    assert "tiny-mlpp" in _fails(capsys, "bound", str(path))


def test_a_wrong_name_lists_the_shipped_networks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    err = _fails(capsys, "compare", "vgg17", "--devices", "2")
    assert "vgg16" in err
    assert "no such file" in err


@pytest.mark.parametrize("option", ["-o", "--plot", "--csv"])
def test_an_output_that_cannot_be_written_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str
) -> None:
    target = str(tmp_path / "none" / "x.svg")
    verb = "solve" if option == "-o" else "compare"
    err = _fails(capsys, verb, "vgg16", "--devices", "8", option, target)
    assert "no folder" in err


def test_a_heuristic_refuses_options_of_the_solver(
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = ("solve", "tiny-mlp", "--devices", "2", "--method", "list")
    assert "--max-period" in _fails(capsys, *base, "--max-period", "1")


def test_methods_are_named_once_and_at_least_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = ("compare", "tiny-mlp", "--devices", "2", "--methods")
    assert "each once" in _fails(capsys, *base, "list,list")
    assert "one or more" in _fails(capsys, *base, "")


@pytest.mark.parametrize(
    "argv",
    [
        ("solve", "tiny-mlp", "--devices", "2", "--period-slack"),
        ("import", "graph.txt", "--from", "pipedream", "--split-backward"),
        ("import", "graph.txt", "--from", "pipedream", "--coarsen-loss"),
    ],
)
@pytest.mark.parametrize(
    "number", ["1e999999999", "-1", "1/0", "nan", "inf", "9" * 5000, "a"]
)
def test_numbers_that_no_share_can_be_are_refused_at_once(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], number: str
) -> None:
    assert argv[-1] in _fails(capsys, *argv, number)


def test_slack_of_a_period_that_is_no_objective_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ("solve", "tiny-mlp", "--devices", "2", "--objective", "communication")
    err = _fails(capsys, *argv, "--period-slack", "0.1")
    assert "period_slack: a share of the least period" in err


def test_a_hint_on_a_device_that_the_graph_lacks_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    graph = _written(tmp_path)
    hint = tmp_path / "hint.json"
    assert main(["solve", graph, "-o", str(hint)]) == 0
    capsys.readouterr()
    hint.write_text(hint.read_text().replace('"d0"', '"d7"'))
    assert "device 'd7' is none of" in _fails(
        capsys, "solve", graph, "--hint", str(hint)
    )
