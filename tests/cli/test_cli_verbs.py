"""Each verb does its job from the command line; stdout holds only the result."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lpsched import __version__
from lpsched.analysis.linear import quiet_highs
from lpsched.cli import main
from lpsched.cli.app import app
from lpsched.core.io import load_graph, load_schedule
from lpsched.core.result import Stop
from lpsched.verify import verify

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
SMALL = INSTANCES / "small" / "chain3-p2-s1.json"


def _json(capsys: pytest.CaptureFixture[str], code: int, *argv: str) -> object:
    assert main(argv) == code
    return json.loads(capsys.readouterr().out)


def test_solve_proves_verifies_and_writes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """17 is the optimum of the reference file."""
    target = tmp_path / "best.json"
    argv = ("solve", str(SMALL), "--objective", "period", "--json", "-o", str(target))
    result = _json(capsys, 0, *argv)
    assert isinstance(result, dict)
    assert result["status"] == "optimal"
    assert result["objective"]["period"] == result["bound"]["period"] == 17
    schedule = load_schedule(target)
    assert verify(load_graph(SMALL), schedule) == ()
    assert main(["verify", str(SMALL), str(target)]) == 0


def test_verify_says_what_each_bound_rests_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "best.json"
    main(["solve", str(SMALL), "--objective", "period", "-o", str(target)])
    document = json.loads(target.read_text())
    result = document["result"]
    result |= {"status": "feasible", "bound": {"period": 1, "makespan": 0}}
    result["bound"] |= {"communication": 0, "staleness": 0}
    word = {"kind": "exhaustion", "certificate": {"given": "placement"}}
    result["proof"] = {"period": "trivial", "communication": word}
    result["proof"]["staleness"] = "exhaustion"
    target.write_text(json.dumps(document))
    capsys.readouterr()
    assert main(["verify", str(SMALL), str(target)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("valid: ")
    assert second == (
        "checked: period (trivial); on a solver's word: communication, staleness;"
        " without a proof: makespan"
    )
    result["proof"]["period"] = "foo"
    target.write_text(json.dumps(document))
    violations = _json(capsys, 6, "verify", str(SMALL), str(target), "--json")
    assert isinstance(violations, list)
    assert [violation["rule"] for violation in violations] == ["claims"]


def test_verify_names_the_broken_rule_and_exits_6(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "best.json"
    main(["solve", str(SMALL), "--objective", "period", "-o", str(target)])
    document = json.loads(target.read_text())
    document["ops"]["F2"]["start"] -= 1000
    target.write_text(json.dumps(document))
    capsys.readouterr()
    violations = _json(capsys, 6, "verify", str(SMALL), str(target), "--json")
    assert isinstance(violations, list)
    assert "precedence" in {violation["rule"] for violation in violations}


def test_build_writes_the_graph_that_solve_reads(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "graph.json"
    assert main(["build", "tiny-mlp", "--devices", "2", "-o", str(target)]) == 0
    assert main(["build", "tiny-mlp", "--devices", "2"]) == 0
    assert capsys.readouterr().out == target.read_text()
    assert main(["solve", str(target), "--objective", "period"]) == 0


def test_compare_lists_every_method_with_the_optimum(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    csv, picture = tmp_path / "table.csv", tmp_path / "gantt.svg"
    argv = ("compare", "tiny-mlp", "--devices", "2..3", "--json")
    rows = _json(capsys, 0, *argv, "--csv", str(csv), "--plot", str(picture))
    assert isinstance(rows, list)
    assert {row["devices"] for row in rows} == {2, 3}
    assert all(row["verified"] for row in rows)
    for row in rows:
        assert row["bound"]["period"] <= row["period"]
        if row["method"] == "optimal":
            assert row["status"] == "optimal"
    assert csv.read_text().count("\n") == len(rows) + 1
    assert picture.read_text().startswith("<?xml")


def test_bound_prints_a_certificate_for_the_period(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bounds = _json(capsys, 0, "bound", "vgg16", "--devices", "4", "--json")
    assert isinstance(bounds, dict)
    assert bounds["period"]["value"] >= 11581022208
    assert bounds["period"]["certificate"]


@pytest.mark.parametrize("name", ["network", "instance", "graph", "schedule"])
def test_schema_is_a_json_schema(capsys: pytest.CaptureFixture[str], name: str) -> None:
    schema = _json(capsys, 0, "schema", name)
    assert isinstance(schema, dict)
    assert "schema" in schema["properties"]


@pytest.mark.parametrize("kind", ["lp", "mps"])
def test_an_exported_model_has_the_optimum_of_the_graph(
    tmp_path: Path, kind: str
) -> None:
    """HiGHS, given the file alone, finds the reference file's 20."""
    target = tmp_path / f"model.{kind}"
    argv = ["export", str(SMALL), "--to", kind, "--period", "17"]
    assert main([*argv, "--objective", "communication", "-o", str(target)]) == 0
    solver = quiet_highs()
    solver.readModel(str(target))
    solver.run()
    assert round(solver.getInfo().objective_function_value) == 20
    if kind == "lp":
        assert "start_F1" in target.read_text()


def test_a_heuristic_is_built_on_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ("solve", "vgg16", "--devices", "8", "--method", "pipedream", "--json")
    result = _json(capsys, 0, *argv)
    assert isinstance(result, dict)
    assert result["objective"]["period"] == 8323596288
    assert result["status"] == "feasible"


@pytest.mark.parametrize(
    "argv",
    [
        ("solve", str(SMALL)),
        ("build", str(SMALL)),
        ("export", str(SMALL), "--to", "dot"),
    ],
)
def test_a_dash_is_no_file_to_write(
    argv: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*argv, "-o", "-"]) == 2
    assert "-: expected a file" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_infeasible_exits_3_and_names_the_rules(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "loop.json"
    ops = [
        {"id": "a", "kind": "F", "duration": 1},
        {"id": "b", "kind": "F", "duration": 1},
    ]
    loop = [{"src": "a", "dst": "b"}, {"src": "b", "dst": "a"}]
    graph = {
        "schema": "lpsched/graph/1",
        "name": "loop",
        "devices": [{"id": "d0"}],
        "ops": ops,
        "dependences": loop,
    }
    path.write_text(json.dumps(graph))
    pareto = ("--pareto", "period,communication")
    for options in ((), pareto, (*pareto, "--json")):
        assert main(["solve", str(path), *options]) == 3
        text = capsys.readouterr().err
        assert "a cycle of a -> b takes time but carries no delay" in text
        assert "rules in conflict: precedence" in text


def test_explain_names_what_binds(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The file's graph is bound by a critical cycle of 17 ticks, delay 1."""
    target = tmp_path / "best.json"
    main(["solve", str(SMALL), "-o", str(target)])
    capsys.readouterr()
    document = _json(capsys, 0, "explain", str(target), "--json", "--iterations", "10")
    assert isinstance(document, dict)
    assert document["binding"]["least_period"] == "17"
    assert document["total_time"] == 9 * 17 + document["makespan"]
    assert main(["explain", str(target)]) == 0
    assert "17" in capsys.readouterr().out


def test_ctrl_c_keeps_the_best_schedule(tmp_path: Path) -> None:
    """A search of hours, stopped after some seconds, hands back what it has."""
    chain = INSTANCES / "chains8" / "chain8-s4.json"
    document = json.loads(chain.read_text())
    document["devices"] = [{"id": f"d{i}"} for i in range(4)]
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps(document))
    target = tmp_path / "best.json"
    argv = [sys.executable, "-m", "lpsched", "solve", str(graph), "-o", str(target)]
    argv += ["--objective", "period,peak_memory,makespan", "--time-limit", "3600"]
    running = subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(10)
    running.send_signal(signal.SIGINT)
    assert running.wait(120) == 130
    for stream in (running.stdout, running.stderr):
        assert stream is not None
        stream.close()
    schedule = load_schedule(target)
    assert verify(load_graph(graph), schedule) == ()
    assert schedule.result is not None
    assert schedule.result.stop is Stop.INTERRUPTED
    assert schedule.result.bound["period"] >= 19


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lpsched", "--version"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"lpsched {__version__}\n"


@pytest.mark.parametrize(
    "verb",
    [
        "compare",
        "solve",
        "build",
        "verify",
        "bound",
        "explain",
        "plot",
        "export",
        "schema",
    ],
)
def test_help_has_an_example(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    assert main([verb, "--help"]) == 0
    assert "Example" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [c.name for c in app.registered_commands])
def test_every_verb_has_the_common_options_and_an_example(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    for option in ("--json", "--quiet", "--verbose", "--no-progress", "--version"):
        assert option in text
    assert f"Example: lpsched {verb} " in text
    assert main([verb, "--version"]) == 0
    assert capsys.readouterr().out == f"lpsched {__version__}\n"


def test_a_written_file_is_told_to_programs_and_to_people(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With --json the one document on stdout; -q and -v are of stderr only."""
    graph, model = str(tmp_path / "graph.json"), str(tmp_path / "model.lp")
    argv = ["build", "tiny-mlp", "--devices", "2", "-o", graph]
    assert main([*argv, "--json", "-q"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["output"] == graph
    assert json.loads(out)["ops"] == len(load_graph(graph).ops)
    assert err == ""
    assert main(["export", graph, "--to", "lp", "-o", model, "-v"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{model}: written" in err
    assert f"lpsched {__version__}: " in err


def test_a_back_end_that_cannot_go_on_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Set partitioning knows nothing of memory that times decide."""
    objective = ("--objective", "period,communication,peak_memory")
    argv = ("solve", str(SMALL), "--backend", "partition", *objective)
    assert main(argv) == 4
    assert "communication only, not peak_memory" in capsys.readouterr().err


def test_a_problem_proved_infeasible_exits_3_from_every_verb(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "loop.json"
    graph = {
        "schema": "lpsched/graph/1",
        "name": "loop",
        "devices": [{"id": "d0"}],
        "ops": [{"id": "a", "kind": "F", "duration": 1}],
        "dependences": [{"src": "a", "dst": "a"}],
    }
    path.write_text(json.dumps(graph))
    for verb in ("solve", "compare", "bound"):
        assert main([verb, str(path)]) == 3
        assert "takes time but carries no delay" in capsys.readouterr().err
    argv = ["compare", "tiny-mlp", "--devices", "3", "--memory", "100"]
    assert main([*argv, "--time-limit", "4"]) == 3
    assert "needs a memory of 402,432" in capsys.readouterr().err


def test_a_page_without_any_schedule_says_so(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    path = tmp_path / "small.yaml"
    path.write_text(
        "schema: lpsched/instance/1\nname: small\nnetwork: tiny-mlp\n"
        "devices: {count: 3, memory: 100}\n"
    )
    argv = ["report", str(path), "--time-limit", "4", "-o", str(page)]
    assert main(argv) == 3
    assert "infeasible" in page.read_text()


def test_solve_limits_what_a_device_receives(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What nothing keeps is exit 3, and named; 0 leaves all on one device."""
    base = ("solve", str(SMALL), "--objective", "period", "--json", "--max-received")
    free = _json(capsys, 0, *base[:-1])
    alone = _json(capsys, 0, *base, "0")
    assert isinstance(free, dict)
    assert isinstance(alone, dict)
    assert alone["objective"]["communication"] == 0
    assert alone["objective"]["period"] > free["objective"]["period"]
    cap = str(free["objective"]["period"])
    assert main([*base, "0", "--max-period", cap]) == 3
    assert "received" in capsys.readouterr().err
    assert main([*base, "-1"]) == 2
    assert "max_received" in capsys.readouterr().err
