"""Bounds against optima, hand arithmetic, random schedules and the checker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from factories import make_graph, make_op, make_tensor, training_chain
from random_cases import random_case

from lpsched.analysis.bounds import (
    Bound,
    infeasible_cycle,
    objective_bounds,
    period_bound,
    period_bounds,
)
from lpsched.analysis.iteration_bound import LoopWithoutDelayError
from lpsched.analysis.metrics import measure
from lpsched.analysis.packing_bound import raise_by_packing
from lpsched.core.graph import DelayName, Dependence, Graph, Link, OpId, Resident
from lpsched.core.io import load_graph
from lpsched.core.result import INTEGER_OBJECTIVES, Proof
from lpsched.errors import OutOfTimeError
from lpsched.verify.certificate import Verdict, check_proof

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


def optima(family: str) -> dict[str, Any]:
    """Proved optima of a family of reference graphs."""
    text = (INSTANCES / family / "optima.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def verdict(graph: Graph, bound: Bound) -> Verdict:
    """What the independent checker says of a bound."""
    return check_proof(graph, bound.objective, bound.value, bound.proof).status


def kinds(graph: Graph) -> dict[str, int]:
    """Greatest period bound of each kind, every certificate accepted."""
    found: dict[str, int] = {}
    for bound in period_bounds(graph):
        assert verdict(graph, bound) is Verdict.ACCEPTED
        found.setdefault(bound.proof.kind, bound.value)
    return found


def order(src: str, dst: str, delay: int = 0) -> Dependence:
    """Order without data."""
    return Dependence(src=OpId(src), dst=OpId(dst), delay=delay)


def test_work_is_shared_by_the_devices_and_rounded_up() -> None:
    """3 + 3 + 4 ticks on 3 devices: ⌈10 / 3⌉; the longest op takes as long."""
    graph = make_graph({"a": 3, "b": 3, "c": 4}, devices=3)
    bound = period_bound(graph)
    assert (bound.value, bound.proof.kind) == (4, "resource")


def test_ops_tied_to_some_devices_bound_these_alone() -> None:
    """Of 12 ticks on 3 devices, 10 are tied to d0 and d1."""
    graph = make_graph(
        [
            make_op("a", 5, devices=["d0", "d1"]),
            make_op("b", 3, devices=["d1"]),
            make_op("c", 2, devices=["d1"]),
            make_op("d", 2),
        ],
        devices=3,
    )
    certificates = [bound.proof.certificate or {} for bound in period_bounds(graph)]
    values = [bound.value for bound in period_bounds(graph)]
    assert {"ops": ["b", "c"], "devices": ["d1"]} in certificates
    assert {"ops": ["a", "b", "c"], "devices": ["d0", "d1"]} in certificates
    assert values[0] == 5


def test_colocated_ops_bound_the_period_by_their_sum() -> None:
    """a, b, c share a device by two overlapping groups: 2 + 3 + 4."""
    graph = make_graph(
        {"a": 2, "b": 3, "c": 4, "d": 1},
        devices=4,
        colocate=((OpId("a"), OpId("b")), (OpId("b"), OpId("c"))),
    )
    bound = period_bound(graph)
    assert bound.value == 9
    assert bound.proof.certificate == {"ops": ["a", "b", "c"], "group": True}


def test_unequal_devices_are_bounded_by_the_assignment() -> None:
    """Three ops of 1 tick on d0 or 2 on d1: in T ticks they run T + T/2 of them."""
    times = {"d0": 1, "d1": 2}
    graph = make_graph([make_op(f"v{i}", times) for i in range(3)], devices=2)
    assert kinds(graph) == {"resource": 2}
    graph = make_graph([make_op(f"v{i}", times) for i in range(30)], devices=2)
    assert kinds(graph) == {"assignment": 20, "resource": 15}


def test_indivisible_ops_are_bounded_by_packing() -> None:
    """Five ops of 10 on two devices: the load says 25, but one device holds three."""
    graph = make_graph({f"v{i}": 10 for i in range(5)}, devices=2)
    assert kinds(graph) == {"packing": 30, "resource": 25}


@pytest.mark.parametrize(
    ("devices", "optimum"),
    [(6, 7732723712), (7, 6705119232), (8, 5797052416), (9, 5189402624)],
)
def test_packing_proves_the_best_known_periods_of_vgg16(
    devices: int, optimum: int
) -> None:
    """VGG-16, I in two parts: design.md section 5 names these best periods.

    MACs per layer times F, W, and I but for the first layer; all convolutions but the
    first are multiples of 231,211,008.
    """
    unit = 231_211_008
    layers = [86_704_128, *(unit * n for n in (8, 4, 8, 4, 8, 8, 4, 8, 8, 2, 2, 2))]
    layers += [102_760_448, 16_777_216, 4_096_000]
    ops: dict[str, int] = {}
    for i, work in enumerate(layers):
        ops |= {f"F{i}": work, f"W{i}": work}
        if i:
            ops |= {f"I{i}.0": work // 2, f"I{i}.1": work // 2}
    graph = make_graph(ops, devices=devices)
    assert kinds(graph)["packing"] == optimum


def test_items_that_fit_are_not_refuted() -> None:
    """6 + 4, 5 + 5, 7 + 3 fill three devices of 10 exactly."""
    items = {6: 1, 4: 1, 5: 2, 7: 1, 3: 1}
    assert raise_by_packing(items, num_devices=3, least=10) is None
    refuted = raise_by_packing(items, num_devices=3, least=9)
    assert refuted is not None
    assert refuted.period == 9


def two_op_ring(*, devices: int) -> Graph:
    """A (3) and B (3) in a ring of delay 2, transfers of 2 ticks."""
    return make_graph(
        {"A": 3, "B": 3},
        [make_tensor("x", 1, "A", "B"), make_tensor("y", 1, "B", ("A", 2))],
        devices=devices,
        link=Link(latency=2),
    )


def test_a_cycle_too_long_for_one_device_pays_for_two_transfers() -> None:
    """On one device T >= 6; on two, 2 T >= 3 + 3 + 2 + 2."""
    assert period_bound(two_op_ring(devices=1)).value == 6
    bound = period_bound(two_op_ring(devices=2))
    assert bound.value == 5
    assert (bound.proof.certificate or {})["transfers"] is True
    assert verdict(two_op_ring(devices=2), bound) is Verdict.ACCEPTED


def test_a_cycle_too_long_for_two_devices_pays_for_three_transfers() -> None:
    """Three ops of 10, delay 3, transfers of 4: 30, max(15, 38/3) or 42/3 ticks."""
    graph = make_graph(
        {"A": 10, "B": 10, "C": 10},
        [
            make_tensor("x", 1, "A", "B"),
            make_tensor("y", 1, "B", "C"),
            make_tensor("z", 1, "C", ("A", 3)),
        ],
        devices=3,
        link=Link(latency=4),
    )
    assert kinds(graph) == {"cycle": 14, "resource": 10}


def test_with_flush_the_longest_path_bounds_the_period() -> None:
    graph = make_graph(
        {"a": 2, "b": 3, "c": 4},
        dependences=(order("a", "b"), order("b", "c"), order("c", "a", 1)),
        devices=3,
        flush=True,
    )
    assert kinds(graph)["path"] == 9
    assert "path" not in kinds(graph.replace(flush=False))


def pipeline(microbatches: int) -> Graph:
    """F (1) on d0, then G (2) on d1, then B (1) on d0, for each microbatch."""
    ops, orders = [], []
    for m in range(microbatches):
        for kind, ticks, device in (("F", 1, "d0"), ("G", 2, "d1"), ("B", 1, "d0")):
            ops.append(make_op(f"{kind}@{m}", ticks, devices=[device]))
        orders += [order(f"F@{m}", f"G@{m}"), order(f"G@{m}", f"B@{m}")]
    return make_graph(ops, dependences=tuple(orders), devices=2, flush=True)


def test_work_waits_for_what_precedes_it_and_something_follows() -> None:
    """The 6 ticks on d1 begin after an F and end before a B: 1 + 6 + 1, no less.

    The schedule F F F on d0, G G G from tick 1, each B after its G takes 8.
    """
    graph = pipeline(3)
    assert kinds(graph) == {"window": 8, "resource": 6, "path": 4}
    bound = objective_bounds(graph, "makespan")[0]
    assert (bound.value, bound.proof.kind) == (8, "window")
    assert verdict(graph, bound) is Verdict.ACCEPTED


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"head": 2}, "may start after 1, not 2"),
        ({"tail": 2}, "less than 2 may follow"),
        ({"devices": ["d0"]}, "may also run elsewhere"),
        ({"ops": []}, "at least one op"),
        ({"ops": ["G@0", "G@0"]}, "counted twice"),
    ],
)
def test_a_window_with_a_false_claim_is_refused(
    change: dict[str, Any], reason: str
) -> None:
    graph = pipeline(3)
    proof = objective_bounds(graph, "makespan")[0].proof
    forged = Proof(kind="window", certificate={**(proof.certificate or {}), **change})
    answer = check_proof(graph, "makespan", 8, forged)
    assert answer.status is Verdict.REFUSED
    assert reason in answer.reasons[0]
    steady = check_proof(graph.replace(flush=False), "period", 8, proof)
    assert steady.reasons == ("a window bounds the period only with flush",)


def test_a_graph_without_work_has_a_period_of_one() -> None:
    graph = make_graph({"a": 0})
    bound = period_bound(graph)
    assert (bound.value, bound.proof.kind) == (1, "trivial")
    assert period_bounds(graph) == ()


def test_a_loop_without_delay_is_infeasible_and_named() -> None:
    graph = make_graph({"a": 1, "b": 2}, dependences=(order("a", "b"), order("b", "a")))
    proof = infeasible_cycle(graph)
    assert proof is not None
    assert (proof.kind, proof.value) == ("cycle", None)
    assert sorted((proof.certificate or {})["ops"]) == ["a", "b"]
    assert check_proof(graph, "period", 10**9, proof).status is Verdict.ACCEPTED
    with pytest.raises(LoopWithoutDelayError):
        period_bounds(graph)
    assert infeasible_cycle(training_chain(3)) is None


@pytest.mark.parametrize("seed", range(10))
def test_chains_of_eight_layers_are_bounded_by_their_optima(seed: int) -> None:
    """Proved optima for each largest delay, `instances/chains8/optima.json`."""
    graph = load_graph(INSTANCES / "chains8" / f"chain8-s{seed}.json")
    for most, optimum in optima("chains8")[graph.name].items():
        limited = graph.with_delay_max(int(most))
        period = optimum["period"]
        assert 0.9 * period <= max(kinds(limited).values()) <= period
        for objective in ("communication", "staleness"):
            for bound in objective_bounds(limited, objective, period=period):
                assert bound.value <= optimum[objective]


@pytest.mark.parametrize("name", sorted(optima("small")))
def test_small_reference_graphs_are_bounded_by_their_optima(name: str) -> None:
    graph = load_graph(INSTANCES / "small" / f"{name}.json")
    optimum = optima("small")[name]
    assert period_bound(graph).value == optimum["period"]
    for objective in ("communication", "staleness"):
        for bound in objective_bounds(graph, objective, period=optimum["period"]):
            assert bound.value <= optimum[objective]


@pytest.mark.parametrize("seed", range(200))
def test_no_bound_exceeds_what_a_valid_schedule_measures(seed: int) -> None:
    graph, schedule = random_case(seed, max_ops=6 + seed % 4)
    figures = measure(graph, schedule).figures()
    for objective in INTEGER_OBJECTIVES:
        for period in (None, schedule.period):
            for bound in objective_bounds(graph, objective, period=period):
                assert bound.objective == objective
                assert bound.value <= int(figures[objective])
                assert verdict(graph, bound) is Verdict.ACCEPTED


def test_bounds_come_greatest_first() -> None:
    values = [bound.value for bound in period_bounds(two_op_ring(devices=2))]
    assert values == sorted(values, reverse=True)


def test_consumers_that_may_not_join_the_producer_force_traffic() -> None:
    """X goes to d1 and to d2 from wherever A runs; y need not move."""
    graph = make_graph(
        [
            make_op("A", 1, devices=["d0", "d3"]),
            make_op("B", 1, devices=["d1"]),
            make_op("C", 1, devices=["d1"]),
            make_op("D", 1, devices=["d2"]),
        ],
        [make_tensor("x", 7, "A", "B", "C", "D"), make_tensor("y", 9, "B", "C")],
        devices=4,
    )
    assert [b.value for b in objective_bounds(graph, "communication")] == [14]


def test_work_beyond_one_device_forces_joined_ops_apart() -> None:
    """9 ticks at T = 4 need 3 devices: two arrivals, of the smallest tensors."""
    graph = make_graph(
        {"a": 3, "b": 3, "c": 3},
        [make_tensor("x", 5, "a", "b"), make_tensor("y", 8, "b", "c")],
        devices=3,
    )
    values = [b.value for b in objective_bounds(graph, "communication", period=4)]
    assert values == [13, 0]
    assert objective_bounds(graph, "communication", period=9)[0].value == 0


def test_loops_need_delays_at_a_given_period() -> None:
    """F1 F2 I2 W1 take 8 ticks: 2 iterations of 4, or 3 with two transfers of 1."""
    (bound,) = objective_bounds(training_chain(2), "staleness", period=4)
    assert bound.value == 1
    chain = training_chain(2, link=Link(latency=1))
    (bound,) = objective_bounds(chain, "staleness", period=4)
    assert bound.value == 2
    assert set((bound.proof.certificate or {})["loops"]) == {"d1"}
    (bound,) = objective_bounds(chain, "staleness", period=8)
    assert bound.value == 0


def test_a_staleness_bound_ends_when_it_is_told_to() -> None:
    with pytest.raises(OutOfTimeError):
        objective_bounds(training_chain(2), "staleness", period=4, over=lambda: True)


def test_without_a_period_the_minima_of_the_delays_bound_the_staleness() -> None:
    chain = training_chain(3, delay_max=5)
    first = DelayName("d1")
    delays = {
        name: (delay if name != first else type(delay)(min=3, max=5))
        for name, delay in chain.delays.items()
    }
    (bound,) = objective_bounds(chain.replace(delays=delays), "staleness")
    assert bound.value == 2


def test_a_period_that_no_delay_helps_gives_no_staleness_bound() -> None:
    """W1 follows itself at delay 1 and takes 2 ticks."""
    assert objective_bounds(training_chain(2), "staleness", period=1) == ()


def test_operands_results_and_residents_of_an_op_must_fit() -> None:
    """B holds x (5) of two iterations, its own y (3), the residents of its group."""
    graph = make_graph(
        {"A": 1, "B": 2},
        [make_tensor("x", 5, "A", ("B", 0), ("B", 2)), make_tensor("y", 3, "B")],
        colocate=((OpId("A"), OpId("B")),),
        residents=(Resident(size=10, ops=(OpId("A"),)),),
        devices=2,
    )
    bound = objective_bounds(graph, "peak_memory")[0]
    assert bound.value == 5 + 5 + 3 + 10
    assert (bound.proof.certificate or {})["op"] == "B"


def test_memory_is_bounded_on_average_over_the_devices() -> None:
    """X lives 4 + 4 ticks of a period of 4: 2 copies of 6, and residents of 9, on 3."""
    graph = make_graph(
        {"A": 4, "B": 4},
        [make_tensor("x", 6, "A", "B")],
        residents=(Resident(size=9, ops=(OpId("A"), OpId("B"))),),
        devices=3,
    )
    bounds = objective_bounds(graph, "peak_memory", period=4)
    assert {bound.proof.kind: bound.value for bound in bounds}["average"] == 7


def test_path_and_work_bound_the_makespan() -> None:
    """Path 2 + 3; work 10 on one device."""
    graph = make_graph({"a": 2, "b": 3, "c": 5}, dependences=(order("a", "b"),))
    bounds = objective_bounds(graph, "makespan")
    assert (bounds[0].value, bounds[0].proof.kind) == (10, "resource")
    assert {b.proof.kind: b.value for b in bounds}["path"] == 5


def test_an_unknown_objective_is_refused() -> None:
    with pytest.raises(ValueError, match="no objective 'beauty'"):
        objective_bounds(training_chain(2), "beauty")
