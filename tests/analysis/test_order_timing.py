"""Orders timed exactly: least periods against brute force, deadlocks, delays."""

from __future__ import annotations

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
from lpsched.core.graph import Delay, DelayName, Dependence, DeviceId, Graph, OpId
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
            time_in_order(graph, orders)
        return
    schedule = time_in_order(graph, orders)
    assert schedule.period == max(1, best)
    assert verify(graph, schedule) == ()


def test_a_delay_across_devices_counts() -> None:
    """Op a on d0 feeds b on d1, which feeds the next a: 3 + 4 + two transfers of 5."""
    graph = make_graph(
        [make_op("a", 3, devices=["d0"]), make_op("b", 4, devices=["d1"])],
        [make_tensor("t", 1, "a", "b"), make_tensor("u", 1, "b", ("a", 1))],
        devices=2,
        link=pipeline(1, 1, Times(1, 1, 1, 5)).link,
    )
    orders = {DeviceId("d0"): [OpId("a")], DeviceId("d1"): [OpId("b")]}
    assert time_in_order(graph, orders).period == 17
    flushed = graph.replace(flush=True)
    assert time_in_order(flushed, orders).period == 17
    assert verify(flushed, time_in_order(flushed, orders)) == ()


def test_ops_without_a_device_need_no_order() -> None:
    graph = make_graph(
        [make_op("a", 3), make_op("n", 9, devices=[])],
        dependences=(Dependence(src=OpId("a"), dst=OpId("n")),),
    )
    schedule = time_in_order(graph, {DeviceId("d0"): [OpId("a")]})
    assert schedule.period == 3
    assert schedule.ops[OpId("n")].start == 3


def test_named_delays_are_refused() -> None:
    graph = make_graph({"a": 1}, delays={DelayName("k"): Delay()})
    with pytest.raises(UnsupportedError, match="fixed delays"):
        time_in_order(graph, {})
