"""Every method on one problem, side by side, each schedule verified."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from lpsched.analysis.bounds import infeasible_cycle, period_bound
from lpsched.analysis.freedom import has_free_delays
from lpsched.analysis.iteration_bound import LoopWithoutDelayError
from lpsched.analysis.metrics import bubble_to_work, measure
from lpsched.analysis.pipeline import pipeline_of
from lpsched.core.graph import Graph
from lpsched.core.result import INTEGER_OBJECTIVES, Proof, Status, Stop, relative_gap
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
from lpsched.heuristics.synchronous import SYNCHRONOUS_METHODS
from lpsched.solve.facade import solve
from lpsched.solve.params import Report, SolveParams
from lpsched.solve.relax import has_memory_limit, without_memory_limits
from lpsched.solve.search import objective_values
from lpsched.verify import check_agreement, verify

__all__ = [
    "DEFAULT_METHODS",
    "OVER_MEMORY",
    "PIPELINE_METHODS",
    "Comparison",
    "Row",
    "compare",
    "compare_schedules",
    "method_names",
    "usual",
]

#: A method of a row for the baseline's period and one for LayerPipe's.
THRIFTY = "least-communication"

#: Methods compared unless told otherwise; ``optimal`` is the solver.
DEFAULT_METHODS = (
    "sequential",
    "pipedream",
    "layerpipe-intra",
    "layerpipe-inter",
    "list",
    "optimal",
    THRIFTY,
)

#: The same for synchronous pipelines on fixed stages.
PIPELINE_METHODS = (*(method.name for method in SYNCHRONOUS_METHODS), "optimal")

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


def method_names() -> tuple[str, ...]:
    """Every method that `compare` knows."""
    return (*METHODS, "optimal", THRIFTY)


def compare(
    graph: Graph,
    *,
    methods: Sequence[str] | None = None,
    baseline: str | None = None,
    params: SolveParams | None = None,
    report: Report | None = None,
    interrupt: threading.Event | None = None,
) -> Comparison:
    """Run methods on one graph and set them against each other and the bound.

    Parameters
    ----------
    methods : sequence of str, optional
        Names of `METHODS`, ``optimal`` for the solver, and ``least-communication``
        for the least communication at the baseline's period and at LayerPipe's,
        where delays are free; by default the `usual` ones as far as they apply.
    baseline : str, optional
        The method that speed-ups refer to; run for that even if not listed.
    params : SolveParams, optional
        For ``optimal`` and ``least-communication``.

    Raises
    ------
    InstanceError
        An unknown method, or a limit on what devices receive.
    VerificationError
        A method made a schedule that breaks a rule (a bug).
    """
    names, base_name = usual(graph)
    chosen = names if methods is None else methods
    baseline = baseline or base_name
    faults = [*_faults("methods", chosen), *_faults("baseline", [baseline])]
    if baseline == THRIFTY:
        faults.append(Fault("baseline", f"{THRIFTY} is no single schedule"))
    params = params or SolveParams()
    if params.max_received is not None:
        text = "methods know no such limit, and its bounds do not hold for them"
        faults.append(Fault("max_received", text))
    if faults:
        raise InstanceError(faults)
    rows: list[Row] = []
    for name in chosen:
        if interrupt is not None and interrupt.is_set():
            break
        if name == THRIFTY:
            rows += _thrifty(graph, baseline, params, report, interrupt)
        else:
            rows.append(_row(graph, name, params, report, interrupt))
    if methods is None:
        rows = [row for row in rows if row.status != "none"]
    base = next((row for row in rows if row.method == baseline), None)
    if base is None:
        base = _row(graph, baseline, params, report, interrupt)
    return Comparison(_finish(graph, rows, base), baseline=baseline)


def compare_schedules(
    graph: Graph,
    schedules: Sequence[tuple[str, Schedule]],
    *,
    baseline: str | None = None,
) -> Comparison:
    """Set schedules that exist, each under a name, against each other and the bound.

    Speed-ups are missing if none of them is named `baseline`, by default the `usual`.

    Raises
    ------
    VerificationError
        A schedule breaks a rule, or claims what is not so, as another of them shows.
    """
    baseline = baseline or usual(graph)[1]
    rows = [_known_row(graph, name, schedule) for name, schedule in schedules]
    refuted = check_agreement(graph, schedules)
    if refuted:
        raise VerificationError(refuted)
    base = next((row for row in rows if row.method == baseline), None)
    return Comparison(_finish(graph, rows, base), baseline=baseline)


def _known_row(graph: Graph, name: str, schedule: Schedule) -> Row:
    result = schedule.result
    if result is None:
        return _checked_row(graph, name, "heuristic", schedule, 0.0)
    built = result.stop is Stop.METHOD and result.status is not Status.OPTIMAL
    status = "heuristic" if built else str(result.status)
    row = _checked_row(graph, name, status, schedule, result.seconds or 0.0)
    return replace(row, bound=result.bound, proof=result.proof)


def usual(graph: Graph) -> tuple[tuple[str, ...], str]:
    """Return the methods to compare on a graph unless told otherwise, and the baseline.

    On a pipeline that is 1F1B where each stage has a device, else GPipe.
    """
    try:
        pipeline = pipeline_of(graph)
    except UnsupportedError:
        return DEFAULT_METHODS, "pipedream"
    single = len(pipeline.stages_on) == pipeline.num_stages
    return PIPELINE_METHODS, "1f1b" if single else "gpipe"


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

    def over() -> bool:
        late = time.perf_counter() - started > params.time_limit
        return late or (interrupt is not None and interrupt.is_set())

    try:
        schedule = METHODS[name].build(graph, over)
    except (UnsupportedError, NoScheduleError, LoopWithoutDelayError) as error:
        seconds = time.perf_counter() - started
        need = _need(graph, name) if isinstance(error, NoScheduleError) else None
        if need is None:
            return _no_row(graph, name, str(error), seconds)
        row = _no_row(graph, name, f"it needs a memory of {need}", seconds)
        return replace(row, status=OVER_MEMORY, objective={"peak_memory": need})
    seconds = time.perf_counter() - started
    return _checked_row(graph, name, "heuristic", schedule, seconds)


def _need(graph: Graph, name: str) -> int | None:
    """Memory that a method takes where there is no limit; None if that is not why."""
    if not has_memory_limit(graph):
        return None
    free = without_memory_limits(graph)
    try:
        schedule = METHODS[name].function(free)
    except (UnsupportedError, NoScheduleError):
        return None
    return measure(free, schedule).peak_memory


def _no_row(graph: Graph, name: str, reason: str | None, seconds: float = 0.0) -> Row:
    return Row(
        method=name,
        devices=len(graph.devices),
        status="none",
        verified=False,
        seconds=seconds,
        graph=graph,
        reason=reason,
    )


def _thrifty(
    graph: Graph,
    baseline: str,
    params: SolveParams,
    report: Report | None,
    interrupt: threading.Event | None,
) -> Iterator[Row]:
    """Least communication at the baseline's period and at LayerPipe's."""
    if not has_free_delays(graph):
        reason = "delays are not free: placement does not decide alone"
        yield _no_row(graph, THRIFTY, reason)
        return
    for name in dict.fromkeys((baseline, "layerpipe")):
        method = f"{THRIFTY}@{name}"
        given = _row(graph, name, params, report, interrupt)
        if given.schedule is None:
            yield _no_row(graph, method, given.reason or f"{name} has no schedule")
            continue
        capped = replace(
            params,
            objective=("communication",),
            max_period=given.schedule.period,
            hint=given.schedule,
        )
        row = _optimal(graph, capped, report, interrupt)
        yield replace(row, method=method)


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
        reason = str(answer.conflict["reason"]) if answer.conflict else None
        row = _no_row(graph, "optimal", reason, seconds)
        return replace(row, status=str(result.status), bound=result.bound)
    row = _checked_row(graph, "optimal", str(result.status), answer.schedule, seconds)
    return replace(row, bound=result.bound, proof=result.proof)


def _checked_row(
    graph: Graph, name: str, status: str, schedule: Schedule, seconds: float
) -> Row:
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


def _finish(graph: Graph, rows: Sequence[Row], base: Row | None) -> Iterator[Row]:
    """Give every row the best bound of the period and its speed-up."""
    # A bound of the period holds for all unless another objective was settled before,
    # or it is one of a placement's.
    found = [
        row.bound["period"]
        for row in rows
        if next(iter(row.bound), "") == "period"
        and ("period" not in row.proof or row.proof["period"].given is None)
    ]
    if infeasible_cycle(graph) is None:
        found.append(period_bound(graph).value)
    base_period = base.objective.get("period") if base else None
    best = {"period": max(found)} if found else {}
    for row in rows:
        period = row.objective.get("period")
        speedup = Fraction(base_period, period) if period and base_period else None
        yield replace(row, bound={**row.bound, **best}, speedup=speedup)
