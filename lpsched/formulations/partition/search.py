"""Least cost of a partition, with proof: bound, enumerate, cut, cover, repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from lpsched.errors import OutOfTimeError, SolverError
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.columns import Columns, Grid
from lpsched.formulations.partition.covering import cover
from lpsched.formulations.partition.diving import dive, dive_deep
from lpsched.formulations.partition.neighbourhoods import Neighbourhoods
from lpsched.formulations.partition.pairs import split_pair
from lpsched.formulations.partition.pool import Pool
from lpsched.formulations.partition.problem import Placed, Problem
from lpsched.formulations.partition.relaxation import Relaxation, box_width
from lpsched.formulations.partition.repair import in_order, repair
from lpsched.formulations.partition.sets import Sets
from lpsched.formulations.partition.tightening import tighten

__all__ = ["Found", "Report", "Search"]

#: Called with (cost of the best partition or None, lower bound).
Report = Callable[[int | None, int], None]

_FIRST_POOL = 30_000
_LARGEST_POOL = 2_000_000
#: Partitions that are improved before the first bound.
_MOST_STARTS = 3
#: Share of the gap that the cost of a pool's partitions must reach to be of use.
_FAR = 50
#: Share of the gap to which column generation converges while cuts are far from over;
#: it is lowered each time that such a round raises the bound by no more.
_ROUGH, _LOWERED, _FINEST = 0.05, 0.25, 0.001
#: Items up to which column generation converges soon enough.
_LONG = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found.

    Attributes
    ----------
    placed : tuple of ItemSet or None
        The best partition: a set per device, devices sorted by group.
    bound : int
        No partition costs less.
    is_infeasible : bool
        Whether it is proved that there is none.
    """

    placed: Placed | None
    cost: int | None
    bound: int
    is_infeasible: bool = False


class Search:
    """The search for a partition of least cost; may be stopped at any time.

    Start: placements that are given are made to fit and improved pair by pair.
    Bound: column generation over all sets. Enumerate: the sets of least reduced cost,
    and with them the cost up to which partitions are made of these alone. Cut: over
    these, until the bound exceeds that cost, or few are left to cover the items with.
    Then the dynamic program minds the cuts that matter, and all begins again at a
    higher bound, with more sets. In between, neighbourhoods of the best partition are
    searched for as long as the rest has taken.

    Parameters
    ----------
    lower : int
        A lower bound known before.
    goal : int, optional
        A cost: whether there is a partition that costs no more is all that is asked.
    placed : tuple of ItemSet, optional
        A partition to start from.
    starts : sequence of tuple of ItemSet
        More of them, which may overload devices.
    is_part : bool
        Whether this is a neighbourhood: no neighbourhoods are searched in it.
    """

    def __init__(
        self,
        problem: Problem,
        deadline: Deadline,
        *,
        lower: int = 0,
        goal: int | None = None,
        placed: Placed | None = None,
        starts: Sequence[Placed] = (),
        report: Report | None = None,
        is_part: bool = False,
    ) -> None:
        self.problem = problem
        self.deadline = deadline
        self.grid = Grid.of(problem)
        self.lower = lower
        self.goal = goal
        self.placed: Placed | None = None
        self.upper: int | None = None
        self.stats: dict[str, int] = {}
        self._report = report
        self._near = None if is_part else Neighbourhoods(problem, _improve_part)
        self._near_seconds = self._dive_seconds = 0.0
        self._starts = starts
        self._roughness = _ROUGH if problem.num_items > _LONG else 0.0
        if placed is not None:
            self._offer(placed)

    # -- what is known ---------------------------------------------------------
    @property
    def most(self) -> int:
        """The greatest cost of interest: one less than the best partition's."""
        most = self.problem.most_cost if self.upper is None else self.upper - 1
        return most if self.goal is None else min(most, self.goal)

    @property
    def is_solved(self) -> bool:
        """Whether the best partition is proved, or that there is none; or the goal."""
        if self.goal is not None and self.upper is not None and self.upper <= self.goal:
            return True
        return self.lower > self.most

    @property
    def _is_over(self) -> bool:
        return self.is_solved or self.deadline.over

    def found(self) -> Found:
        """Return the best partition and bound."""
        return Found(
            placed=self.placed,
            cost=self.upper,
            bound=self.lower,
            is_infeasible=self.placed is None and self.lower > self.problem.most_cost,
        )

    def _raise(self, bound: int) -> None:
        """Keep a lower bound that holds for partitions of cost <= `most`."""
        bound = min(bound, self.most + 1)
        if bound > self.lower:
            self.lower = bound
            self._tell()

    def _offer(self, placed: Placed) -> None:
        if not self.problem.holds(placed):
            raise SolverError("partition made sets that are no partition")
        if self.problem.in_use(placed) in self.problem.no_goods:
            return
        cost = sum(map(self.problem.cost, placed))
        if self.upper is None or cost < self.upper:
            self.placed, self.upper = placed, cost
            self._tell()

    def _tell(self) -> None:
        if self._report is not None:
            self._report(self.upper, self.lower)

    def _count(self, name: str, more: int) -> None:
        self.stats[name] = self.stats.get(name, 0) + more

    # -- the search ------------------------------------------------------------
    def run(self) -> Found:
        """Search until the best partition is proved, time is over, or nothing helps."""
        with suppress(OutOfTimeError):  # what has been found stands
            self._run()
        return self.found()

    def _run(self) -> None:
        if self.is_solved:
            return
        self._start()
        if self.placed is None and self._overflows():
            self.lower = self.problem.most_cost + 1
            return
        relaxation = Relaxation(self.problem, self.grid, self.deadline)
        if self.placed is None:
            self._dive(relaxation)
        self._search_near(self.deadline.within(self.deadline.left / 10), largest=2)
        self._bound(relaxation)
        count, helps = _FIRST_POOL, True
        while helps and not self._is_over:
            seconds = self.deadline.elapsed - 2 * self._near_seconds
            self._search_near(self.deadline.within(seconds))
            if not self._is_over:
                before = self.lower, count, self._roughness
                count = self._round(relaxation, count)
                helps = (self.lower, count, self._roughness) != before
        if not self._is_over:
            self._search_near(self.deadline)
        self.stats["generation_rounds"] = relaxation.rounds
        self.stats["cuts"] = len(relaxation.pricing.cuts)

    def _start(self) -> None:
        """Repair what there is to start from, and improve the best pair by pair."""
        self.deadline.check()
        known = [self.placed, in_order(self.problem), *self._starts]
        repaired = {
            placed
            for start in known
            if start is not None
            and (placed := repair(self.problem, start, self.deadline)) is not None
        }
        costs = {placed: sum(map(self.problem.cost, placed)) for placed in repaired}
        best = sorted(
            repaired, key=lambda placed: (costs[placed], *map(sorted, placed))
        )
        for placed in best[:_MOST_STARTS]:
            self._offer(placed)
            seconds = self.deadline.left / 10
            self._search_near(self.deadline.within(seconds), largest=2, placed=placed)

    def _overflows(self) -> bool:
        """Whether even fractions of sets cannot hold the load, whatever they cost."""
        if None in self.problem.shortest:
            return True
        bare = replace(self.problem, messages=())
        return Relaxation(bare, Grid.of(bare), self.deadline).solve(enough=1) > 0

    def _bound(self, relaxation: Relaxation) -> None:
        """Bound the cost by column generation over all sets; dive with its duals."""
        known = None if self.placed is None else self._columns(self.placed)
        gap = 0 if self.upper is None else self.upper - self.lower
        rough = self._roughness * gap
        bound = relaxation.solve(enough=self.most + 1, known=known, rough=rough)
        if bound - self.lower < rough:
            finer = self._roughness * _LOWERED
            self._roughness = finer if finer > _FINEST else 0.0
        placed = relaxation.placed
        if placed is not None and self._is_true(relaxation, placed):
            self._offer(placed)
        self._raise(bound)
        if not self._is_over:
            self._dive(relaxation)
        if self._near is not None and not self._is_over:
            self._dive_deep(relaxation)

    def _is_true(self, relaxation: Relaxation, placed: Placed) -> bool:
        """Whether sets hold in truth what they hold by coarse loads."""
        return relaxation.pricing.is_exact or self.problem.holds(placed)

    def _columns(self, placed: Placed) -> Columns:
        sets = map(self.problem.canonical, placed)
        costs = [self.problem.cost(items) for items in placed]
        return Columns(
            Sets.of(self.problem.num_items, sets),
            np.array(self.problem.group_of, dtype=np.int64),
            np.array(costs, dtype=np.int64),
        )

    def _dive(self, relaxation: Relaxation) -> None:
        """Make a partition from the duals there are."""
        placed = dive(relaxation.pricing, relaxation.duals)
        if placed is not None:
            self._offer(placed)

    def _dive_deep(self, relaxation: Relaxation) -> None:
        """Fix the sets of the relaxation's solution.

        The first time for half as long as all took before, then for an eighth in all.
        """
        begin = self.deadline.elapsed
        share = begin / 8 - self._dive_seconds if self._dive_seconds else begin / 2
        deadline = self.deadline.within(share)
        placed = dive_deep(relaxation, self.most, deadline)
        if placed is not None:
            self._offer(placed)
        self._dive_seconds += self.deadline.elapsed - begin

    def _search_near(
        self, deadline: Deadline, *, largest: int = 4, placed: Placed | None = None
    ) -> None:
        """Search neighbourhoods of up to so many devices, of the best by default."""
        placed = placed or self.placed
        if self._near is None or placed is None:
            return
        begin = self.deadline.elapsed
        for better in self._near.improve(placed, deadline, largest=largest):
            self._offer(better)
            if self.is_solved:
                break
        self._near_seconds += self.deadline.elapsed - begin

    def _round(self, relaxation: Relaxation, count: int) -> int:
        """Cut over the sets of least reduced cost, or over all if these are too many.

        Returns how many sets to enumerate the next time.
        """
        columns, target = self._enumerate(relaxation, count)
        is_far = (target - self.lower) * _FAR < self.most - self.lower
        if is_far and relaxation.cut():
            self._bound(relaxation)
            return count
        if self._roughness:
            self._roughness = 0.0
            self._bound(relaxation)
            return count
        pool = Pool(
            problem=self.problem,
            grid=self.grid,
            columns=columns,
            cuts=relaxation.pricing.cuts,
        )
        self._cut(relaxation, pool, target)
        return min(4 * count, _LARGEST_POOL)

    def _enumerate(self, relaxation: Relaxation, count: int) -> tuple[Columns, int]:
        """Sets of least reduced cost; partitions of cost <= target have no others."""
        room = self.most * self.grid.unit - relaxation.bound
        is_open = self.upper is None and self.goal is None
        columns, reach = relaxation.pricing.columns_within(
            relaxation.duals, None if is_open else room, count
        )
        self._count("columns", len(columns))
        # A set beyond the reach would cost a partition as much more than the bound.
        target = self.grid.round_up(relaxation.bound + reach) - 1
        return columns, min(target, self.most)

    def _cut(self, relaxation: Relaxation, pool: Pool, target: int) -> None:
        """Cut over a pool and cover the items with what is left; then bound anew."""
        if not len(pool):
            self._raise(target + 1)
            return
        aim = max(target, self.lower + (self.most - self.lower) // 10)
        tightened = tighten(
            pool,
            relaxation.duals,
            box_width(self.problem),
            target=aim,
            deadline=self.deadline,
        )
        if tightened.bound > target:
            self._raise(target + 1)
        elif tightened.is_complete:
            self._raise(tightened.bound)
            for step in cover(tightened, target, self.deadline):
                self._count("covers", 1)
                if step.placed is not None:
                    self._offer(step.placed)
                self._raise(step.bound)
        if not self._is_over and relaxation.mind(tightened.pool.cuts, tightened.duals):
            self._bound(relaxation)


def _improve_part(
    problem: Problem, placed: Placed, deadline: Deadline
) -> Placed | None:
    """Solve a neighbourhood; None if its partition cannot be improved in time."""
    if len(placed) == 2 and len(problem.groups) == 1:
        with suppress(OutOfTimeError):
            return split_pair(problem, placed, deadline)
        return None
    cost = sum(map(problem.cost, placed))
    found = Search(problem, deadline, placed=placed, is_part=True).run()
    return found.placed if found.cost is not None and found.cost < cost else None
