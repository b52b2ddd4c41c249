"""What is told without a search: loops without delay, memory that bounds exceed."""

from __future__ import annotations

from factories import devices_of, make_graph, make_tensor

from lpsched.core.graph import Dependence, OpId, Resident
from lpsched.core.result import Status
from lpsched.solve import SolveParams, compare, solve
from lpsched.solve.infeasible import impossible


def test_memory_that_one_op_exceeds_is_refused_and_what_would_do_is_told() -> None:
    """Op a holds a resident of 5 and its result of 3: 8 on any device."""
    graph = make_graph(
        {"a": 2, "b": 1},
        tensors=(make_tensor("x", 3, "a", "b"),),
    )
    residents = (Resident(size=5, ops=(OpId("a"),)),)
    graph = graph.replace(residents=residents, devices=devices_of(2, memory=7))
    conflict = impossible(graph)
    assert conflict is not None
    assert conflict["rules"] == ["memory"]
    assert "a needs a memory of 8 while it runs" in conflict["reason"]
    answer = solve(graph, SolveParams())
    assert answer.result.status is Status.INFEASIBLE
    assert answer.conflict is not None
    assert answer.conflict["relaxations"]["memory"] == {"memory": 8, "least": True}
    assert impossible(graph.replace(devices=devices_of(2, memory=[7, 8]))) is None


def test_memory_that_all_devices_together_lack_is_refused() -> None:
    """Residents of 3 and 3 fit into 3 and 3, but not into 3 and 2."""
    graph = make_graph({"a": 1, "b": 1}).replace(
        residents=tuple(Resident(size=3, ops=(OpId(op),)) for op in "ab"),
        devices=devices_of(2, memory=[3, 2]),
    )
    conflict = impossible(graph)
    assert conflict is not None
    assert "need a memory of 6, and have 5" in conflict["reason"]
    assert impossible(graph.replace(devices=devices_of(2, memory=3))) is None


def test_ops_that_no_devices_can_share_in_memory_are_refused() -> None:
    """Residents of 3 for three ops: two of them are on one device of 5, which is 6."""
    graph = make_graph({"a": 1, "b": 1, "c": 1}).replace(
        residents=tuple(Resident(size=3, ops=(OpId(op),)) for op in "abc"),
        devices=devices_of(2, memory=5),
    )
    assert impossible(graph) is None
    for objective in (("period",), ("period", "communication")):
        answer = solve(graph, SolveParams(objective=objective))
        assert answer.result.status is Status.INFEASIBLE
        assert answer.conflict is not None
        assert answer.conflict["rules"] == ["memory"]
        assert answer.conflict["relaxations"]["memory"] == {"memory": 6, "least": True}


def test_a_cap_on_the_period_asks_for_more_memory() -> None:
    """A tensor of 6 lives 1 + 1 ticks of each period: 12 / T on average.

    One device of 9: enough for a period of 2, not for one of 1.
    """
    graph = make_graph(
        {"a": 1, "b": 1},
        tensors=(make_tensor("x", 6, "a", "b"),),
    ).replace(devices=devices_of(1, memory=9))
    assert impossible(graph, period=2) is None
    conflict = impossible(graph, period=1)
    assert conflict is not None
    assert conflict["rules"] == ["memory", "period"]


def test_a_loop_without_delay_leaves_compare_with_rows_that_say_so() -> None:
    loop = (Dependence(src=OpId("a"), dst=OpId("a")),)
    graph = make_graph({"a": 1}, dependences=loop)
    (row,) = compare(graph, methods=["optimal"])
    assert row.status == "infeasible"
    assert "period" not in row.bound
    rows = compare(graph, methods=["list", "optimal"])
    assert [row.status for row in rows] == ["none", "infeasible"]
