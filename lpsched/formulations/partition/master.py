"""The restricted master: a linear program over the columns found so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from lpsched.analysis.linear import quiet_highs
from lpsched.errors import SolverError
from lpsched.formulations.partition.columns import Columns
from lpsched.formulations.partition.problem import Problem
from lpsched.formulations.partition.subset_rows import Cut

__all__ = ["Master"]

Floats = NDArray[np.float64]

_INFINITY = highspy.kHighsInf
#: Costs are scaled down so that no size exceeds this: HiGHS's tolerances are absolute.
_LARGEST_SIZE = 2**17
_EPSILON = 1e-7


class Master:
    r"""Cover every class of items, by so many sets of each group, at the least cost.

    .. math:: \min \sum_S c_S x_S \quad\text{s.t.}\quad
       \sum_S |S \cap K| x_S = |K|, \quad \sum_{S \in g} x_S = P_g, \quad
       \sum_S a_\tau(S) x_S \le b_\tau

    Each class's row has two columns more, a surplus and a shortage, which keep its
    price within a box: they cost the box's upper end, and less its lower end. A
    group's row has one that costs more than any partition: cuts may forbid all
    sets that are there.

    Attributes
    ----------
    value : float
        Optimum of the last solve, the box's columns included.
    prices, fees : array of float
        Duals of the items and (less) of the cuts.
    slack : array (n,) of float
        How much of each item's class the box's columns cover.
    """

    def __init__(self, problem: Problem) -> None:
        n = len(problem.classes)
        largest = max((m.size for m in problem.messages), default=1)
        self._scale = 1.0
        while largest / self._scale > _LARGEST_SIZE:
            self._scale *= 2.0
        self.cuts: list[Cut] = []
        self.value = 0.0
        self.prices: Floats = np.zeros(problem.num_items)
        self.fees: Floats = np.zeros(0)
        self.slack: Floats = np.zeros(problem.num_items)
        self._n = n
        self._class_of = np.array(problem.class_of, dtype=np.int64)
        self._first = [members[0] for members in problem.classes]
        self._groups = len(problem.groups)
        self._base = 2 * self._n + self._groups
        self._columns: list[Columns] = []
        self._known: set[bytes] = set()
        self._levels: Floats = np.zeros(0)
        self._reduced: Floats = np.zeros(0)
        self._highs = quiet_highs(presolve="off", simplex_strategy=4)
        self._open(problem)

    def _open(self, problem: Problem) -> None:
        """Add the rows, and the columns of the box."""
        n, none = self._n, np.zeros(0, dtype=np.int32)
        ones = np.ones(n)
        members = np.array([float(len(members)) for members in problem.classes])
        counts = np.array([float(group.count) for group in problem.groups])
        sides = np.concatenate([members, counts])
        starts = np.zeros(len(sides), dtype=np.int32)
        self._highs.addRows(len(sides), sides, sides, 0, starts, none, np.zeros(0))
        where = np.concatenate(
            [np.arange(n), np.arange(n), n + np.arange(self._groups)]
        )
        costs = np.zeros(self._base)
        costs[2 * n :] = 4.0 * (problem.most_cost + 1) / self._scale
        self._highs.addCols(
            self._base,
            costs,
            np.zeros(self._base),
            np.full(self._base, _INFINITY),
            self._base,
            np.arange(self._base, dtype=np.int32),
            where.astype(np.int32),
            np.concatenate([ones, -ones, np.ones(self._groups)]),
        )

    @property
    def columns(self) -> Columns:
        """The columns, in the order of `levels`."""
        if len(self._columns) > 1:
            self._columns = [Columns.joined(self._columns)]
        return self._columns[0]

    @property
    def levels(self) -> Floats:
        """Value of each column in the last solve; shape (N,)."""
        return self._levels

    def box(self, centre: Floats, width: Floats) -> None:
        """Keep prices within `width` of a centre, in units of cost."""
        n = self._n
        centre, width = centre[self._first], width[self._first]
        costs = np.concatenate([centre + width, width - centre]) / self._scale
        self._highs.changeColsCost(2 * n, np.arange(2 * n, dtype=np.int32), costs)

    def add(self, columns: Columns) -> int:
        """Add columns that are not there yet; return how many."""
        fresh = []
        for number, key in enumerate(columns.keys()):
            if key not in self._known:
                self._known.add(key)
                fresh.append(number)
        if fresh:
            new = columns.take(np.array(fresh, dtype=np.int64))
            self._append(new)
            self._columns.append(new)
        return len(fresh)

    def _append(self, new: Columns) -> None:
        n = self._n
        rows = np.zeros((n + self._groups + len(self.cuts), len(new)))
        rows[:n] = new.sets.counts(self._class_of, n)
        rows[n + new.groups, np.arange(len(new))] = 1.0
        for t, cut in enumerate(self.cuts):
            rows[n + self._groups + t] = new.sets.coefficients(cut)
        column, row = np.nonzero(rows.T)
        self._highs.addCols(
            len(new),
            new.costs / self._scale,
            np.zeros(len(new)),
            np.full(len(new), _INFINITY),
            len(row),
            np.searchsorted(column, np.arange(len(new))).astype(np.int32),
            row.astype(np.int32),
            rows[row, column],
        )

    def add_cuts(self, cuts: Sequence[Cut]) -> None:
        """Add a row for each cut."""
        for cut in cuts:
            values = self.columns.sets.coefficients(cut)
            held = np.flatnonzero(values)
            self._highs.addRow(
                -_INFINITY,
                float(cut.most),
                len(held),
                (held + self._base).astype(np.int32),
                values[held].astype(np.float64),
            )
            self.cuts.append(cut)

    def drop_idle_cuts(self) -> None:
        """Remove the cuts whose fee was 0 in the last solve."""
        idle = np.flatnonzero(self.fees < _EPSILON)
        if len(idle):
            rows = (idle + self._n + self._groups).astype(np.int32)
            self._highs.deleteRows(len(rows), rows)
            gone = set(idle.tolist())
            self.cuts = [t for k, t in enumerate(self.cuts) if k not in gone]
            self.fees = np.delete(self.fees, idle)

    def solve(self, seconds: float) -> bool:
        """Solve; False if that took too long.

        Raises
        ------
        SolverError
            HiGHS fails.
        """
        highs, n = self._highs, self._n
        highs.setOptionValue("time_limit", highs.getRunTime() + seconds)
        highs.run()
        status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kTimeLimit:
            return False
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"HiGHS ended a master with {status.name}")
        solution: Any = highs.getSolution()
        values, duals = np.array(solution.col_value), np.array(solution.row_dual)
        self.value = highs.getObjectiveValue() * self._scale
        self.prices = duals[:n][self._class_of] * self._scale
        self.fees = -duals[n + self._groups :] * self._scale
        self.slack = (values[:n] + values[n : 2 * n])[self._class_of]
        self._levels = values[self._base :]
        self._reduced = np.array(solution.col_dual)[self._base :]
        return True

    def purge(self, keep: int) -> None:
        """After a solve, keep the columns in use and the `keep` next best ones."""
        if len(self._levels) <= keep:
            return
        worst = np.partition(self._reduced, keep)[keep]
        gone = np.flatnonzero((self._reduced > worst) & (self._levels < _EPSILON))
        if not len(gone):
            return
        self._highs.deleteCols(len(gone), (gone + self._base).astype(np.int32))
        self._known.difference_update(self.columns.take(gone).keys())
        stay = np.ones(len(self._levels), dtype=np.bool_)
        stay[gone] = False
        self._columns = [self.columns.take(stay)]
        self._levels = self._levels[stay]
        self._reduced = self._reduced[stay]
