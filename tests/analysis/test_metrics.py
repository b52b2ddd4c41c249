"""The metrics agree with the verifier's measures, with simulation and with hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from factories import devices_of, make_graph, make_op, make_schedule, make_tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_case

from lpsched.analysis.metrics import (
    bubble_to_work,
    device_loads,
    measure,
    memory_curve,
    stash_depth,
)
from lpsched.core.graph import DeviceId, Graph, Link, OpId, Resident
from lpsched.core.schedule import Schedule
from lpsched.verify import measure as measure_by_verifier

D0, D1 = DeviceId("d0"), DeviceId("d1")


def sent_and_kept() -> tuple[Graph, Schedule]:
    """Build A on d0, which sends x (5 units, 1 + 2 ticks) to C on d1, and B on d0.

    T = 4. A runs [0, 2), B [2, 3) with x an iteration old, C [5, 6).
    """
    graph = make_graph(
        {"A": 2, "B": 1, "C": 1},
        [make_tensor("x", 5, "A", ("B", 1), "C"), make_tensor("z", 0, "A", ("C", 3))],
        devices=2,
        link=Link(latency=1, units_per_tick=3),
        residents=(Resident(size=7, ops=(OpId("B"), OpId("A"))),),
    )
    places = {"A": ("d0", 0), "B": ("d0", 2), "C": ("d1", 5)}
    return graph, make_schedule(graph, 4, places)


def test_the_memory_curve_of_a_hand_made_schedule() -> None:
    """On d0, x lives [0, 7) (B's use): 7 = 1 * 4 + 3; residents 7. On d1, [2, 6).

    4 ticks on d1 are a whole period: one copy at every phase.
    """
    graph, schedule = sent_and_kept()
    assert memory_curve(graph, schedule, D0) == [(0, 17), (3, 12)]
    assert memory_curve(graph, schedule, D1) == [(0, 5)]
    later = replace(schedule, period=5)
    assert memory_curve(graph, later, D0) == [(0, 17), (3, 12)]
    assert memory_curve(graph, later, D1) == [(0, 5), (1, 0), (2, 5)]


def test_stash_depth_counts_the_versions_of_a_tensor_held_at_once() -> None:
    """x: ceil(7 / 4) = 2 on d0, 1 on d1. z is used 3 iterations late: 6 + 3 * 4 = 18.

    From A's end on d1: ceil(16 / 4) = 4. On d0 until it is sent, at 2 + 1.
    """
    graph, schedule = sent_and_kept()
    assert stash_depth(graph, schedule) == {
        ("x", "d0"): 2,
        ("x", "d1"): 1,
        ("z", "d0"): 1,
        ("z", "d1"): 4,
    }


def test_loads_and_idle_time_over_work() -> None:
    graph, schedule = sent_and_kept()
    assert device_loads(graph, schedule) == {D0: 3, D1: 1}
    assert bubble_to_work(graph, schedule) == Fraction(8 - 4, 4)
    assert measure(graph, schedule).bubble_ratio == Fraction(1, 2)


def test_nothing_to_do_is_no_work_and_all_bubble() -> None:
    graph = make_graph({"A": 0}, devices=2)
    schedule = make_schedule(graph, 3, {"A": ("d0", 0)})
    assert bubble_to_work(graph, schedule) is None
    assert measure(graph, schedule).bubble_ratio == 1


def test_an_op_without_a_device_holds_nothing() -> None:
    ops = [make_op("H", 2, devices=[]), make_op("A", 1)]
    tensors = [make_tensor("x", 3, "H", ("A", 5)), make_tensor("y", 4, "A", ("H", 5))]
    graph = make_graph(ops, tensors)
    schedule = make_schedule(graph, 3, {"H": (None, 0), "A": ("d0", 0)})
    assert memory_curve(graph, schedule, D0) == [(0, 4), (1, 0)]
    assert stash_depth(graph, schedule) == {("y", "d0"): 1}


def test_an_op_that_is_missing_cannot_be_measured() -> None:
    graph, schedule = sent_and_kept()
    with pytest.raises(KeyError):
        measure(graph, replace(schedule, ops={}))


@settings(deadline=None, max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_metrics_equal_the_verifiers_measures(seed: int) -> None:
    graph, schedule = random_case(seed, max_ops=12, max_devices=4)
    assert measure(graph, schedule) == measure_by_verifier(graph, schedule)
    scattered = replace(
        schedule,
        period=1 + seed % 7,
        delays={name: value + seed % 3 for name, value in schedule.delays.items()},
    )
    assert measure(graph, scattered) == measure_by_verifier(graph, scattered)


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_curves_add_up_and_each_tensor_peaks_at_its_stash_depth(seed: int) -> None:
    graph, schedule = random_case(seed)
    graph = graph.replace(residents=())
    depth = stash_depth(graph, schedule)
    for device in graph.device_ids:
        total = [0] * schedule.period
        for tensor in graph.tensors:
            alone = graph.replace(tensors=(tensor,))
            units = _spread(memory_curve(alone, schedule, device), schedule.period)
            assert max(units) == tensor.size * depth.get((tensor.id, device), 0)
            total = [t + u for t, u in zip(total, units, strict=True)]
        curve = memory_curve(graph, schedule, device)
        assert _spread(curve, schedule.period) == total


def _spread(curve: list[tuple[int, int]], period: int) -> list[int]:
    ends = [phase for phase, _ in curve[1:]] + [period]
    return [
        units
        for (phase, units), end in zip(curve, ends, strict=True)
        for _ in range(end - phase)
    ]


def test_huge_numbers_stay_exact() -> None:
    """A copy read 2 ** 40 iterations late is held 2 ** 40 + 1 times while A runs.

    2 ** 50 units each: more than 64 bits can say.
    """
    graph = make_graph({"A": 1}, [make_tensor("x", 2**50, "A", ("A", 2**40))])
    schedule = make_schedule(graph, 2**52, {"A": ("d0", -(2**53) + 1)})
    most = 2**50 * (2**40 + 1)
    assert measure(graph, schedule).peak_memory == most
    assert memory_curve(graph, schedule, D0) == [
        (0, 2**50 * 2**40),
        (1, most),
        (2, 2**50 * 2**40),
    ]


def test_idle_devices_have_flat_curves() -> None:
    graph = make_graph({"A": 1}, devices=devices_of(2))
    schedule = make_schedule(graph, 1, {"A": ("d0", 0)})
    assert memory_curve(graph, schedule, D1) == [(0, 0)]
    assert measure(graph, schedule).utilisation == {D0: 1, D1: 0}
