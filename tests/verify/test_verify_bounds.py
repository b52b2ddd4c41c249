"""What the analysis proves is accepted, for every objective and in time for use."""

from __future__ import annotations

from random import Random

import pytest
from factories import make_schedule, training_chain
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_case, random_schedule

from lpsched.analysis.bounds import objective_bounds, period_bound
from lpsched.core.graph import Graph, Link
from lpsched.core.result import INTEGER_OBJECTIVES, Proof
from lpsched.core.schedule import Schedule
from lpsched.network import compile_network, load_shipped
from lpsched.verify import check_proof, measure


def assert_bounded(graph: Graph, schedule: Schedule) -> None:
    """Every bound is proved, no greater one is, and the schedule respects it."""
    measured = measure(graph, schedule).figures()
    period = schedule.period
    for objective in INTEGER_OBJECTIVES:
        for bound in objective_bounds(graph, objective, period=period):
            proof, value = bound.proof, bound.value
            answer = check_proof(graph, objective, value, proof, period=period)
            assert answer.accepted, (proof, answer.reasons)
            bold = Proof(kind=proof.kind, certificate=proof.certificate)
            too_much = int(measured[objective]) + 1
            assert not check_proof(graph, objective, too_much, bold).accepted
            if objective != "period" and (proof.certificate or {}).get("period"):
                longer = check_proof(graph, objective, value, proof, period=period + 1)
                assert not longer.accepted


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_bounds_of_random_graphs_are_accepted_and_below_their_schedules(
    seed: int,
) -> None:
    assert_bounded(*random_case(seed))


@pytest.mark.parametrize("delay_max", [1, 2, 3, None])
def test_bounds_of_random_training_chains_are_accepted(delay_max: int | None) -> None:
    for seed in range(12):
        rng = Random(seed)
        link = Link(latency=rng.choice([0, 1]), units_per_tick=rng.choice([None, 4]))
        graph = training_chain(
            rng.randint(2, 5),
            devices=rng.randint(1, 4),
            delay_max=delay_max,
            link=link,
            rng=rng,
        )
        assert_bounded(graph, random_schedule(graph, rng))


@pytest.mark.parametrize("name", ["vgg16", "alexnet", "resnet18", "gpt2-small"])
@pytest.mark.parametrize("devices", [4, 8])
def test_period_bounds_of_shipped_networks_are_accepted(
    name: str, devices: int
) -> None:
    graph = compile_network(load_shipped(name), devices=devices).graph
    bound = period_bound(graph)
    answer = check_proof(graph, "period", bound.value, bound.proof)
    assert answer.accepted, answer.reasons
    silent = Proof(kind=bound.proof.kind, certificate=bound.proof.certificate)
    assert not check_proof(graph, "period", bound.value + 1, silent).accepted


def test_an_empty_schedule_has_trivial_bounds() -> None:
    graph = training_chain(1, devices=1)
    assert make_schedule(graph, 1, {}).period == 1
    for objective in INTEGER_OBJECTIVES:
        least = 1 if objective == "period" else 0
        trivial = Proof(kind="trivial")
        assert check_proof(graph, objective, least, trivial).accepted
        assert not check_proof(graph, objective, least + 1, trivial).accepted
