"""Partitions that overload devices are made to fit, at little cost."""

from __future__ import annotations

from random import Random

import pytest
from factories import training_chain
from placement_problems import random_problem

from lpsched.core.graph import DeviceId
from lpsched.formulations.api import Limits, Request
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition import least_communication
from lpsched.formulations.partition.problem import (
    DeviceGroup,
    Message,
    Placed,
    Problem,
)
from lpsched.formulations.partition.repair import in_order, repair


def random_sets(problem: Problem, rng: Random) -> Placed | None:
    """Put each item on some device that may run it, whatever it weighs."""
    sets: list[set[int]] = [set() for _ in problem.group_of]
    for item in range(problem.num_items):
        able = [
            d
            for d, g in enumerate(problem.group_of)
            if problem.groups[g].loads[item] is not None
        ]
        if not able:
            return None
        sets[rng.choice(able)].add(item)
    return tuple(map(frozenset, sets))


def moved(placed: Placed, item: int, device: int) -> Placed:
    return tuple(
        items | {item} if d == device else items - {item}
        for d, items in enumerate(placed)
    )


def cost(problem: Problem, placed: Placed) -> int:
    return sum(map(problem.cost, placed))


@pytest.mark.parametrize("seed", range(150))
def test_what_is_repaired_fits_and_no_move_within_the_loads_saves(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng, most_items=9)
    start = random_sets(problem, rng)
    assert start is not None
    found = repair(problem, start, Deadline(600))
    if found is None:
        assert not problem.holds(start)
        return
    assert problem.holds(found)
    if problem.holds(start):
        assert cost(problem, found) <= cost(problem, start)
    for item in range(problem.num_items):
        for device in range(problem.num_devices):
            other = moved(found, item, device)
            if problem.holds(other):
                assert cost(problem, other) >= cost(problem, found)


def chain(*sizes: int, period: int, devices: int) -> Problem:
    """Items of 2 ticks, each sending to the next one."""
    messages = (
        Message(size=size, source=i, targets=frozenset({i + 1}))
        for i, size in enumerate(sizes)
    )
    group = DeviceGroup(count=devices, loads=(2,) * (len(sizes) + 1))
    return Problem(
        period=period,
        num_items=len(sizes) + 1,
        groups=(group,),
        messages=tuple(messages),
    )


def test_items_in_order_leave_devices_empty_that_are_not_needed() -> None:
    problem = chain(5, 1, 5, period=4, devices=3)
    expected = frozenset({0, 1}), frozenset({2, 3}), frozenset[int]()
    assert in_order(problem) == expected


def test_items_in_order_overload_the_last_device_where_they_are_too_many() -> None:
    problem = chain(5, 1, 5, period=3, devices=2)
    assert in_order(problem) == (frozenset({0}), frozenset({1, 2, 3}))


def test_the_cheapest_cut_is_found_where_all_is_on_one_device() -> None:
    """Four items of 2 ticks, 4 a device: cut in the middle, where 1 is sent."""
    problem = chain(5, 1, 5, period=4, devices=2)
    start = (frozenset({0, 1, 2, 3}), frozenset[int]())
    found = repair(problem, start, Deadline(600))
    assert found is not None
    assert set(found) == {frozenset({0, 1}), frozenset({2, 3})}


def test_an_exchange_is_found_where_every_move_overloads() -> None:
    """Both devices are full; 0 and 2 change places, and only one message is left."""
    problem = chain(5, 1, 5, period=4, devices=2)
    start = (frozenset({0, 3}), frozenset({1, 2}))
    found = repair(problem, start, Deadline(600))
    assert found is not None
    assert cost(problem, found) == 1


def test_a_load_that_fits_nowhere_is_not_repaired() -> None:
    """Three items of 2 ticks on two devices of 3."""
    problem = chain(1, 1, period=3, devices=2)
    start = (frozenset({0, 1, 2}), frozenset[int]())
    assert repair(problem, start, Deadline(600)) is None


def test_time_that_is_over_leaves_a_start_as_it_is() -> None:
    problem = chain(5, 1, 5, period=4, devices=2)
    fits, overloads = (
        (frozenset({0, 2}), frozenset({1, 3})),
        (
            frozenset({0, 1, 2}),
            frozenset({3}),
        ),
    )
    assert repair(problem, fits, Deadline(0)) == fits
    assert repair(problem, overloads, Deadline(0)) is None


def test_a_search_that_starts_from_overloaded_placements_ends_at_the_optimum() -> None:
    """The chain's least communication on two devices is 8, as in test_partition."""
    graph = training_chain(4)
    starts = [
        {op.id: DeviceId("d0") for op in graph.ops},
        {op.id: DeviceId("d0" if op.kind == "F" else "d1") for op in graph.ops},
        {op.id: DeviceId("elsewhere") for op in graph.ops},
    ]
    request = Request(graph=graph, period=12, minimise="communication", starts=starts)
    outcome = least_communication(request, Limits(seconds=600))
    assert outcome.value == outcome.bound == 8
