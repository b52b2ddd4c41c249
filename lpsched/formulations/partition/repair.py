"""Partitions to start from: in order, or made to fit where they overload devices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.automaton import Ints
from lpsched.formulations.partition.problem import Placed, Problem

__all__ = ["in_order", "repair"]

Floats = NDArray[np.float64]

#: How often the price of overload is doubled before a partition is given up.
_MOST_DOUBLINGS = 30
#: Exchanges that are weighed exactly before none is found to pay.
_MOST_TRIED = 8


def in_order(problem: Problem) -> Placed | None:
    """Fill one device after the other with the items as they stand.

    Where loads are far below the limit this leaves devices empty, which stages of
    equal load do not. What is left at the end overloads the last device; None if it
    may not run it.
    """
    sets: list[set[int]] = [set() for _ in problem.group_of]
    d, load = 0, 0
    for item in range(problem.num_items):
        ticks = problem.groups[problem.group_of[d]].loads[item]
        while d + 1 < len(sets) and (ticks is None or load + ticks > problem.period):
            d, load = d + 1, 0
            ticks = problem.groups[problem.group_of[d]].loads[item]
        if ticks is None:
            return None
        sets[d].add(item)
        load += ticks
    return tuple(map(frozenset, sets))


def repair(problem: Problem, placed: Placed, deadline: Deadline) -> Placed | None:
    r"""Move and exchange items until no device is overloaded and no step saves.

    Steepest descent on

    .. math:: \sum_d c(S_d) + \lambda \sum_d \max(0, load_d - T)

    where λ, the price of a tick too much, is doubled while no step pays. A step
    moves an item to another device, or exchanges two. None if that does not end within
    the limits, or not in time; memory is only looked at in the end.

    Parameters
    ----------
    placed : tuple of ItemSet
        A set per device, each item on one that may run it, whatever it weighs.
    """
    descent = _Descent(problem, placed)
    ticks = problem.num_devices * problem.period
    price, doublings = (descent.cost + 1) / (8 * ticks), 0
    while not deadline.over:
        if descent.step(price):
            continue
        if not descent.excess or doublings == _MOST_DOUBLINGS:
            break
        price, doublings = 2 * price, doublings + 1
    found = descent.placed()
    return found if problem.holds(found) else None


class _Descent:
    """A partition that is changed step by step.

    Attributes
    ----------
    cost : int
        What it costs.
    excess : int
        Ticks by which devices are overloaded.
    """

    def __init__(self, problem: Problem, placed: Placed) -> None:
        self._problem = problem
        loads = [problem.groups[g].loads for g in problem.group_of]
        #: Ticks of each item on each device, and whether it may run there.
        self._ticks: Ints = np.array(
            [[t or 0 for t in ticks] for ticks in loads], dtype=np.int64
        ).T
        self._may = np.array([[t is not None for t in ticks] for ticks in loads]).T
        self._home = np.zeros(problem.num_items, dtype=np.int64)
        for d, items in enumerate(placed):
            self._home[list(items)] = d
        messages = problem.messages
        self._sizes = np.array([m.size for m in messages], dtype=np.int64)
        self._sent = np.array(
            [k for k, m in enumerate(messages) if m.source is not None], dtype=np.int64
        )
        self._source = np.array(
            [m.source for m in messages if m.source is not None], dtype=np.int64
        )
        uses = [(k, item) for k, m in enumerate(messages) for item in m.targets]
        self._used, self._user = np.array(uses, dtype=np.int64).reshape(-1, 2).T
        self._look()

    def placed(self) -> Placed:
        """Return the set of each device."""
        devices = range(self._problem.num_devices)
        return tuple(
            frozenset(np.flatnonzero(self._home == d).tolist()) for d in devices
        )

    def _look(self) -> None:
        """Find cost, loads and what every move would change."""
        n, p = self._ticks.shape
        m = len(self._sizes)
        users_at = self._home[self._user]
        at = self._used * p + users_at
        counts = np.bincount(at, minlength=m * p).reshape(m, p)
        sender = np.full(m, -1)
        sender[self._sent] = self._home[self._source]
        there, free = counts > 0, sender[:, None] == np.arange(p)
        self.cost = int((self._sizes[:, None] * (there & ~free)).sum())
        self._loads = np.zeros(p, dtype=np.int64)
        np.add.at(self._loads, self._home, self._ticks[np.arange(n), self._home])
        self.excess = int(self._over(self._loads).sum())
        # A user pays where its message is not yet, and nothing is paid where it left
        # and no other user stays.
        change, leave = np.zeros((n, p), dtype=np.int64), np.zeros(n, dtype=np.int64)
        fresh = self._sizes[:, None] * ~(there | free)
        alone = (counts[self._used, users_at] == 1) & ~free[self._used, users_at]
        np.add.at(change, self._user, fresh[self._used])
        np.add.at(leave, self._user, -self._sizes[self._used] * alone)
        # A source is paid for by its users where it was, not by those where it comes.
        near = self._sizes[:, None] * there
        np.add.at(change, self._source, -near[self._sent])
        np.add.at(leave, self._source, near[self._sent, self._home[self._source]])
        self._change: Ints = change + leave[:, None]

    def _over(self, loads: Ints) -> Ints:
        over: Ints = np.maximum(0, loads - self._problem.period)
        return over

    def step(self, price: float) -> bool:
        """Take the step that lowers cost and priced excess most; False if none does."""
        return self._move(price) or self._exchange(price)

    def _move(self, price: float) -> bool:
        """Move the item for which that is worth most."""
        items, over = np.arange(len(self._home)), self._over(self._loads)
        out = self._over(self._loads[self._home] - self._ticks[items, self._home])
        into = self._over(self._loads + self._ticks) - over
        excess = (out - over[self._home])[:, None] + into
        may = self._may.copy()
        may[items, self._home] = False
        worth = self._worth(self._change, excess, may, price)
        i, d = np.unravel_index(int(worth.argmin()), worth.shape)
        if worth[i, d] >= 0:
            return False
        self._home[i] = d
        self._look()
        return True

    def _worth(
        self, change: Ints, excess: Ints, may: NDArray[np.bool_], price: float
    ) -> Floats:
        """What steps cost; infinite if not allowed, or if they overload anew."""
        worth: Floats = change + price * excess
        worth[~may if self.excess else ~may | (excess > 0)] = np.inf
        return worth

    def _exchange(self, price: float) -> bool:
        """Exchange an item of an overloaded device, or one that gains, with another."""
        home, over = self._home, self._over(self._loads)
        gains = self._change.min(axis=1) < 0
        mine = np.flatnonzero(over[home] > 0 if self.excess else gains)
        if not len(mine):
            return False
        others, mine_at = np.arange(len(home)), home[mine]
        a, b = mine_at[:, None], home[None, :]
        mine_there, theirs_there = self._ticks[mine][:, home], self._ticks[:, mine_at].T
        more = theirs_there - self._ticks[mine, mine_at][:, None]
        excess = self._over(self._loads[a] + more) - over[a]
        more = mine_there - self._ticks[others, home][None, :]
        excess += self._over(self._loads[b] + more) - over[b]
        change = self._change[mine][:, home] + self._change[:, mine_at].T
        may = self._may[mine][:, home] & self._may[:, mine_at].T & (a != b)
        return self._try(mine, self._worth(change, excess, may, price), price)

    def _try(self, mine: Ints, worth: Floats, price: float) -> bool:
        """Take the first exchange that lowers the sum: what both use is in it."""
        before = self.cost + price * self.excess
        for _ in range(_MOST_TRIED):
            k, j = np.unravel_index(int(worth.argmin()), worth.shape)
            if worth[k, j] >= 0:
                return False
            pair = [mine[k], j]
            self._home[pair] = self._home[pair[::-1]]
            self._look()
            if self.cost + price * self.excess < before:
                return True
            self._home[pair] = self._home[pair[::-1]]
            self._look()
            worth[k, j] = np.inf
        return False
