"""Stored graphs with known optima, each proved by the integer program alone.

The optima stand in instances/*/optima.json; they were proved by CP-SAT, brute force
over placements and a third program (reference graphs of the project).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lpsched.analysis.metrics import measure
from lpsched.core.graph import Graph
from lpsched.core.io import load_graph
from lpsched.core.result import Status
from lpsched.formulations.api import Limits, Request
from lpsched.formulations.ilp import solve_at_period
from lpsched.verify import verify

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
SMALL = json.loads((INSTANCES / "small" / "optima.json").read_text())
CHAINS = json.loads((INSTANCES / "chains8" / "optima.json").read_text())


def prove(graph: Graph, optimum: dict[str, int]) -> None:
    """Prove the least period by the one before it, then both other objectives."""
    period = optimum["period"]
    shorter = solve_at_period(Request(graph=graph, period=period - 1), Limits())
    assert shorter.status is Status.INFEASIBLE
    hint = solve_at_period(Request(graph=graph, period=period), Limits()).schedule
    caps: dict[str, int] = {}
    for objective in ("communication", "staleness"):
        request = Request(
            graph=graph, period=period, minimise=objective, at_most=caps, hint=hint
        )
        outcome = solve_at_period(request, Limits(seconds=300))
        assert outcome.status is Status.OPTIMAL
        assert outcome.bound == optimum[objective]
        assert outcome.schedule is not None
        assert verify(graph, outcome.schedule) == ()
        hint = outcome.schedule
        caps[objective] = getattr(measure(graph, hint), objective)
        assert caps[objective] == optimum[objective]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name == "chain5-p4-s8" else [])
        for name in SMALL
    ],
)
def test_every_small_graph_is_proved(name: str) -> None:
    prove(load_graph(INSTANCES / "small" / f"{name}.json"), SMALL[name])


@pytest.mark.parametrize(
    ("name", "delay"), [("chain8-s5", 1), ("chain8-s7", 1), ("chain8-s1", 2)]
)
def test_chains_of_eight_layers_are_proved(name: str, delay: int) -> None:
    graph = load_graph(INSTANCES / "chains8" / f"{name}.json").with_delay_max(delay)
    prove(graph, CHAINS[name][str(delay)])
