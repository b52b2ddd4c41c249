"""Short ways to ask for the verdict on a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lpsched.core.graph import Graph
from lpsched.core.result import Proof
from lpsched.verify import Verdict, check_proof

__all__ = ["Certificate", "assert_proves", "verdict"]

Certificate = dict[str, Any]


def verdict(
    graph: Graph,
    kind: str,
    bound: int,
    certificate: Mapping[str, Any] | None,
    objective: str = "period",
) -> Verdict:
    """Judge a certificate of some kind for a bound of the period or another."""
    proof = Proof(kind=kind, value=bound, certificate=certificate)
    answer = check_proof(graph, objective, bound, proof)
    assert answer.accepted == (answer.status is Verdict.ACCEPTED)
    assert bool(answer.reasons) != answer.accepted
    return answer.status


def assert_proves(
    graph: Graph,
    kind: str,
    bound: int,
    certificate: Mapping[str, Any],
    objective: str = "period",
) -> None:
    """Expect it to prove `bound` and less, and nothing greater."""
    assert verdict(graph, kind, bound, certificate, objective) is Verdict.ACCEPTED
    assert verdict(graph, kind, bound - 1, certificate, objective) is Verdict.ACCEPTED
    assert verdict(graph, kind, bound + 1, certificate, objective) is Verdict.REFUSED
