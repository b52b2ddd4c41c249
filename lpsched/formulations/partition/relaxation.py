"""The linear relaxation over all sets, with the cuts that the oracle can mind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.columns import Columns, Duals, Grid, placed_items
from lpsched.formulations.partition.cuts import violated_cuts
from lpsched.formulations.partition.generation import Generation, Tuning
from lpsched.formulations.partition.master import Floats, Master
from lpsched.formulations.partition.ordering import narrow_automaton
from lpsched.formulations.partition.pricing import MOST_STATES, Pricing
from lpsched.formulations.partition.problem import ItemSet, Placed, Problem
from lpsched.formulations.partition.subset_rows import Cut

__all__ = ["Relaxation", "box_width"]

#: Entries of a table that are aimed at; coarser loads keep it so small.
_MOST_CELLS = 6_000_000
#: How many times as many states cuts may add to the automaton.
_WIDER = 24
_MOST_CUTS = 40
_FRESH_CUTS = 4
#: How many times narrower the box around prices is when generation begins again.
_NARROWER = 4.0
_LEAST_VIOLATION = 0.02


class Relaxation:
    """Column generation over all sets, again and again with more cuts.

    Parameters
    ----------
    order : sequence of int, optional
        An order of the items in which few messages are in play at a time, if known.

    Attributes
    ----------
    problem : Problem
    bare : Pricing
        The oracle that minds no cuts.
    pricing : Pricing
        The one that minds those there are.
    duals : Duals
        Of the best bound with these cuts; fees in the order of `pricing.cuts`.
    bound : int
        That bound, in grid units.
    """

    def __init__(
        self,
        problem: Problem,
        grid: Grid,
        deadline: Deadline,
        *,
        order: Sequence[int] | None = None,
    ) -> None:
        self.problem = problem
        self._grid = grid
        self._deadline = deadline
        automaton = narrow_automaton(
            problem, order, most_states=MOST_STATES, deadline=deadline
        )
        self.bare = Pricing.of(
            problem, automaton, grid, most_cells=_MOST_CELLS, deadline=deadline
        )
        self.pricing = self.bare
        none = np.zeros(problem.num_items, dtype=np.int64)
        self.duals = Duals(prices=none, fees=none[:0])
        self.bound = 0
        self.rounds = 0
        self._width = box_width(problem)
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
        if len(used) != self.problem.num_devices:
            return None
        return placed_items(self.problem, self._master.columns.take(used))

    def most_used(self, count: int) -> list[tuple[int, ItemSet]]:
        """Return the sets that the master's solution uses most, with their groups."""
        levels = self._master.levels
        used = np.argsort(-levels, kind="stable")[:count]
        columns = self.columns.take(used[levels[used] > 1e-6])
        groups = columns.groups.tolist()
        return list(zip(groups, columns.sets.unpacked(), strict=True))

    def part(
        self, problem: Problem, items: Sequence[int], deadline: Deadline
    ) -> Relaxation:
        """Return the relaxation of a part of the problem, to go on from these prices.

        Parameters
        ----------
        items : sequence of int
            What the items of the part are here.
        """
        number = {item: i for i, item in enumerate(items)}
        order = [number[v] for v in self.bare.automaton.order if v in number]
        part = Relaxation(problem, self._grid, deadline, order=order)
        part.duals = replace(part.duals, prices=self.duals.prices[list(items)])
        return part

    def solve(
        self, *, enough: int, known: Columns | None = None, rough: float = 0.0
    ) -> int:
        """Generate columns; return the bound in units of cost, rounded up.

        Parameters
        ----------
        enough : int
            A bound that need not be exceeded.
        known : Columns, optional
            Columns of a partition, which give the master a solution.
        rough : float
            How far the bound may stay below the relaxation's optimum, in units of cost.
        """
        if known is not None:
            self._master.add(known)
        n = self.problem.num_items
        generation = Generation(
            self._master,
            self._grid,
            centre=self.duals,
            width=self._width,
        )
        # Long problems get more columns a round, and keep more.
        tuning = Tuning(count=max(30, n // 2), keep=max(1500, 40 * n))
        if rough > tuning.tolerance:
            tuning = replace(tuning, tolerance=rough, is_rough=True)
        generation.run(self.pricing, self._deadline, tuning=tuning, enough=enough)
        self.rounds += generation.rounds
        self.duals = generation.centre
        # Cuts move prices far, but not as far as they came from nothing.
        self._width = np.maximum(generation.width / _NARROWER, box_width(self.problem))
        self.bound = generation.bound or 0
        return self._grid.round_up(self.bound)

    def cut(self) -> bool:
        """Mind what the master's solution violates too; False if that is not possible.

        Of the cuts found only those of greatest fee are minded, since each makes the
        dynamic program wider; the fees are those of the master with all of them.
        """
        fresh = violated_cuts(
            self.problem,
            self._master.columns.sets,
            self._master.levels,
            known=self.pricing.cuts,
            most=_MOST_CUTS,
            least=_LEAST_VIOLATION,
        )
        if not fresh:
            return False
        self._master.add_cuts(fresh)
        if self._master.solve(self._deadline.left):
            fees = dict(zip(self._master.cuts, self._master.fees.tolist(), strict=True))
            dearest = sorted(fresh, key=lambda cut: (-fees[cut], cut))[:_FRESH_CUTS]
            minded = [cut for cut in self.pricing.cuts if fees[cut] > 0]
            if self._mind([*minded, *dearest], self.duals, self._fees):
                return True
        self._master = self._with_cuts(self.pricing.cuts)
        return False

    def mind(self, cuts: Sequence[Cut], duals: Duals) -> bool:
        """Mind cuts for which fees were found elsewhere; False if these are no news.

        Parameters
        ----------
        duals : Duals
            Prices, and the fees of these cuts, to go on from.
        """
        fees = dict(zip(cuts, duals.fees.tolist(), strict=True))
        dearest = sorted(
            (cut for cut in fees if fees[cut]), key=lambda cut: (-fees[cut], cut)
        )
        return self._mind(dearest, duals, fees)

    @property
    def _fees(self) -> dict[Cut, int]:
        """Fee of each cut that is minded."""
        return dict(zip(self.pricing.cuts, self.duals.fees.tolist(), strict=True))

    def _mind(self, cuts: Sequence[Cut], duals: Duals, fees: Mapping[Cut, int]) -> bool:
        """Mind as many of the first cuts as the automaton holds."""
        wider = self._widest(cuts)
        if set(wider.cuts) <= set(self.pricing.cuts):
            return False
        self._master, self.pricing = self._with_cuts(wider.cuts), wider
        charged = [fees.get(cut, 0) for cut in wider.cuts]
        self.duals = Duals(prices=duals.prices, fees=np.array(charged, dtype=np.int64))
        return True

    def _with_cuts(self, cuts: Sequence[Cut]) -> Master:
        """The master of the same columns with these cuts."""
        master = Master(self.problem)
        master.add(self._master.columns)
        master.add_cuts(cuts)
        return master

    def _widest(self, cuts: Sequence[Cut]) -> Pricing:
        """The oracle with as many of the first cuts as it can mind."""
        most = _WIDER * sum(self.bare.automaton.widths)
        best = self.bare
        for cut in cuts:
            if self._deadline.over:
                break
            best = best.with_cut(cut, most_in_all=most) or best
        return best


def box_width(problem: Problem) -> Floats:
    """Half the width of the box around prices to begin with."""
    sizes = [m.size for m in problem.messages]
    typical = float(np.median(sizes)) / 4 if sizes else 1.0
    return np.full(problem.num_items, max(1.0, typical))
