"""Loops that transfers make too long: quick tests of many sets, many placements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lpsched.analysis.at_period import Bools, Ints
from lpsched.errors import OutOfTimeError
from lpsched.formulations.placements.closure import Weighed
from lpsched.formulations.placements.problem import Problem, SetCodes

__all__ = ["Homes", "Loop", "Loops", "Sets"]

#: Members of a batch in which loops are sought at a time, and loops that are kept.
_SAMPLE, _MOST = 64, 64

#: Sets that are tested together, and units that are looked up at once.
_PART, _BITS = 2**15, 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Loop:
    """A closed walk: what its arcs weigh in any case, and those where codes matter."""

    weight: int
    arcs: tuple[Weighed, ...]

    def length(self, codes: SetCodes) -> Ints:
        """Add up the arcs of the walk, for each column of codes by op."""
        total = np.full(codes.shape[1], self.weight, dtype=np.int64)
        for u, v, weights in self.arcs:
            total += weights[codes[u], codes[v]]
        return total


class Batch(Protocol):
    """Sets or partial placements that are tested together."""

    def __len__(self) -> int:
        """Count them."""
        ...

    def only(self, kept: Ints) -> Batch:
        """Keep some."""
        ...

    def codes(self) -> SetCodes:
        """Code of each op in each."""
        ...

    def survivors(self, loops: Sequence[Loop]) -> Bools:
        """Tell for which no loop is of positive length."""
        ...


class Loops:
    r"""Refutes sets or partial placements by closed walks of positive length.

    .. math:: \sum_{(u, v)} w_{uv} > 0

    w is the weight of an arc by the codes of its ends (`Codes`): with the transfer
    where they cannot share a device. Walks are found on a few members of a batch and
    held against all, in this batch and in later ones.
    """

    def __init__(
        self, arcs: Sequence[Weighed], over: Callable[[], bool] = lambda: False
    ) -> None:
        self._arcs, self._over = arcs, over
        self._loops: list[Loop] = []

    def unrefuted(self, batch: Batch) -> Bools:
        """Tell which members no loop refutes, learning some that refute many.

        Raises
        ------
        OutOfTimeError
            `over` said so.
        """
        alive = batch.survivors(self._loops)
        while len(self._loops) < _MOST:
            if self._over():
                raise OutOfTimeError("sets of ops are not held against loops")
            left = np.flatnonzero(alive)
            sample = left[:: max(1, len(left) // _SAMPLE)][:_SAMPLE]
            learned = list(self._learn(batch.only(sample).codes()))
            if not learned:
                break
            alive[left] = batch.only(left).survivors(learned)
            self._loops += learned
        return alive

    def _learn(self, codes: SetCodes) -> Iterator[Loop]:
        """Find loops until each member of a sample that has one is refuted by one."""
        waiting, last = self._walks(codes)
        for j in range(codes.shape[1]):
            if waiting[j]:
                loop = self._loop(self._closed(last[:, j]))
                waiting = waiting & (loop.length(codes) <= 0)
                yield loop

    def _walks(self, codes: SetCodes) -> tuple[Bools, Ints]:
        """Whether paths grow without end, and the last arc of each, -1 for none.

        By Bellman and Ford from everywhere; after n rounds only loops still grow.
        """
        length = np.zeros(codes.shape, dtype=np.int64)
        last = np.full(codes.shape, -1, dtype=np.int64)
        grown = np.zeros(codes.shape[1], dtype=np.bool_)
        for _ in range(len(codes) + 1):
            grown[:] = False
            for i, (u, v, weights) in enumerate(self._arcs):
                reached = length[u] + weights[codes[u], codes[v]]
                longer = reached > length[v]
                length[v, longer], last[v, longer] = reached[longer], i
                grown |= longer
            if not grown.any():
                break
        return grown, last

    def _closed(self, last: Ints) -> list[int]:
        """Return the arcs of a loop among the last arcs of paths that grow on."""
        for start in range(len(last)):
            op, seen = start, []
            while last[op] >= 0 and op not in seen:
                seen.append(op)
                op = self._arcs[last[op]][0]
            if op in seen:
                return [int(last[v]) for v in seen[seen.index(op) :]]
        raise AssertionError("paths grow without end, yet along no loop")

    def _loop(self, numbers: Sequence[int]) -> Loop:
        arcs = [self._arcs[i] for i in numbers]
        matters = [bool((w != w.flat[0]).any()) for *_, w in arcs]
        return Loop(
            weight=sum(
                int(arc[2].flat[0])
                for arc, varies in zip(arcs, matters, strict=True)
                if not varies
            ),
            arcs=tuple(
                arc for arc, varies in zip(arcs, matters, strict=True) if varies
            ),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Homes:
    """Partial placements, by the code of each op; shape (n, m)."""

    homes: SetCodes

    def __len__(self) -> int:
        return len(self.homes[0])

    def only(self, kept: Ints) -> Homes:
        """Keep some."""
        return Homes(homes=self.homes[:, kept])

    def codes(self) -> SetCodes:
        """Code of each op in each."""
        return self.homes

    def survivors(self, loops: Sequence[Loop]) -> Bools:
        """Tell for which no loop is of positive length."""
        alive = np.ones(len(self), dtype=np.bool_)
        left, codes = np.arange(len(self)), self.homes
        for loop in loops:
            fine: Bools = loop.length(codes) <= 0
            if not fine.all():
                alive[left[~fine]] = False
                left, codes = left[fine], codes[:, fine]
        return alive


@dataclass(frozen=True, kw_only=True, eq=False)
class Sets:
    """Sets of units on one device, as bits; open where they are not decided."""

    problem: Problem
    bits: Ints
    decided: int

    def __len__(self) -> int:
        return len(self.bits)

    def only(self, kept: Ints) -> Sets:
        """Keep some."""
        return Sets(problem=self.problem, bits=self.bits[kept], decided=self.decided)

    def codes(self) -> SetCodes:
        """Code of each op in each."""
        return self.problem.codes_of(self.bits, decided=self.decided)

    def survivors(self, loops: Sequence[Loop]) -> Bools:
        """Tell for which no loop is of positive length."""
        tables = [_Tables(self.problem, loop, self.decided) for loop in loops]
        alive = np.ones(len(self), dtype=np.bool_)
        for begin in range(0, len(self), _PART):
            left = np.arange(begin, min(begin + _PART, len(self)))
            blocks = _blocks(self.bits[left], len(self.problem.units))
            for table in tables:
                fine = table.length(blocks) <= 0
                if not fine.all():
                    alive[left[~fine]] = False
                    left, blocks = left[fine], blocks[:, fine]
        return alive


def _blocks(bits: Ints, count: int) -> NDArray[np.intp]:
    """Numbers that `_BITS` units each make, by block and set."""
    shifts = np.arange(0, max(count, 1), _BITS)
    blocks: NDArray[np.intp] = (bits >> shifts[:, None]) & (2**_BITS - 1)
    return blocks


class _Tables:
    """The length of one loop, looked up block by block; arcs between blocks apart."""

    def __init__(self, problem: Problem, loop: Loop, decided: int) -> None:
        unit = [max(int(k), 0) for k in problem.unit_of]  # without a device: open
        numbers = np.arange(2**_BITS)
        self._weight = loop.weight
        self._inner: dict[int, Ints] = {}
        self._outer: list[tuple[int, int, int, int, Ints]] = []
        for u, v, weights in loop.arcs:
            (a, x), (b, y) = divmod(unit[u], _BITS), divmod(unit[v], _BITS)
            some = numbers << (a * _BITS)
            if a != b:
                some = np.array(
                    [0, 1 << unit[v], 1 << unit[u], 1 << unit[u] | 1 << unit[v]]
                )
            codes = problem.codes_of(some, decided=decided)
            table: Ints = weights[codes[u], codes[v]].astype(np.int64)
            if a == b:
                self._inner[a] = self._inner.get(a, 0) + table
            else:
                self._outer.append((a, x, b, y, table))

    def length(self, blocks: NDArray[np.intp]) -> Ints:
        """Add up the arcs of the walk, for each set."""
        total: Ints = np.full(blocks.shape[1], self._weight, dtype=np.int64)
        for block, table in self._inner.items():
            total += table[blocks[block]]
        for a, x, b, y, table in self._outer:
            total += table[(blocks[a] >> x & 1) << 1 | blocks[b] >> y & 1]
        return total
