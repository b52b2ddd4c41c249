"""Bounds of the period from indivisible work: ops that do not pack into the devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, mul
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lpsched.analysis.certified import Bound, ceil_div, certified
from lpsched.analysis.linear import LinearProgram, Row
from lpsched.analysis.sites import Sites
from lpsched.core.graph import OpId
from lpsched.errors import SolverError

__all__ = ["Refutation", "packing_bounds", "raise_by_packing"]

#: Numbers that a knapsack's table may hold; sets the grid on which patterns are sought.
_CELLS = 400_000
#: Weights that exceed the devices by less are not worth pursuing.
_WORTHWHILE = 1 + 1e-6
#: Rounds of column generation at one period.
_MAX_ROUNDS = 150
#: Coarse grids tried, from 1 up: weights on them read better and often refute more.
_MAX_ROUNDED = 60
#: Steps by which one bound is raised.
_MAX_STEPS = 40
#: Kinds of items beyond which nothing is tried: so many fill any devices evenly.
_MAX_KINDS = 500

#: How many items of each duration one device holds, durations falling.
_Pattern: TypeAlias = tuple[int, ...]
_Ticks: TypeAlias = npt.NDArray[np.int64]
_NEVER = np.int64(2**62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """Why some items do not fit into `devices` devices within `period` ticks each.

    No set of items of total duration <= `period` weighs more than `capacity`, and yet
    all items together weigh more than `capacity` times the number of devices.
    """

    period: int
    weights: Mapping[int, int]
    capacity: int


def packing_bounds(sites: Sites, *, least: int) -> Iterator[Bound]:
    """Bound the period by bin packing, on each set of devices that confines ops.

    Items are colocate groups; one whose duration differs among its devices is left
    out. Only bounds above `least` ticks, a bound known already, are sought.
    """
    items: dict[frozenset[object], dict[tuple[OpId, ...], int]] = {}
    for group in sites.groups:
        ticks = _duration(sites, group)
        if ticks:
            items.setdefault(frozenset(sites.allowed[group[0]]), {})[group] = ticks
    everywhere: frozenset[object] = frozenset(sites.graph.device_ids)
    for devices in dict.fromkeys([everywhere, *items]):
        inside = {
            k: t for own in items if own <= devices for k, t in items[own].items()
        }
        found = raise_by_packing(
            Counter(inside.values()), num_devices=len(devices), least=least
        )
        if found is not None:
            yield certified(
                "period",
                "packing",
                found.period + 1,
                {
                    "refuted": found.period,
                    "items": [list(k) for k, t in inside.items() if t in found.weights],
                    "devices": [d for d in sites.graph.device_ids if d in devices],
                    "weights": {str(t): w for t, w in found.weights.items()},
                    "capacity": found.capacity,
                },
            )


def _duration(sites: Sites, group: Sequence[OpId]) -> int | None:
    """Ticks of a group, if each op takes as long on every device left to it."""
    total = 0
    for op in group:
        ticks = {sites.graph.duration(op, site) for site in sites.allowed[op]}
        if len(ticks) > 1 or sites.allowed[op] == (None,):
            return None
        total += ticks.pop()
    return total


def raise_by_packing(
    items: Mapping[int, int], *, num_devices: int, least: int
) -> Refutation | None:
    r"""Refute the longest period that weights can, if it is at least `least`.

    The weights y solve the dual of the fractional packing problem,

    .. math:: \max_{y \ge 0} \sum_i n_i y_i \quad\text{s.t.}\quad
       \sum_i a_i y_i \le 1 \text{ for every pattern } a:
       \sum_i a_i t_i \le T',\; a_i \le n_i;

    an optimum above the number of devices refutes T'. Patterns that y breaks are found
    by a knapsack, exact for y rounded down to a grid, and so is the final word. Dual
    feasible functions are special cases of such weights. Weights that refute one period
    refute all up to the least in which too heavy a set of items fits; the search goes
    on from there.

    Parameters
    ----------
    items : mapping of int to int
        Number of items of each duration, in ticks.
    num_devices : int
        Equal devices that run them.
    least : int
        First period to refute, in ticks; at least the longest item.

    Notes
    -----
    Sources: Gilmore and Gomory, *A linear programming approach to the cutting-stock
    problem* (1961); Farley, *A note on bounding a class of linear programming problems,
    including cutting stock problems* (1990), for stopping early.
    """
    kinds = sorted((t for t in items if t > 0), reverse=True)
    if not kinds or len(kinds) > _MAX_KINDS:
        return None
    search = _Search(kinds, [items[t] for t in kinds], num_devices)
    found: Refutation | None = None
    for _ in range(_MAX_STEPS):
        better = search.refute(least if found is None else found.period + 1)
        if better is None:
            break
        found = better
    return found


class _Search:
    """Column generation; patterns found at one period stay valid at longer ones."""

    def __init__(
        self, durations: list[int], counts: list[int], num_devices: int
    ) -> None:
        self.durations = durations
        self.counts = counts
        self.num_devices = num_devices
        self.patterns: set[_Pattern] = set()
        self.dual = LinearProgram([-n for n in counts])
        bundles = sum(1 for count in counts for _ in _bundles(count))
        self.grid = min(10_000, max(50, _CELLS // (2 * bundles)))

    def refute(self, period: int) -> Refutation | None:
        """Find weights that refute `period`, and the longest period they refute."""
        packed = _first_fit(self.durations, self.counts, period)
        if len(packed) <= self.num_devices:
            return None
        best = max(map(self._judge, self._rounded(period)), key=attrgetter("period"))
        return best if best.period >= period else self._generate(period, packed)

    def _rounded(self, period: int) -> Iterator[list[int]]:
        r"""Weights :math:`\lfloor (k + 1)\,t / (T' + 1) \rfloor`.

        Items that fit in T' weigh at most k together: the dual feasible functions of
        Fekete and Schepers, *New classes of fast lower bounds for bin packing problems*
        (2001).
        """
        for k in range(1, _MAX_ROUNDED + 1):
            yield [(k + 1) * t // (period + 1) for t in self.durations]

    def _generate(self, period: int, packed: Iterable[_Pattern]) -> Refutation | None:
        """Find weights by column generation, from the patterns of a packing."""
        self._allow(packed)
        for _ in range(_MAX_ROUNDS):
            y = self._heaviest()
            if sum(map(mul, self.counts, y)) <= self.num_devices * _WORTHWHILE:
                return None
            weights = [int(v * self.grid) for v in y]
            if self._judge(weights).period >= period:
                grids = [*range(1, _MAX_ROUNDED + 1), self.grid // 10, self.grid]
                coarse = [[int(v * grid + 1e-6) for v in y] for grid in grids]
                return max(map(self._judge, coarse), key=attrgetter("period"))
            knapsack = _Knapsack(self.durations, weights, self.counts, 2 * self.grid)
            pattern = knapsack.fill(period)
            if pattern in self.patterns:
                return None
            self._allow([pattern])
        return None

    def _allow(self, patterns: Iterable[_Pattern]) -> None:
        """Demand that patterns weigh at most 1."""
        for pattern in patterns:
            if pattern not in self.patterns:
                held = [i for i, a in enumerate(pattern) if a]
                self.dual.add([Row(held, [-pattern[i] for i in held], lower=-1.0)])
                self.patterns.add(pattern)

    def _heaviest(self) -> tuple[float, ...]:
        """Weights of greatest total under the patterns allowed so far."""
        solution = self.dual.minimise()
        if solution is None:  # zero weights are always feasible
            raise SolverError("HiGHS finds no weights for a packing bound")
        return solution.x

    def _judge(self, weights: Sequence[int]) -> Refutation:
        """Find the longest period that weights refute (-1: none)."""
        target = ceil_div(sum(map(mul, self.counts, weights)), self.num_devices)
        if target == 0:
            return Refutation(period=-1, weights={}, capacity=0)
        knapsack = _Knapsack(self.durations, weights, self.counts, target)
        chosen = zip(self.durations, weights, strict=True)
        return Refutation(
            period=knapsack.least_ticks() - 1,
            weights={t: w for t, w in chosen if w},
            capacity=target - 1,
        )


def _first_fit(
    durations: Sequence[int], counts: Sequence[int], period: int
) -> list[_Pattern]:
    """Pack into as many devices as it takes, by first fit decreasing."""
    room: list[int] = []
    packed: list[list[int]] = []
    for i, (duration, count) in enumerate(zip(durations, counts, strict=True)):
        for _ in range(count):
            fitting = (b for b, left in enumerate(room) if left >= duration)
            b = next(fitting, len(room))
            if b == len(room):
                room.append(period)
                packed.append([0] * len(durations))
            room[b] -= duration
            packed[b][i] += 1
    return [tuple(pattern) for pattern in packed]


class _Knapsack:
    """Least duration of items of each total weight, totals above `most` as one.

    Items of a kind are taken in bundles of 1, 2, 4, ...; ``after[j][x]`` is the least
    duration that reaches weight x with the first j bundles.
    """

    def __init__(
        self,
        durations: Sequence[int],
        weights: Sequence[int],
        counts: Sequence[int],
        most: int,
    ) -> None:
        self.kinds = len(durations)
        self.bundles = [
            (i, size, size * weights[i], size * durations[i])
            for i, count in enumerate(counts)
            for size in _bundles(count)
            if weights[i]
        ]
        ticks: _Ticks = np.full(most + 1, _NEVER)
        ticks[0] = 0
        self.after = [ticks]
        for _, _, weight, duration in self.bundles:
            ticks = self._with(ticks, min(weight, most), duration)
            self.after.append(ticks)

    @staticmethod
    def _with(ticks: _Ticks, weight: int, duration: int) -> _Ticks:
        """Allow one more bundle."""
        most = len(ticks) - 1
        shifted = np.full_like(ticks, _NEVER)
        shifted[weight:] = ticks[: most + 1 - weight]
        shifted[most] = ticks[most - weight :].min()
        return np.minimum(ticks, np.minimum(shifted + duration, _NEVER))

    def least_ticks(self) -> int:
        """Least duration of items that weigh `most` or more."""
        return int(self.after[-1][-1])

    def fill(self, room: int) -> _Pattern:
        """Items of total duration <= room that weigh most."""
        pattern = [0] * self.kinds
        at = int(np.flatnonzero(self.after[-1] <= room)[-1])
        for j in reversed(range(len(self.bundles))):
            i, size, weight, duration = self.bundles[j]
            before, now = self.after[j], self.after[j + 1][at]
            if before[at] == now:
                continue
            pattern[i] += size
            most = len(before) - 1
            first = max(0, at - weight)
            last = most if at == most else at - weight
            at = first + int(
                np.flatnonzero(before[first : last + 1] == now - duration)[0]
            )
        return tuple(pattern)


def _bundles(count: int) -> Iterator[int]:
    """Sizes 1, 2, 4, ... and a rest whose subsets add up to every number <= count."""
    size = 1
    while count > 0:
        yield min(size, count)
        count -= size
        size *= 2
