"""What memory buys on a synchronous pipeline: the front of period and peak memory."""

from __future__ import annotations

from random import Random

import pytest
from pipeline_oracle import optimum
from pipelines import Times, pipeline

from lpsched.analysis.chain import chain_of
from lpsched.analysis.pipeline import pipeline_of
from lpsched.core.result import Status
from lpsched.solve import SolveParams, pareto_front, solve
from lpsched.verify import verify


@pytest.mark.parametrize("seed", range(4))
def test_the_front_is_the_optimum_at_every_limit(seed: int) -> None:
    """Every order of two stages is tried at each limit from 2 to 6 (F takes 2)."""
    rng = Random(seed)
    times = [[rng.randint(1, 9) for _ in range(2)] for _ in range(3)]
    every = Times(times[0], times[1], times[2], rng.randint(0, 2))
    best = {
        limit: optimum(chain_of(pipeline_of(pipeline(2, 3, every, memory=limit))))
        for limit in range(2, 7)
    }
    expected = {
        (limit, period)
        for limit, period in best.items()
        if limit == 2 or period != best[limit - 1]
    }
    graph = pipeline(2, 3, every)
    front = pareto_front(graph, ("peak_memory", "period"), SolveParams(time_limit=60))
    found = {(p.objective["peak_memory"], p.objective["period"]) for p in front.points}
    assert found == expected
    assert front.complete
    assert all(point.proved for point in front.points)
    assert all(verify(graph, point.schedule) == () for point in front.points)


def test_a_cap_on_the_memory_acts_like_the_memory_of_the_devices() -> None:
    """With F +2 on 4 stages a cap of 8 is 2p: 344, as with devices of 8."""
    graph = pipeline(4, 8, Times(12, 13, 9, 2), memory=16)
    capped = SolveParams(
        objective=("period",), at_most={"peak_memory": 8}, time_limit=20
    )
    result = solve(graph, capped).result
    assert result.status is Status.OPTIMAL
    assert result.objective["period"] == 344
    assert int(result.objective["peak_memory"]) <= 8
    assert result.proof["period"].kind == "exhaustion"  # given the cap
    assert result.proof["period"].certificate == {
        "given": {"peak_memory": 8},
        "kind": "pipeline",
    }


def test_where_memory_comes_first_the_period_is_the_least_in_it() -> None:
    graph = pipeline(2, 3, Times(4, 5, 3, 1))
    params = SolveParams(objective=("peak_memory", "period"), time_limit=20)
    result = solve(graph, params).result
    least = optimum(chain_of(pipeline_of(pipeline(2, 3, Times(4, 5, 3, 1), memory=2))))
    assert result.status is Status.OPTIMAL
    assert (result.objective["peak_memory"], result.objective["period"]) == (2, least)
