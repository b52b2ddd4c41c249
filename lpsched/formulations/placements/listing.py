"""All placements up to a limit on communication, while the limit rises."""

from __future__ import annotations

import numpy as np

from lpsched.analysis.at_period import Bools, Ints
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.placements.closure import Closure, Codes
from lpsched.formulations.placements.columns import Columns, list_columns, unrefuted
from lpsched.formulations.placements.covers import Covers
from lpsched.formulations.placements.problem import Problem
from lpsched.formulations.placements.relaxation import GRID, Relaxation

__all__ = ["Listing", "listing_of"]

#: Columns held against paths between two linear programs.
_BATCH = 16_384

#: Partial placements that are looked at in all, at most.
_MOST_VISITED = 2_000_000

#: By how much columns within reach may grow from one limit to the next: a quarter, and
#: some. The work grows about as their square.
_GROWTH, _MORE = 4, 50


def listing_of(problem: Problem, deadline: Deadline) -> Listing | None:
    """List the columns of a problem; None if time is over.

    Raises
    ------
    UnsupportedError
        There are too many.
    """
    closure = Closure(problem.windows)
    listed = list_columns(problem, closure, lambda: deadline.over)
    return None if listed is None else Listing(problem, closure, listed, deadline)


class Listing:
    """Placements of a problem by communication, in units of its gcd.

    Attributes
    ----------
    bound : int
        Every placement that paths do not refute communicates so much.
    """

    def __init__(
        self,
        problem: Problem,
        closure: Closure,
        listed: tuple[Columns, tuple[Codes, ...]],
        deadline: Deadline,
    ) -> None:
        columns, self._codes = listed
        self._problem, self._closure, self._deadline = problem, closure, deadline
        self._relaxation = Relaxation(problem, columns)
        self._checked: Bools = np.zeros(len(columns), dtype=np.bool_)
        self._prices = self._relaxation.prices()
        self.visited = 0

    @property
    def bound(self) -> int:
        """What the prices prove."""
        return -(-self._prices.bound // GRID)

    def next_limit(self, limit: int, most: int) -> int:
        """Return a greater limit, at most `most`, that takes not much more work."""
        excess = np.sort(self._prices.excess)
        gap = limit * GRID - self._prices.bound
        count = int(np.searchsorted(excess, gap, side="right"))
        place = count + count // _GROWTH + _MORE
        if place >= len(excess):
            return most
        reach = (int(excess[place]) + self._prices.bound) // GRID
        return min(most, max(limit + 1, reach))

    def up_to(self, limit: int) -> list[tuple[int, Ints]] | None:
        """Communication and device by unit of the placements within a limit.

        Sorted; none that is left out has a schedule. None if time is over, or if too
        many have been looked at.
        """
        while self._sharpen(limit):
            if self._deadline.over:
                return None
        covers = Covers(
            self._problem, self._closure, self._relaxation.columns, self._prices, limit
        )

        def over() -> bool:
            return self._deadline.over or self.visited + covers.visited > _MOST_VISITED

        found = list(covers.placements(over))
        if over():
            return None
        self.visited += covers.visited
        return sorted(found, key=lambda each: (each[0], each[1].tolist()))

    def _sharpen(self, limit: int) -> bool:
        """Refute columns within reach of a limit; tell whether any were looked at."""
        prices, columns = self._prices, self._relaxation.columns
        gap = limit * GRID - prices.bound
        near = np.flatnonzero(~self._checked & (prices.excess <= gap))
        if not len(near):
            return False
        near = near[np.argsort(prices.excess[near], kind="stable")][:_BATCH]
        alive = unrefuted(self._problem, self._closure, self._codes, columns.only(near))
        self._checked[near] = True
        kept = np.ones(len(columns), dtype=np.bool_)
        kept[near[~alive]] = False
        if not kept.all():
            self._relaxation.drop(kept)
            self._checked = self._checked[kept]
            self._prices = self._relaxation.prices()
        return True
