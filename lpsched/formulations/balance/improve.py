"""Local search: relieve the busiest device by moves, swaps and better splits."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from lpsched.formulations.balance.items import Problem, Where
from lpsched.formulations.deadline import Deadline

__all__ = ["descend", "split_evenly"]


def descend(problem: Problem, where: Where, *, goal: int, deadline: Deadline) -> Where:
    """Lower the highest load until it is `goal` or no step helps.

    Each step changes the busiest device and one other such that both end below the
    load that the busiest had; so the falling loads, sorted, fall in every step.

    Parameters
    ----------
    goal : int
        A load that cannot be improved on, in units.
    """
    search = _Descent(problem, where)
    while search.highest > goal and not deadline.over:
        if not (search.exchange() or search.resplit()):
            break
    return tuple(search.where.tolist())


class _Descent:
    """A placement that is changed step by step."""

    def __init__(self, problem: Problem, where: Where) -> None:
        self.ticks = problem.ticks
        self.never = problem.never
        self.where = np.array(where, dtype=np.intp)
        self.loads = np.array(problem.loads(where), dtype=self.ticks.dtype)

    @property
    def highest(self) -> int:
        """The highest load, in units."""
        return int(self.loads.max())

    def exchange(self) -> bool:
        """Send one item away, against another or for nothing, where it helps most."""
        c = int(self.loads.argmax())
        mine, others = np.flatnonzero(self.where == c), np.flatnonzero(self.where != c)
        at = self.where[others]
        out = self.ticks[mine, c][:, None]
        swapped = np.maximum(
            self.loads[c] - out + self.ticks[others, c],
            self.ticks[np.ix_(mine, at)] + self.loads[at] - self.ticks[others, at],
        )
        moved = np.maximum(self.loads[c] - out, self.ticks[mine] + self.loads)
        after = np.hstack([swapped, moved])
        after[:, len(others) + c] = self.never
        i, j = np.unravel_index(int(after.argmin()), after.shape)
        if after[i, j] >= self.loads[c]:
            return False
        if j < len(others):
            self._move(int(others[j]), c)
            self._move(int(mine[i]), int(at[j]))
        else:
            self._move(int(mine[i]), int(j) - len(others))
        return True

    def resplit(self) -> bool:
        """Divide the items of the busiest device and another one anew."""
        c = int(self.loads.argmax())
        return any(
            self._resplit(c, int(d)) for d in np.argsort(self.loads) if int(d) != c
        )

    def _resplit(self, c: int, d: int) -> bool:
        both = np.flatnonzero((self.where == c) | (self.where == d))
        ticks = self.ticks[both, c]
        alike = (ticks == self.ticks[both, d]) & (ticks < self.never)
        both, ticks = both[alike], ticks[alike]
        ours = self.where[both] == c
        stay_c = self.loads[c] - ticks[ours].sum()
        stay_d = self.loads[d] - ticks[~ours].sum()
        to_c = split_evenly(ticks.tolist(), ahead=int(stay_c - stay_d))
        on_c = stay_c + ticks[to_c].sum()
        on_d = stay_d + ticks.sum() - ticks[to_c].sum()
        if max(on_c, on_d) >= self.loads[c]:
            return False
        for i in both:
            self._move(int(i), d)
        for i in both[to_c]:
            self._move(int(i), c)
        return True

    def _move(self, item: int, device: int) -> None:
        self.loads[self.where[item]] -= self.ticks[item, self.where[item]]
        self.loads[device] += self.ticks[item, device]
        self.where[item] = device


def split_evenly(values: Sequence[int], *, ahead: int = 0) -> list[int]:
    """Split numbers in two sides of nearly equal sum by differencing.

    The two largest numbers go to opposite sides, which leaves their difference to be
    placed, until one number is left (Karmarkar and Karp, *The differencing method of
    set partitioning*, 1982).

    Parameters
    ----------
    ahead : int
        What the first side has before, more than the second (less, if negative).

    Returns
    -------
    list of int
        Positions of the numbers on the first side.
    """
    head_start = len(values)
    first, second = [head_start], list[int]()
    if ahead < 0:
        first, second = second, first
    heap = [(-v, i, [i], list[int]()) for i, v in enumerate(values)]
    heap.append((-abs(ahead), head_start, first, second))
    heapq.heapify(heap)
    while len(heap) > 1:
        large, i, near, far = heapq.heappop(heap)
        small, _, near_too, far_too = heapq.heappop(heap)
        heapq.heappush(heap, (large - small, i, near + far_too, far + near_too))
    _, _, near, far = heap[0]
    first_side = near if (head_start in near) else far
    return sorted(i for i in first_side if i != head_start)
