"""What came of one instance, and the verdict against its best known values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from lpsched._version import __version__
from lpsched.core.instance import Known
from lpsched.core.result import Status
from lpsched.solve.params import SolveParams

__all__ = ["Row", "Verdict", "judged"]


class Verdict(StrEnum):
    """How a run compares with what is stored."""

    BETTER = "better"
    EQUAL = "equal"
    UNPROVED = "unproved"  # equal, but this run lacks a proof that is stored
    WORSE = "worse"
    NONE = "none"  # no schedule within the limit
    NEW = "new"  # nothing is stored to compare with
    INFEASIBLE = "infeasible"  # proved, and nothing stored says otherwise
    REFUSED = "refused"  # the instance cannot be meant, or not be served
    FAILED = "failed"  # a solver failed, or run and file contradict each other


@dataclass(frozen=True, kw_only=True)
class Row:
    """One instance's line of the report.

    Attributes
    ----------
    objective : mapping of str to int
        Values found, in the instance's order of objectives.
    bound, proof : mapping
        What this run proved of each, and by what kind of proof.
    known : mapping of str to Known
        What it is compared with.
    decided_by : str or None
        The first objective in which run and file differ.
    digest, time_limit, seed, workers, version
        What a run depends on: a row is good for another run with the same.
    """

    instance: str
    file: str
    verdict: Verdict
    status: str
    digest: str
    time_limit: float
    seed: int
    workers: int
    version: str
    objective: Mapping[str, int] = field(default_factory=dict)
    bound: Mapping[str, int] = field(default_factory=dict)
    proof: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Known] = field(default_factory=dict)
    decided_by: str | None = None
    method: str | None = None
    seconds: float = 0.0
    verified: bool = False
    reason: str | None = None

    def is_of(self, params: SolveParams) -> bool:
        """Tell whether a run with `params`, by this version, would be the same."""
        mine = (self.time_limit, self.seed, self.workers, self.version)
        return mine == (params.time_limit, params.seed, params.workers, __version__)


def judged(row: Row, known: Mapping[str, Known]) -> Row:
    """Set a row against best known values, objective by objective.

    A bound of an objective speaks of schedules that are as good in those before it, so
    values and bounds are compared up to the first objective in which they differ.
    """
    row = replace(row, known=dict(known), decided_by=None)
    if row.verdict in (Verdict.REFUSED, Verdict.FAILED) and not row.verified:
        return row
    if not row.objective:
        return _without_schedule(row)
    if next(iter(row.objective)) not in known:
        return replace(row, verdict=Verdict.NEW)
    verdict, decided_by = Verdict.EQUAL, None
    for name, value in row.objective.items():
        stored, bound = known.get(name), row.bound.get(name)
        if stored is None:
            break
        wrong = _contradiction(name, stored, value, bound)
        if wrong is not None:
            return replace(row, verdict=Verdict.FAILED, decided_by=name, reason=wrong)
        if value != stored.value:
            verdict = Verdict.BETTER if value < stored.value else Verdict.WORSE
            return replace(row, verdict=verdict, decided_by=name)
        if stored.bound == value and bound != value and decided_by is None:
            verdict, decided_by = Verdict.UNPROVED, name
    return replace(row, verdict=verdict, decided_by=decided_by)


def _without_schedule(row: Row) -> Row:
    if row.status != Status.INFEASIBLE:
        return replace(row, verdict=Verdict.NONE)
    if not row.known:
        return replace(row, verdict=Verdict.INFEASIBLE)
    text = "proved infeasible, and yet the file states what a schedule reaches"
    return replace(row, verdict=Verdict.FAILED, reason=text)


def _contradiction(
    name: str, stored: Known, value: int, bound: int | None
) -> str | None:
    if stored.bound is not None and value < stored.bound:
        return f"{name} {value} found, below the stored bound {stored.bound}"
    if bound is not None and bound > stored.value:
        return f"{name} is proved to be at least {bound}, above the stored value"
    return None
