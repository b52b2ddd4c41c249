"""Objective after objective, each at the best value of those before it."""

from __future__ import annotations

from contextlib import suppress

from lpsched.analysis.bounds import objective_bounds
from lpsched.analysis.freedom import has_free_delays
from lpsched.core.result import Status
from lpsched.errors import OutOfTimeError
from lpsched.formulations.api import Outcome
from lpsched.solve.backends import exhaustion, is_placement, probe
from lpsched.solve.horizon import period_horizon
from lpsched.solve.period import balance_below, settle_period, walk_down
from lpsched.solve.relax import has_memory_limit
from lpsched.solve.search import Search

__all__ = ["settle_all"]

#: Share of an objective's time for the placement found before it.
PLACED_SHARE = 0.4

#: Share for a first placement within the longest period where no heuristic has one.
BALANCED_SHARE = 0.05

#: Placements that are shortened one after the other where only the tie is at stake.
MOST_STEPS = 8

#: So many periods the makespan is minimised at one by one.
MOST_PERIODS = 32

#: A round over the objectives that takes less, in seconds, and changes nothing is the
#: last.
SHORTEST_ROUND = 1.0


def settle_all(search: Search) -> bool:
    """Settle objective after objective; False if no schedule can exist.

    What time is left goes to the first objective not proved, and to those after it.
    A bound found after an objective was left unproved holds given the incumbent's
    value of that objective, and so also given a better one.
    """
    first: int | None = 0
    while first is not None and not search.stopped:
        before = (search.remaining, dict(search.bounds), search.best)
        if not _settle_from(search, first):
            return False
        first = _first_unproved(search)
        idle = before[0] - search.remaining < SHORTEST_ROUND
        if idle and before[1:] == (search.bounds, search.best):
            break  # the back ends have nothing to add
    if not search.period_searched:
        _shorten(search)
    return True


def _first_unproved(search: Search) -> int | None:
    objectives = search.params.objective
    return next((i for i, o in enumerate(objectives) if not search.proved(o)), None)


def _settle_from(search: Search, first: int) -> bool:
    objectives = search.params.objective
    search.settled = list(objectives[:first])
    for i, objective in enumerate(objectives[first:], first):
        if search.stopped or (i > 0 and search.best is None):
            break
        seconds = search.remaining / (len(objectives) - i)
        if objective == "period":
            feasible = _settle_period(search, seconds)
        elif objective == "makespan":
            feasible = _settle_makespan(search, seconds)
        else:
            feasible = _settle(search, objective, seconds)
        if not feasible:
            return False
        search.settled.append(objective)
    return True


def _settle_period(search: Search, seconds: float) -> bool:
    """Settle the period P; then any up to ⌊P·(1 + slack)⌋ will do.

    In a later round the search goes on from the shortest schedule, and the best one
    so far is offered again afterwards.
    """
    earlier = search.best
    search.reopen_period()
    feasible = settle_period(search, seconds=seconds)
    search.close_period()
    if earlier is not None and earlier is not search.best:
        search.offer(earlier, by=search.found_by)
    return feasible


def _settle(search: Search, objective: str, seconds: float) -> bool:
    """Minimise one objective at the longest period allowed.

    A schedule of period T gives one of T + 1 without breaking a rule or a cap (but
    one on the makespan), so the best value at the cap is the best up to it.
    """
    cap = _cap(search)
    with suppress(OutOfTimeError):
        for bound in objective_bounds(
            search.graph, objective, period=cap, over=lambda: search.stopped
        ):
            search.raise_bound(objective, bound.value, bound.proof)
    if search.proved(objective):
        return True
    begun = search.remaining
    if search.best is None and is_placement(search.graph, {objective}):
        balance_below(search, cap, BALANCED_SHARE * seconds)
    _time_placement(search, objective, cap, seconds * PLACED_SHARE)
    if search.proved(objective):
        return True
    seconds -= begun - search.remaining
    outcome = _minimise(search, objective, cap, seconds)
    if outcome.status is Status.INFEASIBLE:
        return False
    if outcome.bound is not None:
        value = outcome.bound
        search.raise_bound(objective, value, exhaustion(outcome, value))
    return True


def _time_placement(
    search: Search, objective: str, period: int, seconds: float
) -> None:
    """Minimise what times decide where the best schedule has its ops.

    Where delays are free, communication is settled by placement and the schedule found
    for it is any. Another placement may do better, so this proves nothing.
    """
    best = search.best
    caps = search.settled_before(objective)
    is_placed = "communication" in search.settled and has_free_delays(search.graph)
    if best is None or not is_placed:
        return
    probe(
        search,
        period,
        seconds=seconds,
        minimise=objective,
        at_most=caps,
        doing=f"minimising {objective} of one placement",
        feasible=_shows_feasible(search, period),
        placement=best.placement,
    )


def _settle_makespan(search: Search, seconds: float) -> bool:
    """Minimise the makespan, which may be least at any period up to the cap.

    With few periods each is searched; beyond the horizon, and without memory
    limits, the period no longer matters, since iterations need not overlap.
    """
    cap = _cap(search)
    for bound in objective_bounds(search.graph, "makespan", period=cap):
        search.raise_bound("makespan", bound.value, bound.proof)
    first = search.bounds.get("period", 1)
    unlimited = cap >= period_horizon(search.graph) and not _has_memory_limit(search)
    everything = unlimited or cap - first < MOST_PERIODS
    shortest = search.best.period if search.best is not None else cap
    periods = [cap] if unlimited else range(cap, first - 1, -1)
    if not everything:
        periods = [cap, shortest]
    outcomes = []
    for period in periods:
        if search.proved("makespan") or search.stopped:
            break
        share = min(seconds / len(periods), search.remaining)
        outcomes.append(_minimise(search, "makespan", period, share))
    if len(outcomes) == len(periods) and everything:
        if all(outcome.status is Status.INFEASIBLE for outcome in outcomes):
            return False
        bounds = [o.bound for o in outcomes if o.status is not Status.INFEASIBLE]
        known = [bound for bound in bounds if bound is not None]
        if len(known) == len(bounds):
            value = min(known)
            proof = exhaustion(outcomes[-1], value)
            search.raise_bound("makespan", value, proof)
    if search.best is not None:
        search.cap = search.best.period  # a cap on the makespan is not monotone
    return True


def _cap(search: Search) -> int:
    if search.cap is None:
        search.cap = period_horizon(search.graph)
    return search.cap


def _has_memory_limit(search: Search) -> bool:
    limited = has_memory_limit(search.graph)
    return limited or "peak_memory" in search.params.objective


def _shows_feasible(search: Search, period: int) -> bool:
    """Whether the best schedule shows that one of this period exists, caps kept."""
    if search.best is None or "makespan" in search.settled:
        return search.best is not None and search.best.period == period
    return search.best.period <= period


def _minimise(search: Search, objective: str, period: int, seconds: float) -> Outcome:
    return probe(
        search,
        period,
        seconds=seconds,
        minimise=objective,
        at_most=search.settled_before(objective),
        doing=f"minimising {objective}",
        feasible=_shows_feasible(search, period),
    )


def _shorten(search: Search) -> None:
    """Among schedules that equal the best in every objective, find a shorter one."""
    if search.best is None or search.cap is None:
        return
    caps = search.settled_before(None)
    if is_placement(search.graph, caps):
        walk_down(search, caps, seconds=search.remaining, steps=MOST_STEPS)
        return
    low = max(1, search.bounds.get("period", 1))
    while not search.stopped and low < search.best.period:
        period = (low + search.best.period) // 2
        outcome = probe(
            search,
            period,
            seconds=search.remaining / 2,
            at_most=caps,
            doing=f"shortening to period {period}",
        )
        if outcome.schedule is None:
            low = period + 1
