"""Several stages on a device: schedules for any placement, optima with flush."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines import Times, pipeline

from lpsched.analysis.chain import chain_of, lanes_of
from lpsched.analysis.pipeline import Pipeline, Slot, pipeline_of
from lpsched.core.graph import Graph
from lpsched.core.result import Status
from lpsched.errors import UnsupportedError
from lpsched.formulations.pipeline import MAX_ORDERS, num_orders
from lpsched.heuristics.synchronous.constructions import dispatched
from lpsched.heuristics.synchronous.scheduled import timed
from lpsched.solve import SolveParams, solve
from lpsched.verify import verify

PERIOD = SolveParams(objective=("period",), time_limit=60)


def least_makespan(found: Pipeline, memory: int | None) -> int | None:
    """Try every order in which ops can start (F +2, I -1, W -1 on their device).

    Of all schedules that start each op as soon as its device and its source allow,
    taken in the order of their starts, one is optimal.
    """
    slots = [
        Slot(kind, s, m)
        for kind in "FIW"
        for s in range(found.num_stages)
        for m in range(found.microbatches)
    ]
    change = {"F": 2, "I": -1, "W": -1}
    best: list[int | None] = [None]

    def extend(
        ends: dict[Slot, int], free: dict[str, int], held: dict[str, int], latest: int
    ) -> None:
        if best[0] is not None and latest >= best[0]:
            return
        if len(ends) == len(slots):
            best[0] = latest
            return
        for slot in ready(ends):
            home = found.devices[slot.stage]
            level = held[home] + max(change[slot.kind], 0)
            if memory is not None and level > memory:
                continue
            source = found.source(slot)
            arrival = 0 if source is None else ends[source] + found.wait(slot)
            end = max(free[home], arrival) + found.duration(slot)
            extend(
                ends | {slot: end},
                free | {home: end},
                held | {home: held[home] + change[slot.kind]},
                max(latest, end),
            )

    def ready(ends: dict[Slot, int]) -> Iterator[Slot]:
        for slot in slots:
            source = found.source(slot)
            before = slot._replace(microbatch=slot.microbatch - 1)
            in_order = slot.microbatch == 0 or before in ends
            if slot not in ends and in_order and (source is None or source in ends):
                yield slot

    start = dict.fromkeys(map(str, found.stages_on), 0)
    extend({}, start, dict(start), 0)
    return best[0]


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10**6))
def test_with_flush_the_optimum_is_that_of_trying_every_order(seed: int) -> None:
    """Two stages on one device, or four on two in a V or a loop."""
    rng = Random(seed)
    devices, count = rng.choice([(1, 2), (2, 1)])
    f, i, w = ([rng.randint(1, 6) for _ in range(2 * devices)] for _ in range(3))
    memory = rng.choice([None, 4, 5, 6])
    graph = pipeline(
        devices,
        count,
        Times(f, i, w, rng.randint(0, 2)),
        stages=2 * devices,
        arrangement=rng.choice(["v", "loop"]),
        memory=memory,
        flush=True,
    )
    result = solve(graph, PERIOD).result
    assert result.status is Status.OPTIMAL
    assert result.objective["period"] == least_makespan(pipeline_of(graph), memory)


def placed(arrangement: str, limit: int, *, flush: bool) -> Graph:
    """Two stages on each of four devices, eight microbatches."""
    return pipeline(
        4,
        8,
        Times(6, 7, 5, 2),
        stages=8,
        arrangement=arrangement,
        memory=limit,
        flush=flush,
    )


@pytest.mark.parametrize("arrangement", ["v", "loop"])
@pytest.mark.parametrize("limit", [4, 10, 16, 32])
def test_any_placement_has_a_schedule_in_any_memory(
    arrangement: str, limit: int
) -> None:
    """Room for one microbatch in both stages of a device is enough."""
    graph = placed(arrangement, limit, flush=False)
    found = pipeline_of(graph)
    schedules = [timed(found, orders) for orders in dispatched(found)]
    assert schedules
    assert all(verify(graph, schedule) == () for schedule in schedules)


def test_too_little_memory_brings_dispatch_to_a_standstill() -> None:
    assert list(dispatched(pipeline_of(placed("v", 3, flush=False)))) == []


def test_with_ample_memory_no_tick_is_lost_in_a_v() -> None:
    graph = pipeline(4, 16, Times(6, 7, 5, 2), stages=8, arrangement="v", memory=32)
    result = solve(graph, PERIOD).result
    assert result.status is Status.OPTIMAL
    assert result.objective["period"] == 16 * 2 * (6 + 7 + 5)
    assert result.proof["period"].kind == "resource"


def test_lanes_need_flush_where_a_device_has_several_stages() -> None:
    steady = pipeline_of(placed("v", 16, flush=False))
    with pytest.raises(UnsupportedError, match="needs flush"):
        lanes_of(steady)
    lanes = lanes_of(pipeline_of(placed("v", 16, flush=True)))
    assert lanes.lanes == ((0, 7), (1, 6), (2, 5), (3, 4))
    assert num_orders(lanes) < MAX_ORDERS
    single = pipeline_of(pipeline(3, 4, Times(1, 1, 1)))
    assert lanes_of(single) == chain_of(single)
    assert chain_of(single).lanes == ((0,), (1,), (2,))
