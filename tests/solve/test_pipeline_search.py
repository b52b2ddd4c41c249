"""Pipelines through the facade: optima by bounds, constructions and counting."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_oracle import optimum
from pipelines import Times, pipeline, zero_bubble_rows

from lpsched.analysis.chain import chain_of
from lpsched.analysis.pipeline import pipeline_of
from lpsched.core.graph import Graph
from lpsched.core.result import Result, Status
from lpsched.heuristics.synchronous import zb_h1
from lpsched.solve import SolveParams, solve
from lpsched.solve.pipeline import orders_in, read_pipeline, with_microbatches
from lpsched.verify import verify

PERIOD = SolveParams(objective=("period",), time_limit=60)

UNIFORM, UNEQUAL = Times(10, 10, 10, 1), Times(12, 13, 9, 2)


def solved(graph: Graph, params: SolveParams = PERIOD) -> Result:
    """Solve; check the schedule once more."""
    answer = solve(graph, params)
    if answer.schedule is not None:
        assert verify(graph, answer.schedule) == ()
    return answer.result


#: Memory of 2p, then of 4p (F +2, I -1, W -1), for UNIFORM and then UNEQUAL.
PROVED = {
    (4, 8): (282, 242, 344, 296),
    (4, 12): (402, 362, 480, 413),
    (8, 16): (578, 486, 712, 612),
    (8, 24): (818, 726, 984, 839),
    (8, 32): (1058, 966, 1256, 1111),
}


@pytest.mark.parametrize(("p", "m"), PROVED)
def test_the_twenty_periods_are_reached_and_proved(p: int, m: int) -> None:
    found = []
    for times in (UNIFORM, UNEQUAL):
        for limit in (2 * p, 4 * p):
            result = solved(pipeline(p, m, times, memory=limit))
            assert result.status is Status.OPTIMAL
            assert result.proof["period"].kind == "pipeline"
            found.append(result.objective["period"])
    assert tuple(found) == PROVED[p, m]


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10**6))
def test_small_pipelines_are_solved_to_the_optimum(seed: int) -> None:
    """Stages of unequal cost and memory below 2p, where bounds alone fall short."""
    rng = Random(seed)
    p = rng.randint(1, 3)
    m = rng.randint(1, (5, 3, 2)[p - 1])
    f, i, w = ([rng.randint(1, 9) for _ in range(p)] for _ in range(3))
    graph = pipeline(
        p,
        m,
        Times(f, i, w, rng.randint(0, 3)),
        memory=[rng.choice([None, *range(2, 7)]) for _ in range(p)],
        flush=rng.random() < 0.4,
        update=rng.randint(0, 2),
    )
    result = solved(graph)
    assert result.status is Status.OPTIMAL
    assert result.objective["period"] == optimum(chain_of(pipeline_of(graph)))


def test_counting_closes_what_the_bounds_leave_open() -> None:
    """4 stages, the last one slower, room for 4 microbatches: the bound is 8 short."""
    times = Times([8, 8, 8, 12], [9, 9, 9, 14], [6, 6, 6, 9], 2)
    result = solved(pipeline(4, 8, times, memory=6))
    assert result.status is Status.OPTIMAL
    proof = result.proof["period"]
    assert proof.kind == "exhaustion"
    assert proof.certificate == {
        "solver": "cpsat",
        "refuted": int(result.objective["period"]) - 1,
    }


def test_without_time_for_counting_the_gap_is_reported() -> None:
    times = Times([8, 8, 8, 12], [9, 9, 9, 14], [6, 6, 6, 9], 2)
    params = replace(PERIOD, backend="ilp")
    result = solved(pipeline(4, 8, times, memory=6), params)
    assert result.status is Status.FEASIBLE
    assert result.bound["period"] < int(result.objective["period"])


def test_microbatches_that_differ_get_a_bound_and_a_schedule() -> None:
    graph = pipeline(2, 3, Times(2, 3, 1, 1), memory=4)
    ops = tuple(replace(op, duration=9) if op.id == "F1@1" else op for op in graph.ops)
    result = solved(graph.replace(ops=ops))
    assert result.status in (Status.OPTIMAL, Status.FEASIBLE)
    assert int(result.objective["period"]) >= 6 * 3 + 7


def test_the_makespan_is_proved_with_flush_and_without() -> None:
    """Room for all: down 3 stages, 6 microbatches on the last one, and back up."""
    times = Times(2, 2, 2, 1)
    flushed = solved(pipeline(3, 6, times, flush=True))
    assert flushed.status is Status.OPTIMAL
    assert flushed.objective["period"] == flushed.objective["makespan"]
    params = replace(PERIOD, objective=("makespan",))
    alone = solved(pipeline(3, 6, times), params)
    assert alone.bound["makespan"] == flushed.bound["period"]


def test_other_objectives_follow_the_period() -> None:
    objective = ("period", "communication", "staleness")
    params = replace(PERIOD, objective=objective)
    result = solved(pipeline(4, 8, UNIFORM, memory=16), params)
    assert result.status is Status.OPTIMAL
    assert (result.objective["communication"], result.objective["staleness"]) == (0, 0)


def test_too_little_memory_is_proved_and_explained() -> None:
    answer = solve(pipeline(2, 2, Times(1, 1, 1), memory=1), PERIOD)
    assert answer.result.status is Status.INFEASIBLE
    assert answer.conflict is not None
    assert answer.conflict["rules"] == ["memory"]
    assert answer.conflict["relaxations"]["memory"]["memory"] == 2


def test_a_period_cap_below_the_bound_is_infeasible() -> None:
    params = replace(PERIOD, max_period=281, time_limit=4)
    answer = solve(pipeline(4, 8, UNIFORM, memory=8), params)
    assert answer.result.status is Status.INFEASIBLE


def test_several_stages_on_a_device_take_the_best_published_method() -> None:
    """Without transfers and with equal times ZB-V fills every tick (2 devices)."""
    graph = pipeline(2, 6, Times(1, 1, 1), stages=4, arrangement="v", memory=8)
    result = solved(graph)
    assert result.status is Status.OPTIMAL
    assert result.objective["period"] == 2 * 6 * 3


def test_the_optimum_is_no_longer_than_zero_bubble_s_best() -> None:
    row = next(r for r in zero_bubble_rows() if r.microbatches == 24)
    for limit in (1, 2):
        graph = row.graph(limit=limit * row.stages)
        result = solved(graph, replace(PERIOD, time_limit=20))
        assert int(result.objective["period"]) <= row.spans[f"ZB_{limit}p"]
        assert result.status is Status.OPTIMAL


def test_few_microbatches_are_those_of_a_smaller_pipeline() -> None:
    """But for tied weights, whose sum the last microbatch sends."""
    short = with_microbatches(pipeline(3, 9, UNEQUAL, memory=8, update=2), 4)
    assert short == pipeline(3, 4, UNEQUAL, memory=8, update=2)


def test_many_microbatches_begin_with_what_is_best_on_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In room for p microbatches ZB-H1's order meets the bound; deadlines miss it."""
    monkeypatch.setattr("lpsched.solve.pipeline._MANY_OPS", 100)
    graph = pipeline(4, 60, UNIFORM, memory=8)
    answer = solve(graph, PERIOD)
    assert answer.result.status is Status.OPTIMAL
    assert answer.result.objective["period"] == 60 * 30 + 42
    assert "zb-h1" in answer.result.method


def test_a_schedule_says_in_which_order_its_stages_run() -> None:
    found = pipeline_of(pipeline(3, 4, UNIFORM))
    orders = orders_in(found, zb_h1(found.graph))
    assert orders[2][:4] == [("F", 2, 0), ("I", 2, 0), ("F", 2, 1), ("I", 2, 1)]
    assert read_pipeline(found.graph) == found
