"""The back ends give the same answers on random graphs of every feature."""

from __future__ import annotations

import pytest
from agreement import compare_backends, random_placement, random_problem


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 10))
def test_back_ends_agree_on_random_graphs(first: int) -> None:
    for seed in range(first, first + 10):
        graph, objective = random_problem(seed, max_ops=4)
        verdict = compare_backends(graph, objective)
        assert verdict.quarrel is None, f"seed {seed}, {objective}: {verdict.quarrel}"


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 7, 8, 9, 10, 11])
def test_back_ends_agree_on_random_placements(seed: int) -> None:
    graph, objective = random_placement(seed)
    verdict = compare_backends(graph, objective)
    assert verdict.settled
    assert verdict.quarrel is None
