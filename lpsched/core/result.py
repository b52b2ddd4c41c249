"""What is claimed of an answer: status, objective values, bounds and proofs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["INTEGER_OBJECTIVES", "Proof", "Result", "Status", "Stop", "relative_gap"]

#: Objectives that are minimised, in the order in which they are shown.
INTEGER_OBJECTIVES = (
    "period",
    "communication",
    "staleness",
    "peak_memory",
    "makespan",
)


class Status(StrEnum):
    """What is known about an answer."""

    OPTIMAL = "optimal"  # every listed objective proved, in order
    FEASIBLE = "feasible"  # a verified schedule, not (wholly) proved
    INFEASIBLE = "infeasible"  # proved that no schedule exists
    UNKNOWN = "unknown"  # nothing found within the limits


class Stop(StrEnum):
    """Why the search ended."""

    PROVED = "proved"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    METHOD = "method"  # a heuristic ran to its end


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Why a bound holds.

    Attributes
    ----------
    kind : str
        ``cycle``, ``resource``, ``path`` and the like for a certificate anyone
        can check; ``exhaustion`` for a solver's word.
    value : int or None
        The bound proved.
    certificate : mapping
        Plain JSON data that the certificate checker understands.
    """

    kind: str
    value: int | None = None
    certificate: Mapping[str, Any] | None = None

    @property
    def given(self) -> str | None:
        """What the bound holds under, such as ``placement``; None if always."""
        given = (self.certificate or {}).get("given")
        return None if given is None else str(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a schedule was found and what is proved of it.

    Attributes
    ----------
    objective : mapping of str to int or str
        Measured values; fractions (``iteration_period``) as strings.
    bound : mapping of str to int
        Proved lower bounds of objectives, each given the values of those before.
    """

    method: str
    status: Status
    objective: Mapping[str, int | str] = field(default_factory=dict)
    bound: Mapping[str, int] = field(default_factory=dict)
    proof: Mapping[str, Proof] = field(default_factory=dict)
    seconds: float | None = None
    seed: int | None = None
    workers: int | None = None
    version: str | None = None
    stop: Stop | None = None
    rounding: Mapping[str, Any] | None = None
    stats: Mapping[str, Any] | None = None


def relative_gap(value: int | None, bound: int | None) -> float | None:
    """``(value - bound) / value``; None when either is missing, 0 at 0."""
    if value is None or bound is None:
        return None
    return 0.0 if value == bound else (value - bound) / value
