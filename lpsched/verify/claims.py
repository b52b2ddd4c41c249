"""The claims rule: digest, figures, bounds, status and proofs hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

from lpsched.core.graph import Graph
from lpsched.core.io import graph_digest
from lpsched.core.result import INTEGER_OBJECTIVES, Proof, Result, Status
from lpsched.core.schedule import Schedule
from lpsched.errors import VerificationError, Violation
from lpsched.verify.certificate import CertificateVerdict, Verdict, check_proof
from lpsched.verify.measures import measure

__all__ = ["check_claims", "proof_verdicts"]

_FRACTION = re.compile(r"-?[0-9]{1,40}(/0*[1-9][0-9]{0,39})?")


def check_claims(graph: Graph, schedule: Schedule) -> tuple[Violation, ...]:
    """Whatever the schedule says of its graph and of itself is so.

    The graph's name and digest (those of a graph within the schedule, too), every
    figure of ``result.objective``, no bound above what it bounds, a status that a
    schedule can have, bounds met where it is ``optimal``, and every certificate.
    Where the schedule does not cover its graph, only what can still be measured is
    compared; *coverage* or *delay* says so.
    """
    found = [*_identity(graph, schedule)]
    if schedule.result is not None:
        found += _status(schedule.result)
        figures = _figures(graph, schedule)
        found += _objective(schedule.result, figures)
        found += _bounds(schedule.result, figures)
        found += _optimal(schedule.result, figures)
        found += _proofs(graph, schedule)
    return tuple(found)


def _claim(text: str, excess: int | None = None) -> Violation:
    return Violation(rule="claims", message=text, excess=excess)


def _identity(graph: Graph, schedule: Schedule) -> Iterator[Violation]:
    if schedule.graph != graph.name:
        text = f"the schedule is of graph {schedule.graph!r}, this is {graph.name!r}"
        yield _claim(text)
    digest = graph_digest(graph)
    if schedule.graph_digest != digest:
        text = f"graph_digest is {schedule.graph_digest}, the graph's is {digest}"
        yield _claim(text)
    inner = schedule.graph_document
    if inner is not None and inner is not graph and graph_digest(inner) != digest:
        yield _claim("graph_document is another graph than the one verified")


def _status(result: Result) -> Iterator[Violation]:
    if result.status in (Status.INFEASIBLE, Status.UNKNOWN):
        yield _claim(f"status is {str(result.status)!r}, yet here is a schedule")


def _figures(graph: Graph, schedule: Schedule) -> dict[str, int | str]:
    """Figures that can be measured: all, or the period if the schedule is partial."""
    try:
        return measure(graph, schedule).figures()
    except VerificationError:
        period = schedule.period
        per_iteration = Fraction(period, graph.unfolding)
        return {"period": period, "iteration_period": str(per_iteration)}


_KNOWN = {*INTEGER_OBJECTIVES, "iteration_period", "bubble_ratio"}


def _objective(result: Result, figures: dict[str, int | str]) -> Iterator[Violation]:
    for name, claimed in result.objective.items():
        if name not in _KNOWN:
            yield _claim(f"objective {name!r} is no figure that can be measured")
        elif name in figures:
            measured = Fraction(figures[name])
            value = _number(claimed)
            if value != measured:
                text = f"objective {name!r} is given as {claimed}, it is {measured}"
                gap = None if value is None else value - measured
                yield _claim(
                    text, int(gap) if gap is not None and gap.denominator == 1 else None
                )


def _number(value: object) -> Fraction | None:
    """Value of an integer or of a fraction string such as "7/2"; None otherwise.

    `Fraction` alone would spend hours on "1e999999999".
    """
    if type(value) is int:
        return Fraction(value)
    if isinstance(value, str) and _FRACTION.fullmatch(value):
        return Fraction(value)
    return None


def _bounds(result: Result, figures: dict[str, int | str]) -> Iterator[Violation]:
    claimed = [(f"bound {name!r}", name, v) for name, v in result.bound.items()]
    claimed += [
        (f"proof value of {name!r}", name, proof.value)
        for name, proof in result.proof.items()
        if proof.value is not None
        and name not in result.bound
        and name in INTEGER_OBJECTIVES
    ]
    for what, name, bound in claimed:
        if name not in INTEGER_OBJECTIVES:
            yield _claim(f"{what}: there is no such objective")
        elif type(bound) is not int:
            yield _claim(f"{what} is {bound!r}, no integer")
        elif name in figures and bound > (measured := int(figures[name])):
            text = f"{what} is {bound}, above the measured {measured}"
            yield _claim(text, bound - measured)


def _optimal(result: Result, figures: dict[str, int | str]) -> Iterator[Violation]:
    """An optimal schedule meets the bounds that it states.

    The period may exceed its bound where another bound is met: a slack or a cap may
    have lengthened it. What the bounds rest on is not a matter of validity
    (formats.md, rule 7); `proof_verdicts` tells.
    """
    if result.status is not Status.OPTIMAL:
        return
    missed = {
        name: f"{name} {figures[name]} > {bound}"
        for name, bound in result.bound.items()
        if name in figures and bound < int(figures[name])
    }
    if len(missed) < len(result.bound):
        missed.pop("period", None)
    if missed:
        text = ", ".join(missed.values())
        yield _claim(f"status is 'optimal', yet a bound is not met: {text}")


def proof_verdicts(graph: Graph, schedule: Schedule) -> dict[str, CertificateVerdict]:
    """Judge the proofs of a schedule's result, one per objective.

    A proof without a bound or value of its own must at least prove that its objective
    is not negative.
    """
    if schedule.result is None:
        return {}
    bound, period = schedule.result.bound, schedule.period
    return {
        name: check_proof(
            graph, name, _bound_of(name, bound, proof), proof, period=period
        )
        for name, proof in schedule.result.proof.items()
    }


def _bound_of(name: str, bounds: Mapping[str, int], proof: Proof) -> int:
    stated = bounds.get(name, proof.value)
    return 0 if stated is None else stated


def _proofs(graph: Graph, schedule: Schedule) -> Iterator[Violation]:
    if schedule.result is None:
        return
    proofs, bounds = schedule.result.proof, schedule.result.bound
    for name, verdict in proof_verdicts(graph, schedule).items():
        proof = proofs[name]
        if name not in INTEGER_OBJECTIVES:
            yield _claim(f"proof of {name!r}: there is no such objective")
        elif verdict.status is Verdict.REFUSED:
            bound = _bound_of(name, bounds, proof)
            text = f"the proof of {name} >= {bound} ({proof.kind!r}) does not hold: "
            yield _claim(text + "; ".join(verdict.reasons))
