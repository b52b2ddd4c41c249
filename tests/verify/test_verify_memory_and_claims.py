"""Memory and claims broken alone and found alone; figures; sizes without end."""

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
from loop_case import A, B, K, loop, only, schedule_of
from random_cases import random_case

from lpsched.core.graph import Delay, Graph, Link, Resident
from lpsched.core.result import Proof, Result, Status
from lpsched.core.schedule import Schedule
from lpsched.errors import VerificationError
from lpsched.verify import Verdict, measure, proof_verdicts, verify


def is_valid(
    graph: Graph, period: int, places: Mapping[str, tuple[str | None, int]]
) -> bool:
    return verify(graph, make_schedule(graph, period, places)) == ()


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
    assert verify(graph, claiming(graph, objective={"iteration_period": "16/2"})) == ()
    word = {"makespan": Proof(kind="trivial"), "staleness": WORD}
    assert verify(graph, claiming(graph, proof=word)) == ()


WORD = Proof(kind="exhaustion")
GIVEN = Proof(kind="exhaustion", certificate={"given": "placement", "kind": "cycle"})


@pytest.mark.parametrize(
    ("bound", "proof"),
    [
        ({"period": 8}, {"period": WORD}),
        ({"period": 8, "communication": 12}, {"period": GIVEN, "communication": WORD}),
        ({"period": 7, "communication": 12}, {"period": WORD, "communication": WORD}),
    ],
)
def test_optimal_is_a_bound_met_and_proved(
    bound: dict[str, int], proof: dict[str, Proof]
) -> None:
    """With a slack the period (8) may exceed its own bound; nothing else may."""
    graph = loop()
    fields = {"status": Status.OPTIMAL, "bound": bound}
    assert verify(graph, claiming(graph, **fields, proof=proof)) == ()
    assert verify(graph, claiming(graph, **fields)) == ()  # formats.md asks no proof


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ({"period": 7}, "period 8 > 7"),
        ({"period": 7, "communication": 11}, "period 8 > 7, communication 12 > 11"),
        ({"period": 8, "communication": 11}, "met: communication 12 > 11"),
    ],
)
def test_optimal_without_what_makes_it_so_breaks_claims(
    bound: dict[str, int], message: str
) -> None:
    graph = loop()
    proof = dict.fromkeys(bound, WORD)
    claimed = claiming(graph, status=Status.OPTIMAL, bound=bound, proof=proof)
    assert message in only(graph, claimed).message


def test_a_proof_of_no_known_kind_breaks_claims() -> None:
    graph = loop()
    for proof in (Proof(kind="foo"), Proof(kind="foo", value=7)):
        found = only(graph, claiming(graph, proof={"period": proof}))
        assert (found.rule, "'foo'" in found.message) == ("claims", True)


def test_a_kind_alone_is_a_proof_that_nobody_checked() -> None:
    """The schedule in formats.md says no more than ``"period": "resource"``."""
    graph = loop()
    bare = {"period": Proof(kind="resource")}
    assert verify(graph, claiming(graph, proof=bare)) == ()
    schedule = claiming(graph, proof=bare)
    assert proof_verdicts(graph, schedule)["period"].status is Verdict.NOT_CHECKABLE


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
        {"bound": {"period": 7.5}},
        {"proof": {"period": Proof(kind="exhaustion", value=9)}},
        {"status": Status.INFEASIBLE},
        {"status": Status.UNKNOWN},
        {"proof": {"speed": Proof(kind="exhaustion")}},
        {"proof": {"speed": Proof(kind="exhaustion", value=1)}},
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
