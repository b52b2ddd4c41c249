"""The least period: by load balancing where delays are free, else by probing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lpsched.analysis.freedom import has_free_delays
from lpsched.analysis.timing import complete
from lpsched.core.result import Status
from lpsched.formulations.api import Limits, Outcome, Progress
from lpsched.solve.backends import exhaustion, is_placement, probe
from lpsched.solve.horizon import period_horizon
from lpsched.solve.relax import has_memory_limit, without_memory_limits
from lpsched.solve.search import Search

if TYPE_CHECKING:
    from lpsched.formulations.balance import BalanceOutcome

__all__ = ["balance_below", "settle_period", "walk_down"]


def settle_period(search: Search, *, seconds: float) -> bool:
    """Find the least period and prove it, as far as `seconds` go.

    Returns
    -------
    bool
        False if it is proved that no period will do.
    """
    caps = search.settled_before("period")
    alone = not caps and search.params.backend in ("auto", "partition")
    if alone and has_free_delays(search.graph, but_for_memory=True):
        capped = search.params.max_received is not None
        limited = has_memory_limit(search.graph) or capped
        share = seconds / 2 if limited else seconds
        _balance(search, share)
        if not limited:
            return True
        seconds = max(0.0, seconds - share)
    if search.proved("period") or search.period_searched:
        return True
    if search.best is not None and is_placement(search.graph, caps):
        refusal = walk_down(search, caps, seconds=seconds)
        if refusal is not None:
            least = search.best.period
            proof = exhaustion(refusal, least, refuted=least - 1)
            search.raise_bound("period", least, proof)
        return True
    return _probe_upwards(search, seconds)


def _balance(search: Search, seconds: float) -> None:
    """Free delays: any placement of load <= T has a schedule, if memory allows it.

    The bound holds with memory limits too, and with a cap on what devices receive; the
    schedule counts only if it fits.
    """
    search.report("period", "balancing loads")
    search.searched("balance")

    def progress(incumbent: int | None, bound: int | None) -> None:
        search.report_values("period", "balancing loads", incumbent, bound)

    outcome = _balanced(
        search, seconds, enough=search.bounds.get("period", 0), progress=progress
    )
    search.raise_bound("period", outcome.bound, outcome.proof)


def balance_below(search: Search, period: int, seconds: float) -> None:
    """Find a schedule of no more than this period where delays are free.

    It is one to start from, whatever it communicates.
    """
    search.report("communication", "balancing loads")
    _balanced(search, seconds, enough=period)


def _balanced(
    search: Search, seconds: float, *, enough: int, progress: Progress | None = None
) -> BalanceOutcome:
    """Balance loads until none exceeds `enough`, and offer a schedule for that."""
    from lpsched.formulations.balance import balance  # noqa: PLC0415 - loads solvers

    limits = Limits(
        seconds=min(seconds, search.remaining),
        seed=search.params.seed,
        workers=search.params.workers,
        options=search.params.options,
    )
    outcome = balance(
        without_memory_limits(search.graph),
        limits,
        lower=enough,
        upper=None if search.best is None else search.best.placement,
        progress=progress,
        interrupt=search.interrupt,
    )
    search.starts.append(outcome.placement)
    schedule = complete(
        search.graph,
        outcome.placement,
        outcome.period,
        over=lambda: search.stopped,
    )
    if schedule is not None and search.fits(schedule):
        search.offer(schedule, by="balance")
    return outcome


def walk_down(
    search: Search, caps: Mapping[str, int], *, seconds: float, steps: int | None = None
) -> Outcome | None:
    """Ask for a shorter schedule until there is none: each answer is a jump.

    For placements (`is_placement`): one found is as short as its busiest device, and
    the last refusal proves all shorter ones impossible (feasibility is monotone in T).

    Returns
    -------
    Outcome or None
        The refusal of the period before that of the best schedule; None without one.
    """
    end = max(0.0, search.remaining - seconds)
    low = max(1, search.bounds.get("period", 1))
    while search.best is not None and search.best.period > low and steps != 0:
        if search.stopped or search.remaining <= end:
            break
        period = search.best.period - 1
        outcome = probe(
            search,
            period,
            seconds=search.remaining - end,
            at_most=caps,
            doing=f"trying period {period}",
        )
        if outcome.schedule is None:
            return outcome if outcome.status is Status.INFEASIBLE else None
        steps = None if steps is None else steps - 1
    return None


def _probe_upwards(search: Search, seconds: float) -> bool:
    """Gallop up from the bound, then bisect: feasibility is monotone in T.

    "Infeasible at T" proves T + 1; a probe that runs out of time proves nothing, and
    the search goes on above it. What was left open is tried again with twice the
    time. Returns False if even the horizon is infeasible.
    """
    end = max(0.0, search.remaining - seconds)
    ceiling = period_horizon(search.graph)
    if search.cap is not None:
        ceiling = min(ceiling, search.cap)
    low = max(1, search.bounds.get("period", 1))  # every period below is refuted
    budget = max(1.0, seconds / 8)
    while not search.stopped and search.remaining > end:
        low = _round(search, low, ceiling, budget, end)
        if low > ceiling:
            return search.best is not None
        if search.best is not None and low >= search.best.period:
            break
        if "unsupported" in search.stats:
            break  # the back end has nothing to add
        budget *= 2
    return True


def _round(search: Search, low: int, ceiling: int, budget: float, end: float) -> int:
    """Probe from `low` up to the best schedule; return the least period not refuted.

    With a cap on the makespan feasibility is not monotone: then one by one. Where
    placements decide, most are settled soon, far from the least period: then by halves
    at once.
    """
    placed = has_free_delays(search.graph, but_for_memory=True)
    monotone = "makespan" not in search.settled
    base, step, bisecting = low, 1, False
    while not search.stopped and search.remaining > end:
        high = search.best.period - 1 if search.best is not None else ceiling
        if base > high:
            break
        period = (base + high) // 2 if bisecting else min(base + step - 1, high)
        outcome = probe(
            search,
            period,
            seconds=min(budget, search.remaining - end),
            at_most=search.settled_before("period"),
            doing=f"trying period {period}",
        )
        if outcome.schedule is not None:
            bisecting = monotone
            continue
        if outcome.status is Status.INFEASIBLE and (monotone or period == low):
            low = period + 1
            proof = exhaustion(outcome, low, refuted=period)
            search.raise_bound("period", low, proof)
        base, step = period + 1, step * 2 if monotone else 1
        bisecting = bisecting or (monotone and placed and search.best is not None)
    return low
