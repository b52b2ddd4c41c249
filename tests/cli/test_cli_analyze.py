"""`lpsched analyze`, `solve --unfold`, and graphs drawn, exported and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from factories import make_graph, make_op, training_chain

from lpsched.analysis.critical_path import clock_period
from lpsched.analysis.delays import fix_delays
from lpsched.analysis.equivalence import retiming_between
from lpsched.cli import main
from lpsched.core.graph import Dependence, Graph, OpId
from lpsched.core.io import load_graph, load_schedule, save_graph
from lpsched.verify import verify

DATA = Path(__file__).resolve().parents[1] / "data" / "cyclic_graphs.json"
BOOK: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))["graphs"]
CORRELATOR = "leiserson_saxe_correlator"


def textbook(name: str) -> Graph:
    """Build a graph of the book; its nodes occupy no device."""
    return make_graph(
        [make_op(op, time, devices=[]) for op, time in BOOK[name]["times"].items()],
        dependences=tuple(
            Dependence(src=OpId(u), dst=OpId(v), delay=k)
            for u, v, k in BOOK[name]["edges"]
        ),
        devices=(),
        name=name,
    )


@pytest.fixture
def correlator(tmp_path: Path) -> str:
    path = tmp_path / "correlator.json"
    save_graph(textbook(CORRELATOR), path)
    return str(path)


@pytest.fixture
def chain(tmp_path: Path) -> str:
    path = tmp_path / "chain.json"
    save_graph(training_chain(3, devices=2, delay_max=6), path)
    return str(path)


def analyzed(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main(["analyze", *argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", BOOK)
def test_the_figures_of_the_textbooks_are_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    path = tmp_path / "graph.json"
    save_graph(textbook(name), path)
    found = analyzed(capsys, str(path))
    assert found["iteration_bound"] == BOOK[name]["iteration_bound"]
    assert found["critical_path"] == BOOK[name]["critical_path"]
    loop = found["critical_cycle"]
    times = BOOK[name]["times"]
    assert sum(times[op] for op in loop) == found["critical_cycle_ticks"]
    assert sum(times[op] for op in found["critical_path_ops"]) == found["critical_path"]
    retimed = analyzed(capsys, str(path), "--retime")
    assert retimed["critical_path"] == BOOK[name]["min_clock_period_retiming"]
    assert retimed["iteration_bound"] == found["iteration_bound"]
    assert retimed["before"]["critical_path"] == found["critical_path"]


def test_the_table_names_cycle_and_path(
    capsys: pytest.CaptureFixture[str], correlator: str
) -> None:
    assert main(["analyze", correlator, "--retime"]) == 0
    out = capsys.readouterr().out
    assert "iteration bound" in out
    assert "critical cycle (" in out
    assert "laps of the retiming" in out


def test_retimed_and_unfolded_graphs_are_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, correlator: str
) -> None:
    """Retiming comes before unfolding; the bound doubles with the iterations."""
    target, twice = tmp_path / "retimed.json", tmp_path / "twice.json"
    analyzed(capsys, correlator, "--retime", "-o", str(target))
    assert clock_period(load_graph(target)) == 13
    assert retiming_between(load_graph(correlator), load_graph(target)) is not None
    found = analyzed(capsys, correlator, "--retime", "--unfold", "2", "-o", str(twice))
    assert load_graph(twice).unfolding == found["unfolding"] == 2
    assert found["iteration_bound"] == "20"
    assert found["iteration_bound_per_iteration"] == "10"
    assert len(load_graph(twice).ops) == 16


def test_a_clock_period_that_no_retiming_has_exits_3(
    capsys: pytest.CaptureFixture[str], correlator: str
) -> None:
    assert analyzed(capsys, correlator, "--clock-period", "13")["critical_path"] == 13
    assert main(["analyze", correlator, "--clock-period", "12"]) == 3
    assert "the least is 13" in capsys.readouterr().err


def test_a_cutset_moves_delays_or_is_refused(
    capsys: pytest.CaptureFixture[str], correlator: str
) -> None:
    """All edges into a5, a6, a7, h may gain a delay; c4 -> a5 has none to give."""
    assert main(["analyze", correlator, "--cutset", "c4"]) == 2
    assert "retimed delay -1 < 0" in capsys.readouterr().err
    found = analyzed(capsys, correlator, "--cutset", "a5,a6,a7,h")
    assert found["iteration_bound"] == "10"
    assert found["retiming"] == {"a5": 1, "a6": 1, "a7": 1, "h": 1}


def test_named_delays_need_values(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, chain: str
) -> None:
    """The plain loop of three layers takes 6 ops of 2 ticks; with 6 delays, W's 2."""
    assert main(["analyze", chain]) == 2
    err = capsys.readouterr().err
    assert [f"delays.d{n}" in err for n in (1, 2, 3)] == [True] * 3
    assert "--delays" in err
    assert analyzed(capsys, chain, "--delays", "min")["iteration_bound"] == "12"
    assert analyzed(capsys, chain, "--delays", "max")["iteration_bound"] == "2"
    values = tmp_path / "delays.yaml"
    values.write_text("d1: 3\nd2: 1\nd3: 1\n")
    assert analyzed(capsys, chain, "--delays", str(values))["iteration_bound"] == "8"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("d1: 0\n", "d1: expected an integer >= 1, got 0"),
        ("d1: x\n", "d1: expected an integer >= 1, got 'x'"),
        ("d1: 1\nd2: 7\nd9: 1\n", "delays.d9: the graph has no such delay"),
        ("d1: 1\nd2: 7\n", "delays.d2: expected <= 6, got 7"),
        ("d1: 1\nd2: 1\n", "delays.d3: needs a value"),
        ("d1: 1\nd2: 1\nd3: 1\nd9: x\n", "delays.d9: expected an integer"),
        ("[1]\n", "expected a mapping"),
    ],
)
def test_faulty_values_of_delays_are_told(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    chain: str,
    text: str,
    message: str,
) -> None:
    values = tmp_path / "delays.yaml"
    values.write_text(text)
    assert main(["analyze", chain, "--delays", str(values)]) == 2
    assert message in capsys.readouterr().err


def test_faults_of_a_file_of_delays_are_told_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, chain: str
) -> None:
    values = tmp_path / "delays.yaml"
    values.write_text("d1: x\nd2: 7\nd9: 1\n")
    assert main(["analyze", chain, "--delays", str(values)]) == 2
    told = capsys.readouterr().err
    for name in (
        "d1: expected an integer",
        "d2: expected <= 6",
        "d3: needs",
        "d9: the",
    ):
        assert f"delays.yaml: delays.{name}" in told
    assert told.count("delays.d1") == 1


def test_a_delay_without_maximum_has_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    argv = ["analyze", "tiny-mlp", "--devices", "2"]
    assert main([*argv, "--delays", "max"]) == 2
    assert "has no maximum" in capsys.readouterr().err
    assert main([*argv, "--delays", str(tmp_path / "none.yaml")]) == 2
    assert analyzed(capsys, *argv[1:], "--delays", "min")["unfolding"] == 1


def test_a_loop_without_delay_is_told_with_its_ops(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    loop = (
        Dependence(src=OpId("a"), dst=OpId("b")),
        Dependence(src=OpId("b"), dst=OpId("a")),
    )
    path = tmp_path / "loop.json"
    save_graph(make_graph({"a": 1, "b": 1}, dependences=loop), path)
    assert main(["analyze", str(path), "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "not computable: the loop a -> b -> a" in err


def test_a_schedule_gives_delays_and_laps(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, chain: str
) -> None:
    """Retimed by its own laps, a schedule's graph still has its bound and delays."""
    best = tmp_path / "best.json"
    assert main(["solve", chain, "--objective", "period", "-o", str(best)]) == 0
    capsys.readouterr()
    found = analyzed(capsys, chain, "--laps", str(best), "-o", str(tmp_path / "r.json"))
    schedule = load_schedule(best)
    fixed = fix_delays(load_graph(chain), schedule.delays)
    assert retiming_between(fixed, load_graph(tmp_path / "r.json")) is not None
    laps = {op: schedule.lap(op) for op in schedule.ops}
    assert found["retiming"] == {
        op: lap - min(laps.values()) for op, lap in laps.items()
    }


def test_two_ways_to_retime_are_one_too_many(
    capsys: pytest.CaptureFixture[str], correlator: str
) -> None:
    assert main(["analyze", correlator, "--retime", "--cutset", "h"]) == 2
    assert "choose one" in capsys.readouterr().err


def test_pictures_are_drawn_or_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, correlator: str
) -> None:
    target = tmp_path / "graph.svg"
    assert main(["analyze", correlator, "--retime", "--draw", str(target)]) == 0
    assert target.read_text().startswith("<?xml")
    assert main(["analyze", "missing.json", "--draw", "graph.gif"]) == 2
    assert "cannot draw a graph" in capsys.readouterr().err


# -- LayerPipe ---------------------------------------------------------------------


def test_layerpipes_delays_stand_beside_the_least(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target, picture = tmp_path / "pipelined.json", tmp_path / "pipelined.svg"
    argv = ["analyze", "tiny-mlp", "--devices", "3", "--layerpipe"]
    assert main([*argv, "-o", str(target), "--draw", str(picture), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["steps"][0]["title"] == "plain training loop"
    assert found["steps"][-1]["title"] == "backward cut 2 of 2"
    assert found["staleness"] == {
        "rule": 4,
        "layerpipe": 2,
        "same_period": 2,
        "optimum": 2,
        "bound": 2,
    }
    assert not load_graph(target).delays
    assert picture.exists()
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "rule 1 + 2 S" in out
    assert "backward cut 2 of 2" in out


def test_several_device_counts_make_a_row_each(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    argv = ["analyze", "tiny-mlp", "--devices", "1..2", "--layerpipe"]
    assert main([*argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["devices"] for row in found] == [1, 2]
    assert main(argv) == 0
    assert "LayerPipe's period" in capsys.readouterr().out
    assert main([*argv, "-o", str(tmp_path / "graph.json")]) == 2
    assert "one device count" in capsys.readouterr().err


# -- unfolded schedules ------------------------------------------------------------


def test_two_iterations_are_solved_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Five ops of 2 ticks on two devices: 6 alone, 5 an iteration for two at once."""
    path, target = tmp_path / "chain.json", tmp_path / "best.json"
    save_graph(training_chain(2, devices=2, delay_max=9), path)
    argv = ["solve", str(path), "--objective", "period", "--delays", "max"]
    assert main([*argv, "--unfold", "2", "-o", str(target), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["objective"]["period"] == 10
    assert result["objective"]["iteration_period"] == "5"
    schedule = load_schedule(target)
    assert schedule.graph_document is not None
    assert schedule.graph_document.unfolding == 2
    assert verify(schedule.graph_document, schedule) == ()
    assert main([*argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["objective"]["period"] == 6
    assert main([*argv, "--unfold", "2", "--method", "list"]) == 0
    assert "iteration_period" in capsys.readouterr().out


def test_unfolding_needs_the_values_of_delays_and_tells_of_like_iterations(
    capsys: pytest.CaptureFixture[str], chain: str, tmp_path: Path
) -> None:
    assert main(["solve", chain, "--unfold", "2"]) == 2
    assert "delays.d1: a named delay" in capsys.readouterr().err
    path = tmp_path / "alone.json"
    save_graph(training_chain(2, devices=1), path)
    argv = ["solve", str(path), "--objective", "period", "--delays", "min"]
    assert main([*argv, "--unfold", "2"]) == 0
    assert "run alike, each 10 after the one before" in capsys.readouterr().err


# -- graphs drawn, exported, read back ---------------------------------------------


def test_a_schedule_is_explained_with_what_it_keeps(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, chain: str
) -> None:
    best = tmp_path / "best.json"
    main(["solve", chain, "--objective", "period", "-o", str(best)])
    capsys.readouterr()
    assert main(["explain", str(best), "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)["stashes"]
    assert {stash["sort"] for stash in kept} == {"activations", "gradients", "weights"}
    assert main(["explain", str(best)]) == 0
    assert "Stashes: most versions held at once" in capsys.readouterr().out


@pytest.mark.parametrize("to", ["dot", "graphml"])
def test_graphs_and_schedules_are_exported_as_graphs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, chain: str, to: str
) -> None:
    best, target = tmp_path / "best.json", tmp_path / f"graph.{to}"
    assert main(["export", chain, "--to", to, "-o", str(target)]) == 0
    assert "d1" in target.read_text()
    main(["solve", chain, "--objective", "period", "-o", str(best)])
    assert main(["export", str(best), "--to", to, "-o", str(target)]) == 0
    assert "lap" in target.read_text()
    assert capsys.readouterr().err


def test_an_exported_graph_is_imported_as_it_was(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, chain: str
) -> None:
    exported, target = tmp_path / "graph.graphml", tmp_path / "back.json"
    main(["export", chain, "--to", "graphml", "-o", str(exported)])
    argv = ["import", str(exported), "--from", "graphml", "-o", str(target)]
    assert main(argv) == 0
    assert target.read_text() == Path(chain).read_text()
    assert "a graph of 8 ops on 2 devices" in capsys.readouterr().err


def test_a_problem_of_hatschet_is_imported_with_its_resources(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    graph, resources = tmp_path / "ring.graphml", tmp_path / "ring_RM.xml"
    graph.write_text(
        '<graphml><graph><node id="1"><data key="uses_resource">fu</data></node>'
        '<edge source="1" target="1"><data key="distance">1</data></edge>'
        "</graph></graphml>"
    )
    resources.write_text('<resource name="fu" limit="1" latency="3"/>')
    argv = ["import", str(graph), "--from", "graphml"]
    assert main(argv) == 2
    assert "--resources" in capsys.readouterr().err
    assert main([*argv, "--resources", str(resources)]) == 0
    assert json.loads(capsys.readouterr().out)["devices"] == [{"id": "fu"}]


def test_plot_draws_graphs_and_the_graphs_of_schedules(
    tmp_path: Path, chain: str
) -> None:
    target, best = tmp_path / "graph.svg", tmp_path / "best.json"
    assert main(["plot", chain, "-o", str(target)]) == 0
    assert main(["plot", "tiny-mlp", "--devices", "2", "-o", str(target)]) == 0
    main(["solve", chain, "--objective", "period", "-o", str(best)])
    assert main(["plot", str(best), "-o", str(target)]) == 0
    gantt = target.read_text()
    assert main(["plot", str(best), "--dataflow", "-o", str(target)]) == 0
    assert target.read_text() != gantt
    assert main(["plot", chain, "-o", str(tmp_path / "graph.html")]) == 2
