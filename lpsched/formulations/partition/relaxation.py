"""The linear relaxation over all sets, with the cuts that the oracle can mind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.columns import Columns, Duals, Grid, placed_items
from lpsched.formulations.partition.cuts import violated_cuts
from lpsched.formulations.partition.generation import Generation, Tuning
from lpsched.formulations.partition.master import Floats, Master
from lpsched.formulations.partition.ordering import narrow_automaton
from lpsched.formulations.partition.pricing import MOST_STATES, Pricing
from lpsched.formulations.partition.problem import Placed, Problem
from lpsched.formulations.partition.subset_rows import Cut

__all__ = ["Relaxation", "box_width"]

#: Entries of a table that are aimed at; coarser loads keep it so small.
_MOST_CELLS = 6_000_000
#: How many times as many states cuts may add to the automaton.
_WIDER = 24
_MOST_CUTS = 40
_LEAST_VIOLATION = 0.02


class Relaxation:
    """Column generation over all sets, again and again with more cuts.

    Attributes
    ----------
    bare : Pricing
        The oracle that minds no cuts.
    pricing : Pricing
        The one that minds those there are.
    duals : Duals
        Of the best bound with these cuts; fees in the order of `pricing.cuts`.
    bound : int
        That bound, in grid units.
    """

    def __init__(self, problem: Problem, grid: Grid, deadline: Deadline) -> None:
        self._problem = problem
        self._grid = grid
        self._deadline = deadline
        automaton = narrow_automaton(
            problem, most_states=MOST_STATES, deadline=deadline
        )
        self.bare = Pricing.of(
            problem, automaton, grid, most_cells=_MOST_CELLS, deadline=deadline
        )
        self.pricing = self.bare
        none = np.zeros(problem.num_items, dtype=np.int64)
        self.duals = Duals(prices=none, fees=none[:0])
        self.bound = 0
        self.rounds = 0
        self._master = Master(problem)
        self._master.add(self.bare.contiguous())

    @property
    def columns(self) -> Columns:
        """The columns of the master."""
        return self._master.columns

    @property
    def placed(self) -> Placed | None:
        """The partition that the master's solution is; None if it is fractional."""
        levels = self._master.levels
        whole = np.rint(levels).astype(np.int64)
        if np.abs(levels - whole).max(initial=0.0) > 1e-6:
            return None
        if np.abs(self._master.slack).max(initial=0.0) > 1e-6:
            return None
        used = np.repeat(np.arange(len(whole)), whole)
        if len(used) != self._problem.num_devices:
            return None
        return placed_items(self._problem, self._master.columns.take(used))

    def solve(self, *, enough: int, known: Columns | None = None) -> int:
        """Generate columns; return the bound in units of cost, rounded up.

        Parameters
        ----------
        enough : int
            A bound that need not be exceeded.
        known : Columns, optional
            Columns of a partition, which give the master a solution.
        """
        if known is not None:
            self._master.add(known)
        n = self._problem.num_items
        generation = Generation(
            self._master,
            self._grid,
            centre=self.duals,
            width=box_width(self._problem),
        )
        # Long problems get more columns a round, and keep more.
        tuning = Tuning(count=max(30, n // 2), keep=max(1500, 40 * n))
        generation.run(self.pricing, self._deadline, tuning=tuning, enough=enough)
        self.rounds += generation.rounds
        self.duals = generation.centre
        self.bound = generation.bound or 0
        return self._grid.round_up(self.bound)

    def cut(self) -> bool:
        """Mind what the master's solution violates too; False if that is not possible.

        Cuts whose fee is 0 are dropped for it.
        """
        fees = dict(zip(self.pricing.cuts, self.duals.fees.tolist(), strict=True))
        fresh = violated_cuts(
            self._problem,
            self._master.columns.sets,
            self._master.levels,
            known=fees,
            most=_MOST_CUTS,
            least=_LEAST_VIOLATION,
        )
        return self._mind([*_dearest(fees), *fresh], self.duals, fees)

    def mind(self, cuts: Sequence[Cut], duals: Duals) -> bool:
        """Mind cuts for which fees were found elsewhere; False if these are no news.

        Parameters
        ----------
        duals : Duals
            Prices, and the fees of these cuts, to go on from.
        """
        fees = dict(zip(cuts, duals.fees.tolist(), strict=True))
        return self._mind(_dearest(fees), duals, fees)

    def _mind(self, cuts: Sequence[Cut], duals: Duals, fees: Mapping[Cut, int]) -> bool:
        """Mind as many of the first cuts as the automaton holds."""
        wider = self._widest(cuts)
        if wider is None or set(wider.cuts) <= set(self.pricing.cuts):
            return False
        master = Master(self._problem)
        master.add(self._master.columns)
        master.add_cuts(wider.cuts)
        self._master, self.pricing = master, wider
        charged = [fees.get(cut, 0) for cut in wider.cuts]
        self.duals = Duals(prices=duals.prices, fees=np.array(charged, dtype=np.int64))
        return True

    def _widest(self, cuts: Sequence[Cut]) -> Pricing | None:
        """The oracle with as many of the first cuts as it can mind."""
        most = _WIDER * sum(self.bare.automaton.widths)
        low, high, best = 0, len(cuts), None
        while low < high:
            middle = high if best is None and not low else (low + high + 1) // 2
            wider = self.bare.with_cuts(cuts[:middle], most_in_all=most)
            if wider is None:
                high = middle - 1
            else:
                low, best = middle, wider
        return best


def _dearest(fees: Mapping[Cut, int]) -> list[Cut]:
    """Cuts with a fee, the dearest first."""
    return sorted((cut for cut in fees if fees[cut]), key=lambda cut: (-fees[cut], cut))


def box_width(problem: Problem) -> Floats:
    """Half the width of the box around prices to begin with."""
    sizes = [m.size for m in problem.messages]
    typical = float(np.median(sizes)) / 4 if sizes else 1.0
    return np.full(problem.num_items, max(1.0, typical))
