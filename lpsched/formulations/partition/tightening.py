"""Cuts and elimination over a pool, until little of it can matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.automaton import Ints
from lpsched.formulations.partition.columns import Duals
from lpsched.formulations.partition.cuts import violated_cuts
from lpsched.formulations.partition.generation import Generation, Tuning
from lpsched.formulations.partition.master import Floats, Master
from lpsched.formulations.partition.pool import Pool

__all__ = ["Tightened", "tighten"]

#: Columns priced while cuts are sought; the whole pool is asked now and then.
_CORE = 20_000
_TUNING = Tuning(count=200, smoothing=0.5, keep=2500)
_CUTS = 40
_LEAST_VIOLATION = 0.02
#: Rounds of cuts in which a bound may rise by less than this share of what is left.
_PATIENCE = 4
_WORTHWHILE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tightened:
    """A pool after cuts.

    Attributes
    ----------
    pool : Pool
        The columns that may still be part of a partition of cost <= `target`.
    duals : Duals
        With which `bound` was proved; fees in the order of the pool's cuts.
    bound : int
        Lower bound of every partition made of the pool, in units of cost.
    is_complete : bool
        Whether cuts have done what they can; False if time was over.
    """

    pool: Pool
    duals: Duals
    bound: int
    is_complete: bool


def tighten(
    pool: Pool, duals: Duals, width: Floats, *, target: int, deadline: Deadline
) -> Tightened:
    """Add subset-row cuts and drop columns that no partition <= `target` can use.

    Column generation goes on over the pool, mostly over a core of its best columns;
    a bound counts only once the whole pool has been priced. Ends when the bound
    exceeds the target, no cut is violated, or time is over.
    """
    return _Tightening(pool, duals, width, target, deadline).run()


class _Tightening:
    def __init__(
        self, pool: Pool, duals: Duals, width: Floats, target: int, deadline: Deadline
    ) -> None:
        self.pool = pool
        self.target = target
        self.deadline = deadline
        self.bound = 0
        master = Master(pool.problem)
        self.generation = Generation(master, pool.grid, centre=duals, width=width)
        self.master = master
        self.core = self._pick(pool.reduced(duals))
        first = self.core.excess(self.core.reduced(duals))
        master.add(self.core.columns.take(np.argsort(first, kind="stable")[:1000]))
        master.add_cuts(pool.cuts)

    def run(self) -> Tightened:
        """Cut over the core while that pays, then ask the whole pool; repeat."""
        is_complete = False
        while not self.deadline.over and self._cut_core():
            added = len(self.master.columns)
            if not self._generate(self.pool):
                break
            is_settled = len(self.master.columns) == added
            rise = self._eliminate()
            if rise:
                self.master.drop_idle_cuts()
                self._mind()
            if self.bound > self.target or (is_settled and not rise):
                is_complete = True
                break
        return Tightened(
            pool=self.pool,
            duals=self.generation.centre,
            bound=self.bound,
            is_complete=is_complete,
        )

    def _cut_core(self) -> bool:
        """Add violated cuts until the core's bound stalls; False if time is over."""
        best, stalled = -1.0, 0
        while stalled < _PATIENCE:
            if not self._generate(self.core):
                return False
            value = (self.generation.bound or 0) / self.pool.grid.unit
            if value > self.target or not self._cut():
                break
            room = self.target + 1 - best
            stalled = 0 if value - best > _WORTHWHILE * room else stalled + 1
            best = max(best, value)
        return True

    def _generate(self, oracle: Pool) -> bool:
        """Generate columns from the core or the pool."""
        return self.generation.run(
            oracle, self.deadline, tuning=_TUNING, enough=self.target + 1
        )

    def _cut(self) -> bool:
        """Add violated cuts; False if there is none."""
        fresh = violated_cuts(
            self.pool.problem,
            self.master.columns.sets,
            self.master.levels,
            known=self.master.cuts,
            most=_CUTS,
            least=_LEAST_VIOLATION,
        )
        self.master.add_cuts(fresh)
        self._mind()
        return bool(fresh)

    def _mind(self) -> None:
        """Carry fees over to the cuts there are now; new ones have fee 0."""
        cuts = tuple(self.master.cuts)
        fees = dict(
            zip(self.pool.cuts, self.generation.centre.fees.tolist(), strict=True)
        )
        self.generation.centre = Duals(
            prices=self.generation.centre.prices,
            fees=np.array([fees.get(t, 0) for t in cuts], dtype=np.int64),
        )
        self.pool = self.pool.with_cuts(cuts)
        self.core = self.core.with_cuts(cuts)

    def _eliminate(self) -> bool:
        """Drop columns no partition <= target can use; tell whether the bound rose."""
        generation, grid = self.generation, self.pool.grid
        value = generation.bound or 0
        reduced = self.pool.reduced(generation.centre)
        room = self.target * grid.unit - value
        keep = self.pool.excess(reduced) <= room
        self.pool, reduced = self.pool.take(keep), reduced[keep]
        self.core = self._pick(reduced)
        rises, self.bound = (
            grid.round_up(value) > self.bound,
            max(self.bound, grid.round_up(value)),
        )
        return rises

    def _pick(self, reduced: Ints) -> Pool:
        """Return the pool of the best columns."""
        if len(self.pool) <= _CORE:
            return self.pool
        excess = self.pool.excess(reduced)
        return self.pool.take(np.argpartition(excess, _CORE)[:_CORE])
