"""Cutting work into pieces, one a device: exact dynamic programs of least maximum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_STATES", "Cut", "Work", "cut", "down_sets", "prefixes"]

#: Above this many down-sets only the prefixes of a topological order are cut.
MAX_STATES = 10_000

_NEVER = np.int64(1) << np.int64(62)

_Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is cut and what it costs.

    Attributes
    ----------
    loads : sequence of sequence of (int or None)
        Ticks of each item on each device, by device; None where it may not run.
    states : sequence of int
        Where a cut may fall: sets of items as bit masks, each the items before the
        cut. They hold the empty and the full set and grow in size.
    transfers : sequence of sequence of int
        Ticks to charge for a piece that begins at a state on a device, by device, 0 at
        the empty set; empty for no charge.
    """

    loads: Sequence[Sequence[int | None]]
    states: Sequence[int]
    transfers: Sequence[Sequence[int]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A chain of states: where each device's piece ends, and the least maximum."""

    maximum: int
    ends: tuple[int, ...]

    def device_of(self, item: int) -> int:
        """Position of the device whose piece holds an item."""
        return next(p for p, end in enumerate(self.ends) if end >> item & 1)


def prefixes(num_items: int) -> list[int]:
    """Cuts of a sequence: its first 0, 1, ... items, as bit masks."""
    return [(1 << n) - 1 for n in range(num_items + 1)]


def down_sets(
    predecessors: Sequence[Sequence[int]], limit: int = MAX_STATES
) -> list[int] | None:
    """Sets that hold every predecessor of their items, as bit masks by size.

    Among sets of one size, those of earlier items first. None if there are more than
    `limit`.
    """
    needs = [sum(1 << j for j in before) for before in predecessors]
    found = {0}
    layer = [0]
    while layer:
        grown: dict[int, None] = {}
        for state in layer:
            for item, need in enumerate(needs):
                if not state >> item & 1 and need & state == need:
                    grown[state | 1 << item] = None
            if len(found) + len(grown) > limit:
                return None
        found.update(grown)
        layer = list(grown)
    return sorted(found, key=lambda state: (state.bit_count(), state))


def cut(work: Work, *, at_most: int | None = None) -> Cut | None:
    r"""Choose a chain of states ∅ ⊂ S1 ⊂ ... whose differences are the pieces.

    Pieces go to devices in order; a device may stay empty. Minimises

    .. math:: \max_i \max(\mathrm{load}_{p_i}(S_i \setminus S_{i-1}),
              \mathrm{transfer}_{p_i}(S_{i-1}))

    exactly; among the chains of least maximum the one of fewest pieces, then that
    with the earliest cuts. O(P n²) for n states on P devices.

    Parameters
    ----------
    at_most : int, optional
        A maximum known to be attainable; speeds up the search.

    Returns
    -------
    Cut or None
        None if the allowed devices leave no chain.
    """
    if not work.loads:
        return Cut(maximum=0, ends=()) if len(work.states) == 1 else None
    table = _Table(work, at_most)
    value = table.backward(np.maximum)
    least = value[0, 0]
    if least >= _NEVER:
        return None
    pieces = table.backward(
        lambda rest, cost: np.where((cost <= least) & (rest < _NEVER), rest + 1, _NEVER)
    )
    ends: list[int] = []
    state = 0
    for device in range(len(work.loads)):
        state = table.earliest(pieces, device, state, least)
        ends.append(work.states[state])
    return Cut(maximum=int(least), ends=tuple(ends))


class _Table:
    """Costs of every piece as arrays, computed state by state.

    Rows are devices; where all rows of a figure are equal one stands for all.
    """

    def __init__(self, work: Work, at_most: int | None) -> None:
        num_items = len(work.loads[0])
        width = -(-max(1, num_items) // 64) * 8
        raw = b"".join(state.to_bytes(width, "little") for state in work.states)
        shape = (len(work.states), width)
        octets = np.frombuffer(raw, dtype=np.uint8).reshape(shape)
        bits = np.unpackbits(octets, axis=1, count=num_items, bitorder="little")
        held = bits.astype(np.int64).T
        ticks = _rows([[load or 0 for load in row] for row in work.loads])
        barred = _rows([[load is None for load in row] for row in work.loads])
        self._num_devices = len(work.loads)
        self._words: npt.NDArray[np.uint64] = octets.view(np.uint64)
        self._load: _Ints = ticks @ held
        self._barred: _Ints = barred @ held
        self._least: _Ints = ticks.min(axis=0) @ held
        self._transfers = _rows(work.transfers or [[0] * len(work.states)])
        known = [x for x in (at_most, self._attainable()) if x is not None]
        self._at_most = min(known, default=None)

    def _attainable(self) -> int | None:
        r"""A maximum that some chain of pieces keeps, where that is plain to see.

        If each state holds the one before, devices are alike and transfers free, cut
        as soon as a piece has its share: none is longer than

        .. math:: \lceil L / P \rceil + \max_i L(S_i \setminus S_{i-1}).
        """
        words, loads = self._words, self._load
        free = not self._transfers.any() and not self._barred.any()
        if len(loads) > 1 or not free or (words[:-1] & ~words[1:]).any():
            return None
        share = -(-int(loads[0, -1]) // self._num_devices)
        return share + int(np.diff(loads[0]).max(initial=0))

    def _beyond(self, state: int) -> tuple[_Ints, _Ints]:
        """Greater states that may follow one, and each piece's cost by device."""
        ends = np.arange(state + 1, len(self._least))
        if self._at_most is not None:
            ends = ends[self._least[ends] <= self._least[state] + self._at_most]
        ends = ends[(self._words[state] & ~self._words[ends] == 0).all(axis=1)]
        cost = self._load[:, ends] - self._load[:, [state]]
        cost = np.maximum(cost, self._transfers[:, [state]])
        barred = self._barred[:, ends] > self._barred[:, [state]]
        return ends, np.where(barred, _NEVER, cost)

    def backward(self, extend: Callable[[_Ints, _Ints], _Ints]) -> _Ints:
        """Best value from (device, state) on: piece by piece, or a device left empty.

        `extend` makes the value of a piece followed by the rest from the rest's value
        and the piece's cost; less is better.
        """
        num_states = len(self._least)
        value = np.full((self._num_devices + 1, num_states), _NEVER, dtype=np.int64)
        value[:, -1] = 0
        for state in range(num_states - 2, -1, -1):
            ends, cost = self._beyond(state)
            if len(ends):
                best = extend(value[1:, ends], cost).min(axis=1)
                value[:-1, state] = np.minimum.accumulate(best[::-1])[::-1]
        return value

    def earliest(self, pieces: _Ints, device: int, state: int, least: np.int64) -> int:
        """Return the end of a device's piece: the earliest that leaves fewest pieces.

        `pieces` counts the pieces still needed, each of cost at most `least`. The
        device stays empty if nothing can begin at its state.
        """
        if state == len(self._least) - 1:
            return state
        ends, cost = self._beyond(state)
        wanted = pieces[device, state] - 1
        row = np.broadcast_to(cost, (self._num_devices, len(ends)))[device]
        fits = (row <= least) & (pieces[device + 1, ends] == wanted)
        chosen = ends[fits]
        return int(chosen[0]) if len(chosen) else state


def _rows(values: Sequence[Sequence[int]]) -> _Ints:
    """Rows as integers, a single one if all are equal."""
    rows = np.array(values, dtype=np.int64)
    return rows[:1] if (rows == rows[:1]).all() else rows
