"""Staleness after communication: no placement of least communication does better."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest
from factories import devices_of, training_chain

from lpsched.analysis.freedom import least_period
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.result import Status
from lpsched.formulations import cpsat
from lpsched.formulations.api import Limits, Outcome, Request
from lpsched.formulations.partition.reading import communication_of
from lpsched.solve import SolveParams, backends, compare, solve
from lpsched.solve.search import Search


def placements(graph: Graph, period: int) -> Iterator[dict[OpId, DeviceId]]:
    """Every placement whose loads fit a period, the first op on the first device."""
    ids = graph.device_ids
    for rest in product(ids, repeat=len(graph.ops) - 1):
        placement = dict(zip(graph.op_by_id, (ids[0], *rest), strict=True))
        if least_period(graph, placement) <= period:
            yield placement


@pytest.mark.parametrize("seed", range(3))
def test_staleness_is_the_least_of_all_placements_of_least_communication(
    seed: int,
) -> None:
    """Each such placement timed on its own."""
    graph = training_chain(3, rng=Random(seed))
    answer = solve(graph)
    assert answer.result.status is Status.OPTIMAL
    period = answer.require_schedule().period
    found = [(communication_of(graph, p), p) for p in placements(graph, period)]
    least = min(cost for cost, _ in found)
    assert answer.result.objective["communication"] == least
    timed = [
        cpsat.solve_at_period(
            Request(graph=graph, period=period, minimise="staleness", placement=p),
            Limits(),
        )
        for cost, p in found
        if cost == least
    ]
    assert all(outcome.status is Status.OPTIMAL for outcome in timed)
    best = min(o.bound for o in timed if o.bound is not None)
    assert answer.result.objective["staleness"] == best


def test_a_heuristic_that_sends_less_within_the_slack_is_taken_up() -> None:
    """PipeDream's period is within a slack of 100 %; time is over before any search.

    The shortest schedule found by a heuristic sends more than PipeDream's.
    """
    graph = training_chain(6, rng=Random(5), devices=3)
    given = {row.method: row for row in compare(graph, methods=("pipedream", "list"))}
    params = SolveParams(
        objective=("period", "communication"), period_slack=Fraction(1)
    )
    search = Search(graph, params)
    for name, row in given.items():
        assert row.schedule is not None
        search.offer(row.schedule, by=name)
        search.seeds[name] = row.schedule
    assert search.best_values["period"] == given["list"].objective["period"]
    search.close_period()
    sent = [row.objective["communication"] for row in given.values()]
    assert sent[0] < sent[1]
    assert search.best_values["communication"] == sent[0]


def test_a_placement_is_timed_anew_where_memory_is_scarce(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nine tenths of the memory that the first schedule of that placement takes.

    Delays have limits, so that placement alone does not decide.
    """
    graph = training_chain(3, rng=Random(1)).with_delay_max(6)
    pair = SolveParams(objective=("period", "communication"))
    free = solve(graph, pair).result.objective
    limit = int(free["peak_memory"]) * 9 // 10
    tight = graph.replace(devices=devices_of(2, memory=limit))
    timed: list[bool] = []
    anew = backends._timed_anew  # noqa: SLF001 - to see that it is used

    def spy(*given: Any) -> Outcome | None:  # noqa: ANN401 - passed on
        found = anew(*given)
        timed.append(found is not None)
        return found

    monkeypatch.setattr(backends, "_timed_anew", spy)
    answer = solve(tight, pair)
    assert True in timed
    assert answer.result.status is Status.OPTIMAL
    assert answer.result.objective["communication"] == free["communication"]
    assert int(answer.result.objective["peak_memory"]) <= limit
