"""Unfolding against its definition, the bound, schedules, and a fractional period."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from bare_graphs import TEXTBOOK, bare_graph, bare_graphs, textbook
from factories import make_graph, make_op, make_schedule, make_tensor, training_chain
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_case

from lpsched.analysis.dataflow import MultiDiGraph
from lpsched.analysis.delays import fix_delays
from lpsched.analysis.iteration_bound import iteration_bound
from lpsched.analysis.metrics import measure
from lpsched.analysis.unfolding import (
    copy_id,
    fold_schedule,
    iteration_start,
    unfold,
    unfold_schedule,
)
from lpsched.core.graph import DelayName, Dependence, Graph, OpId, Resident
from lpsched.core.io import checked
from lpsched.core.schedule import Placed
from lpsched.errors import InstanceError
from lpsched.verify import verify


@settings(deadline=None, max_examples=100)
@given(bare_graphs(), st.integers(1, 4))
def test_unfolding_multiplies_the_iteration_bound(
    graph: MultiDiGraph, factor: int
) -> None:
    assert (
        iteration_bound(unfold(graph, factor)).value
        == factor * iteration_bound(graph).value
    )


@pytest.mark.parametrize(("seed", "factor"), [*product(range(40), (2, 3))])
def test_unfolding_multiplies_the_iteration_bound_of_a_graph(
    seed: int, factor: int
) -> None:
    graph = fix_delays(random_case(seed)[0])
    unfolded = checked(unfold(graph, factor))
    assert iteration_bound(unfolded).value == factor * iteration_bound(graph).value
    assert unfolded.unfolding == factor * graph.unfolding


def test_the_delays_of_parhis_example_come_out_as_in_the_book() -> None:
    """Parhi, figure 5.4: an edge of 37 delays unfolded by 4: 9, 9, 9 and 10 delays.

    Copy i feeds copy (i + 37) mod 4 with ⌊(i + 37) / 4⌋ delays.
    """
    graph = bare_graph({"U": 1, "V": 1}, [("U", "V", 37)])
    edges = {(u, v): data["delay"] for u, v, data in unfold(graph, 4).edges(data=True)}
    assert edges == {
        (("U", 0), ("V", 1)): 9,
        (("U", 1), ("V", 2)): 9,
        (("U", 2), ("V", 3)): 9,
        (("U", 3), ("V", 0)): 10,
    }


@settings(deadline=None, max_examples=60)
@given(bare_graphs(), st.integers(1, 4))
def test_unfolding_keeps_the_number_of_delays(graph: MultiDiGraph, factor: int) -> None:
    def total(g: MultiDiGraph) -> int:
        return sum(data["delay"] for _, _, data in g.edges(data=True))

    assert total(unfold(graph, factor)) == total(graph)


@settings(deadline=None, max_examples=60)
@given(bare_graphs(), st.integers(1, 3), st.integers(0, 11))
def test_every_use_reaches_back_as_many_iterations_as_before(
    graph: MultiDiGraph, factor: int, n: int
) -> None:
    """In plain iterations: copy v of block N uses copy u of block N - delay."""
    uses = {(u, v, n - data["delay"]) for u, v, data in graph.edges(data=True)}
    unfolded = unfold(graph, factor)
    if factor == 1:
        return
    block, copy = divmod(n, factor)
    found = {
        (u, v, (block - data["delay"]) * factor + i)
        for (u, i), (v, j), data in unfolded.edges(data=True)
        if j == copy
    }
    assert found == uses


@pytest.mark.parametrize("seed", range(80))
def test_a_schedule_repeated_is_one_of_the_unfolded_graph_and_folds_back(
    seed: int,
) -> None:
    graph, schedule = random_case(seed)
    fixed = fix_delays(graph, schedule.delays)
    for factor in (1, 2, 3):
        unfolded = unfold(fixed, factor)
        repeated = unfold_schedule(schedule, unfolded, factor)
        assert not verify(unfolded, repeated)
        folded = fold_schedule(repeated, graph, factor, delays=schedule.delays)
        assert folded is not None
        assert folded.ops == schedule.ops
        assert folded.period == schedule.period
        assert not verify(graph, folded)
        before, after = measure(graph, schedule), measure(unfolded, repeated)
        assert after.iteration_period == before.iteration_period
        assert after.peak_memory == before.peak_memory
        assert after.communication == factor * before.communication
        for op in graph.ops:
            start = schedule.ops[op.id].start
            for n in (0, 1, 5):
                expected = start + n * schedule.period
                assert iteration_start(repeated, op.id, n, factor) == expected


def two_and_a_half() -> Graph:
    """A (3) and B (2) in a ring of two delays, each on a device of its own.

    The bound is 5/2: as both ops wait for each other's last but one iteration, an
    integer period is at least 3.
    """
    return make_graph(
        [make_op("A", 3, devices=[]), make_op("B", 2, devices=[])],
        dependences=(
            Dependence(src=OpId("A"), dst=OpId("B")),
            Dependence(src=OpId("B"), dst=OpId("A"), delay=2),
        ),
        devices=(),
    )


def test_an_unfolded_schedule_reaches_a_fractional_period() -> None:
    """Twice the ring in 5 ticks: 5/2 an iteration, where one alone takes 3."""
    graph = two_and_a_half()
    assert iteration_bound(graph).value == Fraction(5, 2)
    unfolded = unfold(graph, 2)
    starts = {"A#0": 0, "B#0": 3, "A#1": 2, "B#1": 5}
    schedule = make_schedule(unfolded, 5, {op: (None, s) for op, s in starts.items()})
    assert not verify(unfolded, schedule)
    assert measure(unfolded, schedule).iteration_period == Fraction(5, 2)
    assert fold_schedule(schedule, graph, 2) is None
    assert iteration_start(schedule, OpId("A"), 5, 2) == 2 + 2 * 5
    for first, second in product(range(3), repeat=2):
        shorter = make_schedule(graph, 2, {"A": (None, first), "B": (None, second)})
        assert verify(graph, shorter)


def test_a_schedule_whose_copies_differ_does_not_fold() -> None:
    graph = make_graph({"a": 1}, devices=2)
    unfolded = unfold(graph, 2)
    apart = make_schedule(unfolded, 4, {"a#0": ("d0", 0), "a#1": ("d1", 2)})
    uneven = make_schedule(unfolded, 4, {"a#0": ("d0", 0), "a#1": ("d0", 3)})
    even = make_schedule(unfolded, 4, {"a#0": ("d0", 0), "a#1": ("d0", 2)})
    assert fold_schedule(apart, graph, 2) is None
    assert fold_schedule(uneven, graph, 2) is None
    folded = fold_schedule(even, graph, 2)
    assert folded is not None
    assert folded.ops == {"a": Placed(even.ops[OpId("a#0")].device, 0)}


def test_tensors_groups_and_residents_unfold_too() -> None:
    graph = make_graph(
        {"a": 1, "b": 2},
        [make_tensor("x", 5, "a", "b", ("a", 3, 2))],
        colocate=((OpId("a"), OpId("b")),),
        residents=(Resident(size=9, ops=(OpId("a"),)),),
    )
    unfolded = unfold(graph, 2)
    uses = {
        t.id: [(c.op, c.delay, c.lag) for c in t.consumers] for t in unfolded.tensors
    }
    assert uses == {
        "x#0": [("b#0", 0, 0), ("a#1", 1, 2)],
        "x#1": [("b#1", 0, 0), ("a#0", 2, 2)],
    }
    assert unfolded.colocate == (("a#0", "b#0"), ("a#1", "b#1"))
    assert unfolded.residents[0].ops == ("a#0", "a#1")


def test_unfolding_by_one_changes_nothing_and_by_none_is_refused() -> None:
    graph = two_and_a_half()
    assert unfold(graph, 1) is graph
    with pytest.raises(ValueError, match="expected J >= 1, got 0"):
        unfold(graph, 0)


def test_named_delays_must_be_fixed_before_unfolding() -> None:
    chain = training_chain(2, delay_max=4)
    with pytest.raises(InstanceError, match=r"delays\.d1: a named delay"):
        unfold(chain, 2)
    fixed = fix_delays(chain, "max")
    assert not fixed.delays
    assert {e.delay for e in fixed.edges if e.dst == "F1"} == {4}
    assert copy_id(OpId("F1"), 1) in unfold(fixed, 2).op_by_id


def test_values_of_delays_are_checked_all_at_once() -> None:
    chain = training_chain(3, delay_max=4)
    values = {DelayName("d1"): 0, DelayName("d2"): 5, DelayName("d9"): 1}
    with pytest.raises(InstanceError) as error:
        fix_delays(chain, values)
    assert [str(fault) for fault in error.value.faults] == [
        "delays.d9: the graph has no such delay",
        "delays.d1: expected >= 1, got 0",
        "delays.d2: expected <= 4, got 5",
        "delays.d3: needs a value",
    ]
    with pytest.raises(InstanceError, match="has no maximum"):
        fix_delays(training_chain(2), "max")


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_graphs_unfold_to_rate_optimal_ones(name: str) -> None:
    """Unfolded by the denominator of its bound, a graph has an integer bound."""
    graph = textbook(name)
    bound = iteration_bound(graph).value
    unfolded = unfold(graph, bound.denominator)
    assert iteration_bound(unfolded).value == bound.numerator
