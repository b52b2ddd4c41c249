"""The report as a file: everything in it, exact, escaped, always the same."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from factories import make_graph, make_op, make_schedule, make_tensor, training_chain

from lpsched import SolveParams, compare
from lpsched.cli import main
from lpsched.core.graph import Graph, Link
from lpsched.core.io import save_graph, save_schedule
from lpsched.core.result import Proof, Stop
from lpsched.core.schedule import Schedule
from lpsched.errors import MissingExtraError, UnsupportedError
from lpsched.report import Case, render
from lpsched.report.run import iterations_shown, run_of
from lpsched.report.tables import idle, kept
from lpsched.solve import Comparison, Front, compare_schedules, pareto_front, solve
from lpsched.verify import verify

PERIOD = SolveParams(objective=("period",))


def pair() -> tuple[Graph, Schedule]:
    """Two ops on two devices, a transfer of 2 ticks between, and a wait of 1 more.

    a runs 0 to 3, its value arrives at 5, b runs 6 to 8, period 4: b's lap is 1.
    """
    graph = make_graph(
        [make_op("a", 3, kind="F"), make_op("b", 2, kind="W")],
        [make_tensor("v", 7, "a", "b")],
        devices=2,
        link=Link(latency=2),
    )
    schedule = make_schedule(graph, 4, {"a": ("d0", 0), "b": ("d1", 6)})
    assert verify(graph, schedule) == ()
    return graph, schedule


def case(graph: Graph | None = None, front: Front | None = None) -> Case:
    graph = graph or training_chain(3)
    rows = compare(graph, methods=("sequential", "pipedream", "optimal"), params=PERIOD)
    return Case(graph=graph, rows=rows, front=front)


def data_of(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)
    data: dict[str, Any] = json.loads(text)
    return data


def test_a_page_needs_nothing_from_elsewhere_and_is_always_the_same() -> None:
    example = case()
    page = render([example])
    assert page.startswith("<!doctype html>")
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=", page)
    assert page == render([example])


def test_plotly_stands_in_a_page_once_however_many_charts_there_are() -> None:
    one, three = render([case()]), render([case(), case(training_chain(2)), case()])
    assert len(one) > 4_000_000
    assert len(three) - len(one) < 100_000
    assert len(data_of(three)["runs"]) == 9


def test_each_method_has_a_row_and_a_chart() -> None:
    example = case()
    page = render([example])
    assert [run["name"] for run in data_of(page)["runs"]] == [
        "sequential",
        "pipedream",
        "optimal",
    ]
    for row in example.rows:
        assert f'<td class="right">{row.objective["period"]:,}</td>' in page


def test_names_cannot_break_out_of_the_page() -> None:
    name = "</script><script>alert(1)</script>"
    graph = make_graph([make_op(name, 2)], name=name)
    page = render([case(graph)])
    assert "<script>alert" not in page
    assert data_of(page)["runs"][0]["ops"][0]["id"] == name


def test_a_run_is_told_exactly() -> None:
    run = run_of("hand", *pair(), iterations=3)
    assert run["period"] == "4"
    assert [(op["id"], op["start"], op["lane"], op["lap"]) for op in run["ops"]] == [
        ("a", "0", 0, 0),
        ("b", "6", 1, 1),
    ]
    assert run["edges"] == [[0, 1, 0, "2", "v"]]
    assert [(s["name"], s["begin"], s["end"]) for s in run["sections"]] == [
        ("prologue", "0", "4"),
        ("kernel", "4", "12"),
        ("epilogue", "12", "16"),
    ]


def test_times_beyond_the_numbers_of_javascript_stay_exact() -> None:
    big = 2**52
    graph = make_graph({"a": big})
    start = 4 * big + 1
    run = run_of("hand", graph, make_schedule(graph, big + 2, {"a": ("d0", start)}))
    assert run["ops"][0]["start"] == str(start)
    assert run["ops"][0]["duration"] == str(big)


def test_each_op_says_what_it_waits_for() -> None:
    """In the gap from 4 to 6 the value of a arrives at 5: b could begin then."""
    ops = {op["id"]: op for op in run_of("hand", *pair())["ops"]}
    assert ops["b"]["waits"] == "a (transfer, nothing)"
    assert ops["b"]["earlier"] == "1"
    assert ops["a"]["waits"] == "nothing: it could begin earlier"


def test_a_chart_shows_four_steady_periods_unless_the_bars_are_too_many() -> None:
    graph, schedule = pair()
    assert iterations_shown(graph, schedule) == 5  # one lap apart
    many = make_graph({f"x{i}": 1 for i in range(3000)})
    places = {f"x{i}": ("d0", i) for i in range(3000)}
    assert iterations_shown(many, make_schedule(many, 3000, places)) == 1


def test_idle_time_adds_up() -> None:
    """d0 rests 1 tick of 4, d1 2: one for the transfer, one for nothing."""
    table = idle(*pair())
    for row in table.rows:
        assert int(row[2]) == sum(int(cell) for cell in row[3:])
    assert [(row[0], row[1], row[2]) for row in table.rows] == [
        ("d0", "75.0 %", "1"),
        ("d1", "50.0 %", "2"),
    ]


def test_staleness_stands_beside_what_is_kept() -> None:
    row = case().rows[1]
    schedule = row.require_schedule()
    shown = {(line[0], line[2]) for line in kept(row.graph, schedule).rows}
    assert shown >= {(name[1:], str(d - 1)) for name, d in schedule.delays.items()}


def test_a_front_is_drawn_and_told_in_numbers() -> None:
    """One device needs all 16 ticks and sends nothing; two need 8 and must send."""
    front = pareto_front(training_chain(3), ("period", "communication"))
    page = render([case(front=front)])
    (drawn,) = data_of(page)["fronts"]
    assert (drawn["x"], drawn["y"]) == ("period", "communication")
    assert drawn["points"][-1] == ["16", "0", True]
    assert drawn["points"][0][0] == "8"
    assert "The front of period and communication" in page


def test_rows_without_a_schedule_have_their_reason_and_no_chart() -> None:
    graph = make_graph({"a": 3, "b": 2}, devices=2)  # no layers: no PipeDream
    rows = compare(graph, methods=("pipedream", "list"), baseline="list")
    page = render([Case(graph=graph, rows=rows)])
    assert [run["name"] for run in data_of(page)["runs"]] == ["list"]
    assert rows[0].reason is not None
    assert "none: " in page


def test_a_graph_without_ops_has_a_report_too() -> None:
    graph = make_graph({})
    (run,) = data_of(render([Case(graph=graph, rows=_only(graph, {}))]))["runs"]
    assert run["ops"] == []


def test_ops_without_a_device_stand_in_a_lane_of_their_own() -> None:
    graph = make_graph([make_op("a", 3, devices=()), make_op("b", 2)])
    places = {"a": (None, 1), "b": ("d0", 0)}
    (run,) = data_of(render([Case(graph=graph, rows=_only(graph, places))]))["runs"]
    assert [lane["name"] for lane in run["lanes"]] == ["d0", "no device"]
    assert [op["lane"] for op in run["ops"]] == [1, 0]


def _only(graph: Graph, places: dict[str, tuple[str | None, int]]) -> Comparison:
    return compare_schedules(graph, [("hand", make_schedule(graph, 4, places))])


def test_an_empty_report_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="nothing to report"):
        render([])


@pytest.mark.parametrize("package", ["plotly", "jinja2"])
def test_a_missing_package_is_named_before_any_work(
    package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"lpsched\[plot\]"):
        render([case()])
    output = tmp_path / "report.html"
    assert main(["report", "vgg16", "--devices", "8", "-o", str(output)]) == 2
    assert not output.exists()


# -- existing schedules, and the command line ------------------------------------------


def test_schedules_are_compared_with_each_other() -> None:
    graph = training_chain(3)
    rows = compare(graph, methods=("pipedream", "optimal"), params=PERIOD)
    again = compare_schedules(
        graph, [(row.method, row.require_schedule()) for row in rows]
    )
    assert [row.objective for row in again] == [row.objective for row in rows]
    assert [row.speedup for row in again] == [row.speedup for row in rows]
    assert [row.status for row in again] == ["heuristic", "optimal"]


def test_schedules_without_the_baseline_have_no_speed_up() -> None:
    graph, schedule = pair()
    (row,) = compare_schedules(graph, [("hand", schedule)])
    assert row.speedup is None


def test_the_command_line_reports_schedules_and_networks(tmp_path: Path) -> None:
    graph = training_chain(2)
    for row in compare(graph, methods=("pipedream", "optimal"), params=PERIOD):
        save_schedule(row.require_schedule(), tmp_path / f"{row.method}.json")
    names = [str(tmp_path / f"{name}.json") for name in ("pipedream", "optimal")]
    output = tmp_path / "report.html"
    argv = ["report", *names, "tiny-mlp", "--devices", "2", "-o", str(output)]
    assert main([*argv, "--methods", "sequential,optimal"]) == 0
    runs = data_of(output.read_text())["runs"]
    assert len(runs) == 4
    assert {op["id"] for op in runs[0]["ops"]} == {op.id for op in graph.ops}


def test_the_command_line_reports_a_front(tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    argv = ["report", "tiny-mlp", "--devices", "2", "--methods", "optimal"]
    argv += ["--pareto", "period,communication", "-o", str(output), "-q"]
    assert main(argv) == 0
    (front,) = data_of(output.read_text())["fronts"]
    assert front["points"][0][2] is True


def test_a_comparison_writes_the_same_page(tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    argv = ["compare", "tiny-mlp", "--devices", "2..3", "--html", str(output), "-q"]
    assert main(argv) == 0
    assert len(data_of(output.read_text())["runs"]) >= 10


def test_an_invalid_schedule_is_never_reported(tmp_path: Path) -> None:
    graph, schedule = pair()
    places = {"a": ("d0", 0), "b": ("d1", 4)}  # before a's value arrives
    broken = make_schedule(graph, schedule.period, places)
    object.__setattr__(broken, "graph_document", graph)
    save_schedule(broken, tmp_path / "broken.json")
    output = tmp_path / "report.html"
    argv = ["report", str(tmp_path / "broken.json"), "-o", str(output)]
    assert main(argv) == 6
    assert not output.exists()


def test_a_claim_that_another_file_refutes_is_never_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One device needs all 16 ticks, which the forged file claims to be least."""
    graph = training_chain(3)
    rows = compare(graph, methods=("sequential", "optimal"), params=PERIOD)
    slow, best = (row.require_schedule() for row in rows)
    result = best.result
    assert result is not None
    period = {"period": slow.period}
    proof = {"period": Proof(kind="exhaustion", value=slow.period)}
    forged = dataclasses.replace(result, objective=period, bound=period, proof=proof)
    save_schedule(slow.with_result(forged), tmp_path / "forged.json")
    save_schedule(best, tmp_path / "best.json")
    output = tmp_path / "report.html"
    files = [str(tmp_path / "forged.json"), str(tmp_path / "best.json")]
    assert main(["report", *files, "-o", str(output)]) == 6
    told = capsys.readouterr().err
    assert all(file in told for file in files)
    assert not output.exists()
    # What is found of the same graph refutes it as well.
    save_graph(graph, tmp_path / "graph.json")
    argv = ["report", files[0], str(tmp_path / "graph.json"), "--methods", "optimal"]
    assert main([*argv, "-o", str(output)]) == 6
    assert "claims that period is at least 16" in capsys.readouterr().err
    assert not output.exists()


def test_a_bound_given_a_placement_is_not_that_of_others() -> None:
    graph = training_chain(3)
    rows = compare(graph, methods=("sequential", "optimal"), params=PERIOD)
    slow, best = (row.require_schedule() for row in rows)
    held = solve(graph, SolveParams(objective=("period",), fix=slow)).require_schedule()
    again = compare_schedules(graph, [("held", held), ("best", best)])
    assert again[1].bound["period"] == best.period
    assert again[1].gap == 0
    assert again[0].gap == (slow.period - best.period) / slow.period


def test_a_status_of_optimal_is_shown_however_it_was_reached() -> None:
    graph = training_chain(3)
    (row,) = compare(graph, methods=("optimal",), params=PERIOD)
    schedule = row.require_schedule()
    assert schedule.result is not None
    built = dataclasses.replace(schedule.result, stop=Stop.METHOD)
    (again,) = compare_schedules(graph, [("x", schedule.with_result(built))])
    assert again.status == "optimal"


@pytest.mark.parametrize("verb", [["report", "-o"], ["compare", "--html"]])
def test_a_report_is_a_page_and_nothing_else(verb: list[str], tmp_path: Path) -> None:
    output = tmp_path / "report.txt"
    assert main([verb[0], "tiny-mlp", "--devices", "2", verb[1], str(output)]) == 2
    assert not output.exists()
