"""Bounds of synchronous pipelines: never above the optimum, and where they meet it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from factories import training_chain
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_oracle import optimum
from pipelines import Times, pipeline
from random_chains import random_chain

from lpsched.analysis.bounds import objective_bounds, period_bounds
from lpsched.analysis.chain import Chain, chain_of
from lpsched.analysis.pipeline import pipeline_of
from lpsched.analysis.synchronous import (
    Ramp,
    chain_bounds,
    drain_bound,
    idle_bound,
    light_speed,
    longest_paths,
    path_bound,
    ramp_bound,
    rooms_of,
)
from lpsched.errors import NoScheduleError


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6))
def test_no_bound_is_above_the_optimum(seed: int) -> None:
    chain = random_chain(Random(seed))
    best = optimum(chain)
    try:
        bounds = chain_bounds(chain)
    except NoScheduleError:
        assert best is None
        return
    if best is not None:
        assert bounds[0].value <= best
    values = [bound.value for bound in bounds]
    assert values == sorted(values, reverse=True)


#: Least periods: uniform 10, 10, 10 with transfers of 1, then 12, 13, 9 with 2, for
#: memory of 2p and of 4p where F takes 2 and I and W give back 1 each.
PROVED = {
    (4, 8): (282, 242, 344, 296),
    (4, 12): (402, 362, 480, 413),
    (8, 16): (578, 486, 712, 612),
    (8, 24): (818, 726, 984, 839),
    (8, 32): (1058, 966, 1256, 1111),
}


def chain_for(p: int, m: int, times: Times, limit: int, **keys: Any) -> Chain:  # noqa: ANN401
    """Chain of a pipeline with memory F +2, I -1, W -1."""
    return chain_of(pipeline_of(pipeline(p, m, times, memory=limit, **keys)))


@pytest.mark.parametrize(("p", "m"), PROVED)
def test_bounds_meet_the_best_periods_known(p: int, m: int) -> None:
    found = [
        chain_bounds(chain_for(p, m, times, limit * p))[0].value
        for times in (Times(10, 10, 10, 1), Times(12, 13, 9, 2))
        for limit in (2, 4)
    ]
    assert tuple(found) == PROVED[p, m]


def test_the_bound_less_the_work_comes_to_rest() -> None:
    """For 10, 10, 10 and 1 on 8 stages: +98 from m = 11 on at 2p, +6 from 19 at 4p."""
    times = Times(10, 10, 10, 1)
    for limit, start, more in ((16, 11, 98), (32, 19, 6)):
        for m in (start, start + 1, 2 * start, 400):
            bound = chain_bounds(chain_for(8, m, times, limit))[0]
            assert bound.value - 30 * m == more


def test_rules_by_hand() -> None:
    """Two stages of 2, 3, 1 with transfers of 1, 3 microbatches, room for 1 each.

    From F(0, 0) to I(0, 0) light takes 2 + 1 + 2 + 3 + 1 = 9. With one microbatch at
    a time stage 0 runs F, waits 7 for I, runs I and W: 13 ticks each, 39 in all.
    """
    chain = chain_for(2, 3, Times(2, 3, 1, 1), 2)
    rooms = rooms_of(chain)
    assert light_speed(chain) == (9, 2)
    assert [room.cap for room in rooms] == [1, 1]
    paths = longest_paths(chain, rooms, 3)
    assert path_bound(chain, paths) == 39
    assert list(paths.input_grad[0, 0]) == [9, 22, 35]
    assert idle_bound(chain, rooms, 0, paths) == 39
    assert drain_bound(chain, rooms, 0) == 7 + 2 * 2 + 2 * 3 + 2 * 1 + 9 + 3 + 1
    assert not Ramp(chain, rooms).allows(18 + 13)
    assert ramp_bound(chain, rooms, 1) == 18 + 7 + 7


def test_a_device_too_small_for_one_microbatch_has_no_schedule() -> None:
    with pytest.raises(NoScheduleError, match=r"stage 0 has no room.*1 units.*needs 2"):
        chain_bounds(chain_for(2, 3, Times(2, 3, 1, 1), 1))


def test_a_proof_names_its_rule_and_stage() -> None:
    bound = chain_bounds(chain_for(8, 24, Times(12, 13, 9, 2), 32))[0]
    assert bound.objective == "period"
    assert bound.proof.kind == "pipeline"
    assert bound.proof.certificate == {"rule": "idle", "stage": 0}


def test_the_bounds_of_any_graph_include_those_of_a_pipeline() -> None:
    graph = pipeline(4, 8, Times(10, 10, 10, 1), memory=8)
    best = period_bounds(graph)[0]
    assert (best.value, best.proof.kind) == (282, "pipeline")
    assert {b.proof.kind for b in period_bounds(training_chain(2))} <= {
        "cycle",
        "resource",
        "assignment",
        "packing",
    }
    starved = pipeline(4, 8, Times(10, 10, 10, 1), memory=1)
    assert period_bounds(starved)[0].proof.kind == "resource"


def test_a_makespan_is_bounded_whether_the_graph_flushes_or_not() -> None:
    values = {
        max(objective_bounds(graph, "makespan"), key=lambda b: b.value).value
        for flush in (False, True)
        for graph in [pipeline(4, 8, Times(10, 10, 10, 1), memory=8, flush=flush)]
    }
    assert len(values) == 1
    assert values.pop() >= 282
