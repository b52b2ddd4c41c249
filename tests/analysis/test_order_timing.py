"""Orders timed exactly: least periods against brute force, deadlocks, delays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from factories import make_graph, make_op, make_tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_oracle import interleavings, value
from pipelines import Times, pipeline

from lpsched.analysis.chain import chain_of
from lpsched.analysis.order_timing import time_in_order
from lpsched.analysis.pipeline import Slot, pipeline_of
from lpsched.analysis.precedence import PlacedGraph
from lpsched.core.graph import Delay, DelayName, Dependence, DeviceId, Graph, OpId
from lpsched.core.io import graph_digest
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import NoScheduleError, UnsupportedError
from lpsched.verify import verify


def orders_of(
    graph: Graph, rng: Random
) -> tuple[dict[DeviceId, list[OpId]], int | None]:
    """Orders drawn at random, and the value that trying every cycle gives them."""
    found = pipeline_of(graph)
    chosen = [rng.choice(interleavings(found.microbatches)) for _ in found.devices]
    orders: dict[DeviceId, list[OpId]] = {}
    for stage, (device, order) in enumerate(zip(found.devices, chosen, strict=True)):
        ops = [found.op(Slot(kind, stage, k)) for kind, k in order]
        orders[device] = [op for op in (*ops, found.updates[stage]) if op is not None]
    return orders, value(chain_of(found), chosen)


def timed(graph: Graph, orders: Mapping[DeviceId, Sequence[OpId]]) -> Schedule:
    """Time orders; verify the schedule."""
    homes = {op: device for device, ops in orders.items() for op in ops}
    placed = PlacedGraph.of(graph, homes)
    period, starts = time_in_order(placed, list(orders.values()))
    schedule = Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=period,
        ops={
            op: Placed(homes.get(op), start)
            for op, start in zip(placed.ops, starts, strict=True)
        },
    )
    assert verify(graph, schedule) == ()
    return schedule


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 10**6))
def test_the_period_is_the_least_for_the_orders(seed: int) -> None:
    rng = Random(seed)
    p, m = rng.randint(1, 3), rng.randint(1, 4)
    f, i, w = ([rng.randint(0, 6) for _ in range(p)] for _ in range(3))
    graph = pipeline(
        p,
        m,
        Times(f, i, w, rng.randint(0, 3)),
        flush=rng.random() < 0.3,
        update=rng.randint(0, 2),
    )
    orders, best = orders_of(graph, rng)
    if best is None:
        with pytest.raises(NoScheduleError, match="wait for each other"):
            timed(graph, orders)
        return
    assert timed(graph, orders).period == max(1, best)


def test_a_delay_across_devices_counts() -> None:
    """Op a on d0 feeds b on d1, which feeds the next a: 3 + 4 + two transfers of 5."""
    graph = make_graph(
        [make_op("a", 3, devices=["d0"]), make_op("b", 4, devices=["d1"])],
        [make_tensor("t", 1, "a", "b"), make_tensor("u", 1, "b", ("a", 1))],
        devices=2,
        link=pipeline(1, 1, Times(1, 1, 1, 5)).link,
    )
    orders = {DeviceId("d0"): [OpId("a")], DeviceId("d1"): [OpId("b")]}
    assert timed(graph, orders).period == 17
    assert timed(graph.replace(flush=True), orders).period == 17


def test_ops_without_a_device_need_no_order() -> None:
    graph = make_graph(
        [make_op("a", 3), make_op("n", 9, devices=[])],
        dependences=(Dependence(src=OpId("a"), dst=OpId("n")),),
    )
    schedule = timed(graph, {DeviceId("d0"): [OpId("a")]})
    assert schedule.period == 3
    assert schedule.ops[OpId("n")].start == 3


def test_named_delays_are_refused() -> None:
    graph = make_graph({"a": 1}, delays={DelayName("k"): Delay()})
    with pytest.raises(UnsupportedError, match="fixed delays"):
        timed(graph, {DeviceId("d0"): [OpId("a")]})


def test_many_readers_of_one_weight_count_once() -> None:
    """W on d0 is sent (5 ticks) to three readers on d1, of which x0 runs first.

    x0 may start 4 + 5 after w; w waits for x2, the last one, and its transfer: the
    cycle is 4 + 5 + 3·2 + 5 = 20 ticks over one delay.
    """
    ops = [make_op("w", 4, devices=["d0"])]
    ops += [make_op(f"x{i}", 2, devices=["d1"]) for i in range(3)]
    graph = make_graph(
        ops,
        [
            make_tensor("v", 1, "w", ("x0", 1), ("x1", 1), ("x2", 1)),
            make_tensor("g", 1, "x2", "w"),
        ],
        devices=2,
        link=pipeline(1, 1, Times(1, 1, 1, 5)).link,
    )
    readers = [OpId(f"x{i}") for i in range(3)]
    orders = {DeviceId("d0"): [OpId("w")], DeviceId("d1"): readers}
    assert timed(graph, orders).period == 20


def test_nothing_to_run_takes_the_least_period() -> None:
    assert timed(make_graph([make_op("n", 9, devices=[])]), {}).period == 1
