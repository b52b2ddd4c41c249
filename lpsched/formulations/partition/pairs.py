"""The best partition of the items of two devices, by one dynamic program."""

from __future__ import annotations

import numpy as np

from lpsched.formulations.deadline import UNLIMITED, Deadline
from lpsched.formulations.partition.columns import Duals, Grid
from lpsched.formulations.partition.ordering import narrow_automaton
from lpsched.formulations.partition.pricing import Pricing
from lpsched.formulations.partition.problem import Placed, Problem

__all__ = ["split_pair"]

_MOST_STATES = 1024
_MOST_CELLS = 2_000_000


def split_pair(
    problem: Problem, placed: Placed, deadline: Deadline = UNLIMITED
) -> Placed | None:
    """Split the items of two devices better than they are; None if that is not found.

    The automaton charges one set and the rest at once, so that the set of least cost
    that leaves no more than the other device can hold is best. With coarse loads or
    merged states it may be no better or overload a device; then there is no answer.

    Raises
    ------
    OutOfTimeError
        Time is over before that is known.
    """
    group = problem.groups[0]
    if len(problem.groups) > 1 or group.count != 2:
        return None
    automaton = narrow_automaton(
        problem,
        most_states=_MOST_STATES,
        with_rest=True,
        is_urgent=True,
        deadline=deadline,
    )
    grid = Grid(unit=1, highest=problem.most_cost + 1)
    pricing = Pricing.of(
        problem, automaton, grid, most_cells=_MOST_CELLS, deadline=deadline
    )
    none = np.zeros(problem.num_items, dtype=np.int64)
    everything = frozenset(range(problem.num_items))
    first = pricing.best_of(everything, 0, 1, Duals(prices=none, fees=none[:0]))
    if first is None:
        return None
    found = first, everything - first
    fits = all(problem.fits(items, 0) for items in found)
    better = sum(map(problem.cost, found)) < sum(map(problem.cost, placed))
    return found if fits and better else None
