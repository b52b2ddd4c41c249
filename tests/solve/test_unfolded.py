"""Several iterations at once: fractional periods, and back to one iteration."""

from __future__ import annotations

from random import Random

import pytest
from factories import make_graph, make_op, training_chain
from random_cases import random_graph

from lpsched.analysis.delays import fix_delays
from lpsched.analysis.metrics import measure
from lpsched.core.graph import DelayName, Dependence, Graph, OpId
from lpsched.core.result import Status
from lpsched.errors import InstanceError
from lpsched.solve import SolveParams, solve
from lpsched.solve.unfolded import solve_unfolded
from lpsched.verify import verify

PERIOD = SolveParams(objective=("period",))


def two_and_a_half() -> Graph:
    """A (3) and B (2) in a ring of two delays, without devices: bound 5/2."""
    return make_graph(
        [make_op("A", 3, devices=[]), make_op("B", 2, devices=[])],
        dependences=(
            Dependence(src=OpId("A"), dst=OpId("B")),
            Dependence(src=OpId("B"), dst=OpId("A"), delay=2),
        ),
        devices=(),
    )


def test_two_iterations_reach_a_bound_that_no_integer_period_does() -> None:
    graph = two_and_a_half()
    assert solve(graph, PERIOD).require_schedule().period == 3
    found = solve_unfolded(graph, 2, PERIOD)
    schedule = found.answer.require_schedule()
    assert found.answer.result.status is Status.OPTIMAL
    assert schedule.period == 5
    assert found.answer.result.objective["iteration_period"] == "5/2"
    assert verify(found.graph, schedule) == ()
    assert found.folded is None


def test_two_iterations_share_out_what_one_cannot() -> None:
    """Five ops of 2 ticks on two devices: one iteration puts 3 of them on one.

    So its least period is 6, though the load is 10 / 2 = 5. Ten ops of two iterations
    go 5 and 5: period 10, 5 an iteration.
    """
    graph = training_chain(2, devices=2, delay_max=9)
    assert solve(graph, PERIOD).require_schedule().period == 6
    found = solve_unfolded(graph, 2, PERIOD, delays="max")
    schedule = found.answer.require_schedule()
    assert found.answer.result.status is Status.OPTIMAL
    assert measure(found.graph, schedule).iteration_period == 5
    assert verify(found.graph, schedule) == ()


def test_a_schedule_that_repeats_itself_folds_back_to_the_graph() -> None:
    """On one device two iterations cannot be better than one after the other."""
    graph = training_chain(2, devices=1, delay_max=3)
    found = solve_unfolded(graph, 2, PERIOD, delays="max")
    assert found.folded is not None
    assert found.folded.period == 10
    assert found.folded.delays == {"d1": 3, "d2": 3}
    assert verify(graph, found.folded) == ()


@pytest.mark.parametrize("seed", range(25))
def test_more_iterations_are_never_worse_than_one(seed: int) -> None:
    graph = fix_delays(random_graph(Random(seed), max_ops=4, max_devices=2))
    one = solve(graph, PERIOD).require_schedule()
    found = solve_unfolded(graph, 2, PERIOD)
    schedule = found.answer.require_schedule()
    assert schedule.period <= 2 * one.period
    assert found.graph.unfolding == 2 * graph.unfolding
    if found.folded is not None:
        assert verify(graph, found.folded) == ()
        assert 2 * found.folded.period == schedule.period


def test_one_iteration_is_the_graph_itself() -> None:
    graph = two_and_a_half()
    found = solve_unfolded(graph, 1, PERIOD)
    assert found.graph == graph
    assert found.folded is not None
    assert found.folded.period == 3


def test_named_delays_need_values_in_their_ranges() -> None:
    chain = training_chain(2, delay_max=2)
    with pytest.raises(InstanceError, match=r"delays\.d1: a named delay"):
        solve_unfolded(chain, 2)
    with pytest.raises(InstanceError, match="expected <= 2, got 3"):
        solve_unfolded(chain, 2, delays={DelayName("d1"): 3, DelayName("d2"): 1})
    with pytest.raises(ValueError, match="expected J >= 1"):
        solve_unfolded(two_and_a_half(), 0)


def test_an_impossible_problem_stays_so() -> None:
    """A cap of 4 for two iterations of 5 ticks' loops."""
    params = SolveParams(objective=("period",), max_period=4)
    found = solve_unfolded(two_and_a_half(), 2, params)
    assert found.answer.result.status is Status.INFEASIBLE
    assert found.folded is None
