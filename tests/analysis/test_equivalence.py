"""Two graphs are retimings of each other, or they are not."""

from __future__ import annotations

import networkx as nx
import pytest
from bare_graphs import bare_graph, bare_graphs
from factories import training_chain
from hypothesis import given, settings
from hypothesis import strategies as st

from lpsched.analysis.clock import retime_feasible
from lpsched.analysis.critical_path import clock_period
from lpsched.analysis.dataflow import MultiDiGraph
from lpsched.analysis.delays import fix_delays
from lpsched.analysis.equivalence import retiming_between
from lpsched.analysis.retiming import apply_retiming, cutset_retiming
from lpsched.analysis.unfolding import unfold
from lpsched.errors import InstanceError


@settings(deadline=None, max_examples=100)
@given(bare_graphs(), st.data())
def test_the_retiming_that_was_applied_is_found_up_to_a_shift_of_each_part(
    graph: MultiDiGraph, data: st.DataObject
) -> None:
    period = data.draw(st.integers(clock_period(graph) // 2, clock_period(graph)))
    applied = retime_feasible(graph, period) or {}
    retimed = apply_retiming(graph, applied)
    found = retiming_between(graph, retimed)
    assert found is not None
    for part in nx.weakly_connected_components(graph):
        shifts = {applied.get(node, 0) - found[node] for node in part}
        assert len(shifts) == 1
        assert min(found[node] for node in part) == 0
    back = retiming_between(retimed, graph)
    assert back is not None
    again = apply_retiming(retimed, back)
    assert sorted(again.edges(data="delay")) == sorted(graph.edges(data="delay"))


def test_a_loop_with_another_delay_is_another_graph() -> None:
    """A retiming cannot add a delay to a loop: 0 + 2 became 1 + 2."""
    graph = bare_graph({"a": 1, "b": 1}, [("a", "b", 0), ("b", "a", 2)])
    more = bare_graph({"a": 1, "b": 1}, [("a", "b", 1), ("b", "a", 2)])
    moved = bare_graph({"a": 1, "b": 1}, [("a", "b", 1), ("b", "a", 1)])
    assert retiming_between(graph, more) is None
    assert retiming_between(graph, moved) == {"a": 0, "b": 1}


@pytest.mark.parametrize(
    "other",
    [
        bare_graph({"a": 1, "b": 2}, [("a", "b", 0)]),
        bare_graph({"a": 1, "c": 1}, [("a", "c", 0)]),
        bare_graph({"a": 1, "b": 1}, [("a", "b", 0), ("a", "b", 0)]),
        bare_graph({"a": 1, "b": 1}, [("b", "a", 0)]),
    ],
)
def test_another_duration_node_or_edge_is_another_graph(other: MultiDiGraph) -> None:
    assert (
        retiming_between(bare_graph({"a": 1, "b": 1}, [("a", "b", 0)]), other) is None
    )


def test_training_graphs_compare_in_everything_but_the_name() -> None:
    graph = fix_delays(training_chain(3), dict.fromkeys(training_chain(3).delays, 3))
    moved = cutset_retiming(graph, [op.id for op in graph.ops if op.id != "F1"])
    retimed = apply_retiming(graph, moved)
    assert retiming_between(graph, retimed.replace(name="other")) == {
        op.id: int(op.id != "F1") for op in graph.ops
    }
    assert retiming_between(graph, retimed.replace(flush=True)) is None
    assert retiming_between(graph, unfold(graph, 2)) is None


def test_named_delays_must_be_fixed_before_graphs_compare() -> None:
    with pytest.raises(InstanceError, match=r"delays\.d1: a named delay"):
        retiming_between(training_chain(2), training_chain(2))
