"""The set-partitioning back end as a whole: against brute force and stated optima."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from factories import make_graph, make_op, make_schedule, make_tensor, training_chain
from placement_problems import (
    brute_force_cost,
    least_placement,
    random_placement_graph,
    random_problem,
    vgg16_problem,
)

from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.result import Status, Stop
from lpsched.errors import OutOfTimeError, UnsupportedError
from lpsched.formulations.api import Limits, Request
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition import (
    least_communication,
    pricing,
    relaxation,
    solve_at_period,
)
from lpsched.formulations.partition.columns import Grid
from lpsched.formulations.partition.relaxation import Relaxation
from lpsched.formulations.partition.search import Search
from lpsched.verify import measure, verify

LIMITS = Limits(seconds=600)


def longest_total(graph: Graph) -> int:
    durations = [op.duration for op in graph.ops]
    return sum(d if isinstance(d, int) else max(d.values()) for d in durations)


def asked(graph: Graph, period: int) -> Request:
    return Request(graph=graph, period=period, minimise="communication")


@pytest.mark.parametrize("seed", range(80))
def test_no_placement_communicates_less(seed: int) -> None:
    rng = Random(seed)
    graph = random_placement_graph(rng)
    period = rng.randint(1, longest_total(graph) + 1)
    outcome = least_communication(asked(graph, period), LIMITS)
    best = least_placement(graph, period)
    assert outcome.value == outcome.bound == best
    assert outcome.infeasible == (best is None)
    assert outcome.proved
    assert outcome.stop is Stop.PROVED


@pytest.mark.parametrize(
    ("devices", "slack", "options", "limit", "optimum"),
    [
        (4, 1, {}, 1169, 9_817),
        (4, 2, {}, 1181, 7_759),
        (8, 5, {}, 607, 19_406),
        (4, 2, {"halves": True}, 1179, 7_755),
    ],
)
def test_vgg16_is_settled_with_proof(
    devices: int, slack: int, options: dict[str, bool], limit: int, optimum: int
) -> None:
    """Optima as stated by placement-bounds, found there with other code."""
    problem = vgg16_problem(devices, slack=slack, **options)
    assert problem.period == limit
    found = Search(problem, Deadline(600)).run()
    assert (found.cost, found.bound) == (optimum, optimum)


@pytest.mark.parametrize(("devices", "slack"), [(8, 1), (8, 2), (12, 2), (12, 5)])
def test_loads_that_cannot_be_packed_are_called_infeasible(
    devices: int, slack: int
) -> None:
    found = Search(vgg16_problem(devices, slack=slack), Deadline(600)).run()
    assert found.is_infeasible
    assert found.placed is None


def test_a_start_is_kept_if_time_is_over() -> None:
    """Layers in turn cost more than half of the chain per device does: 4 + 4."""
    graph = training_chain(4)
    odd = {op.id for op in graph.ops if op.layer in ("1", "3")}
    start = {op.id: DeviceId("d0" if op.id in odd else "d1") for op in graph.ops}
    hint = make_schedule(graph, 12, {op: (home, 0) for op, home in start.items()})
    outcome = least_communication(
        replace(asked(graph, 12), hint=hint), Limits(seconds=0.0)
    )
    assert outcome.placement == start
    assert outcome.value is not None
    assert outcome.bound is not None
    assert outcome.bound <= 8 < outcome.value
    assert not outcome.proved
    assert outcome.stop is Stop.TIME_LIMIT


def test_an_interrupt_ends_the_search() -> None:
    event = threading.Event()
    event.set()
    graph = training_chain(4)
    outcome = least_communication(asked(graph, 12), LIMITS, interrupt=event)
    assert outcome.stop is Stop.INTERRUPTED
    assert not outcome.proved


def test_a_start_that_breaks_a_rule_is_ignored() -> None:
    graph = training_chain(2)
    hint = make_schedule(graph, 9, {op.id: ("d0", 0) for op in graph.ops})
    outcome = least_communication(replace(asked(graph, 9), hint=hint), LIMITS)
    assert outcome.value == least_placement(graph, 9)


def test_progress_is_told_in_the_graphs_size_unit() -> None:
    """All sizes are multiples of 4; so are all values and bounds told."""
    told: list[tuple[int | None, int | None]] = []
    graph = training_chain(4)
    outcome = least_communication(
        asked(graph, 12),
        LIMITS,
        progress=lambda value, bound: told.append((value, bound)),
    )
    assert told[-1] == (outcome.value, outcome.bound) == (8, 8)
    assert all((v or 0) % 4 == (b or 0) % 4 == 0 for v, b in told)


def test_ops_without_a_device_neither_send_nor_receive() -> None:
    graph = make_graph(
        [make_op("a", 2), make_op("x", 3, devices=[]), make_op("b", 2)],
        [make_tensor("t", 5, "a", "x"), make_tensor("u", 7, "x", ("b", 0))],
        devices=2,
    )
    outcome = least_communication(asked(graph, 3), LIMITS)
    assert outcome.value == 0
    assert set(outcome.placement or ()) == {"a", "b"}
    short = least_communication(asked(graph, 2), LIMITS)
    assert short.value == 0  # x may overlap its own next iteration


def test_a_graph_without_anything_to_place_costs_nothing() -> None:
    graph = make_graph([make_op("x", 3, devices=[])], devices=())
    outcome = least_communication(asked(graph, 3), LIMITS)
    assert (outcome.value, outcome.bound, outcome.placement) == (0, 0, {})


def test_sizes_beyond_exact_arithmetic_are_refused() -> None:
    sizes = (2**53 - 1, 2**53 - 3)  # of no common divisor
    graph = make_graph(
        {f"v{i}": 1 for i in range(400)},
        [make_tensor(f"t{i}", s, f"v{i}", "v399") for i, s in enumerate(sizes)],
        devices=2,
    )
    with pytest.raises(UnsupportedError, match="size_tick"):
        least_communication(asked(graph, 200), LIMITS)


# -- as a back end -------------------------------------------------------------
def test_the_back_end_returns_a_valid_schedule_of_least_communication() -> None:
    graph = training_chain(4, rng=Random(3), devices=3)
    period = -(-longest_total(graph) // 3) + 2
    request = Request(graph=graph, period=period, minimise="communication")
    outcome = solve_at_period(request, LIMITS)
    assert outcome.status is Status.OPTIMAL
    assert outcome.schedule is not None
    assert verify(graph, outcome.schedule) == ()
    measured = measure(graph, outcome.schedule)
    assert measured.period == period
    assert measured.communication == outcome.bound == least_placement(graph, period)


def test_fixed_placements_and_caps_are_kept() -> None:
    graph = training_chain(3)
    apart = {OpId("F1"): DeviceId("d0"), OpId("W1"): DeviceId("d1")}
    request = Request(graph=graph, period=20, minimise="communication", placement=apart)
    outcome = solve_at_period(request, LIMITS)
    assert outcome.schedule is not None
    assert outcome.schedule.ops[OpId("F1")].device == "d0"
    assert outcome.schedule.ops[OpId("W1")].device == "d1"
    assert outcome.bound is not None
    capped = Request(
        graph=graph,
        period=20,
        minimise="communication",
        placement=apart,
        at_most={"communication": outcome.bound - 1},
    )
    assert solve_at_period(capped, LIMITS).status is Status.INFEASIBLE


def test_a_cap_alone_is_met_by_a_schedule_as_short_as_its_loads() -> None:
    """8 for a layer pair each, 12 ticks; at 11 the loads of 24 do not fit."""
    graph = training_chain(4)
    for period, status in ((20, Status.OPTIMAL), (11, Status.INFEASIBLE)):
        request = Request(graph=graph, period=period, at_most={"communication": 8})
        outcome = solve_at_period(request, LIMITS)
        assert outcome.status is status
        assert outcome.stop is Stop.PROVED
        if outcome.schedule is not None:
            loads = Counter[str]()
            for op, placed in outcome.schedule.ops.items():
                loads[str(placed.device)] += graph.duration(op, placed.device)
            assert outcome.schedule.period == max(loads.values())
            assert measure(graph, outcome.schedule).communication <= 8


def test_a_hint_is_where_the_search_starts() -> None:
    graph = training_chain(3)
    request = Request(graph=graph, period=9, minimise="communication")
    first = solve_at_period(request, LIMITS)
    again = Request(
        graph=graph, period=9, minimise="communication", hint=first.schedule
    )
    outcome = solve_at_period(again, Limits(seconds=0.0))
    assert outcome.schedule is not None
    assert measure(graph, outcome.schedule).communication == first.bound


@pytest.mark.parametrize(
    ("changes", "minimise", "caps"),
    [
        ({}, "staleness", {}),
        ({}, "communication", {"staleness": 3}),
        ({"flush": True}, "communication", {}),
    ],
)
def test_what_times_decide_is_refused(
    changes: dict[str, bool], minimise: str, caps: dict[str, int]
) -> None:
    graph = training_chain(2).replace(**changes)
    request = Request(graph=graph, period=9, minimise=minimise, at_most=caps)
    with pytest.raises(UnsupportedError):
        solve_at_period(request, LIMITS)


@pytest.mark.parametrize("seed", range(20))
def test_graphs_too_wide_for_exact_costs_still_get_true_bounds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a handful of states messages are forgotten, which only lowers costs."""
    monkeypatch.setattr(relaxation, "MOST_STATES", 3)
    monkeypatch.setattr(pricing, "MOST_STATES", 3)
    problem = random_problem(Random(seed))
    best = brute_force_cost(problem)
    found = Search(problem, Deadline(20)).run()
    if best is None:
        assert found.placed is None
        assert found.is_infeasible or found.bound <= problem.most_cost
        return
    assert not found.is_infeasible
    assert found.bound <= best
    assert found.cost is None or found.cost >= best


class _Looks(Deadline):
    """A deadline that is over once somebody has looked at it so many times."""

    def __init__(self, count: int) -> None:
        super().__init__(600)
        self.count = count

    @property
    def left(self) -> float:
        self.count -= 1
        return 0.0 if self.count < 0 else 600.0


@pytest.mark.parametrize("looks", [0, 1, 20, 100, 300, 1000, 3000, 10_000])
def test_whenever_time_is_over_bound_and_partition_are_true(looks: int) -> None:
    """The optimum, 7,755, is proved by the test above."""
    deadline = _Looks(looks)
    found = Search(vgg16_problem(4, slack=2, halves=True), deadline).run()
    assert found.bound <= 7_755
    assert found.cost is None or found.cost >= 7_755
    assert not found.is_infeasible


def test_time_is_looked_at_while_the_first_bound_is_prepared() -> None:
    """Few looks on, the automaton is not even built; the time limit is kept there."""
    deadline = _Looks(20)
    with pytest.raises(OutOfTimeError):
        Relaxation(vgg16_problem(4, slack=2), Grid(unit=1, highest=1), deadline)
