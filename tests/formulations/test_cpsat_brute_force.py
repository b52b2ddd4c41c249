"""The CP-SAT back end against brute force on graphs of up to four ops."""

from __future__ import annotations

import dataclasses
from random import Random

import pytest
from oracle import brute_force, figures
from random_cases import random_graph, random_schedule

from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.io import checked
from lpsched.core.result import Status
from lpsched.core.schedule import Schedule
from lpsched.formulations.api import Limits, Request
from lpsched.formulations.cpsat import solve_at_period
from lpsched.verify import verify

OBJECTIVES = (None, "communication", "staleness", "peak_memory", "makespan")
#: Every strengthening alone switched off, all, and none.
SWITCHES = ("windows", "deduce", "loads", "symmetry", "hint")


def tight(seed: int) -> tuple[Request, Schedule]:
    """Draw a graph and a request at or just below a period that has a schedule.

    Half of the graphs have memory limits around what that schedule holds; some
    requests have a cap or an op whose device is given.
    """
    rng = Random(seed)
    while True:
        graph = random_graph(rng, max_ops=4, max_devices=2)
        schedule = random_schedule(graph, rng)
        if schedule.period <= 5:
            break
    found = figures(graph, schedule)
    period = max(1, schedule.period - rng.choice([0, 0, 1, 2]))
    if rng.random() < 0.5:
        graph = limited(graph, found["peak_memory"], rng)
    caps = {}
    if rng.random() < 0.3:
        name = rng.choice(sorted(found))
        caps = {name: max(0, found[name] - rng.choice([0, 1, 2]))}
    placement: dict[OpId, DeviceId] = {}
    op = rng.choice(graph.ops).id
    if rng.random() < 0.2 and graph.allowed(op):
        placement = {op: rng.choice(graph.allowed(op))}
    request = Request(graph=graph, period=period, at_most=caps, placement=placement)
    return request, schedule


def limited(graph: Graph, peak: int, rng: Random) -> Graph:
    """Limit the memory of some devices to about a peak."""
    devices = tuple(
        dataclasses.replace(
            device, memory=rng.choice([None, max(0, peak - rng.choice([0, 1, 3]))])
        )
        for device in graph.devices
    )
    return checked(graph.replace(devices=devices))


@pytest.mark.parametrize("seed", range(40))
def test_no_objective_is_worse_than_brute_force(seed: int) -> None:
    request, hint = tight(seed)
    off = [None, *SWITCHES, "all"][seed % 7]
    options = {name: off not in (name, "all") for name in SWITCHES}
    for objective in OBJECTIVES:
        asked = dataclasses.replace(
            request, minimise=objective, hint=hint if seed % 2 else None
        )
        outcome = solve_at_period(asked, Limits(options=options))
        best = brute_force(
            request.graph,
            request.period,
            objective,
            request.at_most,
            laps=1 if len(request.graph.ops) == 4 else 2,
            placement=request.placement,
        )
        if outcome.schedule is None:
            assert outcome.status is Status.INFEASIBLE
            assert best is None
            continue
        assert outcome.status is Status.OPTIMAL
        assert verify(request.graph, outcome.schedule) == ()
        found = figures(request.graph, outcome.schedule)
        assert all(found[name] <= cap for name, cap in request.at_most.items())
        for op, device in request.placement.items():
            assert outcome.schedule.ops[op].device == device
        if objective is not None:
            assert outcome.bound == found[objective]
            assert best is None or found[objective] <= best
