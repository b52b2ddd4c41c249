"""A first partition: one device after the other takes the set that is best for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lpsched.formulations.partition.columns import Duals
from lpsched.formulations.partition.pricing import Pricing
from lpsched.formulations.partition.problem import ItemSet, Placed, Problem

__all__ = ["dive"]

#: Rewards for a full device that are tried, in average costs of a device.
_REWARDS = (0, 1, 4, 16, 256)


def dive(pricing: Pricing, duals: Duals) -> Placed | None:
    r"""Give each device the set of least reduced cost among the items left.

    A set must weigh enough that the devices after it can hold the rest: with R the
    weight left and m devices after this one, :math:`R - m T` at the least. So the last
    device holds all that is left. Where some device finds no such set, load is rewarded
    more and more, so that the first devices leave room for the last ones.
    """
    problem, grid = pricing.problem, pricing.grid
    ticks = [t or 0 for t in problem.shortest]
    average = sum(m.size for m in problem.messages) // problem.num_devices + 1
    for reward in _REWARDS:
        full = min(reward * average, grid.highest) * grid.unit
        rewards = np.array([full * t // problem.period for t in ticks], dtype=np.int64)
        placed = _fill(pricing, replace(duals, prices=duals.prices + rewards))
        if placed is not None:
            return placed
    return None


def _fill(pricing: Pricing, duals: Duals) -> Placed | None:
    problem = pricing.problem
    left = frozenset(range(problem.num_items))
    devices = problem.group_of
    placed: list[ItemSet] = []
    for number, group in enumerate(devices):
        after = len(devices) - number - 1
        taken = left
        if after:
            chosen = pricing.best_of(left, group, after, duals)
            if chosen is None:
                return None
            taken = _last_of(problem, left, chosen)
        if not problem.fits(taken, group):
            return None
        placed.append(taken)
        left -= taken
    return tuple(placed)


def _last_of(problem: Problem, left: ItemSet, chosen: ItemSet) -> ItemSet:
    """Take the last items left of each class: sets are made of the first ones."""
    taken: set[int] = set()
    for members in problem.classes:
        count = sum(item in chosen for item in members)
        there = [item for item in members if item in left]
        taken.update(there[len(there) - count :])
    return frozenset(taken)
