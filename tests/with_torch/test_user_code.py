"""Errors of the user's own model are bad input, with their line; Ctrl-C is quiet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pipelines import Times, pipeline

from lpsched.cli import main
from lpsched.core.io import save_schedule
from lpsched.heuristics import METHODS

SOURCE = """import torch
def build():
    1 / 0
def leave():
    raise SystemExit(0)
def wrong():
    return torch.nn.Sequential(torch.nn.Linear(3, 3)), torch.ones(2, 5)
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a faulty model, schedules to run, and a file that is no Python."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "bm.py").write_text(SOURCE)
    (folder / "torn.py").write_text("def build(:\n")
    for stages, name in ((1, "one"), (2, "best")):
        graph = pipeline(stages, 2, Times(1, 1, 1)).replace(time_unit="ms")
        save_schedule(METHODS["gpipe"].function(graph), folder / f"{name}.json")
    return folder


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bm.py:build", "build() failed with ZeroDivisionError: division by zero"),
        ("bm.py:build", "bm.py, line 3)"),
        ("bm.py:leave", "leave() failed with SystemExit: 0"),
        ("bm.py:wrong", "failed with RuntimeError: mat1 and mat2 shapes"),
        ("torn.py:build", "importing torn.py failed with SyntaxError"),
        ("json:dumps", "json:dumps: dumps() failed with TypeError"),
        ("no-such.py:f", "there is no file no-such.py"),
        ("no_such_module.x:f", "no module 'no_such_module' here"),
    ],
)
def test_what_fails_in_the_users_code_is_bad_input(
    sources: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    spec: str,
    message: str,
) -> None:
    monkeypatch.chdir(sources)
    for argv in (["profile", spec, "-o", "net.json"], ["run", "one.json"]):
        assert main([*argv, *(["--model", spec] if argv[0] == "run" else [])]) == 2
        err = capsys.readouterr().err
        assert message in err
        assert "Traceback" not in err
        assert "bug" not in err
    assert not Path("net.json").exists()


def test_a_missing_file_is_told_before_torch_is_loaded(sources: Path) -> None:
    code = (
        "import sys; from lpsched.cli import main;"
        "code = main(['profile', 'no-such.py:f', '-o', 'net.json']);"
        "print(code, 'torch' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=sources,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["2", "False"]


def test_an_asynchronous_schedule_is_refused_with_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "best.json")
    assert main(["solve", "tiny-mlp", "--devices", "2", "-o", path, "-q"]) == 0
    capsys.readouterr()
    assert main(["run", path, "--stand-in"]) == 2
    err = capsys.readouterr().err
    assert f"{path}: delays: named delays are asynchronous training" in err
    assert "ranks start" not in err


def test_ctrl_c_while_ranks_start_is_quiet(sources: Path) -> None:
    """As a terminal does it, SIGINT goes to the ranks, too."""
    argv = ["run", "best.json", "--stand-in", "--iterations", "100000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "lpsched", *argv],
        cwd=sources,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert "2 ranks start" in process.stderr.readline()
    try:
        process.communicate(timeout=6)  # long enough for ranks to be there
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert err == ""
