"""Many placements refuted at once, by paths with transfers and by taking turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lpsched.analysis.at_period import Arc, AtPeriod, Bools, Ints
from lpsched.analysis.windows import NO_PATH, Windows

__all__ = ["Closure", "Codes", "Weighed"]

#: Times in the shortest integers that hold them.
_Times: TypeAlias = NDArray[np.signedinteger]

#: Ends u, v of an arc, and its weights by their codes.
Weighed: TypeAlias = tuple[int, int, _Times]

#: Integers, and what times they hold: two of those for no path can be added.
_KINDS: tuple[tuple[type[np.signedinteger], int], ...] = (
    (np.int16, 2**12),
    (np.int32, 2**28),
    (np.int64, 2**59),
)

#: Placements looked at together: as many as keep their paths in the cache.
_BATCH = 256
#: Times that paths are closed after ops took turns; fewer are weaker, never wrong.
_ROUNDS = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Codes:
    """Where an op can be said to be, and what follows for arcs and turns.

    Attributes
    ----------
    homes : array (codes, P + 1) of bool
        Devices that each code stands for. Two ops of one code that stands for a
        single device share it.
    arcs : tuple of (u, v, weights)
        Least ``t_u + c + lag - k T`` by the codes of u and v, where it can exceed
        what is known; `blocked` if no devices are left.
    times : array (n, codes) of int
        Time of each op on a code's device, 0 for codes of several.
    """

    homes: Bools
    arcs: tuple[Weighed, ...]
    times: _Times


class Closure:
    r"""Longest paths of a batch of placements, given or partial.

    Paths L start at what holds for every placement (`Windows`). Arcs between devices
    then pay their transfers, paths are closed, and ops u, v of one device take turns:
    s_v - s_u lies in the hull of what ``t_u <= s_v - s_u - j T <= T - t_v`` for an
    integer j leaves of ``L(u, v) .. -L(v, u)``. All this repeats. A cycle of positive
    length, or a pair without a turn, refutes.

    Numbers wrap downwards only: where paths have a way back they are bounded by what
    is known, unless there is a cycle of positive length; otherwise a sum that wraps is
    less than it should be, and so still a bound.
    """

    def __init__(self, windows: Windows) -> None:
        self.at: AtPeriod = windows.problem
        known = windows.longest != NO_PATH
        most = int(np.abs(windows.longest[known]).max(initial=self.at.period)) + 1
        self._kind, size = next(pair for pair in _KINDS if most < pair[1])
        self._most, self._no_path = most, -2 * size
        longest = np.where(known, windows.longest, self._no_path)
        self._longest = longest.astype(self._kind)
        self._partial: dict[tuple[int, ...], Codes] = {}

    def codes(self, homes: Sequence[Bools]) -> Codes:
        """Weigh all arcs under sets of devices, one per code."""
        masks = np.array(homes)
        single = [int(np.flatnonzero(m)[0]) if m.sum() == 1 else -1 for m in masks]
        no_device = self.at.num_devices
        times = np.zeros((self.at.num_ops, len(masks)), dtype=self._kind)
        for code, device in enumerate(single):
            if device not in (-1, no_device):
                times[:, code] = np.minimum(self.at.durations[:, device], self._most)
        arcs = self.weighed(masks)
        return Codes(
            homes=masks,
            arcs=tuple(a for a in arcs if (a[2] > self._longest[a[0], a[1]]).any()),
            times=times,
        )

    def weighed(self, masks: Bools) -> tuple[Weighed, ...]:
        """Weigh all arcs of limited delay by the codes of their ends."""
        return tuple(
            (arc.src, arc.dst, self._weights(arc, masks))
            for arc in self.at.arcs
            if arc.high is not None and arc.src != arc.dst
        )

    def partial_codes(self, rest: tuple[int, ...]) -> Codes:
        """A code per device, one for no device, one for the devices `rest`."""
        if rest not in self._partial:
            single = np.eye(self.at.num_devices + 1, dtype=np.bool_)
            several = np.zeros(len(single), dtype=np.bool_)
            several[list(rest)] = True
            self._partial[rest] = self.codes([*single, several])
        return self._partial[rest]

    def _weights(self, arc: Arc, masks: Bools) -> _Times:
        """Weight of an arc by the codes of its ends, cut to what can matter.

        More than any path back is as good as infinite; less than any path is none.
        """
        allowed = self.at.allowed
        costs = self.at.costs(arc) - (arc.high or 0) * self.at.period
        weights = np.full((len(masks),) * 2, self._most, dtype=np.int64)
        for a, mine in enumerate(masks):
            for b, its in enumerate(masks):
                pairs = np.outer(mine & allowed[arc.src], its & allowed[arc.dst])
                if pairs.any():
                    weights[a, b] = costs[pairs].min()
        weights = np.minimum(weights, self._most)
        weights[weights < -self._most] = self._no_path
        return weights.astype(self._kind)

    def survivors(self, codes: Codes, homes: NDArray[np.integer]) -> Bools:
        """Tell which placements are not refuted.

        Parameters
        ----------
        homes : array (m, n) of int
            A code for each op, by placement.
        """
        alive = np.zeros(len(homes), dtype=np.bool_)
        for begin in range(0, len(homes), _BATCH):
            batch = homes[begin : begin + _BATCH]
            alive[begin : begin + _BATCH] = self._examine(codes, batch.T)
        return alive

    def _examine(self, codes: Codes, homes: NDArray[np.integer]) -> Bools:
        m = homes.shape[1]
        paths = np.repeat(self._longest[:, :, None], m, axis=2)
        for u, v, weights in codes.arcs:
            np.maximum(paths[u, v], weights[homes[u], homes[v]], out=paths[u, v])
        alive = self._close(paths)
        left = np.flatnonzero(alive)
        turns, paths = self._turns(codes, homes[:, left], paths[:, :, left])
        for round_ in range(_ROUNDS):
            fine = self._close(paths) if round_ else np.ones(len(left), dtype=np.bool_)
            possible, moved = self._take_turns(paths, turns)
            fine &= possible
            alive[left[~fine]] = False
            going = fine & moved
            if not going.any():
                break
            left, paths, turns = left[going], paths[:, :, going], turns.only(going)
        return alive

    def _turns(
        self, codes: Codes, homes: NDArray[np.integer], paths: _Times
    ) -> tuple[_Turns, _Times]:
        """Pairs that share a device, and the paths between their ops alone.

        Turns lengthen paths between such ops only, so no other op need be looked at.
        Where a placement has fewer than others of the batch, some others fill up.
        """
        n, m = homes.shape
        times = codes.times[np.arange(n)[:, None], homes]
        busy = times > 0
        count = max(1, int(busy.sum(axis=0).max(initial=0)))
        ops = np.argsort(~busy, axis=0, kind="stable")[:count]
        column = np.arange(m)
        home, time = homes[ops, column], times[ops, column]
        first, second = np.triu_indices(count, 1)
        share = (home[first] == home[second]) & (time[first] > 0) & (time[second] > 0)
        some = share.any(axis=1)
        turns = _Turns(
            first=first[some], second=second[some], share=share[some], times=time
        )
        return turns, paths[ops[:, None], ops[None, :], column]

    def _close(self, paths: _Times) -> Bools:
        """Close paths in place; tell where no cycle is of positive length."""
        fine = np.ones(paths.shape[2], dtype=np.bool_)
        through = np.empty_like(paths)
        own = np.arange(len(paths))
        for w in range(len(paths)):
            np.add(paths[:, w, None, :], paths[None, w, :, :], out=through)
            np.maximum(paths, through, out=paths)
            fine &= paths[own, own].max(axis=0, initial=0) <= 0
        paths[paths < self._no_path // 2] = self._no_path
        return fine

    def _take_turns(self, paths: _Times, turns: _Turns) -> tuple[Bools, Bools]:
        """Lengthen paths in place; tell where each pair has a turn, and what moved."""
        u, v = turns.first, turns.second
        mine, its = turns.times[u], turns.times[v]
        gap, back = paths[u, v], paths[v, u]
        ahead = np.where(turns.share, self._pushed(gap, mine, its), gap)
        behind = np.where(turns.share, self._pushed(back, its, mine), back)
        known = turns.share & (gap != self._no_path) & (back != self._no_path)
        possible: Bools = ~(known & (ahead + behind > 0)).any(axis=0)
        further = np.maximum(ahead - gap, behind - back)
        paths[u, v], paths[v, u] = ahead, behind
        return possible, further.max(axis=0, initial=0) > 0

    def _pushed(self, gap: _Times, mine: _Times, its: _Times) -> _Times:
        """Least value of s_v - s_u from L(u, v) on that leaves each its turn."""
        T = self.at.period
        phase, until = gap % T, T - its
        push = np.where(phase > until, T - phase + mine, 0)
        push = np.where(phase < mine, mine - phase, push)
        push[gap == self._no_path] = 0
        return gap + push.astype(self._kind)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Turns:
    """Pairs of ops that share a device in some placement of a batch of m.

    Attributes
    ----------
    first, second : array (pairs,) of int
        Places of the ops among those whose paths are kept.
    share : array (pairs, m) of bool
        Whether they share a device, and both take time.
    times : array (ops, m) of int
        Time of each op.
    """

    first: Ints
    second: Ints
    share: Bools
    times: _Times

    def only(self, kept: Bools) -> _Turns:
        """Keep some placements of the batch."""
        return replace(self, share=self.share[:, kept], times=self.times[:, kept])
