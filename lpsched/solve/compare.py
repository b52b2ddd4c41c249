"""Every method on one problem, side by side, each schedule verified."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from lpsched.analysis.bounds import period_bound
from lpsched.analysis.metrics import measure
from lpsched.core.graph import Graph
from lpsched.core.result import INTEGER_OBJECTIVES, Proof, Stop, relative_gap
from lpsched.core.schedule import Schedule
from lpsched.core.shown import Shown
from lpsched.errors import (
    Fault,
    InstanceError,
    NoScheduleError,
    UnsupportedError,
    VerificationError,
)
from lpsched.heuristics import METHODS
from lpsched.solve.facade import solve
from lpsched.solve.params import Report, SolveParams
from lpsched.solve.search import objective_values
from lpsched.verify import verify

__all__ = [
    "DEFAULT_METHODS",
    "Comparison",
    "Row",
    "compare",
    "compare_schedules",
    "method_names",
]

#: Methods compared unless told otherwise; ``optimal`` is the solver.
DEFAULT_METHODS = (
    "sequential",
    "pipedream",
    "layerpipe-intra",
    "layerpipe-inter",
    "list",
    "optimal",
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method's answer on one problem.

    Attributes
    ----------
    status : str
        ``heuristic``, the solver's status, or ``none`` with a `reason`.
    bound : mapping of str to int
        The best proved lower bound of each objective, from whatever source.
    speedup : Fraction or None
        Baseline's iteration period over this one's; None without either.
    utilisation : Fraction or None
        Mean share of the period in which a device works.
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
            "speedup": None if self.speedup is None else round(float(self.speedup), 6),
            "gap": self.gap,
            "utilisation": (
                None if self.utilisation is None else round(float(self.utilisation), 6)
            ),
        }
        if self.reason is not None:
            document["reason"] = self.reason
        return document


class Comparison(list[Row], Shown):
    """Rows that belong together; a list that shows itself as a table.

    `baseline` is the method that speed-ups refer to.
    """

    def __init__(self, rows: Iterable[Row] = (), *, baseline: str) -> None:
        super().__init__(rows)
        self.baseline = baseline


def method_names() -> tuple[str, ...]:
    """Every method that `compare` knows."""
    return (*METHODS, "optimal")


def compare(
    graph: Graph,
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    baseline: str = "pipedream",
    params: SolveParams | None = None,
    report: Report | None = None,
    interrupt: threading.Event | None = None,
) -> Comparison:
    """Run methods on one graph and set them against each other and the bound.

    Parameters
    ----------
    methods : sequence of str
        Names of `METHODS`, and ``optimal`` for the solver.
    baseline : str
        The method that speed-ups refer to; run for that even if not listed.
    params : SolveParams, optional
        For ``optimal``.

    Raises
    ------
    InstanceError
        An unknown method.
    VerificationError
        A method made a schedule that breaks a rule (a bug).
    """
    faults = [*_faults("methods", methods), *_faults("baseline", [baseline])]
    if faults:
        raise InstanceError(faults)
    params = params or SolveParams()
    rows = [
        _row(graph, name, params, report, interrupt)
        for name in methods
        if interrupt is None or not interrupt.is_set()
    ]
    base = next((row for row in rows if row.method == baseline), None)
    if base is None:
        base = _row(graph, baseline, params, report, interrupt)
    return Comparison(_finish(graph, rows, base), baseline=baseline)


def compare_schedules(
    graph: Graph,
    schedules: Sequence[tuple[str, Schedule]],
    *,
    baseline: str = "pipedream",
) -> Comparison:
    """Set schedules that exist, each under a name, against each other and the bound.

    Speed-ups are missing if none of them is named `baseline`.

    Raises
    ------
    VerificationError
        A schedule breaks a rule, or claims what is not so.
    """
    rows = [_known_row(graph, name, schedule) for name, schedule in schedules]
    base = next((row for row in rows if row.method == baseline), None)
    return Comparison(_finish(graph, rows, base), baseline=baseline)


def _known_row(graph: Graph, name: str, schedule: Schedule) -> Row:
    result = schedule.result
    if result is None:
        return _checked_row(graph, name, "heuristic", schedule, 0.0)
    status = "heuristic" if result.stop is Stop.METHOD else str(result.status)
    row = _checked_row(graph, name, status, schedule, result.seconds or 0.0)
    return replace(row, bound=result.bound, proof=result.proof)


def _faults(option: str, methods: Sequence[str]) -> Iterator[Fault]:
    known = ", ".join(method_names())
    for name in methods:
        if name not in method_names():
            yield Fault(option, f"unknown method {name!r}; known: {known}")
    if not methods or len(set(methods)) < len(methods):
        yield Fault(option, f"expected one or more of {known}, each once")


def _row(
    graph: Graph,
    name: str,
    params: SolveParams,
    report: Report | None,
    interrupt: threading.Event | None,
) -> Row:
    if name == "optimal":
        return _optimal(graph, params, report, interrupt)
    started = time.perf_counter()
    try:
        schedule = METHODS[name].function(graph)
    except (UnsupportedError, NoScheduleError) as error:
        seconds = time.perf_counter() - started
        return Row(
            method=name,
            devices=len(graph.devices),
            status="none",
            verified=False,
            seconds=seconds,
            graph=graph,
            reason=str(error),
        )
    seconds = time.perf_counter() - started
    return _checked_row(graph, name, "heuristic", schedule, seconds)


def _optimal(
    graph: Graph,
    params: SolveParams,
    report: Report | None,
    interrupt: threading.Event | None,
) -> Row:
    answer = solve(graph, params, report=report, interrupt=interrupt)
    result = answer.result
    seconds = result.seconds or 0.0
    if answer.schedule is None:
        return Row(
            method="optimal",
            devices=len(graph.devices),
            status=str(result.status),
            verified=False,
            seconds=seconds,
            graph=graph,
            bound=result.bound,
            reason=str(answer.conflict["reason"]) if answer.conflict else None,
        )
    row = _checked_row(graph, "optimal", str(result.status), answer.schedule, seconds)
    return replace(row, bound=result.bound, proof=result.proof)


def _checked_row(
    graph: Graph, name: str, status: str, schedule: Schedule, seconds: float
) -> Row:
    violations = verify(graph, schedule)
    if violations:
        raise VerificationError(violations)
    shares = list(measure(graph, schedule).utilisation.values())
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
    )


def _finish(graph: Graph, rows: Sequence[Row], base: Row | None) -> Iterator[Row]:
    """Give every row the best bound of the period and its speed-up."""
    found = [row.bound["period"] for row in rows if "period" in row.bound]
    best = max([period_bound(graph).value, *found])
    base_period = base.objective.get("period") if base else None
    for row in rows:
        period = row.objective.get("period")
        speedup = None
        if period and base_period:
            speedup = Fraction(base_period, period)
        yield replace(row, bound={**row.bound, "period": best}, speedup=speedup)
