"""Each rule of the CP-SAT model alone: kept, broken by pinning, kept by pinning.

A pin that breaks a rule is feasible as long as that rule is left out, so that it is
this rule, and not a window or another rule, which refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from factories import devices_of, make_graph, make_op, make_tensor
from ortools.sat.python.cp_model import FEASIBLE, INFEASIBLE, OPTIMAL, CpModel, CpSolver

from lpsched.analysis.windows import Refutation
from lpsched.core.graph import Delay, DelayName, Dependence, Graph, Link, OpId, Resident
from lpsched.formulations.api import Request
from lpsched.formulations.cpsat import constraints as rules
from lpsched.formulations.cpsat import objective
from lpsched.formulations.cpsat.memory import add_memory, add_peak, memory_in_use
from lpsched.formulations.cpsat.scope import Options, scope_of
from lpsched.formulations.cpsat.symmetry import add_symmetry
from lpsched.formulations.cpsat.variables import Variables, create_variables

#: No deduction before the search and no windows: the rules stand alone.
BARE = Options(windows=False, deduce=False, loads=False, symmetry=False, hint=False)

Rule = Callable[[Variables], object]
K = DelayName("k")


def solve(
    graph: Graph,
    period: int,
    *applied: Rule,
    pins: Mapping[str, int] | None = None,
    options: Options = BARE,
    minimise: str | None = None,
    at_most: Mapping[str, int] | None = None,
    max_received: int | None = None,
) -> int | None:
    """Apply rules and pins; return the objective (0 without one), None if infeasible.

    A pin names a variable with op ids: ``start[A]``, ``on[A,1]``, ``delay[k]``.
    """
    request = Request(
        graph=graph,
        period=period,
        minimise=minimise,
        at_most=at_most or {},
        max_received=max_received,
    )
    scope = scope_of(request, options)
    assert not isinstance(scope, Refutation)
    cp = CpModel()
    x = create_variables(cp, scope)
    for rule in applied:
        rule(x)
    for name, value in (pins or {}).items():
        cp.add(variable(x, name) == value)
    solver = CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(cp)
    assert status in (OPTIMAL, FEASIBLE, INFEASIBLE)
    return None if status == INFEASIBLE else round(solver.objective_value)


def variable(x: Variables, name: str) -> Any:  # noqa: ANN401 - an expression
    """Find a variable by the name of its kind and its op."""
    kind, _, rest = name.rstrip("]").partition("[")
    op, _, device = rest.partition(",")
    if kind == "delay":
        return x.delay[DelayName(op)]
    v = x.scope.at.op_numbers[OpId(op)]
    return x.on[v, int(device)] if kind == "on" else {"start": x.start}[kind][v]


def pair(**fields: Any) -> Graph:  # noqa: ANN401 - any field of Graph
    """Build A (3 ticks) -> B (2 ticks), 8 units at 2 + 8/4 = 4 ticks, and back."""
    return make_graph(
        {"A": 3, "B": 2},
        [make_tensor("x", 8, "A", "B"), make_tensor("w", 8, "B", ("A", "k"))],
        **{
            "devices": 2,
            "link": Link(latency=2, units_per_tick=4),
            "delays": {K: Delay(min=1, max=2)},
            **fields,
        },
    )


def together(x: Variables) -> None:
    """Coverage and the split of starts, which other rules need to speak of."""
    rules.add_coverage(x)
    rules.add_period(x)


def test_an_op_runs_on_exactly_one_device() -> None:
    graph = pair()
    assert solve(graph, 9, rules.add_coverage) == 0
    assert solve(graph, 9, pins={"on[A,0]": 1, "on[A,1]": 1}) == 0
    both = {"on[A,0]": 1, "on[A,1]": 1}
    assert solve(graph, 9, rules.add_coverage, pins=both) is None
    nowhere = {"on[A,0]": 0, "on[A,1]": 0}
    assert solve(graph, 9, rules.add_coverage, pins=nowhere) is None
    assert solve(graph, 9, rules.add_coverage, pins={"on[A,1]": 1}) == 0


def test_colocated_ops_are_covered_as_one() -> None:
    graph = pair(colocate=((OpId("A"), OpId("B")),))
    apart = {"on[A,0]": 1, "on[B,1]": 1}
    assert solve(graph, 9, rules.add_coverage) == 0
    assert solve(graph, 9, rules.add_coverage, pins=apart) is None
    assert solve(graph, 9, rules.add_coverage, pins={"on[B,1]": 1}) == 0


@pytest.mark.parametrize(
    ("devices", "start", "fits"),
    [((0, 0), 3, True), ((0, 0), 2, False), ((0, 1), 7, True), ((0, 1), 6, False)],
)
def test_an_op_waits_for_its_operand_and_its_transfer(
    devices: tuple[int, int], start: int, *, fits: bool
) -> None:
    """A ends at 3; B may start then on A's device and at 3 + 4 on the other."""
    graph = pair()
    pins = {
        f"on[A,{devices[0]}]": 1,
        f"on[B,{devices[1]}]": 1,
        "start[A]": 0,
        "start[B]": start,
    }
    assert solve(graph, 20, together, pins=pins) == 0
    found = solve(graph, 20, together, rules.add_precedence, pins=pins)
    assert (found == 0) == fits


def test_a_delay_grants_whole_periods() -> None:
    """B ends at 7 + 2 = 9, so A needs k = 2 at T = 6."""
    graph = pair(devices=1)
    pins = {"start[A]": 0, "start[B]": 7}
    cap = {"staleness": 1}
    bound = (together, rules.add_precedence)
    assert solve(graph, 6, *bound, pins=pins | {"delay[k]": 2}, at_most=cap) == 0
    assert solve(graph, 6, together, pins=pins | {"delay[k]": 1}, at_most=cap) == 0
    assert solve(graph, 6, *bound, pins=pins | {"delay[k]": 1}, at_most=cap) is None


def test_a_lag_is_waited_out() -> None:
    graph = make_graph(
        {"A": 3, "B": 2},
        devices=1,
        dependences=(
            Dependence(src=OpId("A"), dst=OpId("B"), lag=2),
            Dependence(src=OpId("B"), dst=OpId("A"), delay=2),
        ),
    )
    bound = (together, rules.add_precedence)
    assert solve(graph, 9, *bound, pins={"start[A]": 0, "start[B]": 5}) == 0
    assert solve(graph, 9, *bound, pins={"start[A]": 0, "start[B]": 4}) is None


def test_a_transfer_takes_what_its_own_link_says() -> None:
    """From d0 to d1 the default 4 ticks, from d1 to d0 9 + 8/4 = 11."""
    graph = pair(links={("d1", "d0"): Link(latency=9, units_per_tick=4)})
    bound = (together, rules.add_precedence)
    there = {"on[A,0]": 1, "on[B,1]": 1, "start[A]": 0, "start[B]": 7}
    back = {"on[A,1]": 1, "on[B,0]": 1, "start[A]": 0}
    assert solve(graph, 30, *bound, pins=there) == 0
    assert solve(graph, 30, *bound, pins=back | {"start[B]": 13}) is None
    assert solve(graph, 30, *bound, pins=back | {"start[B]": 14}) == 0


@pytest.mark.parametrize(
    ("start", "fits"), [(3, True), (2, False), (5, True), (6, False), (12, True)]
)
def test_ops_on_one_device_take_turns_modulo_the_period(
    start: int, *, fits: bool
) -> None:
    """T = 7: A occupies 0..3, so B (2 ticks) may start at 3, 4 or 5 modulo 7."""
    graph = make_graph(
        {"A": 3, "B": 2},
        devices=2,
        dependences=tuple(
            Dependence(src=OpId(u), dst=OpId(v), delay=3) for u, v in ("AB", "BA")
        ),
    )
    pins = {"on[A,0]": 1, "on[B,0]": 1, "start[A]": 0, "start[B]": start}
    assert solve(graph, 7, together, pins=pins) == 0
    found = solve(graph, 7, together, rules.add_exclusive, pins=pins)
    assert (found == 0) == fits
    apart = pins | {"on[A,0]": 0, "on[A,1]": 1}
    assert solve(graph, 7, together, rules.add_exclusive, pins=apart) == 0


def test_ops_of_no_duration_occupy_nothing() -> None:
    graph = make_graph(
        {"A": 3, "B": 0},
        dependences=tuple(
            Dependence(src=OpId(u), dst=OpId(v), delay=3) for u, v in ("AB", "BA")
        ),
    )
    pins = {"start[A]": 0, "start[B]": 1}
    assert solve(graph, 3, together, rules.add_exclusive, pins=pins) == 0


def test_a_device_works_at_most_the_period_and_at_least_what_others_leave() -> None:
    """3 + 3 + 2 = 8 ticks on two devices of 5: each works at least 3."""
    graph = make_graph({"A": 3, "B": 3, "C": 2}, devices=2)

    def add_load(x: Variables) -> None:
        rules.add_load(x, least=True)

    full = {"on[A,0]": 1, "on[B,0]": 1, "on[C,1]": 1}
    assert solve(graph, 5, rules.add_coverage, add_load) == 0
    assert solve(graph, 5, rules.add_coverage, pins=full) == 0
    assert solve(graph, 5, rules.add_coverage, add_load, pins=full) is None
    legal = {"on[A,0]": 1, "on[B,1]": 1}
    assert solve(graph, 5, rules.add_coverage, add_load, pins=legal) == 0


def test_with_flush_an_iteration_fits_in_a_period() -> None:
    graph = pair(devices=1, flush=True, delays={K: Delay(min=1, max=9)})
    bound = (together, rules.add_precedence)
    late = {"start[A]": 0, "start[B]": 6}
    assert solve(graph, 7, *bound, rules.add_flush) == 0
    assert solve(graph, 7, *bound, pins=late) == 0
    assert solve(graph, 7, *bound, rules.add_flush, pins=late) is None
    legal = {"start[A]": 0, "start[B]": 5}
    assert solve(graph, 7, *bound, rules.add_flush, pins=legal) == 0


def test_what_is_sent_counts_once_a_device() -> None:
    """A's 5 units go to B and C: 0 all together, 5 if both are on d1, 10 if apart."""
    graph = make_graph(
        {"A": 1, "B": 1, "C": 1}, [make_tensor("x", 5, "A", "B", "C")], devices=3
    )

    def total(**homes: int) -> int | None:
        def minimise(x: Variables) -> None:
            figure = objective.add_communication(x)
            objective.add_objective(x, figure, 0)

        pins = {f"on[{op},{p}]": 1 for op, p in homes.items()}
        sent = solve(graph, 9, rules.add_coverage, minimise, pins=pins)
        return None if sent is None else sent * 5  # the model's unit is the gcd

    assert total() == 0
    assert total(A=0, B=1, C=1) == 5
    assert total(A=0, B=1, C=2) == 10
    assert total(A=0, B=0, C=2) == 5


def test_a_device_receives_at_most_so_much_and_each_tensor_once() -> None:
    """B and C on d1 take 5 of A once, B takes 3 of D, too: 8. With D at home, 5."""
    graph = make_graph(
        {"A": 1, "B": 1, "C": 1, "D": 1},
        [make_tensor("x", 5, "A", "B", "C"), make_tensor("y", 3, "D", "B")],
        devices=2,
    )

    def fits(most: int, *applied: Rule, **homes: int) -> bool:
        pins = {f"on[{op},{p}]": 1 for op, p in homes.items()}
        found = solve(
            graph, 9, rules.add_coverage, *applied, pins=pins, max_received=most
        )
        return found is not None

    away = {"A": 0, "B": 1, "C": 1, "D": 0}
    assert fits(7, **away)
    assert not fits(7, rules.add_received, **away)
    assert fits(8, rules.add_received, **away)
    assert fits(5, rules.add_received, **away | {"D": 1})
    assert not fits(4, rules.add_received, **away | {"D": 1})
    assert fits(0, rules.add_received)


def test_a_cap_bounds_a_figure() -> None:
    graph = pair()

    def cap_at(cap: int) -> Rule:
        def rule(x: Variables) -> None:
            objective.add_cap(x, objective.add_communication(x), cap)

        return rule

    apart = {"on[A,0]": 1, "on[B,1]": 1}
    assert solve(graph, 30, rules.add_coverage, cap_at(2), pins=apart) == 0
    assert solve(graph, 30, rules.add_coverage, cap_at(1), pins=apart) is None
    assert solve(graph, 30, rules.add_coverage, cap_at(1)) == 0


def test_staleness_is_what_the_delays_exceed_one_by() -> None:
    graph = pair(devices=1)

    def minimise(x: Variables) -> None:
        objective.add_objective(x, objective.add_staleness(x), 0)

    bound = (together, rules.add_precedence, minimise)
    assert solve(graph, 5, *bound, minimise="staleness") == 0
    assert solve(graph, 5, *bound, pins={"delay[k]": 2}, minimise="staleness") == 1
    pins = {"start[A]": 0, "start[B]": 6}
    assert solve(graph, 5, *bound, pins=pins, minimise="staleness") == 1


def test_a_lower_bound_is_taken_as_proved() -> None:
    graph = pair(devices=1)

    def minimise(x: Variables) -> None:
        objective.add_objective(x, objective.add_staleness(x), 1)

    assert solve(graph, 5, together, minimise, minimise="staleness") == 1


def holding(limit: int | None) -> Graph:
    """Build A (2 ticks) -> B (2 ticks) on one device, 5 units, and a resident of 3."""
    return make_graph(
        {"A": 2, "B": 2},
        [make_tensor("x", 5, "A", "B")],
        devices=devices_of(2, memory=[limit, None]),
        residents=(Resident(size=3, ops=(OpId("A"), OpId("B"))),),
        dependences=(Dependence(src=OpId("B"), dst=OpId("A"), delay=3),),
        link=Link(latency=1),
    )


def memory(x: Variables) -> None:
    """Apply the memory rule with what it needs."""
    add_memory(x, memory_in_use(x))


@pytest.mark.parametrize(
    ("start", "limit", "fits"),
    [
        (2, 8, True),  # x lives 0..4 = T: one copy always, and the resident
        (2, 7, False),
        (3, 8, False),  # x lives 0..5: two copies at phase 0
        (3, 13, True),
        (7, 17, False),  # x lives 0..9: 2 T + 1, three copies at phase 0
    ],
)
def test_memory_counts_every_copy_alive(start: int, limit: int, *, fits: bool) -> None:
    graph = holding(limit)
    pins = {"on[A,0]": 1, "on[B,0]": 1, "start[A]": 0, "start[B]": start}
    bound = (together, rules.add_precedence)
    assert solve(graph, 4, *bound, pins=pins) == 0
    found = solve(graph, 4, *bound, memory, pins=pins)
    assert (found == 0) == fits


def test_a_copy_elsewhere_lives_from_the_producers_end() -> None:
    """A on d1, B on d0 at T = 4: x is on d0 from 2 (A's end) to the end of B.

    B at 3: 2..5, one copy and 3 of residents = 8. B at 5: 2..7, 5 ticks, two copies.
    """
    pins = {"on[A,1]": 1, "on[B,0]": 1, "start[A]": 0}
    bound = (together, rules.add_precedence, memory)
    assert solve(holding(8), 4, *bound, pins=pins | {"start[B]": 3}) == 0
    assert solve(holding(7), 4, *bound, pins=pins | {"start[B]": 3}) is None
    assert solve(holding(12), 4, *bound, pins=pins | {"start[B]": 5}) is None
    assert solve(holding(13), 4, *bound, pins=pins | {"start[B]": 5}) == 0


def test_the_peak_is_the_highest_of_all_devices() -> None:
    def minimise(x: Variables) -> None:
        objective.add_objective(x, add_peak(x, memory_in_use(x)), 0)

    bound = (together, rules.add_precedence, minimise)
    pins = {"on[A,0]": 1, "on[B,0]": 1, "start[A]": 0, "start[B]": 3}
    assert solve(holding(None), 4, *bound, pins=pins, minimise="peak_memory") == 13
    assert solve(holding(None), 4, *bound, minimise="peak_memory") == 8


def test_equal_devices_are_numbered_by_first_use() -> None:
    graph = make_graph({"A": 1, "B": 1}, devices=3)
    bound = (rules.add_coverage, add_symmetry)
    assert solve(graph, 2, *bound) == 0
    assert solve(graph, 2, rules.add_coverage, pins={"on[A,1]": 1}) == 0
    assert solve(graph, 2, *bound, pins={"on[A,1]": 1}) is None
    assert solve(graph, 2, *bound, pins={"on[B,2]": 1}) is None
    assert solve(graph, 2, *bound, pins={"on[A,0]": 1, "on[B,1]": 1}) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"devices": devices_of(2, memory=[None, 99])},
        {"links": {("d0", "d1"): Link(latency=9)}},
    ],
    ids=["memory", "links"],
)
def test_unequal_devices_keep_their_names(fields: dict[str, Any]) -> None:
    graph = pair(**fields)
    first = {"on[A,1]": 1}
    assert solve(graph, 30, together, add_symmetry, pins=first) == 0


def test_a_device_that_runs_an_op_faster_or_alone_keeps_its_name() -> None:
    faster = make_graph([make_op("A", {"d0": 2, "d1": 1})], devices=2)
    alone = make_graph([make_op("A", 1), make_op("B", 1, devices=["d1"])], devices=2)
    for graph in (faster, alone):
        bound = (rules.add_coverage, add_symmetry)
        assert solve(graph, 9, *bound, pins={"on[A,1]": 1}) == 0


def test_equal_ops_start_in_order() -> None:
    """B.0 and B.1 do the same; C differs from both in its duration."""
    graph = make_graph(
        {"A": 1, "B.0": 2, "B.1": 2, "C": 3},
        [
            make_tensor("x", 4, "A", "B.0", "B.1", "C"),
            *(make_tensor(f"y{op}", 1, op, ("A", 2)) for op in ("B.0", "B.1", "C")),
        ],
    )
    bound = (together, add_symmetry)
    assert solve(graph, 9, together, pins={"start[B.0]": 4, "start[B.1]": 2}) == 0
    assert solve(graph, 9, *bound, pins={"start[B.0]": 4, "start[B.1]": 2}) is None
    assert solve(graph, 9, *bound, pins={"start[B.0]": 2, "start[B.1]": 4}) == 0
    assert solve(graph, 9, *bound, pins={"start[C]": 2, "start[B.0]": 4}) == 0
