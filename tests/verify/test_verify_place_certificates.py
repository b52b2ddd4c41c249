"""Certificates of communication, memory and staleness, by hand and tampered with."""

from __future__ import annotations

from typing import Any

import pytest
from factories import make_graph, make_op, make_tensor
from verdicts import Certificate, assert_proves, verdict

from lpsched.core.graph import Delay, DelayName, Graph, Link, OpId, Resident
from lpsched.core.result import Proof
from lpsched.verify import Verdict, check_proof


def confined() -> Graph:
    """Build A on d0 or d1, whose x (5) goes to B on d2, C on d0 or d2, D on d3."""
    ops = [
        make_op("A", 1, devices=["d0", "d1"]),
        make_op("B", 1, devices=["d2"]),
        make_op("C", 1, devices=["d0", "d2"]),
        make_op("D", 1, devices=["d3"]),
        make_op("H", 1, devices=[]),
    ]
    return make_graph(
        ops,
        [make_tensor("x", 5, "A", "B", "C", "D", "H"), make_tensor("h", 9, "H", "B")],
        devices=4,
    )


def test_consumers_barred_from_the_producers_device_cost_a_transfer_each() -> None:
    """B and D need x on d2 and d3; C may share d2 with B."""
    assert_proves(confined(), "confined", 10, {"copies": {"x": 2}}, "communication")
    assert_proves(confined(), "confined", 5, {"copies": {"x": 1}}, "communication")


@pytest.mark.parametrize(
    "copies",
    [{"x": 3}, {"h": 1}, {"y": 1}, {"x": -1}, {"x": "2"}, {"x": True}, 2, None],
)
def test_copies_that_nothing_forces_are_refused(copies: Any) -> None:  # noqa: ANN401
    certificate = {"copies": copies}
    answer = verdict(confined(), "confined", 10, certificate, "communication")
    assert answer is Verdict.REFUSED


def chain() -> Graph:
    """Build v0 -> v1 -> v2 -> v3 of 4 ticks each, sizes 7, 2, 5; and u apart."""
    names = ["v0", "v1", "v2", "v3"]
    tensors = [
        make_tensor(f"x{i}", size, names[i], names[i + 1])
        for i, size in enumerate([7, 2, 5])
    ]
    return make_graph(dict.fromkeys([*names, "u"], 4), tensors, devices=4)


CONNECTED: Certificate = {"period": 6, "parts": [{"ops": ["v0", "v1", "v2", "v3"]}]}


def test_joined_ops_too_long_for_a_device_send_their_smallest_tensors() -> None:
    """16 ticks need three devices at T = 6: two arrivals, 2 + 5 at least."""
    graph = chain()
    assert_proves(graph, "connected", 7, CONNECTED, "communication")
    assert_proves(graph, "connected", 2, CONNECTED | {"period": 8}, "communication")
    halves = [{"ops": ["v0", "v1"]}, {"ops": ["v2", "v3"]}]
    assert_proves(
        graph, "connected", 12, CONNECTED | {"parts": halves}, "communication"
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"period": 8},
        {"period": 0},
        {"period": None},
        {"parts": [{"ops": ["v0", "v1", "v2"]}]},
        {"parts": [{"ops": ["v0", "v1", "v2", "v3", "u"]}]},
        {"parts": [{"ops": ["v0", "v1", "v3"]}]},
        {"parts": [{"ops": ["v0", "v1", "v2", "v3"]}, {"ops": ["v3"]}]},
        {"parts": [{"ops": ["v0", "v1", "v2", "z"]}]},
        {"parts": [{"ops": []}]},
        {"parts": [{}]},
        {"parts": ["v0"]},
        {"parts": None},
    ],
)
def test_each_tampered_field_of_connected_ops_is_refused(changed: Certificate) -> None:
    certificate = CONNECTED | changed
    answer = verdict(chain(), "connected", 7, certificate, "communication")
    assert answer is Verdict.REFUSED


def test_a_certificate_for_shorter_periods_is_no_proof_at_a_longer_one() -> None:
    proof = Proof(kind="connected", certificate=CONNECTED)
    for period, accepted in ((5, True), (6, True), (7, False)):
        answer = check_proof(chain(), "communication", 7, proof, period=period)
        assert answer.accepted is accepted


def kept() -> Graph:
    """Build A -> x -> B, used at once and 2 iterations later; B makes y for itself."""
    return make_graph(
        {"A": 3, "B": 2, "Z": 0},
        [
            make_tensor("x", 5, "A", "B", ("B", 2), ("B", "k")),
            make_tensor("y", 7, "B", ("B", "k")),
            make_tensor("n", 4, "A", ("B", "k"), "B"),
        ],
        devices=2,
        delays={DelayName("k"): Delay()},
        residents=(
            Resident(size=11, ops=(OpId("B"),)),
            Resident(size=13, ops=(OpId("A"),)),
        ),
    )


WORKING_SET: Certificate = {
    "op": "B",
    "copies": {"x": 2, "y": 2, "n": 2},
    "residents": [0],
}


def test_an_op_holds_its_operands_results_and_residents() -> None:
    """11 + 2 * 5 + 2 * 7 + 2 * 4.

    x of now and of 2 iterations ago (k may be 2, too); y just made and an older one;
    n of now and an older one (k >= 1).
    """
    assert_proves(kept(), "working_set", 43, WORKING_SET, "peak_memory")


@pytest.mark.parametrize(
    "changed",
    [
        {"op": "A"},
        {"op": "Z"},
        {"op": "Q"},
        {"op": ["B"]},
        {"copies": {"x": 3, "y": 2, "n": 2}},
        {"copies": {"x": 2, "y": 3, "n": 2}},
        {"copies": {"x": 2, "y": 2}},
        {"copies": {"x": 2, "y": 2, "q": 2}},
        {"copies": []},
        {"residents": []},
        {"residents": [1]},
        {"residents": [0, 0]},
        {"residents": [2]},
        {"residents": [True]},
        {"residents": None},
    ],
)
def test_each_tampered_field_of_a_working_set_is_refused(changed: Certificate) -> None:
    certificate = WORKING_SET | changed
    answer = verdict(kept(), "working_set", 43, certificate, "peak_memory")
    assert answer is Verdict.REFUSED


def test_devices_keep_residents_and_tensors_on_average() -> None:
    """(11 + 13 + (5 * (3 + 2) + 7 * (2 + 2) + 4 * (3 + 2)) / 10) / 2 = 15.65."""
    assert_proves(kept(), "average", 16, {"period": 10}, "peak_memory")
    assert_proves(kept(), "average", 12, {"period": None}, "peak_memory")
    answer = verdict(kept(), "average", 16, {"period": 0}, "peak_memory")
    assert answer is Verdict.REFUSED
    ops = [make_op("H", 1, devices=[])]
    answer = verdict(make_graph(ops, devices=0), "average", 0, {}, "peak_memory")
    assert answer is Verdict.REFUSED


def stale(**fields: Any) -> Graph:  # noqa: ANN401 - any field of Graph
    """Build A (4) -> B (4) -> A with delay k and A -> A with q, minimum 2."""
    graph = make_graph(
        {"A": 4, "B": 4},
        [
            make_tensor("x", 6, "A", "B"),
            make_tensor("w", 4, "B", ("A", "k")),
            make_tensor("s", 4, "A", ("A", "q")),
        ],
        devices=2,
        link=Link(units_per_tick=2),
        delays={DelayName("k"): Delay(), DelayName("q"): Delay(min=2, max=3)},
    )
    return graph.replace(**fields)


LOOPS: Certificate = {"period": 6, "loops": {"k": [0, 1]}}


def test_loops_need_delays_at_a_period() -> None:
    """8 ticks need two devices at T = 6, hence both transfers: (8 + 3 + 2) / 6.

    So k >= 3; q >= 2: staleness 2 + 1. At T = 8 one device will do: k >= 1.
    """
    assert_proves(stale(), "loops", 3, LOOPS, "staleness")
    assert_proves(stale(), "loops", 1, LOOPS | {"period": 8}, "staleness")
    assert_proves(stale(), "loops", 1, {"period": None, "loops": {}}, "staleness")


@pytest.mark.parametrize(
    "changed",
    [
        {"period": 7},
        {"period": None},
        {"period": 0},
        {"loops": {}},
        {"loops": {"q": [0, 1]}},
        {"loops": {"k": [0]}},
        {"loops": {"k": [0, 9]}},
        {"loops": {"k": []}},
        {"loops": {"k": 0}},
        {"loops": {"z": [0, 1]}},
        {"loops": {"q": [2]}},
        {"loops": None},
    ],
)
def test_each_tampered_field_of_loops_is_refused(changed: Certificate) -> None:
    answer = verdict(stale(), "loops", 3, LOOPS | changed, "staleness")
    assert answer is Verdict.REFUSED


def test_a_loop_through_another_unlimited_delay_says_nothing() -> None:
    free = stale(delays={DelayName("k"): Delay(), DelayName("q"): Delay()})
    around = {"period": 6, "loops": {"k": [0, 1, 2]}}
    assert verdict(free, "loops", 1, around, "staleness") is Verdict.REFUSED


def test_a_loop_must_carry_the_delay_it_speaks_of() -> None:
    limited = {DelayName("k"): Delay(max=9), DelayName("q"): Delay(max=9)}
    elsewhere = {"period": 6, "loops": {"q": [0, 1]}}
    graph = stale(delays=limited)
    assert verdict(graph, "loops", 1, elsewhere, "staleness") is Verdict.REFUSED


def test_what_is_made_without_a_device_is_held_nowhere() -> None:
    ops = [make_op("H", 3, devices=[]), make_op("A", 2)]
    graph = make_graph(ops, [make_tensor("x", 4, "H", "A")])
    held = {"op": "A", "copies": {"x": 1}, "residents": []}
    assert verdict(graph, "working_set", 1, held, "peak_memory") is Verdict.REFUSED
    assert_proves(graph, "average", 0, {"period": 1}, "peak_memory")
