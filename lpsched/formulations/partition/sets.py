"""Many item sets at once, as rows of bits, and sums over their items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpsched.formulations.partition.automaton import Ints
from lpsched.formulations.partition.problem import ItemSet, Problem
from lpsched.formulations.partition.subset_rows import Cut

__all__ = ["Bits", "Bools", "Sets", "costs_of", "fitting", "loads_of", "num_words"]

Bits = NDArray[np.uint16]
Bools = NDArray[np.bool_]
_WORD = 16


def num_words(num_items: int) -> int:
    """Words of 16 bits that a set of items from 0 to n - 1 takes; at least 1."""
    return max(1, -(-num_items // _WORD))


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """N sets of items 0 to n - 1; item i is bit i mod 16 of word i div 16.

    Attributes
    ----------
    words : array (num_words(n), N) of uint16
    """

    num_items: int
    words: Bits

    @classmethod
    def of(cls, num_items: int, sets: Iterable[ItemSet]) -> Sets:
        """Pack sets."""
        listed = list(sets)
        words = np.zeros((num_words(num_items), len(listed)), dtype=np.uint16)
        for column, items in enumerate(listed):
            for item in items:
                words[item // _WORD, column] |= np.uint16(1 << item % _WORD)
        return cls(num_items, words)

    @classmethod
    def joined(cls, parts: Sequence[Sets]) -> Sets:
        """Put several after each other."""
        return cls(
            parts[0].num_items, np.concatenate([part.words for part in parts], axis=1)
        )

    def __len__(self) -> int:
        return int(self.words.shape[1])

    def take(self, which: Ints | Bools) -> Sets:
        """Return some of the sets, by number or mask."""
        return Sets(self.num_items, self.words[:, which])

    def unpacked(self) -> list[ItemSet]:
        """Return them as frozen sets."""
        members = self.members()
        return [frozenset(np.flatnonzero(row).tolist()) for row in members.T]

    def keys(self) -> list[bytes]:
        """Return a key of each set, for dictionaries."""
        rows = np.ascontiguousarray(self.words.T)
        return [row.tobytes() for row in rows]

    def members(self) -> Bools:
        """Return the incidence matrix, shape (n, N)."""
        rows = [self.has(item) for item in range(self.num_items)]
        return np.array(rows, dtype=np.bool_).reshape(self.num_items, len(self))

    def counts(self, class_of: Ints, num_classes: int) -> NDArray[np.uint8]:
        """Count the items of each class in each set, shape (num_classes, N)."""
        counts = np.zeros((num_classes, len(self)), dtype=np.uint8)
        for item in range(self.num_items):
            counts[class_of[item]] += self.has(item)
        return counts

    def has(self, item: int) -> Bools:
        """Tell which sets hold an item, shape (N,)."""
        held: Bools = (self.words[item // _WORD] >> (item % _WORD) & 1).astype(np.bool_)
        return held

    def coefficients(self, cut: Cut) -> Ints:
        """Coefficient of each set in a cut, shape (N,)."""
        code = np.zeros(len(self), dtype=np.int64)
        for members in cut.classes:
            code *= len(members) + 1
            for item in members:
                code += self.has(item)
        return np.array(list(cut.coefficients.values()), dtype=np.int64)[code]

    def sums(self, values: Ints) -> Ints:
        """Sum a value per item over the items of each set, shape (N,)."""
        total = np.zeros(len(self), dtype=np.int64)
        for w, word in enumerate(self.words):
            total += _subset_sums(values[w * _WORD : (w + 1) * _WORD])[word]
        return total


def _subset_sums(values: Ints) -> Ints:
    """Return the sum of every subset of at most 16 values, by bit pattern."""
    table = np.zeros(1, dtype=np.int64)
    for value in values:
        table = np.concatenate([table, table + value])
    return table


def costs_of(problem: Problem, sets: Sets) -> Ints:
    """Return the cost c(S) of each set, shape (N,)."""
    total = np.zeros(len(sets), dtype=np.int64)
    held = sets.members()
    for m in problem.messages:
        due = held[sorted(m.targets)].any(axis=0)
        if m.source is not None:
            due &= ~held[m.source]
        total += m.size * due
    return total


def loads_of(problem: Problem, sets: Sets, group: int) -> Ints:
    """Return the load of each set on a device of a group that may run its items."""
    ticks = [0 if t is None else t for t in problem.groups[group].loads]
    return sets.sums(np.array(ticks, dtype=np.int64))


def fitting(problem: Problem, sets: Sets, group: int) -> Bools:
    """Tell which sets a device of a group that may run their items holds."""
    fits: Bools = loads_of(problem, sets, group) <= problem.period
    memory = problem.groups[group].memory
    if memory is not None:
        held = sets.members()
        for stock in problem.stocks:
            needed = np.zeros(len(sets), dtype=np.int64)
            for share in stock:
                needed += share.size * held[sorted(share.items)].any(axis=0)
            fits &= needed <= memory
    if problem.most_received is not None:
        fits &= costs_of(problem, sets) <= problem.most_received
    return fits
