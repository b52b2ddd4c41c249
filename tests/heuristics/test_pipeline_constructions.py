"""Constructions for a bound: deadlines, kernels of the steady state, all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines import Times, pipeline
from random_chains import random_chain

from lpsched.analysis.chain import Chain, chain_of
from lpsched.analysis.pipeline import Pipeline, pipeline_of
from lpsched.analysis.synchronous import chain_bounds, rooms_of
from lpsched.errors import NoScheduleError
from lpsched.heuristics.synchronous.constructions import constructions
from lpsched.heuristics.synchronous.deadlines import deadlines_for, quiet_tails
from lpsched.heuristics.synchronous.dispatch import deadline_orders
from lpsched.heuristics.synchronous.kernel import (
    LAPS,
    Kernel,
    kernel_of,
    unrolled,
)
from lpsched.heuristics.synchronous.scheduled import scheduled, timed
from lpsched.verify import verify

UNIFORM, UNEQUAL = Times(10, 10, 10, 1), Times(12, 13, 9, 2)


def read(p: int, m: int, times: Times, limit: int | None) -> tuple[Pipeline, Chain]:
    found = pipeline_of(pipeline(p, m, times, memory=limit))
    return found, chain_of(found)


@pytest.mark.parametrize("times", [UNIFORM, UNEQUAL], ids=["uniform", "unequal"])
@pytest.mark.parametrize(("p", "m"), [(4, 8), (4, 12), (8, 16), (8, 24), (8, 32)])
def test_deadlines_meet_the_bound_at_room_for_2p_microbatches(
    p: int, m: int, times: Times
) -> None:
    found, chain = read(p, m, times, 4 * p)
    bound = chain_bounds(chain)[0].value
    orders = deadline_orders(found, deadlines_for(chain, rooms_of(chain), bound))
    assert orders is not None
    assert scheduled(found, orders).period == bound


def test_deadlines_by_hand() -> None:
    """One stage of 1, 2, 3 and 2 microbatches in 13 ticks: 12 of work, one idle.

    W(1) is due at 10, W(0) at 7; I(1) leaves 5 for itself and W(1): 8, and I(0) lets
    both I's and W's follow: 3, but no more than two F's can precede it, and a tick.
    F's leave 6 ticks for each microbatch, and 1 for the F before the next I.
    """
    _, chain = read(1, 2, Times(1, 2, 3), None)
    found = deadlines_for(chain, rooms_of(chain), 13)
    assert found.latest == {"W": [[7, 10]], "I": [[3, 8]], "F": [[1, 7]]}
    assert found.idle == [1]
    assert found.shifted({"I": 2}).latest["I"] == [[1, 6]]
    assert quiet_tails(chain, rooms_of(chain)) == [0]


def is_sound(chain: Chain, kernel: Kernel) -> bool:
    """Nothing overlaps modulo the period, and everything comes after its operand."""
    f, b, w = chain.forward, chain.input_grad, chain.weight_grad
    for s in range(chain.num_stages):
        spans = [
            (kernel.forward[s] % kernel.period, f[s]),
            (kernel.input_grad[s] % kernel.period, b[s]),
            (kernel.weight_grad[s] % kernel.period, w[s]),
        ]
        for (x, t), (y, u) in combinations(spans, 2):
            apart = (y - x) % kernel.period
            if t and u and not t <= apart <= kernel.period - u:
                return False
        if kernel.weight_grad[s] < kernel.input_grad[s] + b[s]:
            return False
        if kernel.input_grad[s] < kernel.forward[s] + f[s]:
            return False
    return all(
        kernel.forward[s + 1] >= kernel.forward[s] + f[s] + chain.down[s]
        and kernel.input_grad[s] >= kernel.input_grad[s + 1] + b[s + 1] + chain.up[s]
        for s in range(chain.num_stages - 1)
    )


def peak(chain: Chain, kernel: Kernel, stage: int) -> int:
    """Highest level in the steady state of one stage, op by op over many periods."""
    held = chain.memory[stage]
    starts = [
        (kernel.forward[stage], "F"),
        (kernel.input_grad[stage], "I"),
        (kernel.weight_grad[stage], "W"),
    ]
    laps = 2 + max(s for s, _ in starts) // kernel.period
    events = sorted(
        (s + i * kernel.period, "FIW".index(k))
        for s, k in starts
        for i in range(3 * laps)
    )
    level = highest = 0
    for _, rank in events:
        if rank == 0:
            level += held.forward
            need = level + held.during_forward
        elif rank == 1:
            need = level + held.during_input_grad
            level += held.input_grad
        else:
            need = level + held.during_weight_grad
            level -= held.weight_grad
        highest = max(highest, need)
    return highest


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 10**6), st.tuples(st.sampled_from(LAPS), st.booleans()))
def test_kernels_are_sound_and_fit_the_memory(
    seed: int, form: tuple[tuple[int, int], bool]
) -> None:
    laps, late = form
    chain = random_chain(Random(seed))
    chain = replace(chain, microbatches=10**6)
    try:
        rooms_of(chain)
    except NoScheduleError:
        return
    if 0 in (*chain.forward, *chain.input_grad, *chain.weight_grad):
        return  # the order of ops that start together is open
    kernel = kernel_of(chain, laps=laps, late=late)
    if kernel is None:
        assert laps != (0, 0)
        return
    assert is_sound(chain, kernel)
    for s, room in enumerate(chain.room):
        assert room is None or peak(chain, kernel, s) <= room


@pytest.mark.parametrize("times", [UNIFORM, UNEQUAL], ids=["uniform", "unequal"])
def test_one_kernel_serves_every_number_of_microbatches(times: Times) -> None:
    """Room for p microbatches: m P and a constant from m = 11 on, and proved."""
    more = set()
    for m in (11, 24, 60):
        found, chain = read(8, m, times, 16)
        kernel = kernel_of(chain, late=True)
        assert kernel is not None
        assert kernel.period == chain.work(0)
        period = scheduled(found, unrolled(found, kernel)).period
        assert period == chain_bounds(chain)[0].value
        more.add(period - m * kernel.period)
    assert len(more) == 1


def test_too_little_memory_stretches_the_kernel() -> None:
    """Room for one microbatch: the next one waits until all of it is given back."""
    _, chain = read(3, 9, UNIFORM, 2)
    kernel = kernel_of(chain)
    assert kernel is not None
    assert kernel.period == max(kernel.weight_grad[s] + 10 for s in range(3))
    assert kernel_of(chain, laps=(1, 1)) is None


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 10**6))
def test_every_construction_orders_every_op(seed: int) -> None:
    rng = Random(seed)
    p, m = rng.randint(1, 4), rng.randint(1, 7)
    f, i, w = ([rng.randint(1, 9) for _ in range(p)] for _ in range(3))
    limit = rng.choice([None, 2, 3, p, 2 * p, 4 * p])
    found, chain = read(p, m, Times(f, i, w, rng.randint(0, 3)), limit)
    if limit is not None and limit < 2:
        return
    bound = chain_bounds(chain)[0].value
    valid = 0
    for construction in constructions(seed):
        orders = construction.function(found, chain, bound)
        if orders is not None:
            assert sorted(map(len, orders.values())) == [3 * m] * p
            schedule = timed(found, orders)
            broken = verify(found.graph, schedule)
            assert {violation.rule for violation in broken} <= {"memory"}
            assert broken or schedule.period >= bound
            valid += not broken
    assert valid
