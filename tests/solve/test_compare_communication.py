"""`compare` says what could be saved at the periods of PipeDream and LayerPipe."""

from __future__ import annotations

from random import Random

import pytest
from factories import training_chain
from placement_problems import least_placement

from lpsched.errors import InstanceError
from lpsched.solve import SolveParams, compare


@pytest.mark.parametrize("seed", range(4))
def test_least_communication_is_that_of_all_placements_at_the_same_period(
    seed: int,
) -> None:
    graph = training_chain(3, rng=Random(seed), devices=2)
    methods = ("pipedream", "layerpipe", "least-communication")
    rows = {row.method: row for row in compare(graph, methods=methods)}
    for name in ("pipedream", "layerpipe"):
        given, best = rows[name], rows[f"least-communication@{name}"]
        period = given.objective["period"]
        least = least_placement(graph, period)
        assert best.status == "optimal"
        assert best.verified
        assert best.objective["period"] <= period
        assert best.objective["communication"] == best.bound["communication"] == least
        assert best.objective["communication"] <= given.objective["communication"]


def test_other_periods_are_bounded_as_without_these_rows() -> None:
    """A bound at one period is none at another."""
    graph = training_chain(3, rng=Random(1), devices=2)
    params = SolveParams(objective=("period",))
    with_rows = compare(
        graph, methods=("optimal", "least-communication"), params=params
    )
    alone = compare(graph, methods=("optimal",), params=params)
    assert {row.bound["period"] for row in with_rows} == {alone[0].bound["period"]}


def test_bounded_delays_and_missing_methods_give_a_reason() -> None:
    graph = training_chain(3, delay_max=2)
    (row,) = compare(graph, methods=("least-communication",))
    assert row.status == "none"
    assert row.reason is not None
    with pytest.raises(InstanceError, match="no single schedule"):
        compare(graph, baseline="least-communication")
