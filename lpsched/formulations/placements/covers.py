"""Every placement whose communication is within a limit, but those refuted by paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from lpsched.analysis.at_period import Bools, Ints
from lpsched.formulations.placements.columns import Columns
from lpsched.formulations.placements.partial import Partial
from lpsched.formulations.placements.problem import Problem
from lpsched.formulations.placements.relaxation import GRID, Prices

__all__ = ["Covers"]

#: Partial placements that are extended together, and pairs with columns looked at.
_NODES, _PAIRS = 1024, 2**22


@dataclass(frozen=True, kw_only=True, eq=False)
class _Nodes:
    """Partial placements; m of them.

    Attributes
    ----------
    used : array (m,) of int
        Units placed.
    spent : array (m,) of int
        What their columns add to the bound.
    cost : array (m,) of int
        What their columns receive.
    left : array (m, classes) of int
        Devices not used, by class.
    homes : array (m, units) of int
        Device of each unit; P + 1 if it has none yet.
    """

    used: Ints
    spent: Ints
    cost: Ints
    left: Ints
    homes: Ints

    def only(self, kept: Bools | Ints | slice) -> _Nodes:
        return _Nodes(
            used=self.used[kept],
            spent=self.spent[kept],
            cost=self.cost[kept],
            left=self.left[kept],
            homes=self.homes[kept],
        )

    def __len__(self) -> int:
        return len(self.used)


class Covers:
    r"""Searches the ways to choose columns that hold each unit once.

    By depth, on the unit that fewest columns hold. What the columns chosen and the
    devices left idle add to the bound must not exceed limit - bound; partial
    placements are held against paths and turns.

    Parameters
    ----------
    limit : int
        On communication, in units of `Problem.gcd`.
    """

    def __init__(
        self,
        problem: Problem,
        partial: Partial,
        columns: Columns,
        prices: Prices,
        limit: int,
    ) -> None:
        self._problem, self._partial = problem, partial
        self._gap = limit * GRID - prices.bound
        near = np.flatnonzero(prices.excess <= self._gap)
        self._columns, self._excess = columns.only(near), prices.excess[near]
        self._idle = prices.idle
        self._everything = (1 << len(problem.units)) - 1
        bits = self._columns.bits
        holding = [np.flatnonzero(bits >> k & 1) for k in range(len(problem.units))]
        self._holding = holding
        self._order = sorted(range(len(holding)), key=lambda k: len(holding[k]))
        self._distinct = np.unique(bits)
        self.visited = 0

    def placements(self, over: Callable[[], bool]) -> Iterator[tuple[int, Ints]]:
        """Communication, in units of `Problem.gcd`, and device by unit, of each.

        In no order. Ends early once `over` says so, which is asked often.
        """
        classes = [len(devices) for devices in self._problem.classes]
        num_units = len(self._problem.units)
        start = _Nodes(
            used=np.zeros(1, dtype=np.int64),
            spent=np.zeros(1, dtype=np.int64),
            cost=np.zeros(1, dtype=np.int64),
            left=np.array([classes]),
            homes=np.full((1, num_units), self._problem.at.num_devices + 1),
        )
        yield from self._search(start, over)

    def _search(
        self, nodes: _Nodes, over: Callable[[], bool]
    ) -> Iterator[tuple[int, Ints]]:
        whole = nodes.used == self._everything
        fits = whole & (nodes.spent + nodes.left @ self._idle <= self._gap)
        yield from ((int(nodes.cost[i]), nodes.homes[i]) for i in np.flatnonzero(fits))
        partial = nodes.only(~whole)
        for begin in range(0, len(partial), _NODES):
            batch = partial.only(slice(begin, begin + _NODES))
            for unit, members in self._branches(batch):
                for children in self._children(batch.only(members), unit):
                    if over():
                        return
                    yield from self._search(self._kept(children), over)

    def _branches(self, nodes: _Nodes) -> Iterator[tuple[int, Ints]]:
        """Nodes by the rarest unit that they have not placed."""
        waiting = np.ones(len(nodes), dtype=np.bool_)
        for unit in self._order:
            mine = waiting & (nodes.used >> unit & 1 == 0)
            waiting &= ~mine
            if mine.any():
                yield unit, np.flatnonzero(mine)

    def _children(self, nodes: _Nodes, unit: int) -> Iterator[_Nodes]:
        """Nodes with each column that holds a unit and fits in."""
        columns = self._holding[unit]
        step = max(1, _PAIRS // max(1, len(columns)))
        for begin in range(0, len(nodes), step):
            batch = nodes.only(slice(begin, begin + step))
            fits = (batch.used[:, None] & self._columns.bits[columns]) == 0
            spent = batch.spent[:, None] + self._excess[columns]
            fits &= spent <= self._gap
            fits &= batch.left[:, self._columns.kind[columns]] > 0
            rows, places = np.nonzero(fits)
            yield self._extended(batch.only(rows), columns[places])

    def _extended(self, nodes: _Nodes, columns: Ints) -> _Nodes:
        bits, kind = self._columns.bits[columns], self._columns.kind[columns]
        rows = np.arange(len(nodes))
        device = np.zeros(len(nodes), dtype=np.int64)
        for g, devices in enumerate(self._problem.classes):
            mine = kind == g
            device[mine] = np.array(devices)[nodes.left[mine, g] - 1]
        left = nodes.left.copy()
        left[rows, kind] -= 1
        members = (bits[:, None] >> np.arange(len(self._problem.units))) & 1 == 1
        return _Nodes(
            used=nodes.used | bits,
            spent=nodes.spent + self._excess[columns],
            cost=nodes.cost + self._columns.cost[columns],
            left=left,
            homes=np.where(members, device[:, None], nodes.homes),
        )

    def _kept(self, nodes: _Nodes) -> _Nodes:
        """Drop nodes that cannot be completed, or that paths refute."""
        devices = nodes.left.sum(axis=1)
        rest = self._everything & ~nodes.used
        possible = (rest == 0) | (devices > 1)
        place = np.searchsorted(self._distinct, rest).clip(max=len(self._distinct) - 1)
        possible |= (devices == 1) & (self._distinct[place] == rest)
        nodes = nodes.only(possible)
        self.visited += len(nodes)
        alive = np.zeros(len(nodes), dtype=np.bool_)
        lefts, which = np.unique(nodes.left, axis=0, return_inverse=True)
        for i, left in enumerate(lefts):
            mine = np.flatnonzero(which.reshape(-1) == i)
            alive[mine] = self._partial.unrefuted(nodes.homes[mine], self._rest(left))
        return nodes.only(alive)

    def _rest(self, left: Ints) -> tuple[int, ...]:
        """Devices not used: the first of each class."""
        return tuple(
            device
            for count, devices in zip(left, self._problem.classes, strict=True)
            for device in devices[:count]
        )
