"""Set partitioning where memory is limited: its parts, and the whole with times."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations
from random import Random

import numpy as np
import pytest
from factories import devices_of, make_graph, make_op, make_tensor
from oracle import brute_force
from placement_problems import (
    all_partitions,
    brute_force_cost,
    limited,
    random_placement_graph,
    random_problem,
)

from lpsched.core.graph import Device, DeviceId, Graph, Link, OpId, Resident
from lpsched.core.result import Status, Stop
from lpsched.errors import UnsupportedError
from lpsched.formulations import cpsat
from lpsched.formulations.api import Limits, Outcome, Request
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition import (
    in_turn,
    least_communication,
    pricing,
    solve_at_period,
)
from lpsched.formulations.partition.automaton import build_automaton
from lpsched.formulations.partition.columns import Duals, Grid
from lpsched.formulations.partition.levels import Held, Levels
from lpsched.formulations.partition.pricing import Pricing
from lpsched.formulations.partition.problem import ItemSet, Problem
from lpsched.formulations.partition.search import Search
from lpsched.verify import verify

LIMITS = Limits(seconds=600)


def some_problem(seed: int, *, most_items: int = 6) -> Problem:
    rng = Random(seed)
    return limited(random_problem(rng, most_items=most_items), rng)


def every_set(num_items: int) -> list[ItemSet]:
    items = range(num_items)
    return [frozenset(c) for k in range(num_items + 1) for c in combinations(items, k)]


def needed(problem: Problem, items: ItemSet) -> int:
    """By the definition: the greatest stock, each share once if an item has part."""
    return max(
        sum(share.size for share in stock if share.items & items)
        for stock in problem.stocks
    )


def with_memory(graph: Graph, rng: Random) -> Graph:
    """Limit each device to something near what all ops together hold."""
    ids = [op.id for op in graph.ops]
    graph = graph.replace(
        residents=tuple(
            Resident(size=rng.randint(1, 9), ops=tuple(rng.sample(ids, 1)))
            for _ in range(rng.randint(0, 2))
        )
    )
    total = sum(t.size for t in graph.tensors) + sum(r.size for r in graph.residents)
    return graph.replace(
        devices=tuple(
            Device(id=d.id, memory=rng.choice([None, rng.randint(0, 2 * total)]))
            for d in graph.devices
        )
    )


# -- parts ---------------------------------------------------------------------
def test_no_set_holds_less_than_the_weights_of_its_items() -> None:
    for seed in range(40):
        problem = some_problem(seed)
        for items in every_set(problem.num_items):
            assert problem.held(items) == needed(problem, items)
            assert sum(problem.weights[v] for v in items) <= needed(problem, items)


def test_pairs_of_loads_are_those_that_both_limits_allow() -> None:
    """Items of (2, 3), (2, 3) and (1, 0), at most (4, 5): not the first two at once."""
    held = Held(weights=(3, 3, 0), most=5)
    levels = Levels.of([2, 2, 1], least=0, most=4, held=held)
    assert levels is not None
    assert levels.counts == (2, 3, 3, 5)  # nothing; or 2, 3; then 1, 0 or not
    taken = np.array(levels.into[1].targets)
    assert taken.tolist() == [1, 2]  # from (2, 3) to the dead end


@pytest.mark.parametrize("finest", [512, 8, 2])
def test_no_set_that_fits_is_missed_or_priced_below_the_bound(
    finest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coarse memory, or none (2), only adds sets, and these are left out in the end."""
    monkeypatch.setattr(pricing, "_FINEST", finest)
    for seed in range(25):
        problem = some_problem(seed)
        rng = Random(seed)
        automaton = build_automaton(problem, range(problem.num_items))
        assert automaton is not None
        oracle = Pricing.of(
            problem, automaton, Grid(unit=1, highest=10**6), most_cells=10**6
        )
        prices = np.array([rng.randint(-8, 20) for _ in range(problem.num_items)])
        duals = Duals(prices=prices, fees=prices[:0])
        columns, _ = oracle.columns_within(duals, None, 10**6)
        found = {
            (int(g), items)
            for g, items in zip(columns.groups, columns.sets.unpacked(), strict=True)
        }
        fits = {
            (g, items)
            for g in range(len(problem.groups))
            for items in every_set(problem.num_items)
            if problem.fits(items, g)
            and (problem.load(items, g) or 0) >= problem.least_load
        }
        assert found == fits
        partitions = list(all_partitions(problem))
        costs = [sum(map(problem.cost, placed)) for placed in partitions]
        assert all(oracle.offer(duals, 5).bound <= cost for cost in costs)


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_no_partition_within_memory_costs_less(first: int) -> None:
    for seed in range(first, first + 20):
        problem = some_problem(seed)
        found = Search(problem, Deadline(600)).run()
        best = brute_force_cost(problem)
        assert found.is_infeasible == (best is None)
        assert found.cost == best
        if found.placed is not None:
            assert found.bound == best
            groups = zip(problem.group_of, found.placed, strict=True)
            for g, items in groups:
                memory = problem.groups[g].memory
                assert memory is None or needed(problem, items) <= memory


def test_forbidding_what_is_found_lists_all_partitions_by_cost() -> None:
    """However equal devices are named: each is found once."""
    for seed in range(12):
        problem = some_problem(seed, most_items=4)
        expected = {problem.in_use(placed) for placed in all_partitions(problem)}
        costs = []
        for _ in expected:
            found = Search(problem, Deadline(600)).run()
            assert found.placed is not None
            assert found.cost == found.bound
            costs.append(found.cost)
            problem = replace(problem, forbidden=(*problem.forbidden, found.placed))
        assert problem.no_goods == expected
        assert costs == sorted(costs)
        assert Search(problem, Deadline(600)).run().is_infeasible


# -- the whole -----------------------------------------------------------------
solve_timed = partial(solve_at_period, timed_by=cpsat.solve_at_period)


@pytest.mark.parametrize("seed", range(40))
def test_no_schedule_within_memory_communicates_less(seed: int) -> None:
    """Against every placement and start; ops of one device, some with residents."""
    rng = Random(seed)
    graph = random_placement_graph(rng)
    while len(graph.ops) > 4:
        graph = random_placement_graph(rng)
    graph = with_memory(graph, rng)
    period = rng.randint(2, 6)
    outcome = solve_timed(
        Request(graph=graph, period=period, minimise="communication"), LIMITS
    )
    best = brute_force(graph, period, "communication")
    if best is None:
        assert outcome.status is Status.INFEASIBLE
    else:
        assert outcome.status is Status.OPTIMAL
        assert outcome.bound == best
        assert outcome.schedule is not None
        assert verify(graph, outcome.schedule) == ()


def two_pairs(memory: int) -> Graph:
    """A sends x to B and C sends y to D, 10 units each, all of 2 ticks."""
    return make_graph(
        [make_op(name, 2) for name in "ABCD"],
        [make_tensor("x", 10, "A", "B"), make_tensor("y", 10, "C", "D")],
        devices=devices_of(2, memory=memory),
    )


def test_ops_that_hold_too_much_together_are_parted() -> None:
    """T = 4: A, B on one device hold x while both run, all of the time."""
    fits, tight = (
        solve_timed(
            Request(graph=two_pairs(memory), period=4, minimise="communication"), LIMITS
        )
        for memory in (10, 9)
    )
    assert (fits.status, fits.bound) == (Status.OPTIMAL, 0)
    assert tight.status is Status.INFEASIBLE


@pytest.mark.parametrize("slow", [("d0", "d1"), ("d1", "d0")])
def test_devices_of_unlike_links_are_not_exchanged(slow: tuple[str, str]) -> None:
    """T = 2. A sends x to B; over the slow link six copies wait on A's device."""
    graph = make_graph(
        [make_op("A", 2), make_op("B", 2)],
        [make_tensor("x", 5, "A", "B")],
        devices=devices_of(2, memory=10),
        links={(DeviceId(slow[0]), DeviceId(slow[1])): Link(latency=9)},
    )
    outcome = solve_timed(
        Request(graph=graph, period=2, minimise="communication"), LIMITS
    )
    assert (outcome.status, outcome.bound) == (Status.OPTIMAL, 5)


@pytest.mark.parametrize("word", [Status.UNKNOWN, Status.INFEASIBLE])
def test_a_placement_without_times_gives_way_to_the_next(
    word: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T = 6. Whole pairs cost nothing, but nobody times A with B, or C with D.

    Next come A, B apart or C, D apart, or both. If it is not known whether A and B
    together have times, only 0 is proved.
    """
    monkeypatch.setattr(in_turn, "complete", lambda *_, **__: None)

    def picky(request: Request, limits: Limits, **_: object) -> Outcome:
        home = request.placement
        if home[OpId("A")] == home[OpId("B")] or home[OpId("C")] == home[OpId("D")]:
            return Outcome(status=word, stop=Stop.METHOD)
        return cpsat.solve_at_period(request, limits)

    graph = two_pairs(99)
    outcome = solve_at_period(
        Request(graph=graph, period=6, minimise="communication"), LIMITS, timed_by=picky
    )
    assert outcome.schedule is not None
    assert verify(graph, outcome.schedule) == ()
    if word is Status.INFEASIBLE:
        assert (outcome.status, outcome.bound) == (Status.OPTIMAL, 20)
    else:
        assert (outcome.status, outcome.bound) == (Status.FEASIBLE, 0)


def test_a_cap_that_only_undecided_placements_keep_is_left_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_turn, "complete", lambda *_, **__: None)

    def never(request: Request, limits: Limits, **_: object) -> Outcome:  # noqa: ARG001 - the names are the protocol's
        return Outcome(status=Status.UNKNOWN, stop=Stop.METHOD)

    request = Request(graph=two_pairs(99), period=6, at_most={"communication": 5})
    outcome = solve_at_period(request, LIMITS, timed_by=never)
    assert (outcome.status, outcome.bound) == (Status.UNKNOWN, 0)


def test_without_someone_to_give_times_memory_limits_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="memory"):
        solve_at_period(
            Request(graph=two_pairs(99), period=4, minimise="communication"), LIMITS
        )


def test_a_placement_can_be_forbidden() -> None:
    """Both pairs whole costs nothing; next comes one op more, at 10."""
    graph = two_pairs(99)
    homes = {"A": "d0", "B": "d0", "C": "d1", "D": "d1"}
    whole = {OpId(op): DeviceId(device) for op, device in homes.items()}
    request = Request(graph=graph, period=6, minimise="communication")
    outcome = least_communication(request, LIMITS, forbidden=[whole])
    assert outcome.value == 10
    longer = replace(request, period=8)
    together = least_communication(longer, LIMITS, forbidden=[whole])
    assert together.value == 0
