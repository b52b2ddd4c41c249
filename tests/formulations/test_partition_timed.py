"""Placements by loads alone, each timed: what that proves where delays bind."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from factories import training_chain

from lpsched.analysis.bounds import period_bound
from lpsched.core.graph import Graph, Link
from lpsched.core.result import Status
from lpsched.errors import UnsupportedError
from lpsched.formulations.api import Limits, Request
from lpsched.formulations.cpsat import solve_at_period as cpsat
from lpsched.formulations.partition import solve_at_period as partition

LIMITS = Limits(seconds=60)


def chain(seed: int) -> Graph:
    """A chain with tight delays, on devices told apart by some links."""
    rng = Random(seed)
    graph = training_chain(
        2,
        devices=rng.choice([2, 3]),
        delay_max=rng.randint(1, 3),
        link=Link(latency=rng.randint(0, 2), units_per_tick=4),
        rng=rng,
    )
    pairs = [(a, b) for a in graph.device_ids for b in graph.device_ids if a != b]
    slow = Link(latency=rng.randint(3, 6))
    some = rng.sample(pairs, rng.choice([0, 1]))
    return graph.replace(links=dict.fromkeys(some, slow))


@pytest.mark.parametrize("seed", range(14, 22))
def test_it_proves_no_more_than_holds(seed: int) -> None:
    """With unequal links a placement without times may have some on other devices."""
    graph = chain(seed)
    period = period_bound(graph).value
    while cpsat(Request(graph=graph, period=period), LIMITS).schedule is None:
        period += 1
    request = Request(graph=graph, period=period, minimise="communication")
    least = cpsat(request, LIMITS).bound
    outcome = partition(request, LIMITS, timed_by=cpsat)
    assert least is not None
    assert outcome.bound is not None
    assert outcome.bound <= least
    if graph.links:
        assert outcome.status is not Status.INFEASIBLE
    else:
        assert outcome.status is Status.OPTIMAL
        assert outcome.bound == least
    shorter = replace(request, period=period - 1)
    assert partition(shorter, LIMITS, timed_by=cpsat).schedule is None


def test_without_anybody_to_time_placements_it_refuses() -> None:
    request = Request(graph=chain(1), period=99, minimise="communication")
    with pytest.raises(UnsupportedError, match="somebody to time placements"):
        partition(request, LIMITS)
