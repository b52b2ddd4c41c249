"""The least period at which a way of scheduling succeeds, found by trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lpsched.analysis.packing import Packer
from lpsched.analysis.precedence import Block, PlacedGraph, Placement
from lpsched.analysis.timing import time_order
from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import NoScheduleError
from lpsched.heuristics.method import verified

__all__ = ["first_success", "scheduled_order", "serial_period"]


def first_success(
    attempt: Callable[[int], Schedule | None], low: int, high: int, *, fine: int = 0
) -> Schedule | None:
    """Try growing periods from `low` up to `high`, then bisect below the first success.

    The bisection ends when a failed and a good period differ by no more than 1, or by
    a `fine`-th part of the period if `fine` is given. Success need not be monotone:
    the schedule returned is the best of those seen. None if even `high` fails.
    """
    failed, step = low - 1, max(1, low // 16)
    period = low
    found = attempt(period)
    while found is None and period < high:
        failed, period = period, min(high, period + step)
        step *= 2
        found = attempt(period)
    while found is not None:
        grain = max(1, found.period // fine) if fine else 1
        if found.period - failed <= grain or found.period == low:
            break
        middle = (failed + found.period) // 2
        better = attempt(middle)
        if better is None:
            failed = middle
        else:
            found = better
    return found


def serial_period(placed: PlacedGraph) -> int:
    """Period that suffices for one iteration after the other, every wait included."""
    waits = sum(arc.ticks - placed.durations[arc.src] for arc in placed.arcs)
    return max(1, sum(placed.durations) + waits)


def scheduled_order(
    graph: Graph,
    placement: Placement,
    order: Sequence[Block],
    packers: Sequence[Packer],
) -> Schedule:
    """Time an order at the largest load, or at the next period at which it fits.

    Limits of delays, lags and transfers may ask for a longer period than the loads.

    Raises
    ------
    NoScheduleError
        If it fits no period, or a device's memory is exceeded.
    """
    placed = PlacedGraph.of(graph, placement, order)
    low = max([1, *placed.loads().values()])

    def attempt(period: int) -> Schedule | None:
        return time_order(placed, period, order, packers)

    schedule = first_success(attempt, low, max(low, serial_period(placed)))
    if schedule is None:
        raise NoScheduleError("this order of the ops fits no period")
    return verified(graph, schedule)
