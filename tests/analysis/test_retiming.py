"""Retiming against textbooks, brute force and the schedules it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import networkx as nx
import pytest
from bare_graphs import TEXTBOOK, bare_graph, bare_graphs, textbook
from factories import make_graph, make_op, make_tensor, training_chain
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_case

from lpsched.analysis.clock import min_period_retiming, retime_feasible
from lpsched.analysis.critical_path import clock_period
from lpsched.analysis.dataflow import MultiDiGraph
from lpsched.analysis.delays import fix_delays
from lpsched.analysis.iteration_bound import LoopWithoutDelayError, iteration_bound
from lpsched.analysis.path_matrices import path_matrices
from lpsched.analysis.registers import min_register_retiming, num_registers
from lpsched.analysis.retiming import (
    apply_retiming,
    cutset_retiming,
    retime_schedule,
    schedule_from_retiming,
    schedule_retiming,
)
from lpsched.core.graph import Dependence, DeviceId, OpId
from lpsched.errors import InstanceError, UnsupportedError
from lpsched.verify import verify


def legal_retimings(graph: MultiDiGraph, most: int) -> Iterator[MultiDiGraph]:
    """Every retiming with laps 0 .. most, applied."""
    nodes = list(graph)
    for laps in product(range(most + 1), repeat=len(nodes)):
        retiming = dict(zip(nodes, laps, strict=True))
        if all(
            d["delay"] + retiming[v] - retiming[u] >= 0
            for u, v, d in graph.edges(data=True)
        ):
            yield apply_retiming(graph, retiming)


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_graphs_reach_the_clock_period_of_the_book(name: str) -> None:
    graph = textbook(name)
    period, retiming = min_period_retiming(graph)
    assert period == TEXTBOOK[name]["min_clock_period_retiming"]
    assert clock_period(apply_retiming(graph, retiming)) == period
    assert retime_feasible(graph, period - 1) is None


@settings(deadline=None, max_examples=60)
@given(bare_graphs().filter(lambda graph: len(graph) <= 4))
def test_no_retiming_beats_the_least_clock_period(graph: MultiDiGraph) -> None:
    """Laps above 3 cannot help 4 nodes: each step of FEAS moves fewer of them."""
    period, retiming = min_period_retiming(graph)
    assert min(map(clock_period, legal_retimings(graph, 4))) == period
    assert clock_period(apply_retiming(graph, retiming)) == period


@settings(deadline=None, max_examples=60)
@given(bare_graphs().filter(lambda graph: len(graph) <= 3), st.integers(0, 4))
def test_no_retiming_of_a_clock_period_has_fewer_registers(
    graph: MultiDiGraph, more: int
) -> None:
    """Laps above 6 cannot help 3 nodes: no two edges in a row have more delays."""
    period = min_period_retiming(graph)[0] + more
    found = min_register_retiming(graph, period)
    assert found is not None
    count, retiming = found
    best = min(
        num_registers(retimed)
        for retimed in legal_retimings(graph, 6)
        if clock_period(retimed) <= period
    )
    assert count == best == num_registers(apply_retiming(graph, retiming))
    assert clock_period(apply_retiming(graph, retiming)) <= period


@settings(deadline=None, max_examples=100)
@given(bare_graphs(), st.integers(0, 40))
def test_difference_constraints_on_w_and_d_decide_feasibility(
    graph: MultiDiGraph, period: int
) -> None:
    """Leiserson and Saxe's theorem 7, solved apart, agrees with the retiming found."""
    fewest, longest = path_matrices(graph)
    constraints: nx.DiGraph[str] = nx.DiGraph()
    constraints.add_nodes_from(graph)
    for u, v, d in graph.edges(data=True):
        _at_most(constraints, v, u, d["delay"])
    for u, reached in longest.items():
        for v, ticks in reached.items():
            if ticks > period:
                _at_most(constraints, v, u, fewest[u][v] - 1)
    solvable = not nx.negative_edge_cycle(constraints)
    retiming = retime_feasible(graph, period)
    assert (retiming is not None) == solvable
    if retiming is not None:
        assert clock_period(apply_retiming(graph, retiming)) <= period


def _at_most(constraints: nx.DiGraph[str], v: str, u: str, weight: int) -> None:
    """``r(u) - r(v) <= weight``."""
    old = constraints.get_edge_data(v, u, {"weight": weight})["weight"]
    constraints.add_edge(v, u, weight=min(weight, old))


def test_w_and_d_of_the_correlator_are_those_of_the_paper() -> None:
    """Leiserson and Saxe, figure 7 (rows of h and of the first comparator)."""
    fewest, longest = path_matrices(textbook("leiserson_saxe_correlator"))
    names = ["h", "c1", "c2", "c3", "c4", "a5", "a6", "a7"]
    assert [fewest["h"][v] for v in names] == [0, 1, 2, 3, 4, 3, 2, 1]
    assert [longest["h"][v] for v in names] == [0, 3, 6, 9, 12, 16, 13, 10]
    assert [fewest["c1"][v] for v in names] == [0, 0, 1, 2, 3, 2, 1, 0]
    assert [longest["c1"][v] for v in names] == [10, 3, 6, 9, 12, 16, 13, 10]


@settings(deadline=None, max_examples=100)
@given(bare_graphs(), st.data())
def test_a_retiming_keeps_the_delay_of_every_loop_and_the_bound(
    graph: MultiDiGraph, data: st.DataObject
) -> None:
    period = data.draw(st.integers(clock_period(graph) // 2, clock_period(graph)))
    retiming = retime_feasible(graph, period) or {}
    retimed = apply_retiming(graph, retiming)
    for loop in nx.simple_cycles(nx.DiGraph(graph)):
        steps = list(zip(loop, [*loop[1:], loop[0]], strict=True))
        delays = [
            sum(min(d["delay"] for d in g[u][v].values()) for u, v in steps)
            for g in (graph, retimed)
        ]
        assert delays[0] == delays[1]
    assert iteration_bound(retimed).value == iteration_bound(graph).value


def test_an_illegal_retiming_is_refused_with_every_edge() -> None:
    graph = bare_graph({"a": 1, "b": 1, "c": 1}, [("a", "b", 1), ("a", "c", 0)])
    with pytest.raises(InstanceError) as error:
        apply_retiming(graph, {"a": 2, "z": 1})
    assert [fault.path for fault in error.value.faults] == [
        "retiming.z",
        "edge 'a' -> 'b'",
        "edge 'a' -> 'c'",
    ]


def test_a_loop_without_delay_cannot_be_retimed() -> None:
    graph = bare_graph({"a": 1, "b": 0}, [("a", "b", 0), ("b", "a", 0)])
    with pytest.raises(LoopWithoutDelayError):
        retime_feasible(graph, 5)


def test_loops_that_take_no_time_move_as_one() -> None:
    """A and b are tied without delay; the delay behind them splits 4 + 4."""
    graph = bare_graph(
        {"a": 0, "b": 0, "c": 4, "d": 4},
        [("a", "b", 0), ("b", "a", 0), ("b", "c", 2), ("c", "d", 0), ("d", "a", 0)],
    )
    period, retiming = min_period_retiming(graph)
    assert period == 4
    assert retiming["a"] == retiming["b"]


def test_cutset_retiming_moves_delays_across_the_cut() -> None:
    """Parhi, figure 4.5 in small: a cut through one edge each way."""
    graph = bare_graph({"a": 1, "b": 1}, [("a", "b", 0), ("b", "a", 3)])
    retimed = apply_retiming(graph, cutset_retiming(graph, ["b"], 2))
    assert [d["delay"] for _, _, d in retimed.edges(data=True)] == [2, 1]
    with pytest.raises(InstanceError, match="retimed delay -1 < 0"):
        cutset_retiming(graph, ["b"], 4)


def test_pipelining_a_training_chain_takes_two_delays_a_boundary() -> None:
    """LayerPipe: with one stage after layer 1, its d is 1 + 2; one lap a boundary.

    Laps 0 for F1, 1 for layer 2 (forward cut), 2 for W1 (backward cut): the weight of
    layer 1 keeps 3 - 2 = 1 delay, activations to layer 2 get 1, to W1 2.
    """
    delays = {name: 3 if name == "d1" else 1 for name in training_chain(2).delays}
    graph = fix_delays(training_chain(2), delays)
    later = {op.id for op in graph.ops} - {"F1"}
    graph = apply_retiming(graph, cutset_retiming(graph, later, 1))
    graph = apply_retiming(graph, cutset_retiming(graph, ["W1"], 1))
    moved = {f"{edge.src} {edge.dst}": edge.delay for edge in graph.edges}
    assert moved["F1 F2"] == moved["F1 W2"] == moved["I2 W1"] == 1
    assert moved["F1 W1"] == 2
    assert moved["W1 F1"] == moved["W2 F2"] == moved["W2 I2"] == 1
    assert moved["F2 I2"] == moved["F2 W2"] == 0


def test_registers_are_shared_at_a_fan_out() -> None:
    """A's value is used 1 and 3 iterations later: 3 registers, not 4; b's: 1."""
    graph = bare_graph({"a": 1, "b": 1}, [("a", "b", 1), ("a", "a", 3), ("b", "a", 1)])
    assert num_registers(graph) == 4


def test_registers_of_a_graph_belong_to_tensors_and_weigh_their_size() -> None:
    """Two tensors of A keep chains of their own; order without data keeps none.

    A clock period of 1 puts a delay between A and B: 3 registers of x and one of y.
    """
    graph = make_graph(
        {"A": 1, "B": 1},
        [make_tensor("x", 5, "A", ("B", 2), ("A", 1)), make_tensor("y", 7, "A", "B")],
        dependences=(Dependence(src=OpId("B"), dst=OpId("A"), delay=4),),
    )
    assert num_registers(graph) == 2
    assert num_registers(graph, by_size=True) == 10
    assert min_register_retiming(graph, 2, by_size=True) == (10, {"A": 0, "B": 0})
    assert min_register_retiming(graph, 1, by_size=True) == (22, {"A": 0, "B": 1})


def test_the_correlator_needs_no_more_registers_at_its_least_clock_period() -> None:
    """Four registers at 24 ticks with sharing, and four at 13."""
    graph = textbook("leiserson_saxe_correlator")
    assert num_registers(graph) == 4
    for period in (13, 24):
        found = min_register_retiming(graph, period)
        assert found is not None
        assert found[0] == 4
    assert min_register_retiming(graph, 12) is None


@pytest.mark.parametrize("seed", range(100))
def test_the_laps_of_a_schedule_are_a_retiming_and_lead_there_and_back(
    seed: int,
) -> None:
    graph, schedule = random_case(seed)
    graph = graph.replace(flush=False)
    retiming = schedule_retiming(schedule)
    fixed = fix_delays(graph, schedule.delays)
    retimed = apply_retiming(fixed, retiming)
    phases = retime_schedule(schedule, retiming, retimed)
    assert not verify(retimed, phases)
    assert set(schedule_retiming(phases).values()) <= {0}
    opposite = {op: -lap for op, lap in retiming.items()}
    back = retime_schedule(phases, opposite, graph, delays=schedule.delays)
    assert back.ops == schedule.ops
    assert not verify(graph, back)


@pytest.mark.parametrize("seed", range(100))
def test_a_retiming_becomes_a_valid_schedule_with_its_laps(seed: int) -> None:
    graph, schedule = random_case(seed)
    fixed = fix_delays(graph, schedule.delays).replace(flush=False)
    laps = schedule_retiming(schedule)
    placement = {op: p.device for op, p in schedule.ops.items() if p.device is not None}
    made = schedule_from_retiming(fixed, laps, placement)
    assert not verify(fixed, made)
    for op, lap in schedule_retiming(made).items():
        duration = fixed.duration(op, made.ops[op].device)
        at_the_end = made.phase(op) == 0 and duration == 0
        assert lap == laps[op] or (at_the_end and lap == laps[op] + 1)


def test_retiming_alone_gives_the_correlator_period_13_and_wrapping_10() -> None:
    """Without devices the schedule of a retiming has its clock period."""
    book = TEXTBOOK["leiserson_saxe_correlator"]
    graph = make_graph(
        [make_op(name, time, devices=[]) for name, time in book["times"].items()],
        dependences=tuple(
            Dependence(src=OpId(u), dst=OpId(v), delay=k) for u, v, k in book["edges"]
        ),
        devices=(),
    )
    period, retiming = min_period_retiming(graph)
    schedule = schedule_from_retiming(graph, retiming)
    assert period == schedule.period == 13
    assert not verify(graph, schedule)
    assert iteration_bound(graph).value == 10


def test_a_schedule_needs_a_device_for_every_op_with_a_choice() -> None:
    graph = fix_delays(training_chain(2, devices=2))
    with pytest.raises(InstanceError) as error:
        schedule_from_retiming(graph, {}, {OpId("F1"): DeviceId("d0")})
    assert len(error.value.faults) == len(graph.ops) - 1


def test_with_flush_laps_must_agree() -> None:
    graph = fix_delays(training_chain(2, devices=1)).replace(flush=True)
    with pytest.raises(UnsupportedError, match="flush"):
        schedule_from_retiming(graph, {"W1": 1})


def test_named_delays_must_be_fixed_first() -> None:
    for function in (min_period_retiming, num_registers, path_matrices):
        with pytest.raises(InstanceError, match=r"delays\.d1: a named delay"):
            function(training_chain(2))


def local_graph(nodes: int) -> MultiDiGraph:
    """Random edges between near nodes, three for each; seven in ten carry no delay."""
    rng = Random(3)
    edges = []
    for _ in range(3 * nodes):
        u = rng.randrange(nodes)
        v = min(nodes - 1, max(0, u + rng.randint(-15, 50)))
        forward = rng.random() < 0.3
        edges.append((str(u), str(v), int(forward) if u < v else rng.randint(1, 4)))
    return bare_graph({str(i): rng.randint(1, 10**6) for i in range(nodes)}, edges)


def test_two_thousand_nodes_are_retimed_for_the_clock_period() -> None:
    """The period is confirmed by the retimed graph and refuted one tick below."""
    graph = local_graph(2000)
    period, retiming = min_period_retiming(graph)
    assert clock_period(apply_retiming(graph, retiming)) == period
    assert retime_feasible(graph, period - 1) is None


def test_hundreds_of_nodes_are_retimed_for_registers() -> None:
    graph = local_graph(500)
    period, retiming = min_period_retiming(graph)
    found = min_register_retiming(graph, period)
    assert found is not None
    assert found[0] < num_registers(apply_retiming(graph, retiming))
