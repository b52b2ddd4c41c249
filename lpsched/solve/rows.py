"""Rows of a comparison: one method's answer on one problem each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from lpsched.analysis.metrics import bubble_to_work, measure
from lpsched.core.graph import Graph
from lpsched.core.result import INTEGER_OBJECTIVES, Proof, Status, Stop, relative_gap
from lpsched.core.schedule import Schedule
from lpsched.core.shown import Shown
from lpsched.errors import NoScheduleError, VerificationError
from lpsched.solve.search import objective_values
from lpsched.verify import verify

__all__ = ["OVER_MEMORY", "Comparison", "Row", "checked_row", "known_row", "no_row"]

#: Status of a method that needs more memory than there is.
OVER_MEMORY = "over memory"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method's answer on one problem.

    Attributes
    ----------
    status : str
        ``heuristic``, the solver's status, `OVER_MEMORY` (the objective then holds the
        peak that it needs), or ``none`` with a `reason`.
    bound : mapping of str to int
        The best proved lower bound of each objective, from whatever source.
    speedup : Fraction or None
        Baseline's iteration period over this one's; None without either.
    utilisation : Fraction or None
        Mean share of the period in which a device works.
    bubble_ratio, bubble_to_work : Fraction or None
        Idle ticks of all devices over those of their periods, and over their work.
    """

    method: str
    devices: int
    status: str
    verified: bool
    seconds: float
    graph: Graph
    schedule: Schedule | None = None
    objective: Mapping[str, int] = field(default_factory=dict)
    bound: Mapping[str, int] = field(default_factory=dict)
    proof: Mapping[str, Proof] = field(default_factory=dict)
    speedup: Fraction | None = None
    utilisation: Fraction | None = None
    bubble_ratio: Fraction | None = None
    bubble_to_work: Fraction | None = None
    reason: str | None = None

    @property
    def gap(self) -> float | None:
        """Relative gap of the period to its proved bound."""
        return relative_gap(self.objective.get("period"), self.bound.get("period"))

    def require_schedule(self) -> Schedule:
        """Return the schedule; raise `NoScheduleError` if there is none."""
        if self.schedule is None:
            raise NoScheduleError(f"{self.method} has no schedule: {self.status}")
        return self.schedule

    def document(self) -> dict[str, Any]:
        """The row as plain JSON data (see cli.md)."""
        document: dict[str, Any] = {
            "method": self.method,
            "devices": self.devices,
            "status": self.status,
            "verified": self.verified,
            "bound": dict(self.bound),
            "seconds": round(self.seconds, 3),
            **{name: self.objective.get(name) for name in INTEGER_OBJECTIVES},
            "speedup": _rounded(self.speedup),
            "gap": _rounded(self.gap),
            "utilisation": _rounded(self.utilisation),
            "bubble_ratio": _rounded(self.bubble_ratio),
            "bubble_to_work": _rounded(self.bubble_to_work),
        }
        if self.reason is not None:
            document["reason"] = self.reason
        return document


def _rounded(value: Fraction | float | None) -> float | None:
    return None if value is None else round(float(value), 6)


class Comparison(list[Row], Shown):
    """Rows that belong together; a list that shows itself as a table.

    `baseline` is the method that speed-ups refer to.
    """

    def __init__(self, rows: Iterable[Row] = (), *, baseline: str) -> None:
        super().__init__(rows)
        self.baseline = baseline

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(row.method for row in self)}>"


def checked_row(
    graph: Graph, name: str, status: str, schedule: Schedule, seconds: float
) -> Row:
    """Verify and measure a schedule.

    Raises
    ------
    VerificationError
        It breaks a rule.
    """
    if violations := verify(graph, schedule):
        raise VerificationError(violations)
    measures = measure(graph, schedule)
    shares = list(measures.utilisation.values())
    return Row(
        method=name,
        devices=len(graph.devices),
        status=status,
        verified=True,
        seconds=seconds,
        graph=graph,
        schedule=schedule,
        objective=objective_values(graph, schedule),
        utilisation=sum(shares, Fraction(0)) / len(shares) if shares else None,
        bubble_ratio=measures.bubble_ratio,
        bubble_to_work=bubble_to_work(graph, schedule),
    )


def known_row(graph: Graph, name: str, schedule: Schedule) -> Row:
    """Return the row of a schedule that exists, with what its result claims."""
    result = schedule.result
    if result is None:
        return checked_row(graph, name, "heuristic", schedule, 0.0)
    built = result.stop is Stop.METHOD and result.status is not Status.OPTIMAL
    status = "heuristic" if built else str(result.status)
    row = checked_row(graph, name, status, schedule, result.seconds or 0.0)
    return replace(row, bound=result.bound, proof=result.proof)


def no_row(graph: Graph, name: str, reason: str | None, seconds: float = 0.0) -> Row:
    """Return the row of a method without a schedule."""
    return Row(
        method=name,
        devices=len(graph.devices),
        status="none",
        verified=False,
        seconds=seconds,
        graph=graph,
        reason=reason,
    )
