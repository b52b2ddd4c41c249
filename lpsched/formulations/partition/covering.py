"""Partitions made of a pool, sought in growing prefixes of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.columns import placed_items
from lpsched.formulations.partition.prefixes import best_cover
from lpsched.formulations.partition.problem import Placed
from lpsched.formulations.partition.tightening import Tightened

__all__ = ["Step", "cover"]

_FIRST = 2_500
_LARGEST = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one prefix showed: its best partition, and a bound of all partitions.

    The bound is at most one more than the target, beyond which the pool says nothing.
    """

    placed: Placed | None
    bound: int


def cover(tightened: Tightened, target: int, deadline: Deadline) -> Iterator[Step]:
    r"""Solve integer programs over growing prefixes of a pool, by reduced cost.

    A partition of cost <= target is made of the pool. If it is not made of the prefix,
    one of its columns exceeds the least reduced cost of its group by as much as the
    first column left out, and so the partition exceeds the bound. A prefix that cannot
    beat that proves what it found. Ends when the whole pool has been looked at, the
    bound exceeds the target, or the prefix has become too long.
    """
    pool, grid = tightened.pool, tightened.pool.grid
    reduced = pool.reduced(tightened.duals)
    excess, base = pool.excess(reduced), pool.bound(tightened.duals, reduced)
    order = np.argsort(excess, kind="stable")
    size = _FIRST
    while size <= _LARGEST and not deadline.over:
        room = target * grid.unit - base
        order = order[excess[order] <= room]
        found = best_cover(pool, order[:size], deadline)
        reach = int(excess[order[size]]) if size < len(order) else room + 1
        least = [target + 1, grid.round_up(base + reach)]
        if found.bound < math.inf:  # -inf if time was over too soon
            least.append(math.ceil(max(0.0, found.bound) - 1e-6))
        placed = None
        if found.chosen is not None:
            placed = placed_items(pool.problem, pool.columns.take(found.chosen))
            target = min(target, sum(map(pool.problem.cost, placed)) - 1)
        yield Step(placed=placed, bound=min(least))
        if size >= len(order) or min(least) > target:
            return
        size = size * 16 // 5
