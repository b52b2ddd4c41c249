"""Least communication, and what comes after it, placement by placement."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

from lpsched.analysis.at_period import Ints
from lpsched.analysis.metrics import measure, received_sizes
from lpsched.analysis.windows import Refutation
from lpsched.core.result import Status, Stop
from lpsched.core.schedule import Schedule
from lpsched.errors import OutOfTimeError, UnsupportedError
from lpsched.formulations.api import Backend, Limits, Outcome, Progress, Request
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.known import known_schedule
from lpsched.formulations.placements.listing import Listing
from lpsched.formulations.placements.problem import Problem, problem_of

__all__ = ["ByPlacements"]

#: Caps that a listing depends on.
_LISTED_CAPS = ("makespan", "staleness")


class ByPlacements:
    """The back end: least communication, or anything else under a cap on it.

    Every placement of little communication is listed (`Listing`), by rising limits;
    the first that another back end gives times is the best. With a cap on
    communication, every placement within it is timed as well as can be. What has been
    listed last serves again where the same problem is asked about.

    Parameters
    ----------
    timed_by : Backend
        Gives times to a placement, or proves that there are none.
    """

    def __init__(self, timed_by: Backend) -> None:
        self._timed_by = timed_by
        self._last: tuple[Request, Listing] | None = None

    def __call__(
        self,
        request: Request,
        limits: Limits,
        *,
        progress: Progress | None = None,
        interrupt: threading.Event | None = None,
    ) -> Outcome:
        """Search; see `Backend`.

        Raises
        ------
        UnsupportedError
            Communication is neither minimised nor capped, or too many sets of ops fit
            on a device.
        """
        if "communication" not in (request.minimise, *request.at_most):
            raise UnsupportedError("placements are listed by communication; cap it")
        deadline = Deadline(limits.seconds, interrupt)
        try:
            problem = problem_of(request, lambda: deadline.over)
            if isinstance(problem, Refutation):
                return _refuted(problem, deadline)
            listing = self._listing(problem, deadline)
        except OutOfTimeError:
            return Outcome(
                status=Status.UNKNOWN,
                stop=deadline.stop,
                bound=request.lower if request.minimise else None,
                seconds=deadline.elapsed,
            )
        search = _Search(
            problem=problem,
            limits=limits,
            deadline=deadline,
            timed_by=self._timed_by,
            progress=progress,
            interrupt=interrupt,
        )
        if request.minimise == "communication":
            return search.least_communication(listing)
        return search.best_within_cap(listing)

    def _listing(self, problem: Problem, deadline: Deadline) -> Listing:
        """Go on with the last listing if it is of the same problem."""
        asked = _essence(problem.request)
        if self._last is None or self._last[0] != asked:
            self._last = None  # let go of it before the next one needs the space
            self._last = asked, Listing(problem, lambda: deadline.over)
        return self._last[1]


def _essence(request: Request) -> Request:
    """Return what of a request a listing depends on (`problem_of`)."""
    caps = {k: v for k, v in request.at_most.items() if k in _LISTED_CAPS}
    return Request(
        graph=request.graph,
        period=request.period,
        at_most=caps,
        placement=request.placement,
    )


def _refuted(refutation: Refutation, deadline: Deadline) -> Outcome:
    stats = {"refuted": refutation.reason, "ops": list(refutation.ops)}
    return Outcome(
        status=Status.INFEASIBLE,
        stop=Stop.PROVED,
        seconds=deadline.elapsed,
        stats=stats,
    )


@dataclass(frozen=True, kw_only=True)
class _Search:
    """What the steps of one search share."""

    problem: Problem
    limits: Limits
    deadline: Deadline
    timed_by: Backend
    progress: Progress | None
    interrupt: threading.Event | None
    stats: dict[str, Any] = field(default_factory=lambda: {"placements": 0})

    def least_communication(self, listing: Listing) -> Outcome:
        """Time placements by rising communication; the first that can be is best."""
        gcd, request = self.problem.gcd, self.problem.request
        known = known_schedule(self.problem.request)
        most = self._most(known)
        refuted = -(-request.lower // gcd) - 1
        limit = 0
        while max(refuted + 1, listing.bound) <= most:
            bound = max(refuted + 1, listing.bound)
            self._report(known, bound * gcd)
            limit = min(most, max(limit, bound))
            listed = listing.up_to(limit, lambda: self.deadline.over)
            if listed is None:
                bound = min(most + 1, max(bound, listing.bound))
                return self.ended(Status.UNKNOWN, known, bound=bound * gcd)
            for cost, homes in listed:
                outcome = self._timed(homes) if refuted < cost <= most else None
                if outcome is None or outcome.status is Status.INFEASIBLE:
                    continue
                found = outcome.schedule
                status = Status.UNKNOWN if found is None else Status.OPTIMAL
                return self.ended(status, found or known, bound=cost * gcd)
            refuted = limit
            limit = listing.next_limit(limit, most)
        if known is None:
            return self.ended(Status.INFEASIBLE)
        return self.ended(Status.OPTIMAL, known, bound=(most + 1) * gcd)

    def best_within_cap(self, listing: Listing) -> Outcome:
        """Time every placement within the cap on communication as well as can be."""
        request, name = self.problem.request, self.problem.request.minimise
        best = known_schedule(self.problem.request)
        if best is not None and name is None:
            return self.ended(Status.OPTIMAL, best)
        listed = listing.up_to(self._most(None), lambda: self.deadline.over)
        if listed is None:
            return self.ended(Status.UNKNOWN, best, bound=request.lower)
        open_bounds: list[int] = []
        for _, homes in listed:
            value = None if best is None else self._figure(best)
            self._report(best, request.lower)
            if value is not None and value <= request.lower:
                break
            outcome = self._timed(homes, below=value)
            if outcome.status in (Status.UNKNOWN, Status.FEASIBLE):
                open_bounds.append(outcome.bound or request.lower)
            best = outcome.schedule or best
            if best is not None and name is None:
                return self.ended(Status.OPTIMAL, best)
        if best is None:
            status = Status.UNKNOWN if open_bounds else Status.INFEASIBLE
            return self.ended(status, bound=min(open_bounds, default=None))
        value = self._figure(best)
        bound = min([value, *open_bounds])
        status = Status.OPTIMAL if bound == value else Status.UNKNOWN
        return self.ended(status, best, bound=bound)

    def _most(self, known: Schedule | None) -> int:
        """Greatest communication of interest: caps kept, better than what is known."""
        gcd, request = self.problem.gcd, self.problem.request
        most = self.problem.worst
        if "communication" in request.at_most:
            most = min(most, request.at_most["communication"] // gcd)
        if known is not None:
            most = min(most, self._figure(known) // gcd - 1)
        return most

    def _timed(self, homes: Ints, *, below: int | None = None) -> Outcome:
        """Ask the other back end for times of a placement, better than what is known.

        Parameters
        ----------
        below : int or None
            What is minimised must come out less than this.
        """
        request = self.problem.request
        placement = self.problem.placement(homes)
        received = max(received_sizes(request.graph, placement).values(), default=0)
        if request.max_received is not None and received > request.max_received:
            return Outcome(status=Status.INFEASIBLE, stop=Stop.PROVED)
        name = request.minimise if request.minimise != "communication" else None
        caps = {k: v for k, v in request.at_most.items() if k != "communication"}
        if name is not None and below is not None:
            caps[name] = min(below - 1, caps.get(name, below))
        asked = replace(
            request,
            minimise=name,
            at_most=caps,
            lower=0 if name is None else request.lower,
            placement=placement,
            hint=None,
        )
        self.stats["placements"] += 1
        limits = replace(self.limits, seconds=self.deadline.left)
        return self.timed_by(asked, limits, interrupt=self.interrupt)

    def _figure(self, schedule: Schedule) -> int:
        """Measure what is minimised."""
        figures = measure(self.problem.request.graph, schedule).figures()
        return int(figures[self.problem.request.minimise or "period"])

    def _report(self, known: Schedule | None, bound: int) -> None:
        if self.progress is not None and self.problem.request.minimise is not None:
            self.progress(None if known is None else self._figure(known), bound)

    def ended(
        self,
        status: Status,
        schedule: Schedule | None = None,
        *,
        bound: int | None = None,
    ) -> Outcome:
        """Answer; what is known without being proved is ``feasible``."""
        proved = status in (Status.OPTIMAL, Status.INFEASIBLE)
        if status is Status.UNKNOWN and schedule is not None:
            status = Status.FEASIBLE
        return Outcome(
            status=status,
            stop=Stop.PROVED if proved else self.deadline.stop,
            schedule=schedule,
            bound=bound,
            seconds=self.deadline.elapsed,
            stats=self.stats,
        )
