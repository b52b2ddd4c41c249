"""Partitions found device by device: each takes a set that is good for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lpsched.errors import OutOfTimeError
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.columns import Duals
from lpsched.formulations.partition.pairs import split_pair
from lpsched.formulations.partition.pricing import Pricing
from lpsched.formulations.partition.problem import ItemSet, Placed, Problem
from lpsched.formulations.partition.relaxation import Relaxation

__all__ = ["dive", "dive_deep"]

#: Rewards for a full device that are tried, in average costs of a device.
_REWARDS = (0, 1, 4, 16, 256)
#: Sets that are tried for the first device, for the second, and for each one more.
_BRANCHES = (4, 2, 1)
#: Share of the room below the best partition to which bounds converge in a dive.
_ROUGH = 0.1

#: Sets with the group of devices that each is for.
_Chosen = list[tuple[int, ItemSet]]


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


def dive_deep(relaxation: Relaxation, most: int, deadline: Deadline) -> Placed | None:
    """Fix the sets of a fractional solution, one after the other; None if in vain.

    A device takes a set that the relaxation uses most, and the relaxation is solved
    again over the items and devices left, from the same prices. That is given up as
    soon as its bound exceeds what is left of `most`. Two devices are filled exactly.

    Parameters
    ----------
    most : int
        Partitions that cost more are of no interest.
    """
    found = _deepened(relaxation, most, deadline, _BRANCHES)
    if found is None:
        return None
    return tuple(items for _, items in sorted(found, key=lambda pair: pair[0]))


def _deepened(
    relaxation: Relaxation, most: int, deadline: Deadline, branches: Sequence[int]
) -> _Chosen | None:
    problem = relaxation.problem
    best: _Chosen | None = None
    for group, items in relaxation.most_used(branches[0]):
        if deadline.over:
            break
        room = most - problem.cost(items)
        if room < 0 or not problem.fits(items, group):
            continue  # the relaxation may be of coarse loads
        left = sorted(set(range(problem.num_items)) - items)
        counts = [g.count - (k == group) for k, g in enumerate(problem.groups)]
        try:
            rest = _rest(relaxation, left, counts, room, deadline, branches[1:])
        except OutOfTimeError:
            break  # what has been found stands
        if rest is not None:
            kept = [k for k, count in enumerate(counts) if count]
            best = [(kept[k], frozenset(left[v] for v in some)) for k, some in rest]
            best.append((group, items))
            most = sum(problem.cost(some) for _, some in best) - 1
    return best


def _rest(
    relaxation: Relaxation,
    left: Sequence[int],
    counts: Sequence[int],
    room: int,
    deadline: Deadline,
    branches: Sequence[int],
) -> _Chosen | None:
    """Place what is left at a cost <= room; None if that is not found."""
    part = relaxation.problem.part(left, counts)
    if not part.groups:
        return None if left else []
    below = relaxation.part(part, left, deadline)
    if below.solve(enough=room + 1, rough=_ROUGH * room) > room:
        return None
    placed = dive(below.pricing, below.duals)
    if placed is not None and len(placed) == 2:
        placed = split_pair(part, placed) or placed
    groups = [k for k, group in enumerate(part.groups) for _ in range(group.count)]
    best = None if placed is None else list(zip(groups, placed, strict=True))
    if best is not None:
        cost = sum(part.cost(items) for _, items in best)
        best, room = (best, cost - 1) if cost <= room else (None, room)
    if part.num_devices > 2:
        best = _deepened(below, room, deadline, branches or _BRANCHES[-1:]) or best
    return best
