"""First placements: longest item first, and first fit into a shrinking capacity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lpsched.formulations.balance.items import Problem, Where
from lpsched.formulations.deadline import Deadline

__all__ = ["greedy", "multifit"]

Prices = npt.NDArray[np.float64]


def greedy(problem: Problem) -> Where:
    """Put each item, longest first, on the device that is done with it earliest.

    On equal devices this is LPT, at most 4/3 - 1/(3P) times the least load (Graham,
    *Bounds on multiprocessing timing anomalies*, 1969).
    """
    ticks = problem.ticks
    loads = np.zeros(len(problem.devices), dtype=ticks.dtype)
    where = [0] * len(problem.items)
    for i in _longest_first(problem):
        d = int(np.argmin(loads + ticks[i]))
        loads[d] += ticks[i, d]
        where[i] = d
    return tuple(where)


def multifit(
    problem: Problem,
    weights: Sequence[int],
    *,
    low: int,
    high: int,
    deadline: Deadline,
) -> Where | None:
    r"""Bisect the capacity into which the items fit.

    An item goes to the device with room where its price :math:`y_d t_i(d)` is least,
    the first of equals. With dual prices y of the fractional assignment most items are
    where that puts them. Items come by falling regret, what the second best device
    costs more, then longest first. On equal devices that is first fit decreasing, at
    most 13/11 times the least load (Yue, *On the exact upper bound for the multifit
    processor scheduling algorithm*, 1990).

    Parameters
    ----------
    weights : sequence of int
        Price y of a tick on each device.
    low, high : int
        Least and greatest load to try, in units.

    Returns
    -------
    Where or None
        None if no capacity tried will do.
    """
    largest = max(weights, default=1)
    price = problem.ticks.astype(float) * [y / largest for y in weights]
    price[problem.ticks == problem.never] = np.inf
    ranked = np.sort(price, axis=1)
    regret = ranked[:, 1] - ranked[:, 0] if price.shape[1] > 1 else ranked[:, 0]
    order = sorted(_longest_first(problem), key=lambda i: -regret[i])
    best = None
    while low <= high and not deadline.over:
        middle = (low + high) // 2
        where = _fit(problem, price, order, middle)
        if where is None:
            low = middle + 1
        else:
            best, high = where, max(problem.loads(where)) - 1
    return best


def _fit(
    problem: Problem, price: Prices, order: Sequence[int], capacity: int
) -> Where | None:
    ticks = problem.ticks
    loads = np.zeros(len(problem.devices), dtype=ticks.dtype)
    where = [0] * len(problem.items)
    for i in order:
        room = loads + ticks[i] <= capacity
        if not room.any():
            return None
        d = int(np.argmin(np.where(room, price[i], np.inf)))
        loads[d] += ticks[i, d]
        where[i] = d
    return tuple(where)


def _longest_first(problem: Problem) -> list[int]:
    shortest = problem.ticks.min(axis=1, initial=problem.never)
    return sorted(range(len(problem.items)), key=lambda i: (-shortest[i], i))
