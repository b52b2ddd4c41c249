"""The integer program against brute force on graphs of up to four ops."""

from __future__ import annotations

import dataclasses
from random import Random

import pytest
from oracle import brute_force, figures
from random_cases import random_case

from lpsched.core.graph import DeviceId, OpId
from lpsched.core.result import Status, Stop
from lpsched.core.schedule import Schedule
from lpsched.formulations.api import Limits, Request
from lpsched.formulations.ilp import solve_at_period
from lpsched.formulations.ilp.build import OPTIONS
from lpsched.verify import verify

OBJECTIVES = ("communication", "staleness", "peak_memory", "makespan")


def draw(seed: int) -> tuple[Request, Schedule]:
    """Draw a request near what some schedule reaches: half of them have an answer.

    The period is that schedule's or up to 2 less; memory limits, a cap and a given
    device, each now and then, lie around what it has.
    """
    rng = Random(seed)
    graph, schedule = random_case(seed, max_ops=4, max_devices=2)
    while schedule.period > 6:
        graph, schedule = random_case(rng.randrange(10**6), max_ops=4, max_devices=2)
    found = figures(graph, schedule)
    if rng.random() < 0.5:
        limits = [found["peak_memory"] - rng.choice([0, 1, 3]) for _ in graph.devices]
        devices = tuple(
            dataclasses.replace(device, memory=rng.choice([None, max(0, limit)]))
            for device, limit in zip(graph.devices, limits, strict=True)
        )
        graph = graph.replace(devices=devices)
    caps: dict[str, int] = {}
    if rng.random() < 0.4:
        name = rng.choice(OBJECTIVES)
        caps[name] = max(0, found[name] - rng.choice([0, 1, 2]))
    placement: dict[OpId, DeviceId] = {}
    op = rng.choice(graph.ops).id
    if rng.random() < 0.2 and graph.allowed(op):
        placement[op] = rng.choice(graph.allowed(op))
    request = Request(
        graph=graph,
        period=max(1, schedule.period - rng.choice([0, 0, 1, 2])),
        minimise=rng.choice([None, *OBJECTIVES]),
        at_most=caps,
        placement=placement,
    )
    return request, schedule


def check(request: Request, options: dict[str, bool]) -> None:
    """Hold an answer against the verifier, the request and brute force."""
    outcome = solve_at_period(request, Limits(options=options))
    best = brute_force(
        request.graph,
        request.period,
        request.minimise,
        request.at_most,
        laps=1 if len(request.graph.ops) == 4 else 2,
        placement=request.placement,
    )
    assert outcome.stop is Stop.PROVED
    if outcome.schedule is None:
        assert outcome.status is Status.INFEASIBLE
        assert outcome.bound is None
        assert best is None
        return
    assert outcome.status is Status.OPTIMAL
    assert verify(request.graph, outcome.schedule) == ()
    assert outcome.schedule.period == request.period
    found = figures(request.graph, outcome.schedule)
    assert all(found[name] <= cap for name, cap in request.at_most.items())
    assert all(
        outcome.schedule.ops[op].device == p for op, p in request.placement.items()
    )
    if request.minimise is not None:
        assert outcome.bound == found[request.minimise]
        # Brute force looks a few laps around only, so it may miss the best.
        assert best is None or found[request.minimise] <= best


@pytest.mark.parametrize("seed", range(120))
def test_no_value_is_worse_than_brute_force(seed: int) -> None:
    request, _ = draw(seed)
    check(request, {})


@pytest.mark.parametrize("seed", range(1000, 1042))
def test_no_strengthening_cuts_off_the_best(seed: int) -> None:
    """Each strengthening alone, in turn, and none at all."""
    request, hint = draw(seed)
    alone = [None, *OPTIONS][seed % 7]
    options = {name: name == alone for name in OPTIONS}
    check(dataclasses.replace(request, hint=hint), options)


@pytest.mark.parametrize("seed", range(2000, 2012))
def test_cbc_finds_the_same(seed: int) -> None:
    request, _ = draw(seed)
    check(request, {"cbc": True})
