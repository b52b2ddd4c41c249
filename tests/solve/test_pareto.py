"""The front of two objectives: against brute force, capped solves, and out of time."""

from __future__ import annotations

import threading
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random

import pytest
from factories import training_chain
from placement_problems import random_placement_graph

from lpsched.core.graph import Graph
from lpsched.core.io import load_graph
from lpsched.core.result import Status
from lpsched.errors import InstanceError
from lpsched.formulations.partition.reading import communication_of
from lpsched.solve import Front, SolveParams, pareto_front, solve
from lpsched.verify import verify

SMALL = Path(__file__).resolve().parents[2] / "instances" / "small"


def corners(pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs that no other one is as good as in both, in ascending order."""
    return [
        here
        for here in sorted(pairs)
        if not any(a <= here[0] and b <= here[1] for a, b in pairs - {here})
    ]


def values(front: Front, x: str, y: str) -> list[tuple[int, int]]:
    return [(p.objective[x], p.objective[y]) for p in front.points]


def front_by_trying(graph: Graph) -> list[tuple[int, int]]:
    """Every placement, at its greatest load or op: free delays allow that period."""
    choices = [graph.allowed(op.id) or (None,) for op in graph.ops]
    pairs = set()
    for devices in product(*choices):
        placement = dict(zip(graph.op_by_id, devices, strict=True))
        if any(len({placement[op] for op in g}) > 1 for g in graph.colocate):
            continue
        loads: Counter[object] = Counter()
        for op, device in placement.items():
            if device is not None:
                loads[device] += graph.duration(op, device)
        held = {op: device for op, device in placement.items() if device is not None}
        period = max([1, *loads.values()])
        pairs.add((period, communication_of(graph, held)))
    return corners(pairs)


@pytest.mark.parametrize("seed", range(16))
def test_every_point_of_a_small_front_is_found_and_proved(seed: int) -> None:
    graph = random_placement_graph(Random(seed))
    front = pareto_front(graph, ("period", "communication"))
    expected = front_by_trying(graph)
    if not expected:
        assert front.status is Status.INFEASIBLE
        return
    assert values(front, "period", "communication") == expected
    assert front.complete
    assert all(point.proved for point in front.points)
    assert all(verify(graph, point.schedule) == () for point in front.points)


def test_the_front_of_period_and_memory_is_that_of_capped_searches() -> None:
    """Bounded delays: the least memory at every period, one search each."""
    graph = load_graph(SMALL / "chain3-p2-s1.json")
    front = pareto_front(graph, ("period", "peak_memory"))
    assert front.complete
    last = front.points[-1].objective["period"]
    table = set()
    for period in range(front.points[0].objective["period"], last + 1):
        params = SolveParams(objective=("peak_memory",), max_period=period)
        answer = solve(graph, params)
        assert answer.result.status is Status.OPTIMAL
        best = answer.result.objective
        table.add((int(best["period"]), int(best["peak_memory"])))
    found = values(front, "period", "peak_memory")
    assert corners(table | set(found)) == found


def test_objectives_other_than_the_period_are_capped_too() -> None:
    """At a fixed longest period, staleness is paid for with communication."""
    graph = training_chain(3, rng=Random(1))
    cap = solve(graph, SolveParams(objective=("period",))).require_schedule().period
    params = SolveParams(max_period=cap)
    front = pareto_front(graph, ("staleness", "communication"), params)
    assert front.complete
    for point in front.points:
        capped = SolveParams(
            objective=("communication", "staleness"),
            max_period=cap,
            at_most={"staleness": point.objective["staleness"]},
        )
        best = solve(graph, capped)
        assert best.result.status is Status.OPTIMAL
        assert (
            best.result.objective["communication"] == point.objective["communication"]
        )
    assert all(p.schedule.period <= cap for p in front.points)


def test_the_front_ascends_in_the_objective_named_first() -> None:
    graph = training_chain(2, rng=Random(2))
    one = pareto_front(graph, ("period", "communication"))
    other = pareto_front(graph, ("communication", "period"))
    found = values(one, "period", "communication")
    assert values(other, "period", "communication") == found[::-1]
    assert other.document()["objectives"] == ["communication", "period"]


def test_an_interrupted_front_claims_no_more_than_it_proved() -> None:
    event = threading.Event()
    event.set()
    graph = training_chain(4, rng=Random(3), devices=3)
    front = pareto_front(graph, ("period", "communication"), interrupt=event)
    assert not front.complete
    assert front.status in (Status.FEASIBLE, Status.UNKNOWN)
    whole = pareto_front(graph, ("period", "communication"))
    for point in front.points:
        best = min(
            p.objective["communication"]
            for p in whole.points
            if p.objective["period"] <= point.objective["period"]
        )
        assert point.bound["communication"] <= best


@pytest.mark.parametrize(
    "names", [("period",), ("period", "period"), ("period", "speed")]
)
def test_two_different_objectives_are_wanted(names: tuple[str, ...]) -> None:
    with pytest.raises(InstanceError, match="objective"):
        pareto_front(training_chain(2), names)


def test_placements_are_shortened_by_partition_alone() -> None:
    """No other back end is asked once a cap is met or refuted."""
    graph = training_chain(3, rng=Random(4), devices=2)
    answer = solve(graph, SolveParams(objective=("communication", "period")))
    assert answer.result.status is Status.OPTIMAL
    assert answer.result.method == "partition"
