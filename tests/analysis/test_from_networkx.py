"""networkx graphs become graphs that can be scheduled, and come back."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from factories import make_graph

from lpsched import from_networkx, to_networkx
from lpsched.analysis.iteration_bound import iteration_bound
from lpsched.core.graph import Dependence, OpId
from lpsched.errors import InstanceError
from lpsched.solve import solve


def loop() -> nx.DiGraph[Any]:
    """Two ops of 3 and 4 ticks in a loop with two delays: 7/2 an iteration."""
    graph: nx.DiGraph[Any] = nx.DiGraph(name="loop")
    graph.add_node(0, duration=3, kind="F")
    graph.add_node(1, duration=4)
    graph.add_edge(0, 1, delay=0)
    graph.add_edge(1, 0, delay=2)
    return graph


def test_a_loop_is_solved_at_its_least_integer_period() -> None:
    """The bound 7/2 is 4 in integers, and the op of 4 ticks needs as much."""
    graph = from_networkx(nx.MultiDiGraph(loop()), devices=2)
    assert [op.id for op in graph.ops] == ["0", "1"]
    assert [op.kind for op in graph.ops] == ["F", "op"]
    assert solve(graph).require_schedule().period == 4


def test_a_plain_digraph_will_do_and_ops_may_do_without_devices() -> None:
    graph = from_networkx(loop(), devices=0)
    assert all(op.devices == () for op in graph.ops)
    assert str(iteration_bound(graph).value) == "7/2"


def test_there_and_back_nothing_changes() -> None:
    orders = [
        Dependence(src=OpId("a"), dst=OpId("b"), delay=0, lag=2),
        Dependence(src=OpId("b"), dst=OpId("a"), delay=3),
    ]
    graph = make_graph({"a": 5, "b": 1}, devices=2, dependences=tuple(orders))
    back = from_networkx(to_networkx(graph), devices=2)
    assert back.dependences == graph.dependences
    assert [(op.id, op.duration) for op in back.ops] == [("a", 5), ("b", 1)]


def test_every_wrong_attribute_is_named() -> None:
    graph = loop()
    del graph.nodes[0]["duration"]
    graph.edges[1, 0]["delay"] = -1
    with pytest.raises(InstanceError) as caught:
        from_networkx(graph, devices=1)
    assert {fault.path for fault in caught.value.faults} == {
        "node 0.duration",
        "edge 1 -> 0.delay",
    }


def test_nodes_whose_names_become_one_are_refused() -> None:
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(loop())
    graph.add_node("1", duration=1)
    with pytest.raises(InstanceError, match="several nodes"):
        from_networkx(graph, devices=1)
