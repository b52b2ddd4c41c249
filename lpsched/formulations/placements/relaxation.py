"""A safe bound on communication: the linear relaxation of set partitioning."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from lpsched.analysis.at_period import Bools, Ints
from lpsched.analysis.linear import LinearProgram, Row
from lpsched.formulations.placements.columns import Columns
from lpsched.formulations.placements.problem import Problem

__all__ = ["GRID", "Prices", "Relaxation"]

#: Prices are whole multiples of 1 / GRID: sums of them are exact.
GRID = 1024

#: Bits that are looked up at once.
_BITS = 12

#: Columns that enter the linear program in a round.
_ROUND = 60


@dataclass(frozen=True, kw_only=True, eq=False)
class Prices:
    r"""Prices of units and devices, and what they prove; all in 1 / GRID.

    .. math:: \sum_k \pi_k + \sum_g n_g \sigma_g \le \text{communication}, \quad
        \sigma_g = \min(0, \min_S (c_S - \sum_{k \in S} \pi_k)) \le 0

    as every unit is in one column, and class g has at most :math:`n_g` of them. Holds
    for any prices.

    Attributes
    ----------
    excess : array (m,) of int
        :math:`c_S - \pi(S) - \sigma_g \ge 0` of each column: what using it adds.
    idle : array (classes,) of int
        :math:`-\sigma_g`: what not using a device adds.
    bound : int
        The left-hand side.
    """

    excess: Ints
    idle: Ints
    bound: int


class Relaxation:
    """The dual linear program: maximises the bound over prices.

    It has a row per column, added where prices go beyond what the column costs, and
    freed once the column is dropped.
    """

    def __init__(self, problem: Problem, columns: Columns) -> None:
        self._units, self._classes = len(problem.units), len(problem.classes)
        self._counts = np.array([len(devices) for devices in problem.classes])
        self.columns = columns
        self._row_of = np.full(len(columns), -1, dtype=np.int64)
        cost = [-1.0] * self._units + [-float(n) for n in self._counts]
        self._program = LinearProgram(cost, lower=-highspy.kHighsInf)
        most = float(problem.worst)  # prices beyond it say that a unit has no column
        self._program.add(
            Row([k], [1.0], -most, most if k < self._units else 0.0)
            for k in range(len(cost))
        )
        self._num_rows = len(cost)

    def drop(self, kept: Bools) -> None:
        """Keep some columns only."""
        lost = self._row_of[~kept]
        self._program.free([int(row) for row in lost[lost >= 0]])
        self.columns, self._row_of = self.columns.only(kept), self._row_of[kept]

    def _row(self, j: int) -> Row:
        bits = int(self.columns.bits[j])
        members = [k for k in range(self._units) if bits >> k & 1]
        members.append(self._units + int(self.columns.kind[j]))
        upper = float(self.columns.cost[j])
        return Row(members, [1.0] * len(members), -highspy.kHighsInf, upper)

    def prices(self) -> Prices:
        """Solve by adding the columns of least excess until none is negative."""
        best: Prices | None = None
        while True:
            solution = self._program.minimise()
            if solution is None:
                raise AssertionError("zero prices are always feasible")
            prices = self._safe(np.array(solution.x))
            if best is None or prices.bound > best.bound:
                best = prices
            slack = GRID * -solution.value - best.bound
            if slack <= self._units + len(self._counts) or not self._add(prices):
                return best

    def _safe(self, x: NDArray[np.float64]) -> Prices:
        """Round prices to the grid; σ follows from them."""
        pi = np.rint(x[: self._units] * GRID).astype(np.int64)
        reduced = GRID * self.columns.cost - _sums(pi, self.columns.bits)
        sigma = np.zeros(self._classes, dtype=np.int64)
        for kind in range(self._classes):
            mine = reduced[self.columns.kind == kind]
            sigma[kind] = min(0, mine.min(initial=0))
        return Prices(
            excess=reduced - sigma[self.columns.kind],
            idle=-sigma,
            bound=int(pi.sum() + self._counts @ sigma),
        )

    def _add(self, prices: Prices) -> bool:
        """Add rows of the columns of least excess; False if there are none left."""
        known = self._row_of >= 0
        excess = np.where(known, np.iinfo(np.int64).max, prices.excess)
        count = min(_ROUND, int((~known).sum()))
        if count == 0:
            return False
        chosen = np.argpartition(excess, count - 1)[:count]
        self._program.add(map(self._row, chosen))
        self._row_of[chosen] = self._num_rows + np.arange(count)
        self._num_rows += count
        return True


def _sums(values: Ints, bits: Ints) -> Ints:
    """Sum of the values whose bits are set, for each set."""
    total = np.zeros(len(bits), dtype=np.int64)
    for first in range(0, len(values), _BITS):
        table = np.zeros(1, dtype=np.int64)
        for value in values[first : first + _BITS]:
            table = np.concatenate([table, table + value])
        total += table[(bits >> first) & (len(table) - 1)]
    return total
