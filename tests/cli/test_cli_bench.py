"""`lpsched bench`: stored instances solved again, also in processes, and resumed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from lpsched.bench import Row, find_cases, run_cases
from lpsched.cli import main
from lpsched.core.io import load_instance

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


def instance(folder: Path, name: str, known: dict[str, Any] | None = None) -> Path:
    """Write an instance of two layers, which take 3 and 4 ticks, on two devices.

    Without limits the least period is 4, of which nobody needs a solver to be sure.
    """
    layers = [
        {"name": "a", "forward": 1, "weight_grad": 2},
        {"name": "b", "forward": 1, "input_grad": 1, "weight_grad": 2},
    ]
    network = {"schema": "lpsched/network/1", "name": name, "layers": layers}
    document = {
        "schema": "lpsched/instance/1",
        "name": name,
        "network": network,
        "devices": 2,
        "objective": ["period"],
        "known": known or {},
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


def rows_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def test_stored_optima_are_met_again_in_processes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """instances/small: the optima have been proved by brute force, too."""
    for name in ("chain3-p2-s1", "chain3-p2-s2"):
        for suffix in (".json", ".yaml"):
            shutil.copy(INSTANCES / "small" / (name + suffix), tmp_path)
    table = tmp_path / "rows.csv"
    argv = ["bench", str(tmp_path), "--jobs", "2", "--json", "--csv", str(table)]
    assert main(argv) == 0
    rows = rows_of(capsys)
    assert [row["verdict"] for row in rows] == ["equal", "equal"]
    assert [row["status"] for row in rows] == ["optimal", "optimal"]
    assert [row["objective"]["period"] for row in rows] == [17, 14]
    assert len(table.read_text().splitlines()) == 3


def test_a_better_value_is_written_back_and_then_met(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = instance(tmp_path, "two", {"period": {"value": 5, "bound": 2}})
    assert main(["bench", str(path), "--update", "--json"]) == 0
    assert rows_of(capsys)[0]["verdict"] == "better"
    assert load_instance(path).known["period"].value == 4
    assert load_instance(path).known["period"].bound == 4
    text = path.read_text()
    assert main(["bench", str(path), "--update"]) == 0
    assert "1 equal" in capsys.readouterr().out
    assert path.read_text() == text


def test_a_stored_value_that_cannot_be_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = instance(tmp_path, "two", {"period": {"value": 3}})
    before = path.read_text()
    assert main(["bench", str(path), "--update"]) == 1
    out, err = capsys.readouterr()
    assert "1 failed" in out
    assert "proved to be at least 4" in err
    assert path.read_text() == before


def test_a_run_goes_on_where_it_was_interrupted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What is done is not done again: its row stays as the results file has it."""
    for name in ("a", "b", "c"):
        instance(tmp_path, name, {"period": {"value": 4, "bound": 4}})
    results = tmp_path / "results.json"
    argv = ["bench", str(tmp_path), "-o", str(results)]
    assert main([*argv, "--jobs", "1"]) == 0
    document = json.loads(results.read_text())
    kept = document["rows"][1] | {"seconds": 1234.5}
    results.write_text(json.dumps(document | {"rows": [kept]}))
    capsys.readouterr()
    assert main(argv) == 2
    assert "--resume" in capsys.readouterr().err
    assert main([*argv, "--resume", "--json"]) == 0
    rows = rows_of(capsys)
    assert [row["instance"] for row in rows] == ["a", "b", "c"]
    assert [row["seconds"] == 1234.5 for row in rows] == [False, True, False]
    assert json.loads(results.read_text())["rows"] == rows
    # Another problem in the file, or another limit: solved again.
    assert main([*argv, "--resume", "--json", "--time-limit", "59"]) == 0
    assert [row["seconds"] == 1234.5 for row in rows_of(capsys)] == [False] * 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_keeps_what_is_done(tmp_path: Path, jobs: int) -> None:
    """The eight-layer chains take longer than a test may: they are given up."""
    quick = instance(tmp_path, "quick")
    slow = [INSTANCES / "chains8" / f"chain8-s{seed}.yaml" for seed in (0, 4, 8)]
    interrupt = threading.Event()
    seen: list[Row] = []

    def stop(row: Row) -> None:
        seen.append(row)
        interrupt.set()

    cases = find_cases([quick, *slow])
    rows = run_cases(cases, jobs=jobs, on_row=stop, interrupt=interrupt)
    assert [row.instance for row in rows] == ["quick"]
    assert rows == seen


def test_ctrl_c_is_heard_by_all_processes_and_answered_by_one(tmp_path: Path) -> None:
    """A terminal sends it to the workers, too: the run ends with what is done."""
    quick = instance(tmp_path, "quick")
    slow = [INSTANCES / "chains8" / f"chain8-s{seed}.yaml" for seed in (0, 4, 8)]
    results = tmp_path / "results.json"
    argv = ["bench", str(quick), *map(str, slow), "--jobs", "2", "-v", "-o"]
    process = subprocess.Popen(
        [sys.executable, "-m", "lpsched", *argv, str(results)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert "quick.json: new" in process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "1 of 4 instances: 1 new" in out
    assert "Traceback" not in err
    assert [r["instance"] for r in json.loads(results.read_text())["rows"]] == ["quick"]


def test_no_file_is_said_to_be_written_if_none_is(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def give_up(*_: object, interrupt: threading.Event, **__: object) -> None:
        interrupt.set()

    monkeypatch.setattr("lpsched.cli.verbs.bench.run_cases", give_up)
    results = tmp_path / "results.json"
    argv = ["bench", str(instance(tmp_path, "two")), "-o", str(results)]
    assert main(argv) == 130
    assert "written" not in capsys.readouterr().err
    assert not results.exists()


def test_bad_instances_are_told_before_any_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    instance(tmp_path, "good")
    (tmp_path / "torn.yaml").write_text("schema: lpsched/instance/1\nname: [a\n")
    (tmp_path / "empty").mkdir()
    argv = ["bench", str(tmp_path), str(tmp_path / "empty"), "no-such-folder"]
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "torn.yaml: line" in err
    assert "no instance" in err
    assert "no-such-folder: cannot be read" in err


def test_an_instance_that_cannot_be_scheduled_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    instance(tmp_path, "good")
    path = instance(tmp_path, "bad")
    document = json.loads(path.read_text())
    document["placement"] = {"pins": {"nobody": "d0"}}
    path.write_text(json.dumps(document))
    assert main(["bench", str(tmp_path), "--json", "--jobs", "1"]) == 2
    out, err = capsys.readouterr()
    assert [row["verdict"] for row in json.loads(out)] == ["refused", "new"]
    assert "nobody" in err


def test_resume_needs_a_results_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = instance(tmp_path, "two")
    assert main(["bench", str(path), "--resume"]) == 2
    torn = tmp_path / "torn.json"
    torn.write_text('{"schema": "lpsched/bench/1", "rows": [{}]}')
    assert main(["bench", str(path), "--resume", "-o", str(torn)]) == 2
    assert "rows.0.instance" in capsys.readouterr().err
