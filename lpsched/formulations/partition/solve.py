"""The back end: least communication at a period where delays are free."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from lpsched.analysis.freedom import has_free_delays
from lpsched.analysis.timing import complete
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.result import Status
from lpsched.core.schedule import Schedule
from lpsched.errors import SolverError, UnsupportedError
from lpsched.formulations.api import Limits, Outcome, Progress, Request
from lpsched.formulations.partition.least import PartitionOutcome, least_communication

__all__ = ["solve_at_period"]


def solve_at_period(
    request: Request,
    limits: Limits,
    *,
    progress: Progress | None = None,
    interrupt: threading.Event | None = None,
) -> Outcome:
    """Find a schedule of one period and of least communication.

    Raises
    ------
    UnsupportedError
        Something else is minimised or capped, or delays are not free, so that not
        every placement has a schedule.
    SolverError
        A solver fails.
    """
    _check(request)
    graph = _pinned(request.graph, request.placement)
    outcome = least_communication(
        graph,
        period=request.period,
        limits=limits,
        lower=request.lower,
        upper=_placement(request.hint),
        progress=progress,
        interrupt=interrupt,
    )
    cap = request.at_most.get("communication")
    if outcome.infeasible or (cap is not None and (outcome.bound or 0) > cap):
        return Outcome(
            status=Status.INFEASIBLE,
            stop=outcome.stop,
            bound=outcome.bound,
            seconds=outcome.seconds,
            stats=outcome.stats,
        )
    return _with_schedule(request, outcome, cap)


def _check(request: Request) -> None:
    others = set(request.at_most) - {"communication"}
    if request.minimise != "communication" or others:
        what = ", ".join(sorted({str(request.minimise), *others} - {"communication"}))
        raise UnsupportedError(f"partition settles communication only, not {what}")
    if not has_free_delays(request.graph):
        raise UnsupportedError(
            "partition needs delays without upper limit, and neither memory limits nor "
            "flush; use cpsat or ilp"
        )


def _pinned(graph: Graph, placement: Mapping[OpId, DeviceId]) -> Graph:
    if not placement:
        return graph
    ops = (
        replace(op, devices=(placement[op.id],)) if op.id in placement else op
        for op in graph.ops
    )
    return graph.replace(ops=tuple(ops))


def _placement(hint: Schedule | None) -> dict[OpId, DeviceId] | None:
    if hint is None:
        return None
    return {op: at.device for op, at in hint.ops.items() if at.device is not None}


def _with_schedule(
    request: Request, outcome: PartitionOutcome, cap: int | None
) -> Outcome:
    """Time the placement, unless it exceeds a cap."""
    schedule, status = None, Status.UNKNOWN
    fits = cap is None or (outcome.value is not None and outcome.value <= cap)
    if outcome.placement is not None and fits:
        schedule = complete(request.graph, outcome.placement, request.period)
        if schedule is None:
            raise SolverError("a placement has no schedule although delays are free")
        status = Status.OPTIMAL if outcome.proved else Status.FEASIBLE
    return Outcome(
        status=status,
        stop=outcome.stop,
        schedule=schedule,
        bound=outcome.bound,
        seconds=outcome.seconds,
        stats=outcome.stats,
    )
