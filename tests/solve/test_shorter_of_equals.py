"""Among schedules of equal worth the shortest wins, whoever finds them."""

from __future__ import annotations

from random import Random

from random_cases import random_graph

from lpsched.core.result import Status
from lpsched.solve import SolveParams, solve

#: Random graphs on which set partitioning had once left a longer period.
SEEDS = (17, 27, 37, 40, 45, 71, 74, 76)


def test_back_ends_agree_on_the_shortest_of_equals() -> None:
    compared = 0
    for seed in SEEDS:
        graph = random_graph(Random(seed))
        least = solve(graph, SolveParams(objective=("period",), time_limit=30))
        if least.schedule is None:
            continue
        found = {}
        for backend in ("auto", "cpsat", "partition"):
            params = SolveParams(
                objective=("communication", "staleness"),
                max_period=least.schedule.period + 3,
                backend=backend,
                time_limit=30,
            )
            result = solve(graph, params).result
            if result.status is Status.OPTIMAL:
                names = ("communication", "staleness", "period")
                found[backend] = tuple(result.objective[name] for name in names)
        compared += "partition" in found
        assert len(set(found.values())) <= 1, (seed, found)
    assert compared == len(SEEDS)
