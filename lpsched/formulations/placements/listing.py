"""All placements up to a limit on communication, while the limit rises."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lpsched.analysis.at_period import Bools, Ints
from lpsched.formulations.placements.closure import Closure
from lpsched.formulations.placements.columns import list_columns, unrefuted
from lpsched.formulations.placements.covers import Covers
from lpsched.formulations.placements.partial import Partial
from lpsched.formulations.placements.problem import Problem
from lpsched.formulations.placements.relaxation import GRID, Relaxation

__all__ = ["Listing"]

#: Columns held against paths between two linear programs.
_BATCH = 16_384

#: Partial placements that are looked at for one limit, at most.
_MOST_VISITED = 4_000_000

#: Work, in columns and partial placements, that takes no time to speak of.
_LITTLE = 1_000


class Listing:
    """Placements of a problem by communication, in units of its gcd.

    What it has found serves again when it is asked later.

    Attributes
    ----------
    bound : int
        Every placement that paths do not refute communicates so much.

    Raises
    ------
    OutOfTimeError
        `over` said so before the columns were listed.
    UnsupportedError
        There are too many.
    """

    def __init__(self, problem: Problem, over: Callable[[], bool]) -> None:
        self._problem = problem
        self._closure = Closure(problem.windows)
        columns, self._codes = list_columns(problem, self._closure, over)
        self._partial = Partial(problem, self._closure)
        self._relaxation = Relaxation(problem, columns)
        self._checked: Bools = np.zeros(len(columns), dtype=np.bool_)
        self._prices = self._relaxation.prices()
        self._limit, self._found = -1, list[tuple[int, Ints]]()
        self._step, self._work = 1, 0

    @property
    def bound(self) -> int:
        """What the prices prove."""
        return -(-self._prices.bound // GRID)

    def next_limit(self, limit: int, most: int) -> int:
        """Return a greater limit, at most `most`, that takes not much more work."""
        return min(most, limit + self._step)

    def up_to(
        self, limit: int, over: Callable[[], bool]
    ) -> list[tuple[int, Ints]] | None:
        """Communication and device by unit of the placements within a limit.

        Sorted; none that is left out has a schedule. None if time is over, or if too
        many have been looked at.
        """
        if limit > self._limit and not self._search(limit, over):
            return None
        return [each for each in self._found if each[0] <= limit]

    def _search(self, limit: int, over: Callable[[], bool]) -> bool:
        """Find the placements within a limit; False if that is given up."""
        looked_at = 0
        while near := self._sharpen(limit):
            looked_at += near
            if over():
                return False
        covers = Covers(
            self._problem, self._partial, self._relaxation.columns, self._prices, limit
        )

        def given_up() -> bool:
            return over() or covers.visited > _MOST_VISITED

        found = list(covers.placements(given_up))
        if given_up():
            return False
        self._pace(looked_at + covers.visited)
        self._found = sorted(found, key=lambda each: (each[0], each[1].tolist()))
        self._limit = limit
        return True

    def _pace(self, work: int) -> None:
        """Choose the next step such that work about doubles.

        It grows exponentially with the limit: so all searches together take little
        more than the last, and the last little more than it must.
        """
        growth = 2 * (work + _LITTLE) // (self._work + _LITTLE)
        if growth <= 2:
            self._step *= 2
        elif growth >= 6:
            self._step = max(1, self._step // (growth.bit_length() - 1))
        self._work = work

    def _sharpen(self, limit: int) -> int:
        """Refute columns within reach of a limit; count those looked at."""
        prices, columns = self._prices, self._relaxation.columns
        gap = limit * GRID - prices.bound
        near = np.flatnonzero(~self._checked & (prices.excess <= gap))
        if not len(near):
            return 0
        near = near[np.argsort(prices.excess[near], kind="stable")][:_BATCH]
        alive = unrefuted(self._problem, self._closure, self._codes, columns.only(near))
        self._checked[near] = True
        kept = np.ones(len(columns), dtype=np.bool_)
        kept[near[~alive]] = False
        if not kept.all():
            self._relaxation.drop(kept)
            self._checked = self._checked[kept]
            self._prices = self._relaxation.prices()
        return len(near)
