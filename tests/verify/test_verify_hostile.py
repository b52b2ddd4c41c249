"""Whatever can be read can be verified: junk in a document never crashes a check."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

from factories import make_graph, make_op, make_schedule, make_tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_case

from lpsched.core.graph import OpId
from lpsched.core.io import schedule_from_document, schedule_to_document
from lpsched.core.result import Proof, Result, Status
from lpsched.core.schedule import Schedule
from lpsched.errors import FormatError, Violation
from lpsched.verify import check_proof, measure, verify

JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    7,
    2**53 - 1,
    10**4299,
    -(2**53) + 1,
    1.5,
    "",
    "d0",
    "v0",
    "1/0",
    "9/4",
    "sha256:" + "a" * 64,
    [],
    ["v0", "v0"],
    [[]],
    {},
    {"v0": 1},
    {"device": None, "start": 0},
)

CERTIFICATES: dict[str, dict[str, Any]] = {
    "cycle": {"ops": ["v0"], "edges": [0], "transfers": True},
    "path": {"ops": ["v0"], "edges": []},
    "resource": {"ops": ["v0"], "devices": ["d0"], "group": False},
    "assignment": {"weights": {"d0": 1}, "denominator": 1},
    "packing": {
        "refuted": 3,
        "capacity": 1,
        "weights": {"1": 1},
        "devices": ["d0"],
        "items": [["v0"]],
    },
}


def documented(seed: int) -> tuple[Schedule, dict[str, Any]]:
    """Return a random valid case and its document, full of claims."""
    graph, schedule = random_case(seed)
    kind = Random(seed).choice(sorted(CERTIFICATES))
    proof = Proof(kind=kind, value=1, certificate=CERTIFICATES[kind])
    result = Result(
        method="random",
        status=Status.FEASIBLE,
        objective=measure(graph, schedule).figures(),
        bound={"period": 1},
        proof={"period": proof, "makespan": Proof(kind="path", value=0)},
    )
    return schedule, copy.deepcopy(schedule_to_document(schedule.with_result(result)))


def slots(value: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - plain data
    """Every place in plain data where something else could stand: holder and key."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from slots(value[key])


def put_junk(data: Any, rng: Random) -> None:  # noqa: ANN401 - plain data
    places = list(slots(data))
    if places:
        holder, key = rng.choice(places)
        holder[key] = copy.deepcopy(rng.choice(JUNK))


@settings(deadline=None, max_examples=400)
@given(seed=st.integers(0, 2**32))
def test_junk_in_a_document_is_refused_or_verified(seed: int) -> None:
    rng = Random(seed)
    schedule, document = documented(seed)
    graph, _ = random_case(seed)
    assert schedule.graph == graph.name
    for _ in range(rng.choice([1, 1, 2, 4])):
        put_junk(document, rng)
    try:
        damaged = schedule_from_document(document)
    except FormatError:
        return
    assert all(isinstance(violation, Violation) for violation in verify(graph, damaged))


@settings(deadline=None, max_examples=400)
@given(seed=st.integers(0, 2**32))
def test_junk_in_a_certificate_gets_a_verdict(seed: int) -> None:
    rng = Random(seed)
    graph, _ = random_case(seed)
    kind = rng.choice(sorted(CERTIFICATES))
    certificate = copy.deepcopy(CERTIFICATES[kind])
    for _ in range(rng.choice([1, 1, 2])):
        put_junk(certificate, rng)
    proof = Proof(kind=kind, certificate=certificate)
    for objective in ("period", "makespan"):
        answer = check_proof(graph, objective, 10**9, proof)
        assert answer.accepted or answer.reasons


def test_ops_that_all_collide_are_reported_once_each() -> None:
    """Not once a pair: a thousand ops at one start are 999 overlaps."""
    names = [f"v{i}" for i in range(1000)]
    graph = make_graph(dict.fromkeys(names, 3), [make_tensor("x", 1, "v0")])
    schedule = make_schedule(graph, 4000, dict.fromkeys(names, ("d0", 17)))
    found = verify(graph, schedule)
    assert {violation.rule for violation in found} == {"exclusive"}
    assert len(found) == 999
    assert {violation.ops[1] for violation in found} == set(map(OpId, names[1:]))


def test_a_graph_that_breaks_its_format_does_not_crash_the_verifier() -> None:
    """An op without a device has one duration; here it has none that applies."""
    op = make_op("H", {"d0": 1}, devices=[])
    graph = make_graph({"A": 1}).replace(ops=(op,))
    assert verify(graph, make_schedule(graph, 1, {"H": (None, 0)})) == ()
    proof = Proof(kind="path", certificate={"ops": ["H"], "edges": []})
    assert not check_proof(graph, "makespan", 1, proof).accepted
