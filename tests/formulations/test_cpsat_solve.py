"""The CP-SAT back end as a whole: reference optima, limits, hints, odd graphs."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path

import pytest
from factories import make_graph, make_op, make_tensor, training_chain
from oracle import figures
from ortools.sat.python.cp_model import OPTIMAL, CpSolver
from random_cases import random_case

from lpsched.analysis.windows import Refutation
from lpsched.core.graph import Delay, DelayName, Dependence, Graph, Link, OpId
from lpsched.core.io import load_graph
from lpsched.core.result import Status, Stop
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import OutOfTimeError, UnsupportedError
from lpsched.formulations.api import Limits, Outcome, Request
from lpsched.formulations.cpsat import Model, build, solve_at_period
from lpsched.formulations.cpsat.hint import hint_of, stretched_starts
from lpsched.verify import verify

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
SMALL = json.loads((INSTANCES / "small" / "optima.json").read_text())
CHAINS = json.loads((INSTANCES / "chains8" / "optima.json").read_text())


def hard() -> Request:
    """Ask for the communication of chain8-s0 at delay 4: it takes over a minute."""
    graph = load_graph(INSTANCES / "chains8" / "chain8-s0.json").with_delay_max(4)
    return Request(graph=graph, period=20, minimise="communication")


def settle(graph: Graph, optima: dict[str, int]) -> None:
    """Hold the period, communication and staleness of a graph to known optima."""
    period = optima["period"]
    below = solve_at_period(Request(graph=graph, period=period - 1), Limits())
    assert (below.status, below.stop) == (Status.INFEASIBLE, Stop.PROVED)
    best = solve_at_period(Request(graph=graph, period=period), Limits())
    for objective in ("communication", "staleness"):
        request = Request(
            graph=graph,
            period=period,
            minimise=objective,
            at_most={"communication": optima["communication"]},
            hint=best.schedule,
        )
        best = solve_at_period(request, Limits())
        assert (best.status, best.bound) == (Status.OPTIMAL, optima[objective])
        assert best.schedule is not None
        assert verify(graph, best.schedule) == ()
        assert figures(graph, best.schedule)[objective] == optima[objective]


@pytest.mark.parametrize("name", SMALL)
def test_the_reference_optima_are_proved(name: str) -> None:
    settle(load_graph(INSTANCES / "small" / f"{name}.json"), SMALL[name])


@pytest.mark.parametrize(("seed", "longest"), [(0, 1), (3, 2), (9, 2), (5, 3), (7, 3)])
def test_chains_of_eight_layers_are_proved(seed: int, longest: int) -> None:
    name = f"chain8-s{seed}"
    graph = load_graph(INSTANCES / "chains8" / f"{name}.json").with_delay_max(longest)
    settle(graph, CHAINS[name][str(longest)])


def test_an_interrupt_keeps_the_best_schedule_and_its_bound() -> None:
    request, stop = hard(), threading.Event()
    seen: list[int] = []

    def progress(value: int | None, bound: int | None) -> None:
        assert bound is None or bound >= 0
        if value is not None:
            seen.append(value)
            stop.set()

    outcome = solve_at_period(request, Limits(), progress=progress, interrupt=stop)
    assert (outcome.status, outcome.stop) == (Status.FEASIBLE, Stop.INTERRUPTED)
    assert outcome.schedule is not None
    assert verify(request.graph, outcome.schedule) == ()
    found = figures(request.graph, outcome.schedule)["communication"]
    assert found <= seen[0]
    assert outcome.bound is not None
    assert outcome.bound <= 106 <= found  # 106 is optimal (optima.json)


def test_an_interrupt_that_is_already_set_ends_the_search() -> None:
    stop = threading.Event()
    stop.set()
    outcome = solve_at_period(hard(), Limits(seconds=600), interrupt=stop)
    assert outcome.status in (Status.UNKNOWN, Status.FEASIBLE)
    assert outcome.stop is Stop.INTERRUPTED


def test_the_time_limit_keeps_the_hint() -> None:
    request = hard()
    first = solve_at_period(replace(request, minimise=None), Limits())
    asked = replace(request, hint=first.schedule)
    outcome = solve_at_period(asked, Limits(seconds=2))
    assert (outcome.status, outcome.stop) == (Status.FEASIBLE, Stop.TIME_LIMIT)
    assert first.schedule is not None
    assert outcome.schedule is not None
    given = figures(request.graph, first.schedule)["communication"]
    assert figures(request.graph, outcome.schedule)["communication"] <= given


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_request_gives_the_same_schedule(workers: int) -> None:
    graph = load_graph(INSTANCES / "small" / "chain4-p3-s4.json")
    request = Request(graph=graph, period=11, minimise="staleness")
    first, second = (
        solve_at_period(request, Limits(workers=workers)) for _ in range(2)
    )
    assert first.schedule == second.schedule
    assert first.stats["work"] == second.stats["work"]


def test_a_lower_bound_ends_a_search_that_meets_it() -> None:
    graph = load_graph(INSTANCES / "small" / "chain4-p3-s4.json")
    request = Request(graph=graph, period=11, minimise="communication", lower=33)
    outcome = solve_at_period(request, Limits())
    assert (outcome.status, outcome.bound) == (Status.OPTIMAL, 33)


def test_a_cap_on_the_period_is_a_cap() -> None:
    graph = training_chain(2)
    request = Request(graph=graph, period=12, at_most={"period": 11})
    assert solve_at_period(request, Limits()).status is Status.INFEASIBLE
    request = Request(graph=graph, period=12, at_most={"period": 12})
    assert solve_at_period(request, Limits()).status is Status.OPTIMAL


@pytest.mark.parametrize("seed", range(60))
def test_a_valid_schedule_is_taken_as_a_complete_hint(seed: int) -> None:
    """Every value of the hint can be fixed at once, for any objective's model."""
    graph, schedule = random_case(seed)
    objective = (None, "staleness", "peak_memory", "makespan")[seed % 4]
    cap = {} if objective is None else {objective: figures(graph, schedule)[objective]}
    request = Request(
        graph=graph, period=schedule.period, minimise=objective, at_most=cap
    )
    model = build(request)
    assert isinstance(model, Model)
    for variable, value in hint_of(model.x, schedule):
        model.cp.add(variable == value)
    solver = CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) == OPTIMAL


@pytest.mark.parametrize("seed", range(20))
def test_a_schedule_of_a_shorter_period_is_stretched(seed: int) -> None:
    graph, schedule = random_case(seed)
    longer = schedule.period + 1 + seed % 3
    model = build(Request(graph=graph, period=longer))
    assert isinstance(model, Model)
    starts = stretched_starts(model.x, schedule)
    assert starts is not None
    unit = model.x.scope.at.unit
    ops = {
        op.id: Placed(schedule.ops[op.id].device, start * unit)
        for op, start in zip(graph.ops, starts, strict=True)
    }
    assert verify(graph, replace(schedule, period=longer, ops=ops)) == ()
    shorter = build(Request(graph=graph, period=schedule.period))
    assert isinstance(shorter, Model)
    later = replace(schedule, period=longer, ops=ops)
    assert stretched_starts(shorter.x, later) is None


def answer(graph: Graph, period: int, minimise: str | None = None) -> Outcome:
    """Solve; whatever schedule comes back is valid."""
    request = Request(graph=graph, period=period, minimise=minimise)
    outcome = solve_at_period(request, Limits())
    assert outcome.schedule is None or verify(graph, outcome.schedule) == ()
    return outcome


def test_a_graph_without_ops_has_the_empty_schedule() -> None:
    outcome = answer(make_graph({}), 1)
    assert outcome.status is Status.OPTIMAL
    assert outcome.schedule is not None
    assert outcome.schedule.ops == {}


@pytest.mark.parametrize("objective", ["communication", "staleness", "makespan"])
def test_a_graph_without_devices_is_retimed(objective: str) -> None:
    """A loop of 7 + 3 ticks with two delays: the iteration bound is 5."""
    graph = make_graph(
        [make_op("A", 7, devices=[]), make_op("B", 3, devices=[])],
        [make_tensor("x", 4, "A", ("B", 1)), make_tensor("y", 4, "B", ("A", 1))],
        devices=(),
    )
    assert answer(graph, 4).status is Status.INFEASIBLE
    outcome = answer(graph, 5, objective)
    assert outcome.status is Status.OPTIMAL
    # A ends at 7, and B, one iteration later, must not start before 7 - 5 = 2.
    assert outcome.bound == (7 if objective == "makespan" else 0)


def test_an_op_longer_than_the_period_needs_a_faster_device() -> None:
    slow = make_graph([make_op("A", 5)], devices=2)
    assert answer(slow, 4).status is Status.INFEASIBLE
    graph = make_graph([make_op("A", {"d0": 5, "d1": 4})], devices=2)
    outcome = answer(graph, 4)
    assert outcome.schedule is not None
    assert outcome.schedule.ops[OpId("A")].device == "d1"


def test_the_faster_link_is_used() -> None:
    """A (d0) sends to B on d1 (9 ticks) or d2 (1 tick); T = 5 leaves time for one."""
    graph = make_graph(
        [make_op("A", 2, devices=["d0"]), make_op("B", 2, devices=["d1", "d2"])],
        [make_tensor("x", 1, "A", "B"), make_tensor("y", 0, "B", ("A", 1))],
        devices=3,
        link=Link(latency=9),
        links={("d0", "d2"): Link(latency=1), ("d2", "d0"): Link(latency=0)},
    )
    outcome = answer(graph, 5)
    assert outcome.schedule is not None
    assert outcome.schedule.ops[OpId("B")].device == "d2"
    assert answer(graph, 4).status is Status.INFEASIBLE


def test_free_delays_leave_load_balancing() -> None:
    """F and W of 3 layers, 2 ticks each, 16 in all, on 2 devices: T = 8."""
    graph = training_chain(3)
    model = build(Request(graph=graph, period=8))
    assert isinstance(model, Model)
    assert not model.x.scope.is_timed
    assert answer(graph, 7).status is Status.INFEASIBLE
    assert answer(graph, 8).status is Status.OPTIMAL


def test_numbers_too_large_to_stay_exact_are_refused() -> None:
    graph = make_graph(
        {"A": 10**15, "B": 10**15},
        dependences=(
            Dependence(src=OpId("A"), dst=OpId("B"), delay=1000),
            Dependence(src=OpId("B"), dst=OpId("A"), delay=1000),
        ),
    )
    with pytest.raises(UnsupportedError, match="use a longer tick"):
        build(Request(graph=graph, period=10**15))


def test_building_a_model_can_be_given_up_at_any_time() -> None:
    """Asked once more each time, until the model is there."""
    request = Request(graph=training_chain(2, delay_max=2), period=9)
    for patience in count():
        asked = repeat(False, patience)
        try:
            model = build(request, over=lambda asked=asked: next(asked, True))  # type: ignore[misc]
        except OutOfTimeError:
            continue
        assert isinstance(model, Model)
        break
    assert patience > len(request.graph.ops)


def test_a_refuted_period_names_its_ops() -> None:
    graph = make_graph(
        {"A": 3, "B": 2, "C": 1},
        [make_tensor("x", 4, "A", "B"), make_tensor("y", 4, "B", ("A", "k"))],
        devices=2,
        delays={DelayName("k"): Delay(min=1, max=2)},
    )
    refuted = build(Request(graph=graph, period=2))
    assert isinstance(refuted, Refutation)
    outcome = answer(graph, 2)
    assert outcome.stats["ops"] == list(refuted.ops)
    assert set(refuted.ops) <= {"A", "B"}


def test_a_schedule_is_extracted_with_the_least_delays() -> None:
    graph = training_chain(2, devices=1)
    outcome = answer(graph, 10, "staleness")
    schedule: Schedule | None = outcome.schedule
    assert schedule is not None
    assert dict(schedule.delays) == {"d1": 1, "d2": 1}
