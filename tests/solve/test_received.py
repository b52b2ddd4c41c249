"""A limit on what each device receives: all back ends against brute force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from factories import devices_of, make_graph, make_op, make_tensor
from placement_problems import random_placement_graph
from random_cases import random_case

from lpsched.analysis.freedom import least_period
from lpsched.analysis.metrics import measure, received_sizes
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.result import Status
from lpsched.errors import InstanceError
from lpsched.solve import SolveParams, compare, solve

BACKENDS = ("auto", "cpsat", "ilp", "partition")


def placements(graph: Graph, period: int) -> Iterator[dict[OpId, DeviceId]]:
    """Every placement that keeps colocation and has loads of at most T."""
    placed = [op.id for op in graph.ops if graph.occupies_device(op.id)]
    for devices in product(*map(graph.allowed, placed)):
        homes = dict(zip(placed, devices, strict=True))
        apart = any(len({homes[op] for op in group}) > 1 for group in graph.colocate)
        if not apart and least_period(graph, homes) <= period:
            yield homes


def received(graph: Graph, homes: Mapping[OpId, DeviceId | None]) -> dict[str, int]:
    """By the definition: what a device's ops use of what others' make, once each."""
    found = {}
    for device in graph.device_ids:
        here = {op for op, home in homes.items() if home == device}
        found[str(device)] = sum(
            tensor.size
            for tensor in graph.tensors
            if homes.get(tensor.producer) not in (None, device)
            and any(use.op in here for use in tensor.consumers)
        )
    return found


@pytest.mark.parametrize("first", range(0, 24, 6))
def test_every_back_end_finds_what_brute_force_finds(first: int) -> None:
    for seed in range(first, first + 6):
        rng = Random(seed)
        graph = random_placement_graph(rng)
        period, most = rng.randint(3, 9), rng.randint(0, 12)
        sent = [
            [*received(graph, homes).values()] for homes in placements(graph, period)
        ]
        best = min((sum(s) for s in sent if max(s) <= most), default=None)
        for backend in BACKENDS:
            params = SolveParams(
                objective=("communication",),
                max_period=period,
                max_received=most,
                backend=backend,
            )
            answer = solve(graph, params)
            if best is None:
                assert answer.result.status is Status.INFEASIBLE
                continue
            assert answer.result.status is Status.OPTIMAL
            assert answer.result.objective["communication"] == best
            homes = {o: at.device for o, at in answer.require_schedule().ops.items()}
            assert max(received(graph, homes).values()) <= most


def test_what_devices_receive_adds_up_to_the_communication() -> None:
    for seed in range(60):
        graph, schedule = random_case(seed)
        homes = {op: at.device for op, at in schedule.ops.items()}
        sizes = received_sizes(graph, homes)
        assert sizes == received(graph, homes)
        assert sum(sizes.values()) == measure(graph, schedule).communication


def hub(**fields: object) -> Graph:
    """A, B and C of 2 ticks send 5 units each to D of 1 tick, on two devices."""
    return make_graph(
        [*(make_op(name, 2) for name in "ABC"), make_op("D", 1)],
        [make_tensor(name.lower(), 5, name, "D") for name in "ABC"],
        devices=2,
        **fields,
    )


def test_the_least_period_minds_the_limit() -> None:
    """Loads of 4 and 3 send 10 to D, those of 5 and 2 send 5; else all is on one."""
    periods = [
        solve(hub(), SolveParams(objective=("period",), max_received=most)).result
        for most in (10, 5, 4)
    ]
    assert [result.status for result in periods] == [Status.OPTIMAL] * 3
    assert [result.objective["period"] for result in periods] == [4, 5, 7]


def test_the_limit_is_named_where_nothing_keeps_it() -> None:
    params = SolveParams(objective=("communication",), max_period=4, max_received=9)
    answer = solve(hub(), params)
    assert answer.result.status is Status.INFEASIBLE
    assert answer.conflict is not None
    assert answer.conflict["rules"] == ["period", "received"]
    assert answer.conflict["relaxations"]["received"] == {"received": 10}


def test_ops_that_have_one_device_each_are_refused_at_once() -> None:
    ops = [make_op("A", 1, devices=["d0"]), make_op("B", 1, devices=["d1"])]
    graph = make_graph(ops, [make_tensor("x", 6, "A", "B")], devices=2)
    answer = solve(graph, SolveParams(max_received=5))
    assert answer.result.status is Status.INFEASIBLE
    assert answer.conflict is not None
    assert answer.conflict["rules"] == ["coverage", "received"]
    assert "d1 receives 6" in answer.conflict["reason"]
    assert solve(graph, SolveParams(max_received=6)).result.status is Status.OPTIMAL


def test_memory_and_the_limit_hold_together() -> None:
    """5 + 2 ticks: D with A and B holds 15 while it runs, and receives 5."""
    tight = hub().replace(devices=devices_of(2, memory=15))
    params = SolveParams(objective=("period",), max_received=5)
    assert solve(tight, params).result.objective["period"] == 5
    less = tight.replace(devices=devices_of(2, memory=14))
    assert solve(less, params).result.status is Status.INFEASIBLE


def test_a_hint_that_breaks_the_limit_is_not_taken() -> None:
    fast = solve(hub(), SolveParams(objective=("period",))).require_schedule()
    for backend in BACKENDS:
        params = SolveParams(
            objective=("period",), max_received=5, hint=fast, backend=backend
        )
        assert solve(hub(), params).result.objective["period"] == 5


def test_with_bounded_delays_placements_that_break_the_limit_are_passed_over() -> None:
    """A transfer takes a tick: D's second input from elsewhere is ruled out."""
    graph = hub().replace(link=replace(hub().link, latency=1))
    for first in (True, False):
        params = SolveParams(max_received=5, options={"first": first})
        result = solve(graph, params).result
        assert result.status is Status.OPTIMAL
        assert (result.objective["period"], result.objective["communication"]) == (5, 5)


def test_a_negative_limit_and_one_for_heuristics_are_refused() -> None:
    with pytest.raises(InstanceError, match="max_received"):
        SolveParams(max_received=-1)
    with pytest.raises(InstanceError, match="max_received"):
        compare(hub(), params=SolveParams(max_received=5))


def test_the_limit_stands_with_the_result_whose_bounds_hold_within_it() -> None:
    graph = random_placement_graph(Random(1))
    params = SolveParams(objective=("period",), max_received=10**6)
    stats = [solve(graph, p).result.stats or {} for p in (params, SolveParams())]
    assert stats[0]["within"] == {"max_received": 10**6}
    assert "within" not in stats[1]
