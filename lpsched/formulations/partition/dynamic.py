"""Exact least reduced costs by dynamic programming, and the sets that have them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpsched.formulations.deadline import UNLIMITED, Deadline
from lpsched.formulations.partition.automaton import Automaton, Ints
from lpsched.formulations.partition.levels import Levels, Move
from lpsched.formulations.partition.sets import Bits, Sets, num_words

__all__ = ["INFEASIBLE", "Priced", "Table"]

#: Reduced cost of what cannot be; charges and prices move it by less than a half.
_NEVER = np.int64(2**61)
#: Reduced costs from here on stand for "no such set".
INFEASIBLE = 2**60


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """Sets with their reduced costs, in grid units."""

    sets: Sets
    reduced: Ints


class Table:
    r"""Least reduced cost of a set, from every state and load on.

    The reduced cost of a set S is

    .. math:: \bar c(S) = c(S) - \sum_{i \in S} \pi_i
       + \sum_\tau a_\tau(S) \phi_\tau

    with prices π of the items and fees φ >= 0 of cuts of coefficients a(S). With
    G[i][k, l] the least that the items from position i on can add when the automaton
    is in state k and the load is l,

    .. math:: G[i][k, l] = \min(\; out_k + G[i+1][k', l],\;
       in_k - \pi + \phi + G[i+1][k'', l + t] \;)

    and G[n] = 0 at every load allowed. So G bounds every completion exactly, and
    a search forwards never runs into a dead end. All in integers: costs, prices and
    fees are multiples of one grid unit.

    Parameters
    ----------
    prices : array (n,) of int
    fees : array of int
        One per cut of the automaton.
    grid : int
        Grid units in a unit of cost.
    deadline : Deadline
        When it is over, whatever is under way ends with `OutOfTimeError`.
    """

    def __init__(
        self,
        automaton: Automaton,
        levels: Levels,
        *,
        prices: Ints,
        fees: Ints,
        grid: int,
        deadline: Deadline = UNLIMITED,
    ) -> None:
        self._deadline = deadline
        self._automaton = automaton
        self._levels = levels
        self._out = [charge * grid for charge in automaton.charges[0]]
        self._into = [
            self._entry(i, prices, fees, grid) for i in range(len(automaton.order))
        ]
        self._values = self._solve()

    def _entry(self, i: int, prices: Ints, fees: Ints, grid: int) -> Ints:
        """What it costs to take the item at position i in, per state."""
        automaton = self._automaton
        entry: Ints = automaton.charges[1][i] * grid - prices[automaton.order[i]]
        for cut, states, gains in automaton.counted[i]:
            entry[states] += fees[cut] * gains
        entry[automaton.blocked[i]] = _NEVER
        return entry

    def _solve(self) -> list[Ints]:
        automaton, levels = self._automaton, self._levels
        shape = automaton.widths[-1], levels.counts[-1]
        values = [np.zeros(shape, dtype=np.int64)]
        if levels.has_dead_end:
            values[0][:, -1] = _NEVER
        for i in reversed(range(len(automaton.order))):
            self._deadline.check()
            after, out, into = values[-1], levels.out[i], levels.into[i]
            here = np.full((automaton.widths[i], levels.counts[i]), _NEVER)
            left = _read(after, automaton.following[0][i], out)
            np.add(left, self._out[i][:, None], out=here[:, out.begin : out.end])
            if into.begin < into.end:
                taken = _read(after, automaton.following[1][i], into)
                taken += self._into[i][:, None]
                there = here[:, into.begin : into.end]
                np.minimum(there, taken, out=there)
            values.append(here)
        values.reverse()
        return values

    @property
    def least(self) -> int:
        """The least reduced cost of any set; `INFEASIBLE` if there is none."""
        first = self._values[0]
        return min(INFEASIBLE, int(first[0, 0])) if first.size else INFEASIBLE

    def best(self, count: int | None = None, *, threshold: int | None = None) -> Priced:
        """Return the `count` sets of least reduced cost, those <= `threshold` only.

        Exact: a beam of this width holds, after each position, the beginnings of the
        best sets, since G tells what each beginning comes to. Not sorted.
        """
        limit = INFEASIBLE - 1 if threshold is None else min(threshold, INFEASIBLE - 1)
        beam = _Beam.start(len(self._automaton.order), int(self.least <= limit))
        for i in range(len(self._automaton.order)):
            self._deadline.check()
            beam = self._extend(beam, i, limit, count)
        return Priced(
            sets=Sets(len(self._automaton.order), beam.words), reduced=beam.reduced
        )

    def _extend(self, beam: _Beam, i: int, limit: int, count: int | None) -> _Beam:
        """Read one item with every beginning; keep the best."""
        left = self._moved(beam, i, 0)
        taken = self._moved(beam, i, 1)
        both = np.concatenate([left.promise, taken.promise])
        chosen = _least(both, limit, count)
        first = len(left.promise)
        left = left.take(chosen[chosen < first])
        taken = taken.take(chosen[chosen >= first] - first)
        words = beam.words[:, np.concatenate([left.origin, taken.origin])]
        item = self._automaton.order[i]
        words[item // 16, len(left.origin) :] |= np.uint16(1 << item % 16)
        return _Beam(
            words=words,
            states=np.concatenate([left.states, taken.states]),
            levels=np.concatenate([left.levels, taken.levels]),
            reduced=np.concatenate([left.reduced, taken.reduced]),
        )

    def _moved(self, beam: _Beam, i: int, choice: int) -> _Moved:
        """Leave an item out (0) or take it in (1), wherever the load allows it."""
        move = (self._levels.out, self._levels.into)[choice][i]
        charges = (self._out, self._into)[choice][i]
        able = np.flatnonzero((beam.levels >= move.begin) & (beam.levels < move.end))
        before = beam.states[able]
        states = self._automaton.following[choice][i][before]
        levels = move.follow(beam.levels[able])
        reduced = beam.reduced[able] + charges[before]
        promise = reduced + self._values[i + 1][states, levels]
        return _Moved(able, states, levels, reduced, promise)


def _read(after: Ints, states: Ints, move: Move) -> Ints:
    """Values after an item, by state and level before it: a copy."""
    if isinstance(move.targets, slice):
        return after[states, move.targets]
    return after[states[:, None], move.targets]


@dataclass(frozen=True, slots=True, eq=False)
class _Moved:
    """Beginnings with one item read, and the best that each can come to."""

    origin: Ints
    states: Ints
    levels: Ints
    reduced: Ints
    promise: Ints

    def take(self, which: Ints) -> _Moved:
        return _Moved(
            self.origin[which],
            self.states[which],
            self.levels[which],
            self.reduced[which],
            self.promise[which],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beam:
    """Beginnings of sets: items, state, level and reduced cost so far."""

    words: Bits
    states: Ints
    levels: Ints
    reduced: Ints

    @classmethod
    def start(cls, num_items: int, count: int) -> _Beam:
        none = np.zeros(count, dtype=np.int64)
        words = np.zeros((num_words(num_items), count), dtype=np.uint16)
        return cls(words=words, states=none, levels=none, reduced=none)


def _least(promise: Ints, limit: int, count: int | None) -> Ints:
    """Numbers of the `count` least values among those <= limit."""
    chosen: Ints = np.flatnonzero(promise <= limit)
    if count is not None and len(chosen) > count:
        order = np.argpartition(promise[chosen], count - 1)[:count]
        chosen = chosen[order]
    return chosen
