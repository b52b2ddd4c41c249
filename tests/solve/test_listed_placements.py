"""`auto` lists placements where delays bind and communication is asked."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from factories import training_chain

from lpsched.core.graph import Device, Graph, Link
from lpsched.core.io import load_graph
from lpsched.core.result import Status
from lpsched.formulations.placements import problem
from lpsched.solve import SolveParams, solve

CHAINS = Path(__file__).resolve().parents[2] / "instances" / "chains8"

#: Without the first try by CP-SAT, which would settle what is small.
LISTED = SolveParams(options={"first": False})


def slow_links(seed: int, layers: int = 3) -> Graph:
    link = Link(latency=2, units_per_tick=4)
    return training_chain(
        layers, devices=2, delay_max=2 + seed % 2, link=link, rng=Random(seed)
    )


@pytest.mark.parametrize("seed", range(6))
def test_auto_and_the_compact_model_prove_the_same(seed: int) -> None:
    graph = slow_links(seed)
    mine = solve(graph, LISTED).result
    other = solve(graph, SolveParams(options={"placements": False})).result
    assert mine.status is other.status is Status.OPTIMAL
    for name in SolveParams().objective:
        assert mine.objective[name] == other.objective[name] == mine.bound[name]
    assert "placements" in mine.method
    assert "placements" not in other.method


def test_a_proof_names_the_back_end_that_searched() -> None:
    result = solve(slow_links(1, layers=4), LISTED).result
    proof = result.proof["communication"]
    assert proof.kind == "exhaustion"
    assert proof.certificate == {"solver": "placements"}


def test_a_first_try_leaves_the_rest_to_placements() -> None:
    """110 at period 19 is optimal (optima.json); CP-SAT alone takes minutes."""
    graph = load_graph(CHAINS / "chain8-s4.json")
    params = SolveParams(objective=("communication",), max_period=19, time_limit=300)
    result = solve(graph, params).result
    assert result.objective["communication"] == result.bound["communication"] == 110
    assert result.proof["communication"].certificate == {"solver": "cpsat+placements"}


@pytest.mark.parametrize("seed", range(2))
def test_memory_limits_are_kept(seed: int) -> None:
    """Limited to a unit less than what the best schedule without a limit holds."""
    graph = slow_links(seed)
    free = solve(graph).result
    limit = int(free.objective["peak_memory"]) - 1
    devices = tuple(Device(id=device.id, memory=limit) for device in graph.devices)
    tight = graph.replace(devices=devices)
    mine = solve(tight, LISTED).result
    other = solve(tight, SolveParams(options={"placements": False})).result
    assert mine.status is other.status is Status.OPTIMAL
    assert mine.bound == other.bound
    assert int(mine.objective["peak_memory"]) <= limit


@pytest.mark.parametrize("seed", range(4))
def test_partition_stands_in_where_there_are_too_many_ops_to_list(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Placements in order of communication by loads alone, each timed, refused or not.

    Its bounds hold, and it proves what the listing proves.
    """
    graph = slow_links(seed)
    listed = solve(graph, LISTED).result
    monkeypatch.setattr(problem, "_MOST_UNITS", 1)
    other = solve(graph, LISTED).result
    assert "partition" in other.method
    assert "placements" not in other.method
    assert other.status is Status.OPTIMAL
    for name in SolveParams().objective:
        assert other.objective[name] == listed.objective[name]
