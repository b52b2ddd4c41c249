"""Each rule of the integer program alone: kept, broken by pinning, kept by pinning.

A pin that breaks a rule is feasible as long as that rule is left out, so that it is
this rule, and not a window or another rule, which refuses it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pulp
import pytest
from factories import devices_of, make_graph, make_op, make_tensor

from lpsched.core.graph import Delay, DelayName, Dependence, Graph, Link, OpId, Resident
from lpsched.formulations.api import Request
from lpsched.formulations.ilp import constraints as rules
from lpsched.formulations.ilp import objective, tightening
from lpsched.formulations.ilp.highs import run_highs
from lpsched.formulations.ilp.memory import add_memory
from lpsched.formulations.ilp.scope import scope_of
from lpsched.formulations.ilp.solved import Watch
from lpsched.formulations.ilp.variables import Variables, create_variables

Rule = Callable[[Variables], Any]
K = DelayName("k")


def solve(
    graph: Graph,
    period: int,
    *applied: Rule,
    pins: Mapping[str, int] | None = None,
    minimise: str | None = None,
    at_most: Mapping[str, int] | None = None,
    max_received: int | None = None,
    bare: bool = True,
) -> int | None:
    """Apply rules and pins; return the objective (0 without one), None if infeasible.

    Pins name variables: ``start_A``, ``on_A_d1``, ``delay_k``. With `bare`, windows
    are wide and nothing is deduced.
    """
    request = Request(
        graph=graph,
        period=period,
        minimise=minimise,
        at_most=at_most or {},
        max_received=max_received,
    )
    scope = scope_of(request, deduce=not bare, narrow=not bare)
    problem = pulp.LpProblem("rule", pulp.LpMinimize)
    x = create_variables(scope, problem)
    made = [*x.on.values(), *x.start.values(), *x.order.values(), *x.delay.values()]
    by_name = {variable.name: variable for variable in made}
    figure = None
    for rule in applied:
        returned = rule(x)
        figure = figure if returned is None else returned
    for name, value in (pins or {}).items():
        x.require(pulp.lpSum([by_name[name]]) == value, "pin", name)
    problem.setObjective(pulp.lpSum([] if figure is None else [figure]))
    watch = Watch(deadline=time.monotonic() + 60, interrupt=threading.Event())
    solved = run_highs(problem, watch, seed=0, begin={})
    assert solved.is_complete
    if solved.values is None:
        return None
    names = [variable.name for variable in problem.variables()]
    values = dict(zip(names, solved.values, strict=True))
    return 0 if figure is None else round(values[figure.name])


def pair(**fields: Any) -> Graph:  # noqa: ANN401 - any field of Graph
    """A (3 ticks) sends 8 units to B (2 ticks): 2 + 8 / 4 = 4 ticks; B back to A."""
    return make_graph(
        {"A": 3, "B": 2},
        [make_tensor("a", 8, "A", "B"), make_tensor("b", 8, "B", ("A", "k"))],
        **{
            "devices": 2,
            "link": Link(latency=2, units_per_tick=4),
            "delays": {K: Delay(min=1, max=2)},
            **fields,
        },
    )


def loose(**durations: int) -> Graph:
    """Two ops that hold each other in time, but not tightly."""
    first, second = durations
    return make_graph(
        durations,
        devices=2,
        dependences=tuple(
            Dependence(src=OpId(u), dst=OpId(v), delay=3)
            for u, v in ((first, second), (second, first))
        ),
    )


def waits(x: Variables) -> None:
    """Precedence with what it is made of."""
    rules.add_coverage(x)
    rules.add_sharing(x)
    rules.add_precedence(x)


def takes_turns(x: Variables) -> None:
    """Exclusivity with what it is made of."""
    rules.add_coverage(x)
    rules.add_sharing(x)
    rules.add_exclusive(x)


def test_an_op_runs_on_exactly_one_device() -> None:
    graph = pair()
    both, nowhere = {"on_A_d0": 1, "on_A_d1": 1}, {"on_A_d0": 0, "on_A_d1": 0}
    assert solve(graph, 9, rules.add_coverage) == 0
    assert solve(graph, 9, pins=both) == 0
    assert solve(graph, 9, rules.add_coverage, pins=both) is None
    assert solve(graph, 9, rules.add_coverage, pins=nowhere) is None
    assert solve(graph, 9, rules.add_coverage, pins={"on_A_d1": 1}) == 0


def test_an_op_longer_than_the_period_has_no_device() -> None:
    graph = make_graph([make_op("A", {"d0": 9, "d1": 5})], devices=2)
    assert solve(graph, 8, rules.add_coverage, pins={"on_A_d1": 1}) == 0
    assert solve(graph, 4, rules.add_coverage) is None


def test_an_op_that_must_repeat_before_it_can_has_no_device() -> None:
    """A takes 5 on d0 and 2 on d1, and a lag of 2 before its next run at T = 6."""
    again = Dependence(src=OpId("A"), dst=OpId("A"), delay=1, lag=2)
    graph = make_graph(
        [make_op("A", {"d0": 5, "d1": 2})], devices=2, dependences=(again,)
    )
    assert solve(graph, 6, rules.add_coverage, pins={"on_A_d1": 1}) == 0
    assert solve(graph, 6, rules.add_coverage, pins={"on_A_d1": 0}) is None


def test_colocated_ops_share_a_device() -> None:
    graph = pair(colocate=((OpId("A"), OpId("B")),))
    bound = (rules.add_coverage, rules.add_colocate)
    apart = {"on_A_d0": 1, "on_B_d1": 1}
    assert solve(graph, 9, *bound) == 0
    assert solve(graph, 9, rules.add_coverage, pins=apart) == 0
    assert solve(graph, 9, *bound, pins=apart) is None
    assert solve(graph, 9, *bound, pins={"on_B_d1": 1}) == 0


@pytest.mark.parametrize(
    ("devices", "start", "fits"),
    [((0, 0), 3, True), ((0, 0), 2, False), ((0, 1), 7, True), ((0, 1), 6, False)],
)
def test_an_op_waits_for_its_operand_and_its_transfer(
    devices: tuple[int, int], start: int, *, fits: bool
) -> None:
    """A ends at 3; B may start then on A's device and at 3 + 4 on the other."""
    pins = {
        f"on_A_d{devices[0]}": 1,
        f"on_B_d{devices[1]}": 1,
        "start_A": 0,
        "start_B": start,
    }
    assert solve(pair(), 20, rules.add_coverage, pins=pins) == 0
    assert (solve(pair(), 20, waits, pins=pins) == 0) == fits


def test_a_delay_grants_whole_periods() -> None:
    """B ends at 7 + 2 = 9, so A needs k = 2 at T = 6."""
    graph, cap = pair(devices=1), {"staleness": 1}
    pins = {"start_A": 0, "start_B": 7}
    assert solve(graph, 6, waits, pins=pins | {"delay_k": 2}, at_most=cap) == 0
    assert solve(graph, 6, pins=pins | {"delay_k": 1}, at_most=cap) == 0
    assert solve(graph, 6, waits, pins=pins | {"delay_k": 1}, at_most=cap) is None


def test_a_delay_that_is_a_variable_grants_an_op_its_own_next_run() -> None:
    """A and a lag of 4 take 9 on d0, two periods of 6, and 6 on d1."""
    graph = make_graph(
        [make_op("A", {"d0": 5, "d1": 2})],
        devices=2,
        dependences=(Dependence(src=OpId("A"), dst=OpId("A"), delay=K, lag=4),),
        delays={K: Delay(min=1, max=3)},
    )
    pins, cap = {"on_A_d0": 1, "delay_k": 1}, {"staleness": 2}
    assert solve(graph, 6, waits, at_most=cap) == 0
    assert solve(graph, 6, rules.add_coverage, pins=pins, at_most=cap) == 0
    assert solve(graph, 6, waits, pins=pins, at_most=cap) is None
    assert solve(graph, 6, waits, pins=pins | {"delay_k": 2}, at_most=cap) == 0


def test_a_lag_is_waited_out() -> None:
    graph = make_graph(
        {"A": 3, "B": 2},
        dependences=(
            Dependence(src=OpId("A"), dst=OpId("B"), lag=2),
            Dependence(src=OpId("B"), dst=OpId("A"), delay=2),
        ),
    )
    assert solve(graph, 9, waits, pins={"start_A": 0, "start_B": 5}) == 0
    assert solve(graph, 9, waits, pins={"start_A": 0, "start_B": 4}) is None


def test_a_transfer_takes_what_its_own_link_says() -> None:
    """From d0 to d1 the default 4 ticks, from d1 to d0 9 + 8/4 = 11."""
    graph = pair(links={("d1", "d0"): Link(latency=9, units_per_tick=4)})
    there = {"on_A_d0": 1, "on_B_d1": 1, "start_A": 0}
    back = {"on_A_d1": 1, "on_B_d0": 1, "start_A": 0}
    assert solve(graph, 30, waits, pins=there | {"start_B": 7}) == 0
    assert solve(graph, 30, waits, pins=there | {"start_B": 6}) is None
    assert solve(graph, 30, waits, pins=back | {"start_B": 13}) is None
    assert solve(graph, 30, waits, pins=back | {"start_B": 14}) == 0


@pytest.mark.parametrize(
    ("start", "fits"), [(3, True), (2, False), (5, True), (6, False), (12, True)]
)
def test_ops_on_one_device_take_turns_modulo_the_period(
    start: int, *, fits: bool
) -> None:
    """T = 7: A occupies 0..3, so B (2 ticks) may start at 3, 4 or 5 modulo 7."""
    graph = loose(A=3, B=2)
    pins = {"on_A_d0": 1, "on_B_d0": 1, "start_A": 0, "start_B": start}
    assert solve(graph, 7, rules.add_coverage, pins=pins) == 0
    assert (solve(graph, 7, takes_turns, pins=pins) == 0) == fits
    apart = pins | {"on_A_d0": 0, "on_A_d1": 1}
    assert solve(graph, 7, takes_turns, pins=apart) == 0


@pytest.mark.parametrize(("device", "fits"), [(0, False), (1, True)])
def test_turns_are_as_long_as_their_device_makes_them(
    device: int, *, fits: bool
) -> None:
    """A takes 5 of 7 ticks on d0 and 3 on d1: B (2 ticks) may start at 4 on d1."""
    graph = loose(A=3, B=2)
    graph = graph.replace(ops=(make_op("A", {"d0": 5, "d1": 3}), make_op("B", 2)))
    pins = {f"on_A_d{device}": 1, f"on_B_d{device}": 1, "start_A": 0, "start_B": 4}
    assert solve(graph, 7, rules.add_coverage, pins=pins) == 0
    assert (solve(graph, 7, takes_turns, pins=pins) == 0) == fits


def test_ops_of_no_duration_occupy_nothing() -> None:
    pins = {"on_A_d0": 1, "on_B_d0": 1, "start_A": 0, "start_B": 1}
    assert solve(loose(A=3, B=0), 3, takes_turns, pins=pins) == 0


def test_pairs_that_the_windows_part_never_share_a_device() -> None:
    """A and B take 3 ticks each and both start 0 to 2 ticks after Z."""
    graph = make_graph(
        {"A": 3, "B": 3, "Z": 0},
        devices=2,
        dependences=(
            *(Dependence(src=OpId("Z"), dst=OpId(v)) for v in "AB"),
            *(Dependence(src=OpId(v), dst=OpId("Z"), delay=1, lag=3) for v in "AB"),
        ),
    )
    shared = {"on_A_d0": 1, "on_B_d0": 1}
    assert solve(graph, 8, rules.add_coverage, pins=shared, bare=False) == 0
    assert solve(graph, 8, takes_turns, pins=shared, bare=False) is None
    assert solve(graph, 8, takes_turns, pins={"on_A_d0": 1}, bare=False) == 0


def test_a_device_works_at_most_the_period() -> None:
    graph = make_graph({"A": 3, "B": 3, "C": 2}, devices=2)
    full = {"on_A_d0": 1, "on_B_d0": 1}
    bound = (rules.add_coverage, rules.add_load)
    assert solve(graph, 5, *bound) == 0
    assert solve(graph, 5, rules.add_coverage, pins=full) == 0
    assert solve(graph, 5, *bound, pins=full) is None
    assert solve(graph, 5, *bound, pins={"on_A_d0": 1, "on_B_d1": 1}) == 0


def test_with_flush_an_iteration_fits_in_a_period() -> None:
    graph = pair(devices=1, flush=True, delays={K: Delay(min=1, max=9)})
    late = {"start_A": 0, "start_B": 6}
    assert solve(graph, 7, waits, rules.add_flush) == 0
    assert solve(graph, 7, waits, pins=late) == 0
    assert solve(graph, 7, waits, rules.add_flush, pins=late) is None
    legal = {"start_A": 0, "start_B": 5}
    assert solve(graph, 7, waits, rules.add_flush, pins=legal) == 0


def test_a_refuted_period_is_infeasible_by_a_row_that_says_why() -> None:
    """A and B take 5 of a cycle with one delay: no period of 4."""
    graph = pair(devices=1, delays={K: Delay(min=1, max=1)})
    assert solve(graph, 4, rules.add_coverage, bare=False) == 0
    bound = (rules.add_coverage, rules.add_refutation)
    assert solve(graph, 4, *bound, bare=False) is None
    assert solve(graph, 5, *bound, bare=False) == 0


def test_what_is_sent_counts_once_a_device() -> None:
    """A's tensor goes to B and C: the unit is its size."""
    graph = make_graph(
        {"A": 1, "B": 1, "C": 1}, [make_tensor("a", 5, "A", "B", "C")], devices=3
    )

    def sent(a: int, b: int, c: int) -> int | None:
        return solve(
            graph,
            9,
            rules.add_coverage,
            objective.add_communication,
            pins={f"on_A_d{a}": 1, f"on_B_d{b}": 1, f"on_C_d{c}": 1},
            minimise="communication",
        )

    assert [sent(0, 0, 0), sent(0, 1, 1), sent(0, 1, 2), sent(0, 0, 2)] == [0, 1, 2, 1]


@pytest.mark.parametrize(("d", "most"), [("on_D_d0", 8), ("on_D_d1", 5)])
def test_what_comes_to_a_device_is_limited(d: str, most: int) -> None:
    """5 of A come to d1 once, for B and C, and 3 of D if it is on d0."""
    tensors = [make_tensor("x", 5, "A", "B", "C"), make_tensor("y", 3, "D", "B")]
    graph = make_graph({"A": 1, "B": 1, "C": 1, "D": 1}, tensors, devices=2)
    pins = dict.fromkeys(("on_A_d0", "on_B_d1", "on_C_d1", d), 1)
    both = (rules.add_coverage, rules.add_received)
    assert solve(graph, 9, *both, pins=pins, max_received=most) == 0
    assert solve(graph, 9, *both, pins=pins, max_received=most - 1) is None
    assert solve(graph, 9, both[0], pins=pins, max_received=most - 1) == 0
    assert solve(graph, 9, *both, max_received=0) == 0


def test_a_cap_on_communication_refuses_what_exceeds_it() -> None:
    bound = (rules.add_coverage, objective.add_communication)
    apart = {"on_A_d0": 1, "on_B_d1": 1}
    assert solve(pair(), 9, *bound, pins=apart, at_most={"communication": 15}) is None
    assert solve(pair(), 9, *bound, pins=apart, at_most={"communication": 16}) == 2


def test_staleness_is_what_delays_exceed_one_by() -> None:
    graph = pair(devices=1, delays={K: Delay(min=1, max=4)})
    both = (waits, objective.add_staleness)
    pins = {"start_A": 0, "start_B": 11}  # B ends at 13: A waits 3 periods of 6
    assert solve(graph, 6, *both, minimise="staleness") == 0
    assert solve(graph, 6, *both, pins=pins, minimise="staleness") == 2
    assert solve(graph, 6, *both, pins=pins, at_most={"staleness": 1}) is None


def test_the_makespan_reaches_from_the_first_start_to_the_last_end() -> None:
    graph = pair(devices=1, delays={K: Delay(min=1, max=4)})
    both = (waits, objective.add_makespan)
    pins = {"start_A": 0, "start_B": 6}
    assert solve(graph, 6, *both, minimise="makespan") == 5
    assert solve(graph, 6, *both, pins=pins, minimise="makespan") == 8
    assert solve(graph, 6, *both, pins=pins, at_most={"makespan": 7}) is None


def held(
    graph: Graph, period: int, pins: Mapping[str, int], *, cuts: bool
) -> int | None:
    """Least peak memory, in units of the common size, for pinned ops."""

    def add(x: Variables) -> pulp.LpVariable:
        waits(x)
        peak = objective.add_peak(x)
        add_memory(x, peak, cuts=cuts)
        return peak

    return solve(graph, period, add, pins=pins, minimise="peak_memory")


@pytest.mark.parametrize("cuts", [True, False])
@pytest.mark.parametrize(("start", "alive"), [(3, 1), (6, 1), (7, 2), (14, 2), (15, 3)])
def test_copies_of_successive_iterations_are_all_counted(
    start: int, alive: int, *, cuts: bool
) -> None:
    """One device, T = 8: a lives from 0 until B ends at start + 2.

    Up to 8 ticks one copy is alive at any phase, up to 16 two at some, and so on.
    """
    graph = make_graph({"A": 3, "B": 2}, [make_tensor("a", 7, "A", "B")])
    pins = {"start_A": 0, "start_B": start}
    assert held(graph, 8, pins, cuts=cuts) == alive


@pytest.mark.parametrize("cuts", [True, False])
def test_a_copy_elsewhere_lives_from_the_end_of_its_producer(*, cuts: bool) -> None:
    """T = 9, A at 0..3 on d0, B (2 ticks) on d1, the transfer takes 3..7.

    At home the copy lives 0..7, on d1 from 3 to the end of B: 9 ticks (one copy) up
    to B at 10, two at some phase from 11 on.
    """
    graph = make_graph(
        {"A": 3, "B": 2},
        [make_tensor("a", 8, "A", "B")],
        devices=2,
        link=Link(latency=2, units_per_tick=4),
    )
    pins = {"on_A_d0": 1, "on_B_d1": 1, "start_A": 0}
    assert held(graph, 9, pins | {"start_B": 10}, cuts=cuts) == 1
    assert held(graph, 9, pins | {"start_B": 11}, cuts=cuts) == 2
    # At T = 6 the transfer itself outlasts the period at home.
    assert held(graph, 6, pins | {"start_B": 7}, cuts=cuts) == 2


def test_residents_are_paid_once_by_a_device_that_runs_any_of_their_ops() -> None:
    graph = make_graph(
        {"A": 1, "B": 1, "C": 1},
        devices=devices_of(2, memory=10),
        residents=(
            Resident(size=6, ops=(OpId("A"), OpId("B"))),
            Resident(size=5, ops=(OpId("C"),)),
        ),
    )

    def bound(x: Variables) -> None:
        rules.add_coverage(x)
        add_memory(x)

    pair_and_c = {"on_A_d0": 1, "on_B_d0": 1, "on_C_d1": 1}
    assert solve(graph, 9, bound, pins=pair_and_c) == 0
    with_c = {"on_A_d0": 1, "on_C_d0": 1}
    assert solve(graph, 9, rules.add_coverage, pins=with_c) == 0
    assert solve(graph, 9, bound, pins=with_c) is None


def test_identical_devices_are_numbered_by_first_use() -> None:
    graph = make_graph({"A": 1, "B": 1}, devices=2)
    bound = (rules.add_coverage, tightening.add_symmetry)
    assert solve(graph, 9, *bound) == 0
    assert solve(graph, 9, rules.add_coverage, pins={"on_A_d1": 1}) == 0
    assert solve(graph, 9, *bound, pins={"on_A_d1": 1}) is None
    assert solve(graph, 9, *bound, pins={"on_A_d0": 1, "on_B_d1": 1}) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"devices": devices_of(2, memory=[9, None])},
        {"links": {("d0", "d1"): Link(latency=5)}},
        {"ops": (make_op("A", {"d0": 1, "d1": 2}), make_op("B", 1))},
        {"ops": (make_op("A", 1, devices=["d0"]), make_op("B", 1))},
    ],
    ids=["memory", "links", "speed", "allowed"],
)
def test_devices_that_differ_in_anything_are_no_twins(fields: dict[str, Any]) -> None:
    graph = make_graph({"A": 1, "B": 1}, [make_tensor("a", 3, "A", "B")], devices=2)
    twins = [[0, 1]]
    assert tightening.twins(scope_of(Request(graph=graph, period=9))) == twins
    other = graph.replace(**fields)
    assert tightening.twins(scope_of(Request(graph=other, period=9))) == []


def test_ops_without_room_for_a_transfer_share_a_device() -> None:
    """The cycle A, B takes 5 of T = 6; two transfers of 4 do not fit."""
    graph = pair(delays={K: Delay(min=1, max=1)})
    bound = (rules.add_coverage, tightening.add_neighbours)
    apart = {"on_A_d0": 1, "on_B_d1": 1}
    assert solve(graph, 6, *bound, bare=False) == 0
    assert solve(graph, 6, rules.add_coverage, pins=apart, bare=False) == 0
    assert solve(graph, 6, *bound, pins=apart, bare=False) is None
    assert solve(graph, 13, *bound, pins=apart, bare=False) == 0
