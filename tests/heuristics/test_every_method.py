"""No method ever returns an invalid schedule, or one better than can be."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_graph
from random_training import random_training_graph

from lpsched.core.graph import Graph
from lpsched.core.io import graph_digest
from lpsched.core.schedule import Schedule
from lpsched.errors import NoScheduleError, UnsupportedError
from lpsched.heuristics import METHODS
from lpsched.heuristics.synchronous import SYNCHRONOUS_METHODS
from lpsched.verify import verify

SEEDS = st.integers(0, 10**6)


def outcome(name: str, graph: Graph) -> Schedule | None:
    """Return what a method answers; None if it says that it has no answer."""
    try:
        return METHODS[name].function(graph)
    except (UnsupportedError, NoScheduleError):
        return None


def check(graph: Graph, schedule: Schedule) -> None:
    """A valid schedule, complete as a document, no shorter than the load allows."""
    assert verify(graph, schedule) == ()
    assert schedule.graph == graph.name
    assert schedule.graph_digest == graph_digest(graph)
    assert schedule.graph_document is graph
    assert schedule.result is None
    assert list(schedule.ops) == [op.id for op in graph.ops]
    work = [
        min(graph.duration(op.id, device) for device in graph.allowed(op.id))
        for op in graph.ops
        if graph.occupies_device(op.id)
    ]
    assert schedule.period * len(graph.devices) >= sum(work)
    assert schedule.period >= max(work, default=0)


@settings(deadline=None, max_examples=120)
@given(SEEDS)
def test_any_graph_is_scheduled_in_list_order(seed: int) -> None:
    graph = random_graph(Random(seed))
    schedule = outcome("list", graph)
    assert schedule is not None
    check(graph, schedule)
    alone = outcome("sequential", graph)
    if alone is not None:
        check(graph, alone)
        assert schedule.period <= alone.period


@settings(deadline=None, max_examples=80)
@given(SEEDS)
def test_training_graphs_are_scheduled_by_every_method_or_refused(seed: int) -> None:
    graph = random_training_graph(seed)
    found = {name: outcome(name, graph) for name in METHODS}
    for schedule in found.values():
        if schedule is not None:
            check(graph, schedule)
    intra, inter = found["layerpipe-intra"], found["layerpipe-inter"]
    periods = [s.period for s in (intra, inter) if s is not None]
    better = found["layerpipe"]
    assert (better.period if better else None) == min(periods, default=None)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_gives_the_same_schedule_every_time(name: str) -> None:
    graph = random_training_graph(11)
    assert outcome(name, graph) == outcome(name, graph)


def test_methods_are_listed_by_name() -> None:
    assert list(METHODS) == [
        "sequential",
        "pipedream",
        "layerpipe-intra",
        "layerpipe-inter",
        "layerpipe",
        "list",
        *(method.name for method in SYNCHRONOUS_METHODS),
    ]
    assert all(METHODS[name].name == name for name in METHODS)
    assert all(method.summary for method in METHODS.values())
