"""Column generation, stabilised by a box around the best prices so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpsched.errors import OutOfTimeError
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.columns import Duals, Grid, Oracle
from lpsched.formulations.partition.master import Floats, Master

__all__ = ["Generation", "Tuning"]

#: Items in all that the box may cover where a rough bound will do.
_LOOSE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How column generation goes about it.

    Attributes
    ----------
    count : int
        Columns of each group per round.
    smoothing : float
        Share of the best prices in those that are priced, the rest is the master's.
    keep : int
        Columns that the master keeps of twice as many. Many are almost free in long
        chains; if these have to go they come again, round after round.
    tolerance : float
        Gap of master and bound at which it ends, in units of cost.
    is_rough : bool
        Whether the box may bind a little in the end.
    """

    count: int = 30
    smoothing: float = 0.8
    keep: int = 1500
    tolerance: float = 0.02
    is_rough: bool = False


class Generation:
    """Raises a lower bound by pricing columns into a master.

    Every oracle's answer gives a valid bound whatever the prices; the best so far and
    its duals, the centre, are kept. The master's prices stay in a box around the
    centre, which is doubled where it binds: without it they swing for hundreds of
    rounds.

    Attributes
    ----------
    bound : int
        In grid units.
    centre : Duals
        The duals that gave the bound.
    """

    def __init__(
        self, master: Master, grid: Grid, *, centre: Duals, width: Floats
    ) -> None:
        self.master = master
        self.grid = grid
        self.bound: int | None = None
        self.centre = centre
        self.width = width
        self.rounds = 0

    def run(
        self,
        oracle: Oracle,
        deadline: Deadline,
        *,
        tuning: Tuning,
        enough: int | None = None,
    ) -> bool:
        """Generate columns until the bound is the master's optimum.

        The bound starts afresh, since another oracle may know other columns.

        Parameters
        ----------
        enough : int, optional
            A bound (in units of cost) that need not be exceeded.

        Returns
        -------
        bool
            Whether it converged, or the bound is enough; False if time is over.
        """
        self.bound = None
        try:
            return self._run(oracle, deadline, tuning, enough)
        except OutOfTimeError:
            return False

    def _run(
        self, oracle: Oracle, deadline: Deadline, tuning: Tuning, enough: int | None
    ) -> bool:
        self._try(oracle, self.centre, tuning)
        while not deadline.over:
            if enough is not None and self.grid.round_up(self.bound or 0) >= enough:
                return True
            self.master.box(self._floats(self.centre.prices), self.width)
            if not self.master.solve(deadline.left):
                return False
            self.rounds += 1
            if len(self.master.columns) > 2 * tuning.keep:
                self.master.purge(tuning.keep)
            if self._is_closed(tuning):
                if self._hardly_binds(tuning) or not self._widen():
                    return True
            elif not self._round(oracle, tuning):
                return True
        return False

    def _round(self, oracle: Oracle, tuning: Tuning) -> bool:
        """Price near the centre, else at the master's prices; False if in vain."""
        target = self._rounded(self.master.prices, self.master.fees)
        near = self._between(target, tuning.smoothing)
        before = self.bound
        added = self._try(oracle, near, tuning)
        if self.bound == before or not added:
            added += self._try(oracle, target, tuning)
        if self.bound != before:
            self._widen()
        return added > 0 or self.bound != before or self._widen()

    def _try(self, oracle: Oracle, duals: Duals, tuning: Tuning) -> int:
        """Ask the oracle; keep the bound if it is better; return columns added."""
        offer = oracle.offer(duals, tuning.count)
        if self.bound is None or offer.bound > self.bound:
            self.bound, self.centre = offer.bound, duals
        return self.master.add(offer.columns)

    def _is_closed(self, tuning: Tuning) -> bool:
        gap = self.master.value - (self.bound or 0) / self.grid.unit
        return gap <= tuning.tolerance

    def _hardly_binds(self, tuning: Tuning) -> bool:
        """Whether the box's columns are used by less than the tolerance allows."""
        return tuning.is_rough and self.master.slack.sum() < _LOOSE

    def _widen(self) -> bool:
        """Double the box where it binds; False if it does not."""
        binds = self.master.slack > 1e-7
        most = float(self.grid.highest)
        binds &= self.width < most
        self.width = np.where(binds, np.minimum(2 * self.width, most), self.width)
        return bool(binds.any())

    def _floats(self, values: np.ndarray) -> Floats:
        floats: Floats = values / self.grid.unit
        return floats

    def _rounded(self, prices: Floats, fees: Floats) -> Duals:
        most = float(self.grid.highest)
        clipped = np.clip(prices, -most, most), np.clip(fees, 0.0, most)
        whole = [np.rint(v * self.grid.unit).astype(np.int64) for v in clipped]
        return Duals(prices=whole[0], fees=whole[1])

    def _between(self, target: Duals, smoothing: float) -> Duals:
        """Return duals on the way from the centre to a target."""
        mixed = [
            np.rint(smoothing * a + (1 - smoothing) * b).astype(np.int64)
            for a, b in (
                (self.centre.prices, target.prices),
                (self.centre.fees, target.fees),
            )
        ]
        return Duals(prices=mixed[0], fees=mixed[1])
