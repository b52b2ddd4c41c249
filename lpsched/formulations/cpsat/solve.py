"""The exact modulo model as a back end: build, search, extract."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from ortools.sat.python.cp_model import CpModel

from lpsched.analysis.metrics import measure
from lpsched.analysis.timing import complete, least_staleness_laps
from lpsched.analysis.windows import Refutation
from lpsched.core.result import Status, Stop
from lpsched.core.schedule import Schedule
from lpsched.errors import OutOfTimeError, SolverError
from lpsched.formulations.api import Limits, Outcome, Progress, Request
from lpsched.formulations.cpsat.build import Model, build
from lpsched.formulations.cpsat.extract import extract
from lpsched.formulations.cpsat.hint import hint_of
from lpsched.formulations.cpsat.scope import is_coupled
from lpsched.formulations.cpsat.search import Listener, Run, run

__all__ = ["solve_at_period"]

#: Objectives that see times. A first schedule limits what can still be better, and
#: with it the delays (staleness), the windows (makespan) or the copies (memory).
_TIMED = ("staleness", "peak_memory", "makespan")


def solve_at_period(
    request: Request,
    limits: Limits,
    *,
    progress: Progress | None = None,
    interrupt: threading.Event | None = None,
) -> Outcome:
    """Find a best schedule of exactly one period with CP-SAT.

    Objectives that see times are minimised in two steps: any schedule, then none
    worse than it. Reproducible for the same request, seed and number of workers, as
    long as the time limit is not hit. Once `interrupt` is set, the search stops
    within a fraction of a second and hands back what it has.

    Parameters
    ----------
    limits : Limits
        ``options`` as in `Options`.

    Raises
    ------
    UnsupportedError
        Numbers too large for exact 64-bit arithmetic.
    SolverError
        CP-SAT refuses the model, or contradicts itself.
    """
    search = _Search(limits=limits, progress=progress, interrupt=interrupt)
    if request.minimise in _TIMED:
        return _improve(search, request)
    return _solve(search, request)


@dataclass(frozen=True, kw_only=True)
class _Search:
    """What the steps of one search share."""

    limits: Limits
    progress: Progress | None
    interrupt: threading.Event | None
    begin: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self.begin

    def is_over(self) -> bool:
        """Tell whether time is up, or somebody interrupts."""
        interrupted = self.interrupt is not None and self.interrupt.is_set()
        return interrupted or self.remaining <= 0

    @property
    def remaining(self) -> float:
        """Seconds left."""
        return max(0.0, self.limits.seconds - self.elapsed)

    def run(
        self,
        cp: CpModel,
        *,
        fixed: bool = False,
        share: float = 1.0,
        listener: Listener | None = None,
    ) -> Run:
        """Run CP-SAT on a model for a share of the time left."""
        return run(
            cp,
            self.limits,
            seconds=self.remaining * share,
            fixed=fixed,
            listener=listener,
            interrupt=self.interrupt,
        )

    def listener(self, unit: int) -> Listener | None:
        """Progress in the caller's units."""
        progress = self.progress
        if progress is None:
            return None

        def listen(value: int | None, bound: int | None) -> None:
            progress(
                None if value is None else value * unit,
                None if bound is None else bound * unit,
            )

        return listen


def _improve(search: _Search, request: Request) -> Outcome:
    """Find any schedule, then the best of those that are no worse."""
    name = request.minimise or ""
    first = _solve(search, replace(request, minimise=None, lower=0))
    if first.schedule is None:
        bound = request.lower if first.status is Status.UNKNOWN else None
        return replace(first, bound=bound)
    schedule = _retimed(search, request, first.schedule)
    value = _figure(request, schedule)
    if search.progress is not None:
        search.progress(value, request.lower)
    if value <= request.lower:
        return replace(first, schedule=schedule, bound=value)
    caps = {**request.at_most, name: min(value, request.at_most.get(name, value))}
    better = _solve(search, replace(request, at_most=caps, hint=schedule))
    if better.status is Status.INFEASIBLE:
        text = f"CP-SAT finds no {name} of at most {value}, yet a schedule has it"
        raise SolverError(text)
    if better.schedule is None:
        status = Status.OPTIMAL if better.bound == value else Status.FEASIBLE
        return replace(better, status=status, schedule=schedule)
    return better


def _retimed(search: _Search, request: Request, schedule: Schedule) -> Schedule:
    """Improve a first schedule's staleness without a search, where times are free."""
    if request.minimise != "staleness" or is_coupled(request):
        return schedule
    placement = {op: placed.device for op, placed in schedule.ops.items()}
    found = [
        schedule,
        least_staleness_laps(request.graph, schedule),
        complete(request.graph, placement, request.period, over=search.is_over),
    ]
    return min(
        (candidate for candidate in found if candidate is not None),
        key=lambda candidate: _figure(request, candidate),
    )


def _figure(request: Request, schedule: Schedule) -> int:
    """Measure what is minimised."""
    figures = measure(request.graph, schedule).figures()
    return int(figures[request.minimise or ""])


def _solve(search: _Search, request: Request) -> Outcome:
    """Build one model and search it."""
    try:
        built = build(request, search.limits.options, over=search.is_over)
    except OutOfTimeError:
        stop = Stop.TIME_LIMIT if search.remaining <= 0 else Stop.INTERRUPTED
        bound = None if request.minimise is None else request.lower
        return Outcome(
            status=Status.UNKNOWN, stop=stop, bound=bound, seconds=search.elapsed
        )
    seconds = search.elapsed
    if isinstance(built, Refutation):
        stats = {"refuted": built.reason, "ops": list(built.ops)}
        return Outcome(
            status=Status.INFEASIBLE, stop=Stop.PROVED, seconds=seconds, stats=stats
        )
    unit = built.x.scope.unit_of(request.minimise)
    hinted = _begin_at_hint(search, built)
    if hinted is not None and not built.cp.has_objective():
        ended = hinted
    else:
        ended = search.run(built.cp, listener=search.listener(unit))
        if ended.status is Status.UNKNOWN and hinted is not None:
            ended = replace(ended, status=Status.FEASIBLE, values=hinted.values)
    return Outcome(
        status=ended.status,
        stop=ended.stop,
        schedule=_schedule(built, ended),
        bound=_bound(request, ended, unit),
        seconds=search.elapsed,
        stats=_stats(search, built, ended),
    )


def _begin_at_hint(search: _Search, model: Model) -> Run | None:
    """Hint every variable as a given schedule has it; return that solution, if it is.

    The devices, starts and delays of the schedule are fixed first and CP-SAT completes
    them. If it can, the whole solution is the hint; if not, what there is stays.
    """
    x, cp = model.x, model.cp
    hint = x.scope.request.hint
    if hint is None or not x.scope.options.hint:
        return None
    for variable, value in hint_of(x, hint):
        cp.add_hint(variable, value)
    completed = search.run(cp, fixed=True, share=0.2)
    if completed.values is None:
        return None
    cp.proto.clear_solution_hint()
    for number, value in enumerate(completed.values):
        cp.add_hint(cp.get_int_var_from_proto_index(number), value)
    return completed


def _schedule(model: Model, ended: Run) -> Schedule | None:
    if ended.values is None:
        return None
    return extract(model.x, ended.values)


def _bound(request: Request, ended: Run, unit: int) -> int | None:
    """Return what is proved of the objective, in the request's units."""
    if request.minimise is None or ended.status is Status.INFEASIBLE:
        return None
    return max(request.lower, 0 if ended.bound is None else ended.bound * unit)


def _stats(search: _Search, model: Model, ended: Run) -> Mapping[str, Any]:
    return {
        "solver": f"CP-SAT {version('ortools')}",
        "variables": len(model.cp.proto.variables),
        "constraints": len(model.cp.proto.constraints),
        "search_seconds": ended.seconds,
        "work": ended.work,
        "branches": ended.branches,
        "conflicts": ended.conflicts,
        "seed": search.limits.seed,
        "workers": search.limits.workers,
    }
