"""`export`, `import` and `compare` for other runtimes' files, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lpsched.cli import main
from lpsched.core.io import load_schedule

NETWORK = """
schema: lpsched/network/1
name: blocks
time_unit: ms
layers:
  - {name: embed, forward: 2, weight_grad: 3, output: 64, parameters: 400}
  - {name: h0, forward: 4, input_grad: 5, weight_grad: 4, output: 64, parameters: 70}
  - {name: h1, forward: 4, input_grad: 5, weight_grad: 4, output: 64, parameters: 70}
  - {name: head, forward: 3, input_grad: 3, weight_grad: 3, output: 8, parameters: 400}
"""
INSTANCE = """
schema: lpsched/instance/1
name: blocks-2
network: net.yaml
devices: 2
link: {latency: 1}
training: {mode: synchronous, microbatches: 3}
placement: {stages: [[embed, h0], [h1, head]]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an instance and a schedule of it, to work in."""
    monkeypatch.chdir(tmp_path)
    Path("net.yaml").write_text(NETWORK)
    Path("instance.yaml").write_text(INSTANCE)
    assert main(["solve", "instance.yaml", "--method", "zb-h1", "-o", "s.json"]) == 0
    return tmp_path


def test_a_csv_goes_out_and_comes_back_verified(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder == Path.cwd()
    for more in ([], ["--communication"]):
        argv = ["export", "s.json", "--to", "torch-csv", "-o", "s.csv", *more]
        assert main(argv) == 0
        assert ("SEND" in Path("s.csv").read_text()) == bool(more)
        argv = ["import", "s.csv", "--from", "torch-csv", "--graph", "instance.yaml"]
        assert main([*argv, "-o", "back.json"]) == 0
        assert load_schedule("back.json").period == load_schedule("s.json").period
    assert main(["build", "instance.yaml", "-o", "graph.json"]) == 0
    capsys.readouterr()
    assert main(["verify", "graph.json", "back.json"]) == 0
    assert main(["import", "s.csv", "--from", "torch-csv", "-o", "unit.json"]) == 0
    assert "one tick each for F, I and W" in capsys.readouterr().err


def test_a_csv_with_faults_is_refused_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.csv").write_text("0F0,0B0,0F0\n1F0,1B0,1X0\n")
    argv = ["import", "bad.csv", "--from", "torch-csv", "-o", "out.json"]
    assert main(argv) == 2
    assert "bad.csv: rank 1, step 2: expected one of F, I" in capsys.readouterr().err
    Path("bad.csv").write_text("0F0,0B0,0F0\n1F0,1B0\n")
    assert main(argv) == 2
    assert "bad.csv: rank 0, step 2: 0F0 is repeated" in capsys.readouterr().err
    assert not (folder / "out.json").exists()


def test_a_schedule_that_pytorch_cannot_run_is_refused_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["solve", "net.yaml", "--devices", "2", "--method", "pipedream"]
    assert main([*argv, "-o", "a.json"]) == 0
    capsys.readouterr()
    assert main(["export", "a.json", "--to", "torch-csv", "-o", "a.csv"]) == 2
    assert "a.json: delays: named delays are asynchronous" in capsys.readouterr().err
    assert not (folder / "a.csv").exists()


def test_a_layout_goes_out_of_instances_and_schedules_and_comes_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder == Path.cwd()
    argv = ["solve", "net.yaml", "--devices", "2", "--method", "pipedream"]
    assert main([*argv, "-o", "a.json"]) == 0
    for source in ("instance.yaml", "s.json", "a.json"):
        argv = ["export", source, "--to", "megatron-layout", "-o", "layout.txt"]
        assert main(argv) == 0
        assert Path("layout.txt").read_text() == "Et|tL\n"
    argv = ["import", "layout.txt", "--from", "megatron-layout", "-o", "back.json"]
    assert main([*argv, "--network", "net.yaml"]) == 0
    assert "4 microbatches are assumed" in capsys.readouterr().err
    assert main(["solve", "back.json", "--method", "gpipe"]) == 0
    argv = ["export", "net.yaml", "--devices", "2", "--to", "megatron-layout"]
    assert main([*argv, "-o", "none.txt"]) == 2
    assert "says nothing of the layers of its stages" in capsys.readouterr().err


def test_traces_are_written_of_one_schedule_and_of_a_comparison(folder: Path) -> None:
    assert folder == Path.cwd()
    argv = ["export", "s.json", "--to", "perfetto", "-o", "one.json"]
    assert main([*argv, "--iterations", "2"]) == 0
    events = json.loads(Path("one.json").read_text())["traceEvents"]
    runs = [e for e in events if e["ph"] == "X" and e["name"] == "F0@1"]
    assert [e["args"]["iteration"] for e in runs] == [0, 1]
    argv = ["compare", "instance.yaml", "--methods", "gpipe,zb-h1", "--trace"]
    assert main([*argv, "all.json"]) == 0
    events = json.loads(Path("all.json").read_text())["traceEvents"]
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert [name.split(":")[0] for name in names] == [
        "gpipe on 2 devices",
        "zb-h1 on 2 devices",
    ]


def test_without_pytorch_its_verbs_say_how_to_get_it(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    for argv in (
        ["profile", "model:build", "-o", "net.json"],
        ["run", "s.json", "--model", "model:build", "--trace", "net.json"],
    ):
        assert main(argv) == 2
        assert "pip install 'lpsched[torch]'" in capsys.readouterr().err
        assert not (folder / "net.json").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--model", "a:b", "--stand-in"], "expected a model, or --stand-in"),
        ([], "expected a model, or --stand-in"),
        (["--stand-in", "--stages", "1,2"], "expected numbers such as 2,3,2"),
        (["--model", "a:b", "--stages", "1,x"], "expected numbers such as 2,3,2"),
        (["--stand-in", "--tick", "MAC"], "expected a time such as 'ms'"),
        (["--stand-in", "--iterations", "1"], "--iterations"),
    ],
)
def test_a_run_that_makes_no_sense_is_refused(
    argv: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder == Path.cwd()
    assert main(["run", "s.json", *argv]) == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["export", "s.json", "--to", "csv"], "expected one of torch-csv, perfetto"),
        (
            ["export", "s.json", "--to", "torch-csv", "--period", "3"],
            "does not go with",
        ),
        (["export", "s.json", "--to", "lp", "--iterations", "3"], "does not go with"),
        (["export", "net.yaml", "--to", "perfetto"], "a schedule (lpsched/schedule/1)"),
        (["import", "s.json", "--from", "onnx", "--graph", "x"], "does not go with"),
        (
            [
                "import",
                "instance.yaml",
                "--from",
                "megatron-layout",
                "--network",
                "s.json",
            ],
            "expected E, t, m, L",
        ),
    ],
)
def test_bad_arguments_exit_with_2_and_say_why(
    argv: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*argv, "-o", "out"]) == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not (folder / "out").exists()
