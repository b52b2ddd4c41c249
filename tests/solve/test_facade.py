"""The facade: lexicographic order, slack, honest status, contradictions, interrupts."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from factories import make_graph

from lpsched.core.graph import Device, Graph
from lpsched.core.io import load_graph
from lpsched.core.result import Status, Stop
from lpsched.errors import InstanceError, SolverError, UnsupportedError
from lpsched.formulations import cpsat
from lpsched.formulations.api import Limits, Outcome, Request
from lpsched.heuristics import list_schedule
from lpsched.solve import SolveParams, backends, solve, solve_by_method
from lpsched.solve.period import balance_below
from lpsched.solve.search import Search
from lpsched.verify import verify

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
SMALL = sorted((INSTANCES / "small").glob("chain*.json"))
OPTIMA = json.loads((INSTANCES / "small" / "optima.json").read_text())
CHAIN_OPTIMA = json.loads((INSTANCES / "chains8" / "optima.json").read_text())
ALL = ("period", "communication", "staleness")


def _small(name: str) -> Graph:
    return load_graph(INSTANCES / "small" / f"{name}.json")


@pytest.mark.parametrize("backend", ["auto", "cpsat"])
@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_reference_graphs_are_proved(path: Path, backend: str) -> None:
    graph = load_graph(path)
    answer = solve(graph, SolveParams(objective=ALL, backend=backend))
    assert answer.result.status is Status.OPTIMAL
    assert {k: answer.result.objective[k] for k in ALL} == OPTIMA[path.stem]
    assert dict(answer.result.bound) == OPTIMA[path.stem]
    assert verify(graph, answer.require_schedule()) == ()


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_chains_of_eight_layers_are_proved(seed: int, most: int) -> None:
    """Optima of the reference file, for the largest delay `most`."""
    graph = load_graph(INSTANCES / "chains8" / f"chain8-s{seed}.json")
    answer = solve(graph.with_delay_max(most), SolveParams(objective=ALL))
    assert answer.result.status is Status.OPTIMAL
    expected = CHAIN_OPTIMA[graph.name][str(most)]
    assert {k: answer.result.objective[k] for k in ALL} == expected


@pytest.mark.parametrize("seed", range(10))
def test_periods_of_chains_with_delays_up_to_four_are_proved(seed: int) -> None:
    graph = load_graph(INSTANCES / "chains8" / f"chain8-s{seed}.json")
    answer = solve(graph.with_delay_max(4), SolveParams(objective=("period",)))
    assert answer.result.status is Status.OPTIMAL
    expected = CHAIN_OPTIMA[graph.name]["4"]["period"]
    assert answer.require_schedule().period == expected


def _least_communication(graph: Graph, period: int) -> int | None:
    request = Request(graph=graph, period=period, minimise="communication")
    outcome = cpsat.solve_at_period(request, Limits())
    assert outcome.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return outcome.bound


def test_slack_finds_the_shortest_period_of_least_communication() -> None:
    """Against one search per period of the range, P = 17 to 17·1.3 = 22."""
    graph = _small("chain3-p2-s1")
    slack = Fraction(3, 10)
    answer = solve(
        graph, SolveParams(objective=("period", "communication"), period_slack=slack)
    )
    table = {t: _least_communication(graph, t) for t in range(17, 23)}
    least = min(value for value in table.values() if value is not None)
    assert answer.result.objective["communication"] == least
    assert answer.result.objective["period"] == min(
        t for t, value in table.items() if value == least
    )
    assert answer.result.status is Status.OPTIMAL


def test_communication_alone_needs_no_period() -> None:
    """On one device nothing is sent, so 0 is the optimum at some period."""
    graph = _small("chain3-p2-s1")
    answer = solve(graph, SolveParams(objective=("communication",)))
    assert answer.result.status is Status.OPTIMAL
    assert answer.result.objective["communication"] == 0


def test_a_cap_on_the_period_is_kept() -> None:
    graph = _small("chain4-p3-s3")
    params = SolveParams(objective=("communication",), max_period=16)
    answer = solve(graph, params)
    assert answer.require_schedule().period <= 16
    assert answer.result.objective["communication"] == _least_communication(graph, 16)


def test_a_period_out_of_reach_is_infeasible_and_says_what_would_do() -> None:
    graph = _small("chain3-p2-s1")
    answer = solve(graph, SolveParams(max_period=16))
    assert answer.result.status is Status.INFEASIBLE
    assert answer.schedule is None
    assert answer.conflict is not None
    assert "period" in answer.conflict["rules"]
    assert answer.conflict["relaxations"]["period"] == {"period": 17, "least": True}


def test_too_little_memory_is_infeasible_and_says_what_would_do() -> None:
    """The least peak without limits is found by minimising it alone."""
    graph = _small("chain3-p2-s1")
    least = solve(graph, SolveParams(objective=("peak_memory",))).result
    assert least.status is Status.OPTIMAL
    need = least.objective["peak_memory"]
    assert isinstance(need, int)
    enough = tuple(Device(id=d.id, memory=need) for d in graph.devices)
    assert solve(graph.replace(devices=enough)).schedule is not None
    short = tuple(Device(id=d.id, memory=need - 1) for d in graph.devices)
    answer = solve(graph.replace(devices=short), SolveParams(objective=("period",)))
    assert answer.result.status is Status.INFEASIBLE
    assert answer.conflict is not None
    assert answer.conflict["rules"] == ["memory"]
    assert answer.conflict["relaxations"]["memory"] == {"memory": need, "least": True}


def test_placements_of_another_schedule_can_be_kept() -> None:
    graph = _small("chain4-p3-s4")
    kept = solve_by_method(graph, "pipedream").require_schedule()
    answer = solve(graph, SolveParams(objective=ALL, fix=kept))
    schedule = answer.require_schedule()
    assert {op: p.device for op, p in schedule.ops.items()} == {
        op: p.device for op, p in kept.ops.items()
    }
    assert schedule.period <= kept.period
    assert verify(graph, schedule) == ()


def test_a_hint_is_never_made_worse() -> None:
    graph = _small("chain4-p3-s4")
    best = solve(graph, SolveParams(objective=ALL)).require_schedule()
    hinted = solve(graph, SolveParams(objective=("period",), hint=best))
    assert hinted.require_schedule().period == best.period
    other = solve(_small("chain3-p2-s1"), SolveParams(objective=("period",)))
    with pytest.raises(InstanceError, match="hint: it has no op"):
        solve(graph, SolveParams(hint=other.require_schedule()))


def test_the_same_search_gives_the_same_schedule() -> None:
    graph = _small("chain4-p3-s7")
    first, second = (solve(graph, SolveParams(objective=ALL)) for _ in range(2))
    assert first.require_schedule().ops == second.require_schedule().ops


def test_an_interrupt_keeps_the_incumbent_and_its_bound() -> None:
    graph = load_graph(INSTANCES / "chains8" / "chain8-s4.json").with_delay_max(3)
    interrupt = threading.Event()
    interrupt.set()
    answer = solve(graph, SolveParams(objective=ALL), interrupt=interrupt)
    assert answer.result.stop is Stop.INTERRUPTED
    assert answer.result.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert answer.result.bound["period"] >= 1


def test_a_heuristic_is_feasible_and_carries_the_bound() -> None:
    graph = _small("chain4-p3-s4")
    result = solve_by_method(graph, "sequential").result
    assert result.status is Status.FEASIBLE
    assert result.stop is Stop.METHOD
    assert result.bound["period"] <= 11 <= int(result.objective["period"])


def test_a_solver_that_contradicts_a_schedule_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def liar(request: Request, limits: Limits, **_: object) -> Outcome:
        del request, limits
        return Outcome(status=Status.INFEASIBLE, stop=Stop.PROVED)

    monkeypatch.setattr(backends, "backend_of", lambda _name: liar)
    with pytest.raises(SolverError, match="infeasible, yet a verified schedule"):
        solve(_small("chain4-p2-s6"), SolveParams(objective=ALL))


def test_a_schedule_that_breaks_a_rule_is_never_handed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = _small("chain4-p2-s6")
    good = solve_by_method(graph, "sequential").require_schedule()
    moved = {op: replace(p, start=0) for op, p in good.ops.items()}

    def liar(request: Request, limits: Limits, **_: object) -> Outcome:
        del limits
        bad = replace(good, period=request.period, ops=moved)
        return Outcome(status=Status.OPTIMAL, stop=Stop.PROVED, schedule=bad)

    monkeypatch.setattr(backends, "backend_of", lambda _name: liar)
    with pytest.raises(SolverError, match="breaks rules"):
        solve(graph, SolveParams(objective=ALL))


def test_a_back_end_that_cannot_serve_leaves_what_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unable(request: Request, limits: Limits, **_: object) -> Outcome:
        del request, limits
        raise UnsupportedError("times too long")

    monkeypatch.setattr(backends, "backend_of", lambda _name: unable)
    answer = solve(_small("chain4-p2-s6"), SolveParams(objective=ALL))
    assert answer.result.status is Status.FEASIBLE
    assert answer.schedule is not None
    assert answer.result.stats is not None
    assert answer.result.stats["unsupported"] == "times too long"


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": ("speed",)},
        {"objective": ()},
        {"objective": ("period", "period")},
        {"backend": "gurobi"},
        {"time_limit": 0.0},
        {"max_period": 0},
        {"period_slack": Fraction(-1, 2)},
        {"workers": 0},
    ],
)
def test_nonsense_parameters_are_refused(changes: dict[str, object]) -> None:
    arguments: Any = changes
    with pytest.raises(InstanceError):
        SolveParams(**arguments)


def test_loads_are_balanced_within_a_limit_that_no_heuristic_keeps() -> None:
    """Longest first, 3 + 2 + 2 = 7 ticks are on one device; 3 + 3 and 2 + 2 + 2 fit."""
    durations = {f"v{i}": ticks for i, ticks in enumerate((3, 3, 2, 2, 2))}
    graph = make_graph(durations, devices=2)
    assert list_schedule(graph).period == 7
    search = Search(graph, SolveParams(objective=("communication",), max_period=6))
    balance_below(search, 6, 60.0)
    assert search.best is not None
    assert search.best.period == 6
