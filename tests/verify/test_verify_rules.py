"""Rules on devices, times and delays, each broken alone and found alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from factories import (
    make_graph,
    make_op,
    make_schedule,
    make_tensor,
)
from loop_case import A, B, C, K, loop, only, schedule_of

from lpsched.core.graph import Delay, DelayName, DeviceId, Graph, Link
from lpsched.core.schedule import Placed
from lpsched.verify import verify


def is_valid(
    graph: Graph, period: int, places: Mapping[str, tuple[str | None, int]]
) -> bool:
    return verify(graph, make_schedule(graph, period, places)) == ()


def test_a_valid_schedule_breaks_no_rule() -> None:
    graph = loop(colocate=((A, C),), flush=True)
    assert verify(graph, schedule_of(graph)) == ()


def test_a_missing_op_breaks_coverage() -> None:
    graph = loop()
    schedule = schedule_of(graph)
    left = {op: placed for op, placed in schedule.ops.items() if op != B}
    found = only(graph, replace(schedule, ops=left))
    assert (found.rule, found.ops) == ("coverage", (B,))


def test_an_unknown_op_breaks_coverage() -> None:
    graph = loop()
    found = only(graph, schedule_of(graph, {"Z": ("d1", 0)}))
    assert (found.rule, found.ops, found.device) == ("coverage", ("Z",), "d1")


@pytest.mark.parametrize("device", ["d9", None, ""])
def test_a_device_that_the_graph_does_not_have_breaks_coverage(
    device: str | None,
) -> None:
    graph = loop()
    found = only(graph, schedule_of(graph, {"B": (device, 6)}))
    assert (found.rule, found.ops, found.device) == ("coverage", (B,), device)


def test_a_device_that_is_not_allowed_breaks_coverage() -> None:
    graph = loop()
    confined = tuple(
        replace(op, devices=(DeviceId("d0"),)) if op.id == B else op for op in graph.ops
    )
    graph = graph.replace(ops=confined)
    found = only(graph, schedule_of(graph))
    assert (found.rule, found.ops, found.device) == ("coverage", (B,), "d1")


def test_a_device_for_an_op_that_occupies_none_breaks_coverage() -> None:
    graph = make_graph([make_op("H", 1, devices=[]), make_op("A", 2)])
    assert (
        verify(graph, make_schedule(graph, 2, {"H": (None, 5), "A": ("d0", 0)})) == ()
    )
    found = only(graph, make_schedule(graph, 2, {"H": ("d0", 0), "A": ("d0", 0)}))
    assert (found.rule, found.ops, found.device) == ("coverage", ("H",), "d0")


@pytest.mark.parametrize("start", [1.0, True, "1", None])
def test_a_start_that_is_no_integer_breaks_coverage(start: Any) -> None:  # noqa: ANN401
    graph = make_graph({"A": 3})
    schedule = make_schedule(graph, 3, {"A": ("d0", 0)})
    schedule = replace(schedule, ops={A: Placed(DeviceId("d0"), start)})
    assert (only(graph, schedule).rule, only(graph, schedule).ops) == ("coverage", (A,))


@pytest.mark.parametrize("period", [0, -3, 2.0])
def test_a_period_that_is_no_positive_integer_is_refused(period: Any) -> None:  # noqa: ANN401
    graph = make_graph({"A": 0})
    schedule = replace(make_schedule(graph, 1, {"A": ("d0", 0)}), period=period)
    assert only(graph, schedule).rule == "coverage"


def test_ops_that_overlap_break_exclusive() -> None:
    graph = loop()
    found = only(graph, schedule_of(graph, {"C": ("d0", 2)}))
    assert found.rule == "exclusive"
    assert (found.ops, found.device, found.time, found.excess) == ((A, C), "d0", 2, 1)


def test_ops_may_wrap_past_the_end_of_the_period_and_touch() -> None:
    """C in [4, 8), then in [5, 9): the second meets A at phase 0."""
    graph = loop()
    assert verify(graph, schedule_of(graph, {"A": ("d0", -1), "C": ("d0", 2)})) == ()
    found = only(graph, schedule_of(graph, {"C": ("d0", 5)}))
    assert found.rule == "exclusive"
    assert (found.ops, found.device, found.time, found.excess) == ((C, A), "d0", 0, 1)


def test_ops_overlap_across_laps() -> None:
    """C at 3 + 5 * 8 - 1 has phase 2, where A still runs."""
    graph = loop()
    found = only(graph, schedule_of(graph, {"C": ("d0", 42)}))
    assert (found.rule, found.ops, found.excess) == ("exclusive", (A, C), 1)


def test_an_op_inside_another_is_found_behind_the_one_that_follows() -> None:
    """A fills [0, 9); B in [1, 2) and C in [3, 4) both lie inside it."""
    graph = make_graph({"A": 9, "B": 1, "C": 1})
    places = {"A": ("d0", 0), "B": ("d0", 1), "C": ("d0", 3)}
    found = verify(graph, make_schedule(graph, 12, places))
    assert [v.ops for v in found] == [(A, B), (A, C)]
    assert [v.excess for v in found] == [1, 1]


def test_an_op_longer_than_the_period_breaks_exclusive() -> None:
    graph = make_graph({"A": 5})
    found = only(graph, make_schedule(graph, 4, {"A": ("d0", 0)}))
    assert (found.rule, found.ops, found.excess) == ("exclusive", (A,), 1)


def test_ops_of_no_duration_or_without_a_device_occupy_nothing() -> None:
    ops = [make_op("A", 4), make_op("B", 0), make_op("H", 9, devices=[])]
    graph = make_graph(ops)
    places = {"A": ("d0", 0), "B": ("d0", 2), "H": (None, 1)}
    assert is_valid(graph, 4, places)


def test_a_value_that_arrives_late_breaks_precedence() -> None:
    """X is on d1 at 3 + 3 = 6."""
    graph = loop()
    found = only(graph, schedule_of(graph, {"B": ("d1", 5)}))
    assert found.rule == "precedence"
    assert (found.ops, found.time, found.excess) == ((A, B), 5, 1)


def test_a_delay_too_small_for_its_cycle_breaks_precedence() -> None:
    """W is on d0 at 10; with k = 1 A would read it at 8."""
    graph = loop()
    found = only(graph, schedule_of(graph, k=1))
    assert (found.rule, found.ops, found.excess) == ("precedence", (B, A), 2)


def test_a_lag_counts_after_arrival_and_a_dependence_needs_no_transfer() -> None:
    """A ends at 3, the lag makes it 5; the tensor takes 1 + 2 ticks more."""
    link = Link(latency=1, units_per_tick=4)
    uses = [make_tensor("x", 8, "A", ("B", 0, 2))]
    graph = make_graph({"A": 3, "B": 1}, uses, devices=2, link=link)
    assert (
        verify(graph, make_schedule(graph, 9, {"A": ("d0", 0), "B": ("d1", 8)})) == ()
    )
    found = only(graph, make_schedule(graph, 9, {"A": ("d0", 0), "B": ("d1", 7)}))
    assert (found.rule, found.excess) == ("precedence", 1)
    found = only(graph, make_schedule(graph, 9, {"A": ("d0", 0), "B": ("d0", 4)}))
    assert (found.rule, found.excess) == ("precedence", 1)


def test_a_value_made_without_a_device_needs_no_transfer() -> None:
    ops = [make_op("H", 2, devices=[]), make_op("A", 1)]
    uses = [make_tensor("x", 8, "H", "A")]
    graph = make_graph(ops, uses, link=Link(latency=5))
    assert (
        verify(graph, make_schedule(graph, 2, {"H": (None, 0), "A": ("d0", 2)})) == ()
    )
    found = only(graph, make_schedule(graph, 2, {"H": (None, 0), "A": ("d0", 1)}))
    assert (found.rule, found.ops, found.excess) == ("precedence", ("H", "A"), 1)


def test_a_loop_on_oneself_needs_a_period_of_its_length() -> None:
    graph = make_graph(
        [make_op("H", 5, devices=[])], [make_tensor("w", 1, "H", ("H", 1))]
    )
    assert is_valid(graph, 5, {"H": (None, 0)})
    found = only(graph, make_schedule(graph, 4, {"H": (None, 0)}))
    assert (found.rule, found.ops, found.excess) == ("precedence", ("H", "H"), 1)


@pytest.mark.parametrize(
    ("low", "high", "excess"), [(3, 4, 1), (1, 1, 1), (5, None, 3)]
)
def test_a_delay_outside_its_range_breaks_delay(
    low: int, high: int | None, excess: int
) -> None:
    graph = loop(delays={K: Delay(min=low, max=high)})
    found = only(graph, schedule_of(graph))
    assert (found.rule, found.excess) == ("delay", excess)


def test_a_missing_or_unknown_delay_breaks_delay() -> None:
    graph = loop()
    found = only(graph, replace(schedule_of(graph), delays={}))
    assert found.rule == "delay"
    more = {K: 2, DelayName("q"): 1}
    assert only(graph, replace(schedule_of(graph), delays=more)).rule == "delay"


def test_ops_of_one_group_on_two_devices_break_colocate() -> None:
    graph = loop(colocate=((A, C),))
    found = only(graph, schedule_of(graph, {"C": ("d1", 0)}))
    assert (found.rule, found.ops) == ("colocate", (A, C))


def test_an_iteration_longer_than_the_period_breaks_flush() -> None:
    graph = loop(flush=True)
    found = only(graph, schedule_of(graph, {"B": ("d1", 7)}))
    assert (found.rule, found.ops, found.excess) == ("flush", (A, B), 1)
