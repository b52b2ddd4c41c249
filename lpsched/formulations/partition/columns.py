"""Columns of the partition problem, dual values, and what an oracle answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lpsched.formulations.partition.automaton import Ints
from lpsched.formulations.partition.problem import ItemSet, Placed, Problem
from lpsched.formulations.partition.sets import Bools, Sets
from lpsched.formulations.partition.subset_rows import Cut

__all__ = ["Columns", "Duals", "Grid", "Offer", "Oracle", "lagrangian", "placed_items"]

#: Sums of prices and costs stay below this many grid units.
_LARGEST = 2**59


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Sets with the group of devices they are for and what they cost."""

    sets: Sets
    groups: Ints
    costs: Ints

    def __len__(self) -> int:
        return len(self.sets)

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """Put several after each other."""
        return cls(
            Sets.joined([part.sets for part in parts]),
            np.concatenate([part.groups for part in parts]),
            np.concatenate([part.costs for part in parts]),
        )

    def take(self, which: Ints | Bools) -> Columns:
        """Return some of the columns, by number or mask."""
        return Columns(self.sets.take(which), self.groups[which], self.costs[which])

    def keys(self) -> list[bytes]:
        """Return a key of each column, for dictionaries."""
        marks = [int(group).to_bytes(4, "little") for group in self.groups]
        return [k + m for k, m in zip(self.sets.keys(), marks, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Duals:
    """Prices π of the items and fees φ >= 0 of cuts, in grid units."""

    prices: Ints
    fees: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The unit in which duals are whole numbers, so that bounds are exact.

    Attributes
    ----------
    unit : int
        Grid units in a unit of cost.
    highest : int
        Greatest price or fee, in units of cost: far more than any true dual.
    """

    unit: int
    highest: int

    @classmethod
    def of(cls, problem: Problem) -> Grid:
        """Choose the finest grid on which all sums fit into 64 bits."""
        highest = 2**10 * (problem.most_cost + 1)
        unit = 2**20
        while unit > 1 and unit * highest * (problem.num_items + 2) > _LARGEST:
            unit //= 2
            highest = max(4 * (problem.most_cost + 1), highest // 2)
        return cls(unit=unit, highest=highest)

    def fits(self, problem: Problem) -> bool:
        """Whether sums of costs and duals are exact in 64 bits."""
        return self.unit * self.highest * (problem.num_items + 2) <= _LARGEST

    def round_up(self, value: int) -> int:
        """Units of cost that a bound in grid units proves: costs are integers."""
        return -(-value // self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An oracle's answer to duals.

    Attributes
    ----------
    bound : int
        Proved lower bound of the whole problem, in grid units.
    columns : Columns
        Some of least reduced cost.
    """

    bound: int
    columns: Columns


class Oracle(Protocol):
    """Something that knows the least reduced cost of each group's sets."""

    def offer(self, duals: Duals, count: int) -> Offer:
        """Return the bound that duals give, and about `count` good columns."""
        ...


def lagrangian(
    problem: Problem, cuts: Sequence[Cut], duals: Duals, least: Sequence[int]
) -> int:
    r"""Bound that duals prove, given the least reduced cost of each group.

    .. math:: \sum_i \pi_i - \sum_\tau b_\tau \phi_\tau
       + \sum_g P_g \min_S \bar c_g(S)

    Every partition has P_g sets of each group, empty ones included; each item is in
    one, and no cut's right-hand side b is exceeded.
    """
    total = int(duals.prices.sum())
    for cut, fee in zip(cuts, duals.fees.tolist(), strict=True):
        total -= cut.most * fee
    for group, reduced in zip(problem.groups, least, strict=True):
        total += group.count * reduced
    return total


def placed_items(problem: Problem, columns: Columns) -> Placed:
    """Give each group's devices their sets, and each set items of its own.

    Parameters
    ----------
    columns : Columns
        As many of each group as it has devices; together they hold every class once.
    """
    waiting = [iter(members) for members in problem.classes]
    by_group = np.argsort(columns.groups, kind="stable")
    placed: list[ItemSet] = []
    for items in columns.sets.take(by_group).unpacked():
        own = (next(waiting[problem.class_of[item]]) for item in sorted(items))
        placed.append(frozenset(own))
    return tuple(placed)
