"""The oracle that knows all sets: one dynamic program per group of devices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lpsched.formulations.deadline import UNLIMITED, Deadline
from lpsched.formulations.partition.automaton import Automaton
from lpsched.formulations.partition.columns import (
    Columns,
    Duals,
    Grid,
    Offer,
    lagrangian,
)
from lpsched.formulations.partition.dynamic import INFEASIBLE, Table
from lpsched.formulations.partition.levels import Held, Levels
from lpsched.formulations.partition.problem import DeviceGroup, ItemSet, Problem
from lpsched.formulations.partition.sets import Sets, costs_of, fitting
from lpsched.formulations.partition.subset_rows import Cut

__all__ = ["MOST_STATES", "Pricing"]

#: States of the automaton at one position beyond which messages are forgotten.
MOST_STATES = 4096
#: Runs of items that end up to so many items early are taken too.
_SHORTER = 6
#: Units of memory in the largest limit: the finest and the coarsest that are tried.
_FINEST, _COARSEST = 512, 4
#: Sets among which one is sought that keeps limits other than the load's.
_MOST_TRIED = 200
#: How many times as long a table of pairs of loads takes as one of loads.
_SLOWER = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Pricing:
    """All sets of all groups, by dynamic programming over loads.

    Where the loads are too fine for the tables, weights and limit are both divided
    and rounded down: every true set stays, so bounds hold; sets that overload a
    device in truth are left out of `columns_within`. So it is with memory, of which
    `Problem.weights` count; what a device receives is not looked at before.

    Attributes
    ----------
    coarseness : int
        Ticks in a unit of load; 1 if loads are exact.
    grain : int or None
        Size of a unit of memory; None if memory is not looked at.
    cuts : tuple of Cut
        Those whose fees count; in the order of `Duals.fees`.
    deadline : Deadline
        When it is over, whatever is under way ends with `OutOfTimeError`.
    """

    problem: Problem
    automaton: Automaton
    grid: Grid
    coarseness: int
    grain: int | None = None
    cuts: tuple[Cut, ...] = ()
    deadline: Deadline = UNLIMITED

    @classmethod
    def of(
        cls,
        problem: Problem,
        automaton: Automaton,
        grid: Grid,
        *,
        most_cells: int,
        deadline: Deadline = UNLIMITED,
    ) -> Pricing:
        """Choose coarseness and grain so that no position has too many levels.

        A table of `most_cells` entries is the aim.
        """
        most = max(16, most_cells // sum(automaton.widths))
        pricing = cls(
            problem=problem,
            automaton=automaton,
            grid=grid,
            coarseness=1,
            deadline=deadline,
        )
        while any(pricing._levels(g, most) is None for g in problem.groups):
            deadline.check()
            by = 2 * pricing.coarseness
            pricing = replace(pricing, coarseness=by)
        units = _FINEST if problem.is_limited else 0
        while units >= _COARSEST:
            finer = cls(
                problem=problem,
                automaton=automaton,
                grid=grid,
                coarseness=pricing.coarseness,
                grain=problem.most_memory // units + 1,
                deadline=deadline,
            )
            if all(finer._levels(g, most // _SLOWER) for g in problem.groups):
                return finer
            units //= 2
        return pricing

    @property
    def is_exact(self) -> bool:
        """Whether least reduced costs are those of true sets."""
        is_coarse = self.coarseness > 1 or self.problem.is_capped
        return not is_coarse and not self.automaton.is_relaxed

    def with_cut(self, cut: Cut, *, most_in_all: int | None) -> Pricing | None:
        """Return the oracle that minds one cut more; None if it grows too wide."""
        automaton = self.automaton.with_cut(
            cut, len(self.cuts), most_states=MOST_STATES, most_in_all=most_in_all
        )
        if automaton is None:
            return None
        return replace(self, automaton=automaton, cuts=(*self.cuts, cut))

    def offer(self, duals: Duals, count: int) -> Offer:
        """Return the exact bound and the `count` best sets of each group."""
        tables = list(self._tables(duals))
        least = [table.least for table in tables]
        found = [self._columns(g, t, count, None) for g, t in enumerate(tables)]
        return Offer(
            bound=lagrangian(self.problem, self.cuts, duals, least),
            columns=Columns.joined(found),
        )

    def columns_within(
        self, duals: Duals, slack: int | None, count: int
    ) -> tuple[Columns, int]:
        """Enumerate the true columns of reduced cost within `slack` of the least.

        Returns
        -------
        columns : Columns
            At most `count` of each group.
        reach : int
            Every column whose reduced cost exceeds its group's least by less than
            this is among them, in grid units.
        """
        found, reach = [], INFEASIBLE
        for g, table in enumerate(self._tables(duals)):
            threshold = None if slack is None else table.least + slack
            priced = table.best(count, threshold=threshold)
            if slack is not None:
                reach = min(reach, slack + 1)
            if len(priced.sets) >= count:
                reach = min(reach, int(priced.reduced.max()) - table.least)
            found.append(self._true(g, priced.sets))
        return Columns.joined(found), reach

    def contiguous(self) -> Columns:
        """Return the longest runs of items in order that fit, and some shorter ones.

        Pipeline stages are such runs: good columns to begin with.
        """
        problem, order = self.problem, self.automaton.order
        found: list[Columns] = []
        for g, group in enumerate(problem.groups):
            runs = set()
            for begin in range(len(order)):
                self.deadline.check()
                end = _end_of_run(group, order, begin, problem.period)
                while problem.is_capped and not problem.fits(
                    frozenset(order[begin:end]), g
                ):
                    end -= 1
                for short in range(min(_SHORTER, end - begin)):
                    run = order[begin : end - short]
                    runs.add(problem.canonical(frozenset(run)))
            heavy = [r for r in runs if (problem.load(r, g) or 0) >= problem.least_load]
            sets = Sets.of(problem.num_items, sorted(heavy, key=sorted))
            costs = costs_of(problem, sets)
            found.append(Columns(sets, np.full(len(sets), g, dtype=np.int64), costs))
        return Columns.joined(found)

    def best_of(
        self, items: Collection[int], group: int, after: int, duals: Duals
    ) -> ItemSet | None:
        """Return the set of least reduced cost, made of some items only.

        Its weight must leave no more than `after` devices can hold. Where more limits
        the device it is the best of some that keeps these limits.
        """
        levels = self._levels(
            self.problem.groups[group], None, items=items, after=after
        )
        if levels is None:
            return None
        table = self._table(levels, duals)
        if not self.problem.is_capped:
            found = table.best(1).sets.unpacked()
            return found[0] if found else None
        priced = table.best(_MOST_TRIED)
        fits = fitting(self.problem, priced.sets, group)
        if not fits.any():
            return None
        best = int(np.where(fits, priced.reduced, INFEASIBLE).argmin())
        return priced.sets.take(np.array([best])).unpacked()[0]

    def _columns(
        self, g: int, table: Table, count: int, threshold: int | None
    ) -> Columns:
        sets = table.best(count, threshold=threshold).sets
        costs = costs_of(self.problem, sets)
        return Columns(sets, np.full(len(sets), g, dtype=np.int64), costs)

    def _true(self, g: int, sets: Sets) -> Columns:
        """Leave out sets that a device does not hold in truth."""
        if self.coarseness > 1 or self.problem.is_capped:
            sets = sets.take(fitting(self.problem, sets, g))
        costs = costs_of(self.problem, sets)
        return Columns(sets, np.full(len(sets), g, dtype=np.int64), costs)

    def _tables(self, duals: Duals) -> Iterator[Table]:
        for levels in self._all_levels:
            yield self._table(levels, duals)

    def _table(self, levels: Levels, duals: Duals) -> Table:
        return Table(
            self.automaton,
            levels,
            prices=duals.prices,
            fees=duals.fees,
            grid=self.grid.unit,
            deadline=self.deadline,
        )

    @cached_property
    def _all_levels(self) -> tuple[Levels, ...]:
        """Levels of each group's devices, the others taking what they can."""
        found = (self._levels(group, None) for group in self.problem.groups)
        return tuple(levels for levels in found if levels is not None)

    def _levels(
        self,
        group: DeviceGroup,
        most_levels: int | None,
        *,
        items: Collection[int] | None = None,
        after: int | None = None,
    ) -> Levels | None:
        """Loads of a device that gets some of `items`, `after` others the rest."""
        by, problem = self.coarseness, self.problem
        if items is None:
            items = range(problem.num_items)
        if after is None:
            after = problem.num_devices - 1
        most = problem.period // by
        shortest = (problem.shortest[item] for item in items)
        total = sum(t // by for t in shortest if t is not None)
        weights = [
            t // by if item in items and (t := group.loads[item]) is not None else None
            for item in self.automaton.order
        ]
        return Levels.of(
            weights,
            least=max(0, total - after * most),
            most=most,
            held=self._held(group),
            most_levels=most_levels,
        )

    def _held(self, group: DeviceGroup) -> Held | None:
        """Memory of the items in order, and of such a device, in units of `grain`."""
        if self.grain is None or group.memory is None:
            return None
        weights = self.problem.weights
        return Held(
            weights=tuple(weights[item] // self.grain for item in self.automaton.order),
            most=group.memory // self.grain,
        )


def _end_of_run(
    group: DeviceGroup, order: Sequence[int], begin: int, period: int
) -> int:
    """Where the longest run of items ends that a device can hold."""
    total, end = 0, begin
    while end < len(order):
        ticks = group.loads[order[end]]
        if ticks is None or total + ticks > period:
            break
        total += ticks
        end += 1
    return end
