"""Certificates that hold are accepted, and each that is tampered with is not."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from brute_force import is_schedulable
from factories import make_graph, make_op, make_tensor
from verdicts import Certificate, assert_proves, verdict

from lpsched.core.graph import Delay, DelayName, Graph, Link, OpId
from lpsched.core.result import Proof
from lpsched.verify import Verdict, check_proof


def loop_graph(**fields: Any) -> Graph:  # noqa: ANN401 - any field of Graph
    """Build A (3) -> B (4) -> A with a delay of at most 2, and C (6) beside it.

    Edges: 0 A -> B, 1 B -> A with k, 2 C -> C with 1, 3 A -> A with the unlimited q.
    """
    tensors = [
        make_tensor("x", 8, "A", "B"),
        make_tensor("w", 4, "B", ("A", "k")),
        make_tensor("c", 1, "C", ("C", 1)),
        make_tensor("q", 1, "A", ("A", "q")),
    ]
    graph = make_graph(
        {"A": 3, "B": 4, "C": 6},
        tensors,
        devices=2,
        link=Link(latency=1, units_per_tick=4),
        delays={DelayName("k"): Delay(max=2), DelayName("q"): Delay()},
    )
    return graph.replace(**fields)


CYCLE: Certificate = {"ops": ["A", "B"], "edges": [0, 1]}


def test_a_cycle_proves_its_work_over_its_delay_rounded_up() -> None:
    """(3 + 4) / 2, rounded up, is 4; C's own loop takes 6."""
    graph = loop_graph()
    assert_proves(graph, "cycle", 4, CYCLE)
    assert_proves(graph, "cycle", 6, {"ops": ["C"], "edges": [2]})


def test_a_cycle_counts_transfers_that_no_placement_avoids() -> None:
    """A on d0, B on d1: x takes 1 + 2 ticks, w 1 + 1: (3 + 3 + 4 + 2) / 2 = 6."""
    ops = [make_op("A", 3, devices=["d0"]), make_op("B", 4, devices=["d1"])]
    graph = loop_graph(ops=(*ops, make_op("C", 6)))
    assert_proves(graph, "cycle", 6, CYCLE)


def test_a_cycle_takes_the_fastest_devices_and_counts_lag() -> None:
    """A: min(9, 2) + lag 5, over one delay."""
    tensor = make_tensor("x", 8, "A", ("A", 1, 5))
    graph = make_graph([make_op("A", {"d0": 9, "d1": 2})], [tensor], devices=2)
    assert_proves(graph, "cycle", 7, {"ops": ["A"], "edges": [0]})


def test_a_cycle_without_delay_forbids_every_period() -> None:
    uses = [make_tensor("x", 1, "A", "B"), make_tensor("y", 1, "B", "A")]
    graph = make_graph({"A": 1, "B": 0}, uses)
    assert verdict(graph, "cycle", 10**9, CYCLE) is Verdict.ACCEPTED
    idle = make_graph({"A": 0, "B": 0}, uses)
    assert verdict(idle, "cycle", 1, CYCLE) is Verdict.REFUSED


@pytest.mark.parametrize(
    "changed",
    [
        {"edges": [0]},
        {"edges": [1, 0]},
        {"edges": [0, 2]},
        {"edges": [0, 9]},
        {"edges": [0, -3]},
        {"edges": [0, True]},
        {"edges": [0, "1"]},
        {"edges": []},
        {"edges": None},
        {"edges": "01"},
        {"ops": ["B", "A"]},
        {"ops": ["A"]},
        {"ops": ["A", "C"]},
        {"ops": None},
        {"edges": [0, 1, 3], "ops": ["A", "B", "A"]},
    ],
)
def test_each_tampered_field_of_a_cycle_is_refused(changed: Certificate) -> None:
    assert verdict(loop_graph(), "cycle", 4, CYCLE | changed) is Verdict.REFUSED


def test_a_cycle_of_another_graph_is_refused() -> None:
    graph = loop_graph(delays={DelayName("k"): Delay(max=3), DelayName("q"): Delay()})
    assert verdict(graph, "cycle", 4, CYCLE) is Verdict.REFUSED


def test_a_cycle_on_one_device_or_with_two_transfers() -> None:
    """Plain: (4 + 4) / 2 = 4. On one device T >= 8; on two (8 + 2 * 4) / 2 = 8."""
    graph = make_graph(
        {"A": 4, "B": 4},
        [make_tensor("x", 4, "A", ("B", 1)), make_tensor("y", 4, "B", ("A", 1))],
        devices=2,
        link=Link(units_per_tick=1),
    )
    assert_proves(graph, "cycle", 4, CYCLE)
    assert_proves(graph, "cycle", 8, CYCLE | {"transfers": True})
    assert not is_schedulable(graph, 7)
    assert is_schedulable(graph, 8)
    tampered = CYCLE | {"transfers": 2}
    assert verdict(graph, "cycle", 8, tampered) is Verdict.REFUSED
    free = graph.replace(ops=(make_op("A", 4), make_op("B", 4, devices=[])))
    extended = CYCLE | {"transfers": True}
    assert verdict(free, "cycle", 5, extended) is Verdict.REFUSED


def test_ops_that_must_share_a_device_cannot_be_apart() -> None:
    """Then only the load of one device remains: 8."""
    graph = make_graph(
        {"A": 4, "B": 4},
        [make_tensor("x", 9, "A", ("B", 1)), make_tensor("y", 9, "B", ("A", 1))],
        devices=2,
        colocate=((OpId("A"), OpId("B")),),
    )
    assert_proves(graph, "cycle", 8, CYCLE | {"transfers": True})


@pytest.mark.parametrize("latency", [0, 1])
def test_a_cycle_without_work_or_delay_proves_nothing(latency: int) -> None:
    """On one device it takes no time; on two with a latency it could not run."""
    graph = make_graph(
        {"A": 0, "B": 0},
        [make_tensor("x", 1, "A", "B"), make_tensor("y", 1, "B", "A")],
        devices=2,
        link=Link(latency=latency),
    )
    extended = CYCLE | {"transfers": True}
    assert verdict(graph, "cycle", 1, extended) is Verdict.REFUSED
    barred = (make_op("A", 0, devices=["d0"]), make_op("B", 0, devices=["d1"]))
    apart = graph.replace(ops=barred)
    answer = verdict(apart, "cycle", 1, extended)
    assert answer is (Verdict.ACCEPTED if latency else Verdict.REFUSED)


def test_a_cycle_may_pass_through_an_op_without_a_device() -> None:
    """A and B take 8 on one device; on two, T >= 8 / 2 and the way by H is free.

    Its two edges may be all that crosses, so that y's transfer of 4 does not count.
    """
    ops = [make_op("A", 4), make_op("H", 0, devices=[]), make_op("B", 4)]
    tensors = [
        make_tensor("x", 4, "A", ("H", 1)),
        make_tensor("z", 4, "H", "B"),
        make_tensor("y", 4, "B", ("A", 1)),
    ]
    link = Link(units_per_tick=1)
    graph = make_graph(ops, tensors, devices=2, link=link)
    cycle = {"ops": ["A", "H", "B"], "edges": [0, 1, 2], "transfers": True}
    assert_proves(graph, "cycle", 4, cycle)
    alone = make_graph(
        [make_op("H", 6, devices=[])], [make_tensor("x", 1, "H", ("H", 1))]
    )
    loop_on_h = {"ops": ["H"], "edges": [0], "transfers": True}
    assert_proves(alone, "cycle", 6, loop_on_h)


def test_work_is_shared_by_the_devices_that_can_do_it() -> None:
    """13 ticks on two devices; A and B, if confined to d0, take 7 there."""
    graph = loop_graph()
    everything = {"ops": ["A", "B", "C"], "devices": ["d0", "d1"]}
    assert_proves(graph, "resource", 7, everything)
    ops = [make_op("A", 3, devices=["d0"]), make_op("B", 5, devices=["d0"])]
    confined = loop_graph(ops=(*ops, make_op("C", 6)))
    assert_proves(confined, "resource", 8, {"ops": ["A", "B"], "devices": ["d0"]})


@pytest.mark.parametrize(
    "changed",
    [
        {"devices": ["d0"]},
        {"devices": ["d0", "d0"]},
        {"devices": ["d0", "d9"]},
        {"devices": [0, 1]},
        {"devices": []},
        {"devices": None},
        {"ops": ["A", "B"]},
        {"ops": ["A", "B", "C", "A"]},
        {"ops": ["A", "B", "Z"]},
        {"ops": ["A", "B", ["C"]]},
        {"ops": []},
        {"ops": None},
        {"group": True},
    ],
)
def test_each_tampered_field_of_a_resource_bound_is_refused(
    changed: Certificate,
) -> None:
    everything = {"ops": ["A", "B", "C"], "devices": ["d0", "d1"]}
    assert verdict(loop_graph(), "resource", 7, everything | changed) is Verdict.REFUSED


def test_what_must_share_a_device_is_not_shared_out() -> None:
    """The longest op takes 6; A and B, joined through D, take 3 + 4."""
    graph = loop_graph()
    assert_proves(graph, "resource", 6, {"ops": ["C"], "group": True})
    A, B, C = map(OpId, "ABC")  # noqa: N806 - ids
    tied = loop_graph(colocate=((A, C), (C, B)))
    assert_proves(tied, "resource", 7, {"ops": ["A", "B"], "group": True})
    ops = [make_op("A", {"d0": 3, "d1": 9}), make_op("B", {"d0": 9, "d1": 4})]
    slow = tied.replace(ops=(*ops, make_op("C", 0)))
    assert_proves(slow, "resource", 12, {"ops": ["A", "B"], "group": True})


def test_an_op_without_a_device_loads_none() -> None:
    graph = make_graph([make_op("H", 9, devices=[])])
    for certificate in (
        {"ops": ["H"], "group": True},
        {"ops": ["H"], "devices": ["d0"]},
    ):
        assert verdict(graph, "resource", 1, certificate) is Verdict.REFUSED


def unequal() -> Graph:
    """Build three ops of 6 ticks on d0 and 2 on d1, which is three times as fast."""
    ops = [make_op(name, {"d0": 6, "d1": 2}) for name in "ABC"]
    return make_graph([*ops, make_op("H", 50, devices=[])], devices=2)


WEIGHTS: Certificate = {"weights": {"d0": 1, "d1": 3}, "denominator": 4}


def test_weights_on_devices_bound_their_highest_load() -> None:
    """Each op weighs min(1 * 6, 3 * 2) / 4 = 3/2: together 9/2, so T >= 5."""
    assert_proves(unequal(), "assignment", 5, WEIGHTS)
    assert_proves(
        unequal(), "resource", 3, {"ops": list("ABC"), "devices": ["d0", "d1"]}
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"weights": {"d0": 1, "d1": 4}},
        {"weights": {"d0": 2, "d1": 2}},
        {"weights": {"d0": -1, "d1": 5}},
        {"weights": {"d0": 1, "d2": 3}},
        {"weights": {"d0": 1.0, "d1": 3}},
        {"weights": {"d1": 3}},
        {"weights": ["d0", "d1"]},
        {"denominator": 3},
        {"denominator": 0},
        {"denominator": "4"},
        {"denominator": None},
    ],
)
def test_each_tampered_field_of_an_assignment_is_refused(changed: Certificate) -> None:
    assert verdict(unequal(), "assignment", 5, WEIGHTS | changed) is Verdict.REFUSED


def boxes() -> Graph:
    """Build items of 5, 5, 2 + 3 (colocated) and 1 on two devices."""
    return make_graph(
        {"A": 5, "B": 5, "C": 2, "D": 3, "E": 1},
        devices=2,
        colocate=((OpId("C"), OpId("D")),),
    )


PACKING: Certificate = {
    "refuted": 9,
    "items": [["A"], ["B"], ["C", "D"]],
    "devices": ["d0", "d1"],
    "weights": {"5": 1, "1": 0},
    "capacity": 1,
}


def test_items_that_do_not_fit_prove_a_longer_period() -> None:
    """Three items of 5 ticks: within 9 ticks a device takes one, so T >= 10."""
    graph = boxes()
    assert_proves(graph, "packing", 10, PACKING)
    five = make_graph(dict.fromkeys("ABCDE", 5), devices=2)
    single: Certificate = {k: v for k, v in PACKING.items() if k != "items"}
    single |= {"ops": list("ABCDE"), "refuted": 14, "capacity": 2}
    assert_proves(five, "packing", 15, single)


@pytest.mark.parametrize(
    "changed",
    [
        {"refuted": 8},
        {"refuted": 10},
        {"refuted": -1},
        {"refuted": "9"},
        {"capacity": 0},
        {"capacity": 2},
        {"capacity": None},
        {"weights": {"5": 0}},
        {"weights": {"5": 2}},
        {"weights": {"5": -1}},
        {"weights": {"5": "1"}},
        {"weights": {}},
        {"weights": None},
        {"devices": ["d0"]},
        {"devices": ["d0", "d1", "d1"]},
        {"items": [["A"], ["B"]]},
        {"items": [["A"], ["B"], ["C"], ["D"]]},
        {"items": [["A"], ["B"], ["C", "E"]]},
        {"items": [["A"], ["B"], ["A"]]},
        {"items": [["A"], ["B"], ["Z"]]},
        {"items": [["A"], ["B"], []]},
        {"items": ["A", "B"]},
        {"items": 3},
    ],
)
def test_each_tampered_field_of_a_packing_is_refused(changed: Certificate) -> None:
    assert verdict(boxes(), "packing", 10, PACKING | changed) is Verdict.REFUSED


def test_an_item_of_unequal_durations_has_no_weight() -> None:
    graph = boxes()
    ops = (make_op("A", {"d0": 5, "d1": 1}), *graph.ops[1:])
    unlike = graph.replace(ops=ops)
    assert verdict(unlike, "packing", 10, PACKING) is Verdict.REFUSED


def test_a_knapsack_too_large_to_check_is_neither_accepted_nor_refused() -> None:
    """40 kinds of many digits each, every weight a little off its duration."""
    rng = Random(1)
    durations = {f"v{i}": rng.randrange(10**12, 2 * 10**12) for i in range(40)}
    graph = make_graph(durations, devices=2)
    weights = {str(t): t // 1000 + rng.randrange(9) for t in durations.values()}
    certificate: Certificate = {
        "refuted": sum(durations.values()) // 2,
        "ops": list(durations),
        "devices": ["d0", "d1"],
        "weights": weights,
        "capacity": (sum(weights.values()) - 1) // 2,
    }
    bound = certificate["refuted"] + 1
    assert verdict(graph, "packing", bound, certificate) is Verdict.NOT_CHECKABLE


PATH: Certificate = {"ops": ["A", "B"], "edges": [0]}


def test_a_path_bounds_the_makespan_and_with_flush_the_period() -> None:
    """A then B: 3 + 4 ticks; C alone: 6."""
    graph = loop_graph(flush=True)
    assert_proves(graph, "path", 7, PATH)
    assert_proves(graph, "path", 6, {"ops": ["C"], "edges": []})
    assert_proves(loop_graph(), "path", 7, PATH, "makespan")


@pytest.mark.parametrize(
    "changed",
    [
        {"edges": [1], "ops": ["B", "A"]},
        {"edges": [0, 1], "ops": ["A", "B", "A"]},
        {"edges": [0, 0], "ops": ["A", "B", "B"]},
        {"edges": []},
        {"edges": [], "ops": []},
        {"edges": [], "ops": ["Z"]},
        {"edges": [], "ops": [7]},
        {"ops": ["A"]},
        {"ops": ["B", "A"]},
    ],
)
def test_each_tampered_field_of_a_path_is_refused(changed: Certificate) -> None:
    graph = loop_graph(flush=True)
    assert verdict(graph, "path", 7, PATH | changed) is Verdict.REFUSED


def test_a_path_says_nothing_of_the_period_where_iterations_overlap() -> None:
    assert verdict(loop_graph(), "path", 7, PATH) is Verdict.REFUSED


def test_a_loop_says_nothing_of_the_makespan_but_a_load_does() -> None:
    """A, B and C take 13 ticks: on two devices one of them works 7 in a row."""
    graph = loop_graph()
    for objective in ("communication", "staleness", "peak_memory", "makespan"):
        assert verdict(graph, "cycle", 0, CYCLE, objective) is Verdict.REFUSED
    load = {"ops": ["A", "B", "C"], "devices": ["d0", "d1"]}
    assert_proves(graph, "resource", 7, load, "makespan")
    assert verdict(graph, "resource", 0, load, "staleness") is Verdict.REFUSED


def test_a_solvers_word_cannot_be_checked() -> None:
    graph = loop_graph()
    word = {"solver": "cpsat", "refuted": 3}
    assert verdict(graph, "exhaustion", 4, word) is Verdict.NOT_CHECKABLE
    assert verdict(graph, "exhaustion", 4, None) is Verdict.NOT_CHECKABLE


def test_an_unknown_kind_or_a_lost_certificate_proves_nothing() -> None:
    graph = loop_graph()
    assert verdict(graph, "cycle", 0, None) is Verdict.NOT_CHECKABLE
    assert verdict(graph, "foo", 0, None) is Verdict.REFUSED
    assert verdict(graph, "foo", 0, CYCLE) is Verdict.REFUSED


def test_a_proof_of_another_value_is_refused() -> None:
    proof = Proof(kind="cycle", value=3, certificate=CYCLE)
    assert check_proof(loop_graph(), "period", 4, proof).status is Verdict.REFUSED
    silent = Proof(kind="cycle", certificate=CYCLE)
    assert check_proof(loop_graph(), "period", 4, silent).accepted
