"""Bound J: the first I of each stage waits for the last stage, and the last I too."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from lpsched.analysis.chain import Chain
from lpsched.analysis.synchronous.room import Room

__all__ = ["Ramp", "ramp_bound"]


class Ramp:
    r"""Whether a period T leaves room for both ends of every stage.

    Let x be the ticks from F(s, 0) to I(s, 0), and z those from F(s, m - 1) to
    I(s, m - 1). Down the chain and back up again both grow by at least

    .. math:: x_s \ge x_{s+1} + f_s + c_s + b_{s+1} + c'_s, \qquad x_{p-1} \ge f_{p-1}.

    No I and no W precedes I(s, 0), so x is k f for some 1 <= k <= min(K, m) and idle
    ticks. Between the other two there are one F, r - 1 I's and at most q - 1 W's, with
    r I's and q W's left at F(m - 1) (`Room.left`), so z is f + (r - 1) b + j w for some
    0 <= j < q, and idle ticks. All idle ticks of
    a stage are at most D = T - offset - m P - u, and if m > K the two windows are
    disjoint (I(0) precedes F(K)) and share them.

    A larger T allows whatever a smaller one does, so the least T that is not refused
    is a bound.
    """

    def __init__(self, chain: Chain, rooms: Sequence[Room]) -> None:
        self._chain = chain
        self._rooms = rooms
        self._lasts = [self._last_windows(s, room) for s, room in enumerate(rooms)]

    def _last_windows(self, stage: int, room: Room) -> list[int]:
        """Work that can lie between F(m - 1) and I(m - 1), ascending."""
        chain = self._chain
        f, b, w = (
            chain.forward[stage],
            chain.input_grad[stage],
            chain.weight_grad[stage],
        )
        found = {
            f + (r - 1) * b + j * w
            for r, q in zip(*map(np.ndarray.tolist, room.left(1)), strict=True)
            for j in range(q)
        }
        return sorted(found)

    def allows(self, period: int) -> bool:
        """Tell whether no stage refuses this period.

        From the last stage up, keeps the pairs (x, z) of which none is better in
        both: each is rounded up to the next window, or made up by idle ticks.
        """
        chain = self._chain
        pairs: list[tuple[int, int]] = [(0, 0)]
        for s in range(chain.num_stages - 1, -1, -1):
            idle = period - chain.offset(s) - chain.update[s]
            idle -= chain.microbatches * chain.work(s)
            step = chain.forward[s]
            if s < chain.num_stages - 1:
                step += chain.down[s] + chain.input_grad[s + 1] + chain.up[s]
            grown = [(x + step, z + step) for x, z in pairs]
            pairs = _best(p for x, z in grown for p in self._pairs(s, x, z, idle))
        return bool(pairs)

    def _pairs(
        self, stage: int, x: int, z: int, idle: int
    ) -> Iterator[tuple[int, int]]:
        shared = self._chain.microbatches > self._rooms[stage].cap
        for first, spent in self._first(stage, x):
            for last, lost in _rounded(self._lasts[stage], z):
                total = spent + lost if shared else max(spent, lost)
                if total <= idle:
                    yield first, last

    def _first(self, stage: int, x: int) -> Iterator[tuple[int, int]]:
        """X with the idle ticks that it takes, and the next window without any."""
        f, most = self._chain.forward[stage], self._rooms[stage].cap
        k = min(most, x // f) if f else most
        if k > 0:
            yield x, x - k * f
        if k < most:
            yield (k + 1) * f, 0


def _rounded(windows: Sequence[int], z: int) -> Iterator[tuple[int, int]]:
    i = bisect_right(windows, z)
    if i > 0:
        yield z, z - windows[i - 1]
    if i < len(windows):
        yield windows[i], 0


def _best(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs that no other beats in both numbers."""
    kept: list[tuple[int, int]] = []
    for x, z in sorted(set(pairs)):
        if not kept or z < kept[-1][1]:
            kept.append((x, z))
    return kept


def ramp_bound(chain: Chain, rooms: Sequence[Room], low: int) -> int:
    """Bound J: the least period >= `low` that `Ramp` allows, by bisection."""
    ramp = Ramp(chain, rooms)
    if ramp.allows(low):
        return low
    refused, step = low, 1
    while not ramp.allows(refused + step):
        refused, step = refused + step, 2 * step
    allowed = refused + step
    while allowed - refused > 1:
        middle = (refused + allowed) // 2
        if ramp.allows(middle):
            allowed = middle
        else:
            refused = middle
    return allowed
