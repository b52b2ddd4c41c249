"""The oracle that knows a list of columns: every one that may still matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lpsched.formulations.partition.automaton import Ints
from lpsched.formulations.partition.columns import (
    Columns,
    Duals,
    Grid,
    Offer,
    lagrangian,
)
from lpsched.formulations.partition.dynamic import INFEASIBLE
from lpsched.formulations.partition.problem import Problem
from lpsched.formulations.partition.sets import Bools
from lpsched.formulations.partition.subset_rows import Cut

__all__ = ["Pool"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """Columns priced by lookup; bounds hold for partitions made of these alone.

    Attributes
    ----------
    cuts : tuple of Cut
        Those whose fees count; in the order of `Duals.fees`.
    """

    problem: Problem
    grid: Grid
    columns: Columns
    cuts: tuple[Cut, ...] = ()

    def __len__(self) -> int:
        return len(self.columns)

    def with_cuts(self, cuts: Sequence[Cut]) -> Pool:
        """Return the pool that minds these cuts."""
        return replace(self, cuts=tuple(cuts))

    def take(self, which: Ints | Bools) -> Pool:
        """Return the pool of some of the columns."""
        return replace(self, columns=self.columns.take(which))

    def reduced(self, duals: Duals) -> Ints:
        """Reduced cost of each column, in grid units; shape (N,)."""
        sets = self.columns.sets
        values: Ints = self.columns.costs * self.grid.unit - sets.sums(duals.prices)
        for cut, fee in zip(self.cuts, duals.fees, strict=True):
            if fee:
                values += fee * sets.coefficients(cut)
        return values

    def least(self, reduced: Ints) -> list[int]:
        """Least reduced cost of each group; `INFEASIBLE` where it has no column."""
        found = []
        for g in range(len(self.problem.groups)):
            mine = reduced[self.columns.groups == g]
            found.append(int(mine.min()) if len(mine) else INFEASIBLE)
        return found

    def bound(self, duals: Duals, reduced: Ints) -> int:
        """Bound of partitions made of this pool, in grid units."""
        return lagrangian(self.problem, self.cuts, duals, self.least(reduced))

    def excess(self, reduced: Ints) -> Ints:
        """Reduced cost of each column above the least of its group."""
        least = np.array(self.least(reduced), dtype=np.int64)
        above: Ints = reduced - least[self.columns.groups]
        return above

    def offer(self, duals: Duals, count: int) -> Offer:
        """Return the bound for this pool and the `count` best columns of each group."""
        reduced = self.reduced(duals)
        bound = self.bound(duals, reduced)
        chosen = []
        for g in range(len(self.problem.groups)):
            mine = np.flatnonzero(self.columns.groups == g)
            if len(mine) > count:
                mine = mine[np.argpartition(reduced[mine], count - 1)[:count]]
            chosen.append(mine)
        return Offer(bound=bound, columns=self.columns.take(np.concatenate(chosen)))
