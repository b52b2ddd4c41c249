"""Every method on one problem, side by side, each schedule verified."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from lpsched.analysis.bounds import infeasible_cycle, period_bound
from lpsched.analysis.freedom import has_free_delays
from lpsched.analysis.iteration_bound import LoopWithoutDelayError
from lpsched.analysis.metrics import measure
from lpsched.analysis.pipeline import pipeline_of
from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import (
    Fault,
    InstanceError,
    NoScheduleError,
    UnsupportedError,
    VerificationError,
)
from lpsched.formulations.deadline import Deadline
from lpsched.heuristics import METHODS
from lpsched.heuristics.synchronous import SYNCHRONOUS_METHODS
from lpsched.solve.facade import solve
from lpsched.solve.params import Report, SolveParams
from lpsched.solve.relax import has_memory_limit, without_memory_limits
from lpsched.solve.rows import (
    OVER_MEMORY,
    Comparison,
    Row,
    checked_row,
    known_row,
    no_row,
)
from lpsched.verify import check_agreement

__all__ = [
    "DEFAULT_METHODS",
    "PIPELINE_METHODS",
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
    rows = [known_row(graph, name, schedule) for name, schedule in schedules]
    refuted = check_agreement(graph, schedules)
    if refuted:
        raise VerificationError(refuted)
    base = next((row for row in rows if row.method == baseline), None)
    return Comparison(_finish(graph, rows, base), baseline=baseline)


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
    deadline = Deadline(params.time_limit, interrupt)
    try:
        schedule = METHODS[name].build(graph, lambda: deadline.over)
    except (UnsupportedError, NoScheduleError, LoopWithoutDelayError) as error:
        need = _need(graph, name) if isinstance(error, NoScheduleError) else None
        if need is None:
            return no_row(graph, name, str(error), deadline.elapsed)
        row = no_row(graph, name, f"it needs a memory of {need}", deadline.elapsed)
        return replace(row, status=OVER_MEMORY, objective={"peak_memory": need})
    return checked_row(graph, name, "heuristic", schedule, deadline.elapsed)


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
        yield no_row(graph, THRIFTY, reason)
        return
    for name in dict.fromkeys((baseline, "layerpipe")):
        method = f"{THRIFTY}@{name}"
        given = _row(graph, name, params, report, interrupt)
        if given.schedule is None:
            yield no_row(graph, method, given.reason or f"{name} has no schedule")
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
        row = no_row(graph, "optimal", reason, seconds)
        return replace(row, status=str(result.status), bound=result.bound)
    row = checked_row(graph, "optimal", str(result.status), answer.schedule, seconds)
    return replace(row, bound=result.bound, proof=result.proof)


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
