"""The back end: least communication at a period, by placements in order."""

from __future__ import annotations

import threading

from lpsched.analysis.freedom import has_free_delays, least_period
from lpsched.analysis.timing import complete
from lpsched.core.result import Status, Stop
from lpsched.core.schedule import Schedule
from lpsched.errors import SolverError, UnsupportedError
from lpsched.formulations.api import Backend, Limits, Outcome, Progress, Request
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.in_turn import InTurn
from lpsched.formulations.partition.least import PartitionOutcome, least_communication

__all__ = ["solve_at_period"]


def solve_at_period(
    request: Request,
    limits: Limits,
    *,
    timed_by: Backend | None = None,
    progress: Progress | None = None,
    interrupt: threading.Event | None = None,
) -> Outcome:
    """Find a schedule of least communication, or of no more than a cap allows.

    Without anything to minimise the schedule may be shorter than the period asked for:
    it has the load of its busiest device as its period.

    Parameters
    ----------
    timed_by : Backend, optional
        Gives times to a placement where not each has some (`has_free_delays`), or
        proves that there are none.

    Raises
    ------
    UnsupportedError
        Something else is minimised or capped; or delays are not free or memory is
        limited, and nothing gives times.
    SolverError
        A solver fails.
    """
    _check(request, timed_by)
    deadline = Deadline(limits.seconds, interrupt)
    if timed_by is not None and not has_free_delays(request.graph):
        return InTurn(
            request=request,
            limits=limits,
            deadline=deadline,
            timed_by=timed_by,
            progress=progress,
            interrupt=interrupt,
        ).run()
    cap = request.at_most.get("communication")
    outcome = least_communication(
        request, limits, progress=progress, interrupt=interrupt
    )
    if outcome.infeasible or (cap is not None and (outcome.bound or 0) > cap):
        return _answer(outcome, Status.INFEASIBLE)
    if outcome.value is None or (cap is not None and outcome.value > cap):
        return _answer(outcome, Status.UNKNOWN)
    is_done = outcome.proved or request.minimise is None
    status = Status.OPTIMAL if is_done else Status.FEASIBLE
    return _answer(outcome, status, _schedule(request, outcome, deadline))


def _check(request: Request, timed_by: Backend | None) -> None:
    asked = {*request.at_most, *filter(None, [request.minimise])}
    others = asked - {"communication"}
    if others:
        what = ", ".join(sorted(others))
        raise UnsupportedError(f"partition settles communication only, not {what}")
    if timed_by is None and not has_free_delays(request.graph):
        raise UnsupportedError(
            "partition needs somebody to time placements where delays have an upper"
            " limit, memory is limited or iterations are flushed; use cpsat or ilp"
        )


def _schedule(
    request: Request, outcome: PartitionOutcome, deadline: Deadline
) -> Schedule:
    """Time the placement found."""
    graph, placement, period = request.graph, outcome.placement or {}, request.period
    if request.minimise is None:
        period = least_period(graph, placement)
    schedule = complete(graph, placement, period, over=lambda: deadline.over)
    if schedule is None:
        raise SolverError("a placement has no schedule although delays are free")
    return schedule


def _answer(
    outcome: PartitionOutcome, status: Status, schedule: Schedule | None = None
) -> Outcome:
    is_settled = status in (Status.OPTIMAL, Status.INFEASIBLE)
    return Outcome(
        status=status,
        stop=Stop.PROVED if is_settled else outcome.stop,
        schedule=schedule,
        bound=outcome.bound,
        seconds=outcome.seconds,
        stats=outcome.stats,
    )
