"""The counting model of pipelines: rule by rule, and against every order tried."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import CpModel, CpSolver
from pipeline_oracle import fits, optimum, value
from pipelines import Times, pipeline
from random_chains import random_chain

from lpsched.analysis.chain import Chain, chain_of
from lpsched.analysis.pipeline import pipeline_of
from lpsched.core.result import Status
from lpsched.formulations.api import Limits
from lpsched.formulations.pipeline import (
    add_hint,
    build,
    orders_of,
    solve_chain_at_period,
)
from lpsched.formulations.pipeline import constraints as rules
from lpsched.formulations.pipeline.variables import (
    Row,
    Variables,
    create_variables,
    unit_of,
)

LIMITS = Limits(seconds=60)


def chain_for(p: int, m: int, times: Times, **keys: Any) -> Chain:  # noqa: ANN401
    """Chain of a pipeline."""
    return chain_of(pipeline_of(pipeline(p, m, times, **keys)))


def variables(chain: Chain, period: int) -> Variables:
    x = create_variables(CpModel(), chain, period)
    assert x is not None
    return x


def is_possible(x: Variables) -> bool:
    """Tell whether the rules added so far leave a solution."""
    status = CpSolver().solve(x.cp)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    return status == cp_model.OPTIMAL


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_the_least_period_is_that_of_trying_every_order(seed: int) -> None:
    chain = random_chain(Random(seed))
    best = optimum(chain)
    if best is None:
        ample = 10 * sum(chain.load) + 100
        outcome = solve_chain_at_period(chain, ample, LIMITS)
        assert outcome.status is Status.INFEASIBLE
        return
    outcome = solve_chain_at_period(chain, best, LIMITS)
    assert outcome.status is Status.OPTIMAL
    assert outcome.orders is not None
    orders = [tuple((kind, m) for kind, _, m in lane) for lane in outcome.orders]
    assert all(fits(chain, s, order) for s, order in enumerate(orders))
    found = value(chain, orders)
    assert found is not None
    assert found <= best
    below = solve_chain_at_period(chain, best - 1, LIMITS)
    assert below.status is Status.INFEASIBLE


def test_times_with_a_common_divisor_are_counted_in_it() -> None:
    """A period of 6·n + 5 allows no more than 6·n."""
    chain = chain_for(2, 3, Times(6, 12, 6, 6), memory=4)
    assert unit_of(chain) == 6
    best = optimum(chain)
    assert best is not None
    assert best % 6 == 0
    assert solve_chain_at_period(chain, best + 5, LIMITS).status is Status.OPTIMAL
    assert solve_chain_at_period(chain, best - 1, LIMITS).status is Status.INFEASIBLE


def test_a_period_below_the_work_needs_no_model() -> None:
    chain = chain_for(1, 2, Times(1, 2, 3))
    assert build(chain, 11) is None
    assert solve_chain_at_period(chain, 11, LIMITS).status is Status.INFEASIBLE
    assert solve_chain_at_period(chain, 12, LIMITS).status is Status.OPTIMAL


#: Rows of the one stage of ONE.
FORWARD, BACK, WEIGHT = (Row(kind, 0) for kind in "FIW")

ONE = chain_for(1, 3, Times(1, 2, 3), memory=4)


def f_last(x: Variables) -> None:
    """Put F(2) before every I and W."""
    for row in (BACK, WEIGHT):
        for j in (0, 1):
            x.cp.add(x.precedes(row, j, FORWARD, 2) == 0)


@pytest.mark.parametrize(
    ("rule", "pin"),
    [
        (
            lambda x: rules.add_order(x, 0),
            lambda x: [
                x.cp.add(x.precedes(BACK, 1, FORWARD, 2) == 1),
                x.cp.add(x.precedes(BACK, 0, FORWARD, 2) == 0),
            ],
        ),
        (
            lambda x: rules.add_order(x, 0),
            lambda x: [
                x.cp.add(x.precedes(WEIGHT, 0, FORWARD, 1) == 1),
                x.cp.add(x.precedes(BACK, 0, FORWARD, 1) == 0),
            ],
        ),
        (
            lambda x: rules.add_timing(x, 0),
            lambda x: x.cp.add(x.start[FORWARD, 1] > x.start[FORWARD, 0] + 6 + 2),
        ),
        (
            lambda x: rules.add_exclusive(x, 0),
            lambda x: x.cp.add(x.start[FORWARD, 1] == x.start[FORWARD, 0]),
        ),
        (
            lambda x: rules.add_exclusive(x, 0),
            lambda x: [
                x.cp.add(x.precedes(BACK, 0, FORWARD, 1) == 1),
                x.cp.add(x.start[BACK, 0] > x.start[FORWARD, 1]),
            ],
        ),
        (lambda x: rules.add_memory(x, 0), f_last),
        (
            rules.add_precedence,
            lambda x: x.cp.add(x.start[WEIGHT, 0] < x.start[BACK, 0] + 2),
        ),
        (rules.add_span, lambda x: x.cp.add(x.start[WEIGHT, 2] + 3 > 20)),
    ],
    ids=[
        "index-order",
        "kinds-agree",
        "idle",
        "overlap",
        "order-means-time",
        "memory",
        "precedence",
        "span",
    ],
)
def test_each_rule_forbids_what_breaks_it(
    rule: Callable[[Variables], object], pin: Callable[[Variables], object]
) -> None:
    """Work of 18 in a period of 20, so 2 may be idle; room for two microbatches."""
    broken, free = variables(ONE, 20), variables(ONE, 20)
    rule(broken)
    pin(broken)
    rule(free)
    assert not is_possible(broken)
    assert is_possible(free)


def test_without_durations_orders_are_still_no_circles() -> None:
    """With F, I and W of no duration at one time W0 < F2 < I1 < W0 would fit."""
    chain = replace(ONE, forward=(0,), input_grad=(0,), weight_grad=(0,), load=(0,))
    x = variables(chain, 5)
    rules.add_order(x, 0)
    pins = [
        x.precedes(WEIGHT, 0, FORWARD, 2) == 1,
        x.precedes(BACK, 1, FORWARD, 2) == 0,
        x.precedes(WEIGHT, 0, BACK, 1) == 0,
    ]
    for pin in pins:
        x.cp.add(pin)
    assert is_possible(x)
    rules.add_transitivity(x, 0)
    assert not is_possible(x)


def test_a_hint_is_taken_and_read_back() -> None:
    order = tuple((kind, 0, m) for m in range(3) for kind in "FIW")
    x = build(ONE, 18)
    assert x is not None
    add_hint(x, [order])
    solver = CpSolver()
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.solve(x.cp) == cp_model.OPTIMAL
    assert orders_of(x, solver.value) == (order,)


def test_an_interrupt_ends_the_search() -> None:
    stop = threading.Event()
    stop.set()
    chain = chain_for(8, 32, Times(12, 13, 9, 2), memory=24)
    outcome = solve_chain_at_period(chain, 1200, LIMITS, interrupt=stop)
    assert outcome.status in (Status.UNKNOWN, Status.INFEASIBLE)
    assert outcome.seconds < 60


def test_no_time_decides_nothing() -> None:
    chain = chain_for(8, 24, Times(12, 13, 9, 2), memory=24)
    outcome = solve_chain_at_period(chain, 1000, Limits(seconds=0))
    assert outcome.status is Status.UNKNOWN
    assert outcome.orders is None
