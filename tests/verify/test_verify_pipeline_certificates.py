"""Certificates of synchronous pipelines: what the solver claims, and tampered with."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from factories import make_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_oracle import optimum
from pipelines import Times, pipeline
from verdicts import assert_proves, verdict

from lpsched.analysis.chain import chain_of
from lpsched.analysis.pipeline import pipeline_of
from lpsched.analysis.synchronous import chain_bounds
from lpsched.core.graph import Graph
from lpsched.errors import NoScheduleError
from lpsched.verify import Verdict

RULES = ("work", "idle", "drain", "path", "ramp")


def drawn(rng: Random, stages: int, microbatches: int) -> Graph:
    """Stages alike or not, with memory of every form."""

    def row(low: int, high: int) -> list[int]:
        alike = rng.random() < 0.4
        values = [rng.randint(low, high) for _ in range(stages)]
        return values[:1] * stages if alike else values

    taken = row(1, 3)
    given_back = [rng.randint(-1, a) for a in taken]
    least = max(taken) + 1
    return pipeline(
        stages,
        microbatches,
        Times(row(0, 9), row(0, 9), row(0, 9), rng.randint(0, 3)),
        memory=rng.choice([None, *range(least, 2 * least + stages)]),
        deltas=(taken, [-b for b in given_back]),
        update=rng.choice([0, 0, 2]),
        flush=rng.random() < 0.4,
        fuse_backward=rng.random() < 0.15,
    )


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6))
def test_whatever_is_claimed_of_a_pipeline_is_confirmed_and_no_more(seed: int) -> None:
    rng = Random(seed)
    graph = drawn(rng, rng.randint(1, 5), rng.randint(1, 9))
    chain = chain_of(pipeline_of(graph))
    for objective in ("period", "makespan"):
        wanted = replace(chain, flush=True) if objective == "makespan" else chain
        try:
            bounds = chain_bounds(wanted)
        except NoScheduleError:
            return
        for bound in bounds:
            assert bound.proof.certificate is not None
            assert_proves(
                graph, "pipeline", bound.value, bound.proof.certificate, objective
            )


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_no_certificate_proves_more_than_the_optimum(seed: int) -> None:
    rng = Random(seed)
    stages = rng.randint(1, 3)
    graph = drawn(rng, stages, rng.randint(1, (5, 3, 2)[stages - 1]))
    best = optimum(chain_of(pipeline_of(graph)))
    if best is None:
        return
    for rule in RULES:
        for stage in range(stages):
            certificate = {"rule": rule, "stage": stage, "refused": best}
            answer = verdict(graph, "pipeline", best + 1, certificate)
            assert answer is Verdict.REFUSED


EQUAL = pipeline(4, 8, Times(12, 13, 9, 2), memory=8)


def test_rules_by_hand() -> None:
    """12, 13, 9 with transfers of 2 on 4 stages, 8 microbatches, K = 4.

    Stage 0: I(0) comes after 3 (12 + 2 + 13 + 2) + 12 = 99 ticks, of which 4 F's fill
    48; at the end as well 344 - 272 - 51 = 21 ticks are idle.
    """
    assert_proves(EQUAL, "pipeline", 8 * 34, {"rule": "work", "stage": 1})
    assert_proves(EQUAL, "pipeline", 344, {"rule": "idle", "stage": 0})
    flushed = pipeline(4, 8, Times(12, 13, 9, 2), memory=8, flush=True)
    late = {"rule": "work", "stage": 3}
    assert_proves(flushed, "pipeline", 3 * 14 + 8 * 34, late)
    assert_proves(EQUAL, "pipeline", 3 * 14 + 8 * 34, late, "makespan")


@pytest.mark.parametrize(
    "certificate",
    [
        {},
        {"rule": "magic"},
        {"rule": ["idle"]},
        {"rule": "idle"},
        {"rule": "idle", "stage": 4},
        {"rule": "idle", "stage": -1},
        {"rule": "idle", "stage": 0, "microbatches": 0},
        {"rule": "idle", "stage": 0, "microbatches": "8"},
        {"rule": "ramp"},
        {"rule": "ramp", "refused": 344},
    ],
)
def test_certificates_that_say_nothing_are_refused(certificate: Any) -> None:  # noqa: ANN401
    assert verdict(EQUAL, "pipeline", 344, certificate) is Verdict.REFUSED


def without(graph: Graph, src: str, dst: str) -> Graph:
    """Drop every edge between two ops."""
    tensors = [
        replace(
            t,
            consumers=tuple(c for c in t.consumers if (t.producer, c.op) != (src, dst)),
        )
        for t in graph.tensors
    ]
    kept = [d for d in graph.dependences if (d.src, d.dst) != (src, dst)]
    return graph.replace(tensors=tuple(tensors), dependences=tuple(kept))


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        ("F1@3", "F2@3"),
        ("I2@0", "I1@0"),
        ("F3@5", "I3@5"),
        ("I0@7", "W0@7"),
        ("W2@1", "U2"),
        ("U1", "F1@4"),
    ],
)
def test_a_graph_that_lacks_an_edge_is_no_pipeline(src: str, dst: str) -> None:
    """Without it the order that the rules rest on need not hold."""
    other = without(EQUAL, src, dst)
    assert other != EQUAL
    for stage in range(4):
        certificate = {"rule": "work", "stage": stage}
        assert verdict(other, "pipeline", 1, certificate) is Verdict.REFUSED


def test_several_stages_on_a_device_and_plain_graphs_are_no_rows_of_stages() -> None:
    certificate = {"rule": "work", "stage": 0}
    folded = pipeline(2, 4, Times(1, 1, 1), stages=4, arrangement="v")
    assert verdict(folded, "pipeline", 1, certificate) is Verdict.REFUSED
    plain = make_graph({"a": 1, "b": 2}, devices=2)
    assert verdict(plain, "pipeline", 1, certificate) is Verdict.REFUSED


def test_a_check_of_too_many_steps_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert verdict(EQUAL, "pipeline", 1, {"rule": "path"}) is Verdict.ACCEPTED
    monkeypatch.setattr("lpsched.verify.pipelines.MOST_STEPS", 100)
    assert verdict(EQUAL, "pipeline", 1, {"rule": "path"}) is Verdict.NOT_CHECKABLE
