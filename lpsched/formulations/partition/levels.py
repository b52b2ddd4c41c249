"""The loads that a device can have after each item, and how items move between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpsched.formulations.partition.automaton import Ints

__all__ = ["Held", "Levels", "Move"]


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """From levels `begin` to `end` before an item to levels after it.

    Attributes
    ----------
    targets : slice or array of int
        Number of the level after the item, for each of them; a slice where these
        follow each other, which is much faster to read.
    """

    begin: int
    end: int
    targets: slice | Ints

    @classmethod
    def of(cls, loads: Ints, after: Ints) -> Move:
        """Match ascending loads to those levels that are still there."""
        if not len(after):
            return cls(0, 0, slice(0, 0))
        begin = int(np.searchsorted(loads, after[0]))
        end = int(np.searchsorted(loads, after[-1], side="right"))
        targets = np.searchsorted(after, loads[begin:end])
        if begin < end and targets[-1] - targets[0] == end - begin - 1:
            return cls(begin, end, slice(int(targets[0]), int(targets[-1]) + 1))
        return cls(begin, max(begin, end), targets)

    def follow(self, numbers: Ints) -> Ints:
        """Level after the item for levels before it (from `begin` to `end`)."""
        if isinstance(self.targets, slice):
            after: Ints = numbers - self.begin + self.targets.start
        else:
            after = self.targets[numbers - self.begin]
        return after


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A second load: what each item in order adds to it, and how much it may be."""

    weights: tuple[int, ...]
    most: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Levels:
    """Loads that sets can have, position by position, as numbers of levels.

    Only loads <= most count from which `least` can still be reached. Where durations
    are few or multiples of each other there are far fewer than `most`. With a second
    load a level is a pair of loads.

    Attributes
    ----------
    counts : tuple of int
        How many levels there are before each position, and after the last.
    out, into : tuple of Move
        Per position, with the item left out and taken in.
    has_dead_end : bool
        Whether the last level stands for every pair of loads that is too much.
    """

    counts: tuple[int, ...]
    out: tuple[Move, ...]
    into: tuple[Move, ...]
    has_dead_end: bool = False

    @classmethod
    def of(
        cls,
        weights: Sequence[int | None],
        *,
        least: int,
        most: int,
        held: Held | None = None,
        most_levels: int | None = None,
    ) -> Levels | None:
        """Collect the loads that items can sum to.

        Parameters
        ----------
        weights : sequence of int or None
            Of the items in order; None where an item cannot be in.
        held : Held, optional
            A second load.
        most_levels : int, optional
            None is returned if there are more levels than this at some position.
        """
        if held is not None:
            return cls._pairs(weights, least, most, held, most_levels)
        to_come = sum(w or 0 for w in weights)
        levels = np.zeros(1 if least <= to_come else 0, dtype=np.int64)
        counts, out, into = [len(levels)], [], []
        for weight in weights:
            to_come -= weight or 0
            heavier = levels[:0] if weight is None else levels + weight
            after = np.union1d(levels, heavier)
            after = after[(after >= least - to_come) & (after <= most)]
            out.append(Move.of(levels, after))
            into.append(Move.of(heavier, after))
            levels = after
            counts.append(len(levels))
            if most_levels is not None and len(levels) > most_levels:
                return None
        return cls(counts=tuple(counts), out=tuple(out), into=tuple(into))

    @classmethod
    def _pairs(
        cls,
        weights: Sequence[int | None],
        least: int,
        most: int,
        held: Held,
        most_levels: int | None,
    ) -> Levels | None:
        """Collect pairs (load, second load), as load times a base plus second load."""
        base, to_come = held.most + 1, sum(w or 0 for w in weights)
        levels = np.zeros(1 if least <= to_come else 0, dtype=np.int64)
        counts, out, into = [len(levels) + 1], [], []
        for weight, more in zip(weights, held.weights, strict=True):
            to_come -= weight or 0
            is_able = levels % base + more <= held.most
            if weight is None:
                is_able[:] = False
            heavier = levels + (weight or 0) * base + more
            after = np.union1d(levels, heavier[is_able])
            loads = after // base
            after = after[(loads >= least - to_come) & (loads <= most)]
            out.append(_to(levels, after))
            into.append(_to(np.where(is_able, heavier, -1), after))
            levels = after
            counts.append(len(levels) + 1)
            if most_levels is not None and len(levels) > most_levels:
                return None
        return cls(
            counts=tuple(counts), out=tuple(out), into=tuple(into), has_dead_end=True
        )


def _to(pairs: Ints, after: Ints) -> Move:
    """Match pairs to the levels after an item, the dead end where there is none."""
    targets = np.searchsorted(after, pairs)
    found = np.append(after, -1)[targets] == pairs
    found &= pairs >= 0
    return Move(0, len(pairs), np.where(found, targets, len(after)))
