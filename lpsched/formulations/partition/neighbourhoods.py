"""Large-neighbourhood search: the items of a few devices are placed anew, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.problem import ItemSet, Placed, Problem

__all__ = ["Neighbourhoods"]

#: Finds a better partition of a small problem than the given one, or None.
Solver = Callable[[Problem, Placed, Deadline], Placed | None]

_SECONDS = 2.0
#: How many devices are cleared at a time; more once fewer bring nothing.
_SIZES = (2, 3, 4)
#: Sets of devices that are ranked at the most.
_MOST_RANKED = 20_000


class Neighbourhoods:
    """Sets of devices to clear, those that send each other most first.

    One is tried again only once some of its devices have changed.
    """

    def __init__(self, problem: Problem, solver: Solver) -> None:
        self._problem = problem
        self._solver = solver
        self._tried: set[frozenset[ItemSet]] = set()

    def improve(
        self, placed: Placed, deadline: Deadline, *, largest: int = 4
    ) -> Iterator[Placed]:
        """Yield better and better partitions, until none is left to try or time is."""
        sizes = [size for size in _SIZES if size <= largest]
        while not deadline.over:
            better = self._better(placed, sizes, deadline)
            if better is None:
                return
            placed = better
            yield placed

    def _better(
        self, placed: Placed, sizes: Sequence[int], deadline: Deadline
    ) -> Placed | None:
        for devices in _ranked(self._problem, placed, sizes):
            if deadline.over:
                return None
            key = frozenset(placed[d] for d in devices)
            if key not in self._tried:
                self._tried.add(key)
                found = self._place_anew(placed, devices, deadline)
                if found is not None:
                    return found
        return None

    def _place_anew(
        self, placed: Placed, devices: Sequence[int], deadline: Deadline
    ) -> Placed | None:
        """Place the items of some devices anew; None if that is no better."""
        problem = self._problem
        items = sorted(item for d in devices for item in placed[d])
        groups = range(len(problem.groups))
        counts = [sum(problem.group_of[d] == g for d in devices) for g in groups]
        part = problem.part(items, counts)
        number = {item: i for i, item in enumerate(items)}
        inside = tuple(frozenset(number[item] for item in placed[d]) for d in devices)
        found = self._solver(part, inside, deadline.within(_SECONDS))
        if found is None:
            return None
        changed = list(placed)
        for d, numbers in zip(devices, found, strict=True):
            changed[d] = frozenset(items[i] for i in numbers)
        return tuple(changed)


def _ranked(
    problem: Problem, placed: Placed, sizes: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """Sets of devices, small ones first, then those with most traffic among them."""
    traffic = _traffic(problem, placed)
    busiest = sorted(range(len(placed)), key=lambda d: -sum(traffic[d]))
    for size in sizes:
        some = busiest
        while len(some) > size and math.comb(len(some), size) > _MOST_RANKED:
            some = some[:-1]
        if size < len(placed):
            sent = {
                devices: sum(traffic[p][q] for p, q in combinations(devices, 2))
                for devices in combinations(sorted(some), size)
            }
            joined = (devices for devices in sent if sent[devices])
            yield from sorted(joined, key=lambda d: (-sent[d], d))


def _traffic(problem: Problem, placed: Placed) -> list[list[int]]:
    """Sizes of the messages between each two devices, either way."""
    home = {item: d for d, items in enumerate(placed) for item in items}
    traffic = [[0] * len(placed) for _ in placed]
    for m in problem.messages:
        if m.source is not None:
            p = home[m.source]
            for q in {home[item] for item in m.targets} - {p}:
                traffic[p][q] += m.size
                traffic[q][p] += m.size
    return traffic
