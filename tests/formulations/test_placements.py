"""Placements listed by communication: each part alone, and the least of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from factories import make_graph, make_op, make_tensor, training_chain
from oracle import brute_force
from random_cases import random_case, random_graph, random_schedule

from lpsched.analysis.at_period import at_period
from lpsched.analysis.bounds import period_bound
from lpsched.analysis.metrics import measure
from lpsched.analysis.windows import Refutation, windows_at
from lpsched.core.graph import DeviceId, Graph, Link, OpId
from lpsched.core.io import load_graph
from lpsched.core.result import Status
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import UnsupportedError
from lpsched.formulations.api import Limits, Outcome, Request
from lpsched.formulations.cpsat import solve_at_period
from lpsched.formulations.placements import ByPlacements
from lpsched.formulations.placements.closure import Closure
from lpsched.formulations.placements.columns import list_columns, unrefuted
from lpsched.formulations.placements.covers import Covers
from lpsched.formulations.placements.listing import Listing
from lpsched.formulations.placements.loops import Homes, Loops, Sets
from lpsched.formulations.placements.partial import Partial
from lpsched.formulations.placements.problem import Problem, problem_of
from lpsched.formulations.placements.relaxation import GRID, Relaxation
from lpsched.verify import verify

CHAINS = Path(__file__).resolve().parents[2] / "instances" / "chains8"
LIMITS = Limits(seconds=60)


def chain(seed: int, layers: int, devices: int) -> Graph:
    """A chain with tight delays and slow links."""
    rng = Random(seed)
    link = Link(latency=rng.randint(0, 3), units_per_tick=rng.choice([2, 4, 8]))
    most = rng.randint(1, 3)
    return training_chain(layers, devices=devices, delay_max=most, link=link, rng=rng)


def of(request: Request) -> Problem:
    problem = problem_of(request)
    assert not isinstance(problem, Refutation)
    return problem


def least(graph: Graph, period: int, **more: object) -> Outcome:
    request = Request(graph=graph, period=period, minimise="communication")
    return ByPlacements(solve_at_period)(
        replace(request, **more),  # type: ignore[arg-type]
        LIMITS,
    )


def never() -> bool:
    return False


def everywhere(graph: Graph) -> Iterator[dict[OpId, DeviceId]]:
    ids = [op.id for op in graph.ops]
    for devices in product(graph.device_ids, repeat=len(ids)):
        yield dict(zip(ids, devices, strict=True))


def communication(graph: Graph, placement: dict[OpId, DeviceId]) -> int:
    ops: dict[OpId, Placed] = {op: Placed(p, 0) for op, p in placement.items()}
    delays = {name: delay.min for name, delay in graph.delays.items()}
    schedule = Schedule(
        graph=graph.name, graph_digest="", period=1, ops=ops, delays=delays
    )
    return measure(graph, schedule).communication


def each_placement_timed(graph: Graph, period: int) -> int | None:
    """Least communication by giving times to every placement, cheap ones first."""
    for placement in sorted(
        everywhere(graph), key=lambda each: communication(graph, each)
    ):
        request = Request(graph=graph, period=period, placement=placement)
        if solve_at_period(request, LIMITS).schedule is not None:
            return communication(graph, placement)
    return None


def least_period(graph: Graph) -> int:
    period = period_bound(graph).value
    while solve_at_period(Request(graph=graph, period=period), LIMITS).schedule is None:
        period += 1
    return period


@pytest.mark.parametrize("seed", range(80))
def test_least_communication_is_that_of_brute_force(seed: int) -> None:
    """On graphs of up to four ops with any rule; the oracle has a horizon of laps."""
    rng = Random(seed)
    schedule = None
    while schedule is None or schedule.period > 5:
        graph = random_graph(rng, max_ops=4, max_devices=2)
        schedule = random_schedule(graph, rng)
    period = max(1, schedule.period - rng.choice([0, 0, 1, 2]))
    if not any(graph.allowed(op.id) for op in graph.ops):
        return
    outcome = least(graph, period, hint=rng.choice([None, schedule]))
    expected = brute_force(graph, period, "communication")
    if outcome.schedule is None:
        assert expected is None
        assert outcome.status is Status.INFEASIBLE
        return
    assert outcome.status is Status.OPTIMAL
    assert not verify(graph, outcome.schedule)
    assert outcome.bound == measure(graph, outcome.schedule).communication
    assert expected is None or outcome.bound <= expected


@pytest.mark.parametrize(("layers", "devices"), [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("seed", range(4))
def test_no_placement_of_a_chain_communicates_less(
    seed: int, layers: int, devices: int
) -> None:
    graph = chain(seed, layers, devices)
    period = least_period(graph)
    outcome = least(graph, period)
    assert outcome.status is Status.OPTIMAL
    assert outcome.schedule is not None
    assert not verify(graph, outcome.schedule)
    assert outcome.bound == each_placement_timed(graph, period)


@pytest.mark.parametrize("seed", range(6))
def test_least_staleness_is_that_of_the_compact_model(seed: int) -> None:
    graph = chain(seed, 3, 2)
    period = least_period(graph) + seed % 2
    cap = least(graph, period).bound
    assert cap is not None
    request = Request(
        graph=graph,
        period=period,
        minimise="staleness",
        at_most={"communication": cap + seed % 3},
    )
    mine = ByPlacements(solve_at_period)(request, LIMITS)
    assert mine.status is Status.OPTIMAL
    assert mine.bound == solve_at_period(request, LIMITS).bound
    assert mine.schedule is not None
    assert not verify(graph, mine.schedule)
    assert measure(graph, mine.schedule).staleness == mine.bound


@pytest.mark.parametrize(("name", "value"), [("chain8-s3", 63), ("chain8-s9", 47)])
def test_chains_of_eight_layers_with_delays_up_to_four(name: str, value: int) -> None:
    """Stored optima at the least period of both; a compact model needs minutes."""
    graph = load_graph(CHAINS / f"{name}.json")
    outcome = least(graph, 23)
    assert outcome.status is Status.OPTIMAL
    assert outcome.bound == value


@pytest.mark.parametrize("seed", range(150))
def test_what_has_a_schedule_is_never_refuted(seed: int) -> None:
    """Neither its placement, nor what each device runs, nor a part of either."""
    graph, schedule = random_case(seed, max_ops=7)
    if not any(graph.allowed(op.id) for op in graph.ops):
        return
    problem = of(Request(graph=graph, period=schedule.period))
    closure = Closure(problem.windows)
    number = {device: p for p, device in enumerate([*graph.device_ids, None])}
    homes = np.array([[number[schedule.ops[op.id].device] for op in graph.ops]])
    no_home = len(graph.devices) + 1
    assert closure.survivors(closure.partial_codes(()), homes).all()
    units = homes[:, [ops[0] for ops in problem.units]]
    assert Partial(problem, closure).unrefuted(units, ()).all()
    sets: dict[int, int] = {}
    for k, ops in enumerate(problem.units):
        home = int(homes[0, ops[0]])
        sets[home] = sets.get(home, 0) | 1 << k
    for device in sets:
        rest = tuple(p for p in range(no_home - 1) if p != device)
        moved = np.isin(homes, rest)
        codes = closure.partial_codes(rest)
        assert closure.survivors(codes, np.where(moved, no_home, homes)).all()
    columns, codes_of_class = list_columns(problem, closure, never)
    known = unrefuted(problem, closure, codes_of_class, columns)
    left = set(zip(columns.kind[known], columns.bits[known], strict=True))
    for device, bits in sets.items():
        kind = next(g for g, all_ in enumerate(problem.classes) if device in all_)
        assert (kind, bits) in left


@pytest.mark.parametrize("seed", range(20))
def test_loops_look_up_sets_as_they_add_up_arcs_and_refute_no_more_than_paths(
    seed: int,
) -> None:
    """Of random sets of units, some undecided: by tables, one by one, by closure."""
    rng = Random(seed)
    graph = chain(seed, 5, 3)
    problem = of(Request(graph=graph, period=least_period(graph)))
    closure = Closure(problem.windows)
    codes = list_columns(problem, closure, never)[1][0]
    everything = (1 << len(problem.units)) - 1
    bits = np.array([rng.getrandbits(62) & everything for _ in range(300)])
    decided = rng.choice([everything, rng.getrandbits(62) & everything])
    sets = Sets(problem=problem, bits=bits & decided, decided=decided)
    loops = Loops(closure.weighed(codes.homes))
    alive = loops.unrefuted(sets)
    one_by_one = loops.unrefuted(Homes(homes=sets.codes()))
    assert alive.tolist() == one_by_one.tolist()
    possible = closure.survivors(codes, sets.codes().T)
    assert not (possible & ~alive).any()


def test_a_loop_refutes_the_sets_that_cut_it_too_often() -> None:
    """A → B → C → A of delay 1, 1 tick each, transfers of 1: period 5 leaves 2 cuts.

    So one device may hold any of them, and what it holds is left and entered once; at
    period 4 none may be cut off.
    """
    graph = make_graph(
        {"A": 1, "B": 1, "C": 1},
        [
            make_tensor("a", 1, "A", "B"),
            make_tensor("b", 1, "B", "C"),
            make_tensor("c", 1, "C", ("A", 1)),
        ],
        devices=2,
        link=Link(latency=1),
    )
    for period, expected in ((5, [True] * 4), (4, [True, False, False, True])):
        at = windows_at(at_period(graph, period), coupled=False, deduce=False)
        assert not isinstance(at, Refutation)
        problem = Problem(
            request=Request(graph=graph, period=period),
            windows=at,
            classes=((0, 1),),
            units=((0,), (1,), (2,)),
        )
        closure = Closure(at)
        one, other = np.eye(3, dtype=np.bool_)[0], ~np.eye(3, dtype=np.bool_)[0]
        codes = closure.codes([one, other, np.ones(3, dtype=np.bool_)])
        loops = Loops(closure.weighed(codes.homes))
        bits = np.array([0, 0b001, 0b110, 0b111])
        sets = Sets(problem=problem, bits=bits, decided=0b111)
        assert loops.unrefuted(sets).tolist() == expected


def test_what_has_been_listed_serves_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for staleness after communication, and for the same once more."""
    begun: list[int] = []

    def counted(problem: Problem, over: Callable[[], bool]) -> Listing:
        begun.append(problem.at.period)
        return Listing(problem, over)

    monkeypatch.setattr("lpsched.formulations.placements.solve.Listing", counted)
    graph = chain(1, 3, 2)
    back_end = ByPlacements(solve_at_period)
    request = Request(graph=graph, period=least_period(graph), minimise="communication")
    first = back_end(request, LIMITS)
    assert first.bound is not None
    caps = {"communication": first.bound}
    stale = replace(request, minimise="staleness", at_most=caps)
    assert back_end(stale, LIMITS).bound == solve_at_period(stale, LIMITS).bound
    assert back_end(request, LIMITS).bound == first.bound
    assert len(begun) == 1
    longer = replace(request, period=request.period + 1)
    back_end(longer, LIMITS)
    assert len(begun) == 2


def test_a_loop_without_time_for_transfers_is_kept_together() -> None:
    """A → B → A of delay 1, 2 ticks each: 4 together, 6 apart with 1 each way."""
    graph = make_graph(
        {"A": 2, "B": 2, "C": 1},
        [make_tensor("a", 1, "A", "B", "C"), make_tensor("b", 1, "B", ("A", 1))],
        devices=2,
        link=Link(latency=1),
    )
    problem = of(Request(graph=graph, period=5))
    assert problem.units == ((0, 1), (2,))
    apart = of(Request(graph=graph, period=6))
    assert apart.units == ((0,), (1,), (2,))


def test_ops_that_need_the_same_slots_cannot_share() -> None:
    """X → A, B → Y → X with delay 1: between X and Y lie 3 ticks, A and B take 4."""
    graph = make_graph(
        [make_op("X", 1), make_op("A", 2), make_op("B", 2), make_op("Y", 1)],
        [
            make_tensor("x", 1, "X", "A", "B"),
            make_tensor("a", 1, "A", "Y"),
            make_tensor("b", 1, "B", "Y"),
            make_tensor("y", 1, "Y", ("X", 1)),
        ],
        devices=3,
        link=Link(latency=0),
    )
    closure = Closure(of(Request(graph=graph, period=5)).windows)
    codes = closure.partial_codes(())
    homes = np.array([[0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 2, 0]])
    assert closure.survivors(codes, homes).tolist() == [False, True, True]


@pytest.mark.parametrize("seed", range(12))
def test_covers_are_all_placements_within_the_limit(seed: int) -> None:
    """Delays so large that no path refutes; devices are alike, so up to their names."""
    rng = Random(seed)
    graph = training_chain(2, devices=3, delay_max=99, rng=rng)
    period = 4 + max(-(-sum(graph.duration(op.id, None) for op in graph.ops) // 3), 6)
    problem = of(Request(graph=graph, period=period))
    listing = Listing(problem, never)
    limit = rng.randint(5, 60) // problem.gcd
    listed = listing.up_to(limit, never)
    assert listed is not None
    found = [(cost * problem.gcd, shape(homes)) for cost, homes in listed]
    expected = set()
    for placement in everywhere(graph):
        cost = communication(graph, placement)
        loads = dict.fromkeys(graph.device_ids, 0)
        for op, device in placement.items():
            loads[device] += graph.duration(op, device)
        if max(loads.values()) <= period and cost <= limit * problem.gcd:
            homes = [graph.device_ids.index(d) for d in placement.values()]
            expected.add((cost, shape(homes)))
    assert len(found) == len(set(found))
    assert set(found) == expected


def shape(homes: object) -> tuple[int, ...]:
    """Devices numbered by first use."""
    names: dict[int, int] = {}
    return tuple(names.setdefault(int(p), len(names)) for p in homes)  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(20))
def test_the_relaxation_bounds_every_cover_and_rises_as_columns_go(seed: int) -> None:
    rng = Random(seed)
    graph = chain(seed, 3, rng.choice([2, 3]))
    problem = of(Request(graph=graph, period=least_period(graph) + 2))
    closure = Closure(problem.windows)
    listed = list_columns(problem, closure, never)
    relaxation = Relaxation(problem, listed[0])
    before = relaxation.prices()
    covers = Covers(
        problem, Partial(problem, closure), listed[0], before, problem.worst
    )
    costs = [cost for cost, _ in covers.placements(never)]
    assert before.bound <= GRID * min(costs)
    assert (before.excess >= 0).all()
    relaxation.drop(unrefuted(problem, closure, listed[1], listed[0]))
    after = relaxation.prices()
    assert before.bound <= after.bound <= GRID * min(costs)


def test_a_search_out_of_time_bounds_what_it_has_not_refuted() -> None:
    graph = load_graph(CHAINS / "chain8-s9.json")
    event = threading.Event()
    event.set()
    request = Request(graph=graph, period=23, minimise="communication", lower=3)
    outcome = ByPlacements(solve_at_period)(request, LIMITS, interrupt=event)
    assert outcome.status is Status.UNKNOWN
    assert outcome.bound is not None
    assert 3 <= outcome.bound <= 47


def test_a_hint_that_cannot_be_improved_is_the_answer() -> None:
    graph = chain(1, 2, 2)
    period = least_period(graph)
    best = least(graph, period)
    again = least(graph, period, hint=best.schedule)
    assert again.status is Status.OPTIMAL
    assert again.schedule is not None
    assert best.schedule is not None
    assert again.schedule.ops == best.schedule.ops
    assert again.stats["placements"] == 0


def test_what_placements_cannot_settle_is_refused() -> None:
    graph = chain(0, 2, 2)
    request = Request(graph=graph, period=99, minimise="staleness")
    with pytest.raises(UnsupportedError, match="cap it"):
        ByPlacements(solve_at_period)(request, LIMITS)
    many = make_graph({f"v{i}": 1 for i in range(63)}, devices=2)
    with pytest.raises(UnsupportedError, match="63 ops to place apart"):
        least(many, 63)
