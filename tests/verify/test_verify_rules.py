"""Each rule broken alone in a valid schedule, and found alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from factories import (
    devices_of,
    make_graph,
    make_op,
    make_schedule,
    make_tensor,
    training_chain,
)
from random_cases import random_case

from lpsched.core.graph import Delay, DelayName, DeviceId, Graph, Link, OpId, Resident
from lpsched.core.result import Proof, Result, Status
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import VerificationError, Violation
from lpsched.verify import measure, verify

A, B, C = OpId("A"), OpId("B"), OpId("C")
K = DelayName("k")


def loop(**fields: Any) -> Graph:  # noqa: ANN401 - any field of Graph
    """Build A -> B -> A with a bystander C, transfers of 1 + ceil(size / 4) ticks.

    x (8 units, 3 ticks to send) goes from A to B at once and to C an iteration
    later; w (4 units, 2 ticks to send) goes from B to A with the delay k.
    """
    return make_graph(
        {"A": 3, "B": 2, "C": 4},
        [
            make_tensor("x", 8, "A", "B", ("C", 1)),
            make_tensor("w", 4, "B", ("A", "k")),
        ],
        **{
            "devices": 2,
            "link": Link(latency=1, units_per_tick=4),
            "delays": {K: Delay(min=1, max=3)},
            "residents": (Resident(size=10, ops=(A, C)),),
            **fields,
        },
    )


def schedule_of(
    graph: Graph, ops: Mapping[str, tuple[str | None, int]] | None = None, k: int = 2
) -> Schedule:
    """Build the valid schedule of `loop` with period 8, with some ops elsewhere.

    d0: A in [0, 3), C in [3, 7); d1: B in [6, 8), just when x arrives. w is on d0
    at 8 + 2 = 10, so A (at 0 + 16) could read it with k = 2, not with k = 1.
    """
    places: dict[str, tuple[str | None, int]] = {
        "A": ("d0", 0),
        "B": ("d1", 6),
        "C": ("d0", 3),
    }
    return make_schedule(graph, 8, places | dict(ops or {}), k=k)


def only(graph: Graph, schedule: Schedule) -> Violation:
    (violation,) = verify(graph, schedule)
    return violation


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


def test_memory_is_residents_and_every_copy_alive() -> None:
    """Peaks of the valid schedule, by hand.

    On d0: residents 10. x lives from 0 to C's use at 7 + 8 = 15: 15 = 1 * 8 + 7, so
    2 copies in phases 0 to 6 and 1 at 7. w comes from d1 at 8 and is used until
    3 + 16 = 19: 11 = 1 * 8 + 3, so 2 copies in phases 0 to 2, else 1. Peak at 0:
    10 + 2 * 8 + 2 * 4 = 34. On d1: x from 3 to 8, w from 6 to 10 (sent): 12 at 6.
    """
    graph = loop(devices=devices_of(2, memory=[34, 12]))
    assert verify(graph, schedule_of(graph)) == ()
    graph = loop(devices=devices_of(2, memory=[33, 12]))
    found = only(graph, schedule_of(graph))
    assert (found.rule, found.device, found.time) == ("memory", "d0", 0)
    assert (found.excess, found.ops) == (1, (A, B))
    graph = loop(devices=devices_of(2, memory=[None, 10]))
    found = only(graph, schedule_of(graph))
    assert (found.rule, found.device, found.time) == ("memory", "d1", 6)
    assert (found.excess, found.ops) == (2, (A, B))


def test_a_copy_that_lives_whole_periods_is_counted_the_same_at_every_phase() -> None:
    """X lives from 0 to 2 + 2 * 5 - 2 = 10 = 2 * 5 + 0."""
    graph = make_graph(
        {"A": 1, "B": 1},
        [make_tensor("x", 3, "A", ("B", 2))],
        devices=devices_of(1, memory=6),
    )
    assert (
        verify(graph, make_schedule(graph, 5, {"A": ("d0", 0), "B": ("d0", -1)})) == ()
    )
    found = only(graph, make_schedule(graph, 5, {"A": ("d0", 0), "B": ("d0", 1)}))
    assert (found.rule, found.time, found.excess) == ("memory", 0, 3)


def test_copies_on_the_way_are_held_at_both_ends() -> None:
    """X is sent from 2 to 2 + 6; its use at home ends at 3, abroad at 9.

    d0 holds it in [0, 8), d1 in [2, 9); with T = 10 each holds 5 at most.
    """
    graph = make_graph(
        {"A": 2, "B": 1, "C": 1},
        [make_tensor("x", 5, "A", "B", "C")],
        devices=2,
        link=Link(latency=1, units_per_tick=1),
    )
    schedule = make_schedule(
        graph, 10, {"A": ("d0", 0), "B": ("d0", 2), "C": ("d1", 8)}
    )
    measured = measure(graph, schedule)
    assert measured.peak_memory == 5
    assert measured.communication == 5
    tighter = replace(schedule, period=7)
    assert measure(graph, tighter).peak_memory == 10


def test_nothing_is_held_for_ops_without_a_device_or_tensors_of_no_size() -> None:
    ops = [make_op("A", 1), make_op("H", 1, devices=[])]
    tensors = [
        make_tensor("x", 4, "A", ("H", 9)),
        make_tensor("y", 4, "H", ("A", 9)),
        make_tensor("z", 0, "A", ("A", 9)),
    ]
    graph = make_graph(ops, tensors, devices=devices_of(1, memory=4))
    schedule = make_schedule(graph, 3, {"A": ("d0", 0), "H": (None, 1)})
    assert verify(graph, schedule) == ()
    assert measure(graph, schedule).peak_memory == 4
    assert measure(graph, schedule).communication == 0


def test_residents_count_once_a_device() -> None:
    residents = (Resident(size=7, ops=(A, B)), Resident(size=2, ops=(B,)))
    graph = make_graph({"A": 1, "B": 1}, devices=2, residents=residents)
    together = make_schedule(graph, 2, {"A": ("d0", 0), "B": ("d0", 1)})
    assert measure(graph, together).peak_memory == 9
    apart = make_schedule(graph, 2, {"A": ("d0", 0), "B": ("d1", 1)})
    assert measure(graph, apart).peak_memory == 9
    tight = graph.replace(devices=devices_of(2, memory=[6, 9]))
    found = only(tight, replace(apart, graph_digest=schedule_digest(tight)))
    assert (found.rule, found.device, found.excess) == ("memory", "d0", 1)


def schedule_digest(graph: Graph) -> str:
    return make_schedule(graph, 1, {}).graph_digest


def test_the_figures_are_those_of_the_hand_made_schedule() -> None:
    """d0 works 7 of 8 ticks, d1 2; x and w cross once each; k = 2; A starts first."""
    measured = measure(loop(unfolding=3), schedule_of(loop(unfolding=3)))
    assert measured.figures() == {
        "period": 8,
        "iteration_period": "8/3",
        "communication": 12,
        "staleness": 1,
        "makespan": 8,
        "peak_memory": 34,
        "bubble_ratio": "7/16",
    }
    assert measured.utilisation == {"d0": Fraction(7, 8), "d1": Fraction(1, 4)}


def test_a_partial_schedule_cannot_be_measured() -> None:
    graph = loop()
    with pytest.raises(VerificationError) as caught:
        measure(graph, replace(schedule_of(graph), ops={}, delays={}))
    rules = [violation.rule for violation in caught.value.violations]
    assert rules == ["coverage"] * 3 + ["delay"]


def claiming(graph: Graph, **fields: Any) -> Schedule:  # noqa: ANN401
    """Build the valid schedule with true claims, some replaced."""
    schedule = schedule_of(graph)
    figures = measure(graph, schedule).figures()
    result = Result(
        method="by hand",
        status=Status.FEASIBLE,
        objective=figures,
        bound={"period": 7, "communication": 12, "makespan": 0},
    )
    return schedule.with_result(replace(result, **fields))


def test_true_claims_pass() -> None:
    graph = loop()
    assert verify(graph, claiming(graph)) == ()
    assert verify(graph, claiming(graph, status=Status.OPTIMAL)) == ()
    assert verify(graph, claiming(graph, objective={"iteration_period": "16/2"})) == ()


@pytest.mark.parametrize(
    ("name", "value", "excess"),
    [
        ("period", 9, 1),
        ("communication", 11, -1),
        ("staleness", 0, -1),
        ("makespan", 10, 2),
        ("peak_memory", 33, -1),
        ("iteration_period", "4", -4),
        ("iteration_period", "17/2", None),
        ("iteration_period", "1e999999999", None),
        ("bubble_ratio", "1/2", None),
        ("speed", 1, None),
    ],
)
def test_each_false_figure_breaks_claims(
    name: str, value: int | str, excess: int | None
) -> None:
    graph = loop()
    found = only(graph, claiming(graph, objective={name: value}))
    assert (found.rule, found.excess) == ("claims", excess)


@pytest.mark.parametrize(
    "fields",
    [
        {"bound": {"period": 9}},
        {"bound": {"makespan": 9}},
        {"bound": {"speed": 0}},
        {"proof": {"period": Proof(kind="exhaustion", value=9)}},
        {"status": Status.INFEASIBLE},
        {"status": Status.UNKNOWN},
        {"status": Status.OPTIMAL, "bound": {"period": 7, "communication": 11}},
        {"bound": {"period": 7}, "proof": {"period": Proof(kind="cycle", value=6)}},
    ],
)
def test_each_false_bound_or_status_breaks_claims(fields: dict[str, Any]) -> None:
    graph = loop()
    assert only(graph, claiming(graph, **fields)).rule == "claims"


def test_another_graph_breaks_claims() -> None:
    graph = loop()
    other = loop(unfolding=2)
    schedule = schedule_of(graph)
    assert only(graph, replace(schedule, graph="other")).rule == "claims"
    digest = "sha256:" + "0" * 64
    assert only(graph, replace(schedule, graph_digest=digest)).rule == "claims"
    assert only(other, schedule).rule == "claims"
    assert only(graph, replace(schedule, graph_document=other)).rule == "claims"
    assert verify(graph, replace(schedule, graph_document=loop())) == ()


def test_a_refused_certificate_breaks_claims() -> None:
    """A -> B -> A takes 3 + 2 ticks and carries at most 3 delays: T >= 2."""
    graph = loop()
    edges = [(e.src, e.dst) for e in graph.edges]
    cycle = {"ops": ["A", "B"], "edges": [edges.index((A, B)), edges.index((B, A))]}
    for value, rules in ((2, []), (3, ["claims"])):
        proof = {"period": Proof(kind="cycle", value=value, certificate=cycle)}
        schedule = claiming(graph, bound={"period": value}, proof=proof)
        assert [v.rule for v in verify(graph, schedule)] == rules


def test_every_violation_is_found_at_once() -> None:
    graph = loop(colocate=((A, B),), flush=True, devices=devices_of(2, memory=[0, 0]))
    broken = schedule_of(graph, {"B": ("d1", 5), "C": ("d0", 6), "Z": ("d0", 0)}, k=4)
    rules = {violation.rule for violation in verify(graph, broken)}
    assert rules == {
        "coverage", "exclusive", "precedence", "delay", "colocate", "flush", "memory"
    }  # fmt: skip
    assert all(str(v).startswith(v.rule) for v in verify(graph, broken))


@pytest.mark.parametrize("period", [10**9, 2**53 - 1])
def test_huge_periods_starts_and_delays_cost_no_more(period: int) -> None:
    """With T = k = f, A one period early and B one late, d0 holds most at phase 2.

    w is made at f + 2 and used until 3 - f + f * f, (f - 2) * f + 1 ticks later:
    f - 1 copies at phase 2. x lives f + 7 ticks: 2 copies; residents are 10.
    """
    limit = 2**53 - 1
    graph = loop(delays={K: Delay()}, devices=devices_of(2, memory=limit))
    places = {"A": ("d0", -period), "B": ("d1", period), "C": ("d0", 3 - period)}
    schedule = replace(schedule_of(graph, places, k=period), period=period)
    measured = measure(graph, schedule)
    assert measured.staleness == period - 1
    assert measured.makespan == 2 * period + 2
    assert measured.peak_memory == 4 * period + 22
    excess = [(v.rule, v.time, v.excess) for v in verify(graph, schedule)]
    assert excess == ([("memory", 2, 3 * limit + 22)] if period == limit else [])


def test_a_graph_without_devices_has_no_bubbles() -> None:
    ops = [make_op("H", 2, devices=[]), make_op("G", 1, devices=[])]
    graph = make_graph(ops, [make_tensor("x", 4, "H", "G")], devices=0)
    schedule = make_schedule(graph, 1, {"H": (None, 0), "G": (None, 2)})
    assert verify(graph, schedule) == ()
    assert measure(graph, schedule).figures() == {
        "period": 1,
        "iteration_period": "1",
        "communication": 0,
        "staleness": 0,
        "makespan": 3,
        "peak_memory": 0,
        "bubble_ratio": "0",
    }


def test_a_graph_without_ops_is_scheduled_by_an_empty_schedule() -> None:
    graph = make_graph({}, devices=1, flush=True)
    schedule = make_schedule(graph, 1, {})
    assert verify(graph, schedule) == ()
    assert measure(graph, schedule).makespan == 0


def test_ten_thousand_ops_are_verified() -> None:
    """A chain of 3,334 layers on 16 devices, one op after the other."""
    graph = training_chain(3334, devices=16)
    graph = graph.replace(devices=devices_of(16, memory=10**9))
    at, places = 0, {}
    forward = [op for op in graph.ops if op.kind == "F"]
    backward = [op for op in reversed(graph.ops) if op.kind != "F"]
    order = forward + sorted(backward, key=lambda op: (-int(op.layer or 0), op.kind))
    for op in order:
        places[str(op.id)] = (f"d{int(op.layer or 0) % 16}", at)
        at += 2
    delays = {str(name): 1 for name in graph.delays}
    schedule = make_schedule(graph, at, places, **delays)
    assert len(graph.ops) == 10_001
    assert verify(graph, schedule) == ()
    piled = replace(
        schedule, ops={op: replace(p, start=7) for op, p in schedule.ops.items()}
    )
    assert {v.rule for v in verify(graph, piled)} == {"exclusive", "precedence"}


def test_random_valid_schedules_pass() -> None:
    for seed in range(300):
        graph, schedule = random_case(seed)
        assert verify(graph, schedule) == ()
