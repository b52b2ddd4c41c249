"""The iteration bound against textbooks, brute force and its own proof."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from random import Random
from typing import Any

import networkx as nx
import pytest
from bare_graphs import TEXTBOOK, bare_graph, bare_graphs, greatest_ratio, textbook
from factories import make_graph, make_op, make_tensor, training_chain
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_case

from lpsched.analysis.critical_path import clock_period, critical_path
from lpsched.analysis.dataflow import MultiDiGraph, to_networkx
from lpsched.analysis.delays import fix_delays
from lpsched.analysis.iteration_bound import LoopWithoutDelayError, iteration_bound
from lpsched.core.graph import Dependence, Graph, Link, OpId
from lpsched.errors import InstanceError


def loop_ratio(graph: MultiDiGraph, edges: Iterable[tuple[Any, Any, Any]]) -> Fraction:
    """Work over delay of a closed walk given by its edges."""
    work = delay = 0
    for edge in edges:
        u, v, key = edge
        work += graph.nodes[u]["duration"]
        delay += graph.edges[u, v, key]["delay"]
    return Fraction(work, delay)


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_graphs_have_the_iteration_bound_of_the_book(name: str) -> None:
    graph = textbook(name)
    bound = iteration_bound(graph)
    assert bound.value == Fraction(TEXTBOOK[name]["iteration_bound"])
    assert loop_ratio(graph, bound.edges) == bound.value


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_graphs_have_the_critical_path_of_the_book(name: str) -> None:
    graph = textbook(name)
    path = critical_path(graph)
    assert path.length == clock_period(graph) == TEXTBOOK[name]["critical_path"]
    assert sum(graph.nodes[node]["duration"] for node in path.nodes) == path.length
    assert all(graph.edges[edge]["delay"] == 0 for edge in path.edges)


def test_the_bound_is_a_fraction_where_no_integer_is_right() -> None:
    """Two nodes of 3 and 4 in a loop of delay 2, a self-loop of 3 over 1: 7/2."""
    graph = bare_graph({"a": 3, "b": 4}, [("a", "b", 0), ("b", "a", 2), ("a", "a", 1)])
    bound = iteration_bound(graph)
    assert bound.value == Fraction(7, 2)
    assert sorted(map(str, bound.loop)) == ["a", "b"]


def test_a_graph_without_loops_has_bound_zero_and_no_loop() -> None:
    bound = iteration_bound(bare_graph({"a": 3, "b": 4}, [("a", "b", 0)]))
    assert bound.value == 0
    assert not bound.loop
    assert not bound.edges


def test_an_empty_graph_has_bound_zero_and_an_empty_path() -> None:
    graph = bare_graph({}, [])
    assert iteration_bound(graph).value == 0
    assert critical_path(graph).length == 0


def test_of_parallel_edges_the_one_of_least_delay_counts() -> None:
    graph = bare_graph({"a": 6}, [("a", "a", 3), ("a", "a", 2), ("a", "a", 5)])
    bound = iteration_bound(graph)
    assert bound.value == 3
    assert bound.edges == (("a", "a", 1),)


def test_a_loop_without_delay_is_not_computable_and_named() -> None:
    graph = bare_graph(
        {"a": 1, "b": 0, "c": 2},
        [("a", "b", 0), ("b", "a", 0), ("b", "c", 1), ("c", "a", 1)],
    )
    for analyse in (iteration_bound, critical_path):
        with pytest.raises(LoopWithoutDelayError, match="not computable") as error:
            analyse(graph)
        assert sorted(map(str, error.value.loop)) == ["a", "b"]
        assert len(error.value.edges) == 2
        assert isinstance(error.value, InstanceError)


def test_a_loop_without_delay_that_takes_no_time_is_harmless() -> None:
    graph = bare_graph(
        {"a": 0, "b": 0, "c": 5},
        [("a", "b", 0), ("b", "a", 0), ("b", "c", 0), ("c", "a", 2)],
    )
    assert iteration_bound(graph).value == Fraction(5, 2)
    assert critical_path(graph).length == 5


def test_every_faulty_attribute_is_reported_at_once() -> None:
    graph: MultiDiGraph = nx.MultiDiGraph()
    graph.add_node("a", duration=-1)
    graph.add_node("b")
    graph.add_edge("a", "b", delay=0.5)
    with pytest.raises(InstanceError) as error:
        iteration_bound(graph)
    assert [fault.path for fault in error.value.faults] == [
        "node 'a'.duration",
        "node 'b'.duration",
        "edge 'a' -> 'b'.delay",
    ]


@settings(deadline=None, max_examples=200)
@given(bare_graphs())
def test_the_bound_is_the_greatest_ratio_over_all_loops(graph: MultiDiGraph) -> None:
    assert iteration_bound(graph).value == greatest_ratio(graph)


@settings(deadline=None, max_examples=100)
@given(bare_graphs())
def test_loop_and_potential_prove_the_bound_from_both_sides(
    graph: MultiDiGraph,
) -> None:
    bound = iteration_bound(graph)
    if bound.value:
        assert loop_ratio(graph, bound.edges) == bound.value
        assert [edge[0] for edge in bound.edges] == list(bound.loop)
    for u, v, data in graph.edges(data=True):
        allowed = bound.potential[v] + bound.value * data["delay"]
        assert allowed >= bound.potential[u] + graph.nodes[u]["duration"]


@settings(deadline=None, max_examples=100)
@given(bare_graphs(), st.data())
def test_more_delay_never_raises_the_bound(
    graph: MultiDiGraph, data: st.DataObject
) -> None:
    before = iteration_bound(graph).value
    for _, _, attributes in graph.edges(data=True):
        attributes["delay"] += data.draw(st.integers(0, 2))
    assert iteration_bound(graph).value <= before


@pytest.mark.parametrize("seed", range(150))
def test_the_bound_is_never_above_the_period_of_a_schedule(seed: int) -> None:
    graph, schedule = random_case(seed)
    assert iteration_bound(graph).value <= schedule.period
    fixed = fix_delays(graph, schedule.delays)
    assert iteration_bound(fixed).value <= schedule.period


def test_a_delay_without_limit_bounds_nothing_and_one_at_its_maximum_counts() -> None:
    """Layer 1's loop is F1 F2 I2 W1, 8 ticks over d1; each W loops on itself in 2."""
    chain = training_chain(2)
    assert iteration_bound(chain).value == 2
    assert iteration_bound(chain.with_delay_max(3)).value == Fraction(8, 3)
    bound = iteration_bound(chain.with_delay_max(1))
    assert bound.value == 8
    assert set(bound.loop) == {"F1", "F2", "I2", "W1"}


def test_the_edges_of_a_graph_are_named_by_their_index() -> None:
    graph = training_chain(3, rng=Random(1)).with_delay_max(1)
    bound = iteration_bound(graph)
    edges = [graph.edges[index] for index in bound.edges]
    assert [edge.src for edge in edges] == list(bound.loop)
    assert [edge.dst for edge in edges] == [*bound.loop[1:], bound.loop[0]]


def test_a_transfer_that_no_placement_avoids_counts() -> None:
    """A on d0 (5 ticks), B on d1 (2): 5 + 2 + two transfers of 1 + ⌈8/4⌉ over 2."""
    graph = make_graph(
        [make_op("A", 5, devices=["d0"]), make_op("B", 2, devices=["d1"])],
        [make_tensor("x", 8, "A", "B"), make_tensor("y", 8, "B", ("A", 2))],
        devices=2,
        link=Link(latency=1, units_per_tick=4),
    )
    assert iteration_bound(graph).value == Fraction(5 + 2 + 3 + 3, 2)


def test_the_cheapest_of_duration_and_transfer_together_counts() -> None:
    """A takes 1 on d1 but B needs d0: 1 + 3 there beats 6 on d0; lag 1 on top."""
    graph = make_graph(
        [make_op("A", {"d0": 6, "d1": 1}), make_op("B", 2, devices=["d0"])],
        [make_tensor("x", 8, "A", ("B", 0, 1)), make_tensor("y", 0, "B", ("A", 1))],
        devices=2,
        link=Link(latency=1, units_per_tick=4),
    )
    assert iteration_bound(graph).value == (1 + 3 + 1) + 2


def test_colocated_ops_are_timed_on_one_device() -> None:
    """A is fast on d1 alone, but shares a device with B, which needs d0: 6 + 2."""
    graph = make_graph(
        [make_op("A", {"d0": 6, "d1": 1}), make_op("B", 2, devices=["d0"])],
        [make_tensor("x", 8, "A", "B"), make_tensor("y", 0, "B", ("A", 1))],
        devices=2,
        colocate=((OpId("A"), OpId("B")),),
    )
    assert iteration_bound(graph).value == 8


def chain_of(ops: int, *, delay: int) -> Graph:
    """Ops of 2 ticks in a ring, the delay on the last edge."""
    names = [f"v{i}" for i in range(ops)]
    edges = zip(names, [*names[1:], names[0]], strict=True)
    return make_graph(
        dict.fromkeys(names, 2),
        dependences=tuple(
            Dependence(src=OpId(u), dst=OpId(v), delay=delay * (v == "v0"))
            for u, v in edges
        ),
    )


def test_a_ring_of_two_thousand_ops_is_computed() -> None:
    assert iteration_bound(chain_of(2000, delay=3)).value == Fraction(4000, 3)


def test_two_thousand_nodes_and_six_thousand_edges_are_computed() -> None:
    """A random graph; the answer is proved by its own loop and potential."""
    rng = Random(7)
    names = [str(i) for i in range(2000)]
    ends = [(rng.randrange(2000), rng.randrange(2000)) for _ in range(6000)]
    graph = bare_graph(
        {name: rng.randint(1, 2**40) for name in names},
        [(names[u], names[v], rng.randint(int(u >= v), 3)) for u, v in ends],
    )
    bound = iteration_bound(graph)
    assert loop_ratio(graph, bound.edges) == bound.value
    for u, v, data in graph.edges(data=True):
        allowed = bound.potential[v] + bound.value * data["delay"]
        assert allowed >= bound.potential[u] + graph.nodes[u]["duration"]


@pytest.mark.parametrize("seed", range(30))
def test_as_a_networkx_graph_a_graph_keeps_bound_and_critical_path(seed: int) -> None:
    graph = fix_delays(random_case(seed)[0])
    bare = to_networkx(graph)
    assert iteration_bound(bare).value == iteration_bound(graph).value
    assert critical_path(bare).length == critical_path(graph).length


def test_named_delays_must_be_fixed_before_networkx_takes_a_graph() -> None:
    with pytest.raises(InstanceError, match=r"delays\.d1: a named delay"):
        to_networkx(training_chain(2))
