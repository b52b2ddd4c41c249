"""List scheduling of any graph, and sequential execution."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import devices_of, make_graph, make_op, make_tensor, training_chain

from lpsched.analysis.sites import Sites
from lpsched.core.graph import Delay, DelayName, Dependence, Link, OpId
from lpsched.core.schedule import Schedule
from lpsched.errors import NoScheduleError, UnsupportedError
from lpsched.heuristics import list_schedule, sequential
from lpsched.heuristics.list_scheduling import balanced_placement
from lpsched.heuristics.modulo import ModuloScheduler
from lpsched.heuristics.periods import first_success
from lpsched.network import compile_network, load_shipped
from lpsched.verify import measure, verify

A, B = OpId("A"), OpId("B")


def test_sequential_takes_the_sum_of_durations_and_no_staleness() -> None:
    chain = training_chain(4, devices=3)
    schedule = sequential(chain)
    assert schedule.period == 22
    assert set(schedule.delays.values()) == {1}
    assert len({placed.device for placed in schedule.ops.values()}) == 1


def test_sequential_takes_the_fastest_device_that_every_op_may_use() -> None:
    ops = [
        make_op("A", {"d0": 9, "d1": 3, "d2": 2}),
        make_op("B", {"d0": 1, "d1": 3}, devices=["d0", "d1"]),
    ]
    schedule = sequential(make_graph(ops, devices=3))
    assert schedule.period == 6
    assert {placed.device for placed in schedule.ops.values()} == {"d1"}


def test_sequential_takes_another_device_if_the_first_lacks_memory() -> None:
    ops = [make_op("A", {"d0": 1, "d1": 5})]
    tensors = [make_tensor("x", 10, "A")]
    graph = make_graph(ops, tensors, devices=devices_of(2, memory=[9, 10]))
    assert sequential(graph).ops[A].device == "d1"
    small = graph.replace(devices=devices_of(2, memory=9))
    with pytest.raises(NoScheduleError, match="memory"):
        sequential(small)


def test_sequential_refuses_ops_without_a_common_device() -> None:
    ops = [make_op("A", 1, devices=["d0"]), make_op("B", 1, devices=["d1"])]
    with pytest.raises(UnsupportedError, match="no device"):
        sequential(make_graph(ops, devices=2))


def test_a_lag_round_a_loop_raises_the_sequential_period() -> None:
    """A takes 2 and feeds itself of the next iteration 3 ticks after: 5."""
    graph = make_graph({"A": 2, "B": 1}, [make_tensor("x", 1, "A", ("A", 1, 3))])
    assert sequential(graph).period == 5
    assert list_schedule(graph).period == 5


def test_ops_without_devices_are_timed_by_their_loops_alone() -> None:
    """Loop of 3 + 4 ticks and two delays: the ceiling of 7/2."""
    ops = [make_op("A", 3, devices=[]), make_op("B", 4, devices=[])]
    tensors = [make_tensor("x", 1, "A", "B"), make_tensor("y", 1, "B", ("A", 2))]
    graph = make_graph(ops, tensors, devices=())
    for method in (sequential, list_schedule):
        schedule = method(graph)
        assert schedule.period == 4
        assert verify(graph, schedule) == ()


def test_an_empty_graph_has_period_one() -> None:
    for method in (sequential, list_schedule):
        assert method(make_graph({}, devices=0)).period == 1
        assert method(make_graph({"A": 0})).period == 1


def test_a_loop_without_delay_has_no_schedule() -> None:
    edges = (Dependence(src=A, dst=B), Dependence(src=B, dst=A))
    graph = make_graph({"A": 1, "B": 1}, dependences=edges)
    for method in (sequential, list_schedule):
        with pytest.raises(NoScheduleError):
            method(graph)


def test_colocated_ops_without_a_common_device_have_no_schedule() -> None:
    ops = [make_op("A", 1, devices=["d0"]), make_op("B", 1, devices=["d1"])]
    graph = make_graph(ops, devices=2, colocate=((A, B),))
    with pytest.raises(NoScheduleError, match="allowed to all of A, B"):
        list_schedule(graph)


def test_free_delays_leave_nothing_but_balanced_loads() -> None:
    """The least period of VGG-16 with I in halves on 8 devices, the best known."""
    graph = compile_network(load_shipped("vgg16"), devices=8).graph
    assert list_schedule(graph).period == 5_797_052_416


def test_loads_are_balanced_longest_first() -> None:
    """5, 4, 3, 3, 3 on two devices: 5 + 3 and 4 + 3 + 3, one above the best."""
    graph = make_graph(dict(zip("ABCDE", (3, 5, 3, 4, 3), strict=True)), devices=2)
    placement, load = balanced_placement(graph, Sites.of(graph))
    assert load == 10
    assert [placement[OpId(op)] for op in "BDACE"] == ["d0", "d1", "d1", "d0", "d1"]


def test_colocated_ops_are_balanced_as_one() -> None:
    group = (OpId("A"), OpId("C"))
    graph = make_graph({"A": 2, "B": 3, "C": 2}, devices=2, colocate=(group,))
    placement, load = balanced_placement(graph, Sites.of(graph))
    assert load == 4
    assert placement[group[0]] == placement[group[1]] != placement[B]


def test_tight_loops_are_scheduled_where_the_loads_alone_would_not_fit() -> None:
    """A and B in a loop of one delay, 4 ticks; C and D of 2 fill the second device.

    Balanced loads are 4, but a transfer of 1 forbids to part A and B.
    """
    graph = make_graph(
        {"A": 2, "B": 2, "C": 2, "D": 2},
        [make_tensor("x", 1, "A", "B"), make_tensor("y", 1, "B", ("A", 1))],
        devices=2,
        link=Link(latency=1),
    )
    schedule = list_schedule(graph)
    assert schedule.period == 4
    assert schedule.ops[A].device == schedule.ops[B].device


def test_flush_gives_the_makespan() -> None:
    """A, then B and C at once on two devices, then D: 1 + 3 + 1."""
    graph = make_graph(
        {"A": 1, "B": 3, "C": 3, "D": 1},
        [make_tensor("x", 1, "A", "B", "C")]
        + [make_tensor(f"y{op}", 1, op, "D") for op in "BC"],
        devices=2,
        flush=True,
    )
    schedule = list_schedule(graph)
    assert schedule.period == 5
    assert sequential(graph).period == 8


def test_delays_of_one_still_let_devices_share_an_iteration() -> None:
    """Exact SGD on a chain of 3 layers without transfers, every op 2 ticks.

    The longest loop is F1 F2 F3 I3 I2 W1, 12 ticks; W3 and W2 fit beside it.
    """
    chain = training_chain(3, devices=2, delay_max=1)
    assert sequential(chain).period == 16
    assert list_schedule(chain).period == 12


def test_memory_is_kept_where_one_device_has_enough() -> None:
    chain = training_chain(3, devices=3)
    alone = measure(chain, sequential(chain)).peak_memory
    limited = chain.replace(devices=devices_of(3, memory=alone))
    schedule = list_schedule(limited)
    assert verify(limited, schedule) == ()
    with pytest.raises(NoScheduleError, match="memory"):
        list_schedule(chain.replace(devices=devices_of(3, memory=1)))


def test_modulo_scheduling_gives_up_below_the_iteration_bound() -> None:
    graph = make_graph(
        {"A": 2, "B": 2},
        [make_tensor("x", 1, "A", "B"), make_tensor("y", 1, "B", ("A", "d"))],
        devices=2,
        delays={DelayName("d"): Delay(max=2)},
    )
    scheduler = ModuloScheduler(graph, Sites.of(graph))
    assert scheduler.attempt(1) is None
    placed = scheduler.attempt(2)
    assert placed is not None
    assert placed[B].start - placed[A].start == 2


def test_the_first_success_is_bisected_to_the_tick_or_to_a_share() -> None:
    """Success from 700 on: 100, 106, 118 ... 862 fail or succeed, then halves."""
    known = sequential(make_graph({"A": 1}))
    tried: list[int] = []

    def attempt(period: int) -> Schedule | None:
        tried.append(period)
        return replace(known, period=period) if period >= 700 else None

    exact = first_success(attempt, 100, 1000)
    assert exact is not None
    assert exact.period == 700
    assert len(tried) < 20
    coarse = first_success(attempt, 100, 1000, fine=10)
    assert coarse is not None
    assert 700 <= coarse.period <= 777
    assert first_success(attempt, 100, 699) is None


def test_time_that_is_over_leaves_a_valid_schedule() -> None:
    """No period is tried any more: everything on one device remains, 4 * 2 ticks."""
    graph = make_graph(
        {"A": 2, "B": 2, "C": 2, "D": 2},
        [make_tensor("x", 1, "A", "B"), make_tensor("y", 1, "B", ("A", 1))],
        devices=2,
        link=Link(latency=1),
    )
    schedule = list_schedule(graph, lambda: True)
    assert schedule.period == 8
    assert verify(graph, schedule) == ()


def test_an_attempt_ends_when_it_is_told_to() -> None:
    graph = training_chain(3)
    scheduler = ModuloScheduler(graph, Sites.of(graph))
    assert scheduler.attempt(100) is not None
    assert scheduler.attempt(100, lambda: True) is None
