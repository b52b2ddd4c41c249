"""An automaton that reads items in order, in or out, and charges what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from lpsched.formulations.deadline import UNLIMITED, Deadline
from lpsched.formulations.partition.problem import Problem
from lpsched.formulations.partition.subset_rows import Counter, Cut

__all__ = ["Automaton", "Ints", "build_automaton"]

Ints = NDArray[np.int64]


class _Status(IntEnum):
    """What is known of a message that has begun and not ended."""

    ASKED = 0  # source unread, a target is in
    MISSING = 1  # source is out, no target in
    SETTLED = 2  # source is in, or charged, or nothing to charge any more


#: What differs from the beginning, by key: status of each message that is asked for,
#: missing or settled, ``_CLOSED`` for each class of which an item is out, the counter's
#: state for each cut; only while it can still matter.
_State = tuple[tuple[int, int], ...]
_CLOSED = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Automaton:
    r"""What a set costs, item by item.

    In state k before the item at position i, the item is out (0) or in (1):
    ``following[b][i][k]`` is the next state, ``charges[b][i][k]`` the cost that falls
    due. The sum of the charges is c(S) at most, and exactly unless `is_relaxed`.

    Attributes
    ----------
    order : tuple of int
        Item at each position.
    following, charges : pair of tuple of array
        Per choice, per position, an entry per state.
    counted : tuple of tuple of (cut, states, gains)
        Per position, the cuts whose coefficient rises when that item is in, from
        which states, and by how much.
    blocked : tuple of array
        Per position, the states from which the item cannot be in: an item of its
        class is out that comes first (see `Problem.classes`).
    widths : tuple of int
        States before each position and after the last.
    is_relaxed : bool
        Whether states had to be merged: costs are then lower bounds.
    """

    order: tuple[int, ...]
    following: tuple[tuple[Ints, ...], tuple[Ints, ...]]
    charges: tuple[tuple[Ints, ...], tuple[Ints, ...]]
    counted: tuple[tuple[tuple[int, Ints, Ints], ...], ...]
    blocked: tuple[Ints, ...]
    widths: tuple[int, ...]
    is_relaxed: bool


def build_automaton(
    problem: Problem,
    order: Sequence[int],
    *,
    cuts: Sequence[Cut] = (),
    with_rest: bool = False,
    most_states: int = 4096,
    most_in_all: int | None = None,
    deadline: Deadline = UNLIMITED,
) -> Automaton | None:
    """Enumerate the states that can be reached, position by position.

    The items of a class swap places, so that they come in ascending order. A message
    is charged at the first target that is known to lack it. Where more
    states arise than allowed, the smallest messages are taken for settled from there
    on, which only lowers costs. Cuts are never given up: None if they do not fit, or
    if there are more than `most_in_all` states over all positions.

    Parameters
    ----------
    with_rest : bool
        Charge the set of all items that are out as well: the cost of a partition
        into two.

    Raises
    ------
    OutOfTimeError
        It is not built in time.
    """
    order = _ascending(problem, order)
    reader = _Reader(problem, order, cuts, with_rest=with_rest)
    states: dict[_State, int] = {(): 0}
    steps: list[_Step] = []
    is_relaxed = False
    total = 1
    for position in range(len(order)):
        deadline.check()
        step = reader.step(position, states)
        while len(step.states) > most_states:
            deadline.check()
            if not reader.forget(step.states):
                return None
            is_relaxed = True
            step = reader.step(position, states)
        states = step.states
        steps.append(step)
        total += len(states)
        if most_in_all is not None and total > most_in_all:
            return None
    return Automaton(
        order=tuple(order),
        following=_both(steps, lambda step: step.following),
        charges=_both(steps, lambda step: step.charges),
        counted=tuple(step.counted for step in steps),
        blocked=tuple(step.blocked for step in steps),
        widths=(1, *(len(step.states) for step in steps)),
        is_relaxed=is_relaxed,
    )


@dataclass(frozen=True, kw_only=True)
class _Step:
    states: dict[_State, int]
    following: tuple[Ints, Ints]
    charges: tuple[Ints, Ints]
    counted: tuple[tuple[int, Ints, Ints], ...]
    blocked: Ints


def _both(
    steps: Sequence[_Step], part: Callable[[_Step], tuple[Ints, Ints]]
) -> tuple[tuple[Ints, ...], tuple[Ints, ...]]:
    out, into = zip(*map(part, steps), strict=True) if steps else ((), ())
    return out, into


def _ascending(problem: Problem, order: Sequence[int]) -> list[int]:
    """Let the items of each class come in ascending order, where any of them comes."""
    waiting = [iter(members) for members in problem.classes]
    return [next(waiting[problem.class_of[item]]) for item in order]


class _Reader:
    """Reads the items in order and keeps track of messages, classes and cuts."""

    def __init__(
        self,
        problem: Problem,
        order: Sequence[int],
        cuts: Sequence[Cut],
        *,
        with_rest: bool,
    ) -> None:
        n = len(order)
        place = {item: i for i, item in enumerate(order)}
        messages = [*problem.messages, *(problem.messages if with_rest else ())]
        #: The choice for an item with which it is in the set that a message is for.
        self.inside = [int(k < len(problem.messages)) for k in range(len(messages))]
        self.sizes = [m.size for m in messages]
        self.outside = {k for k, m in enumerate(messages) if m.source is None}
        self.forgotten: set[int] = set()
        self.sent: list[list[int]] = [[] for _ in range(n)]
        self.used: list[list[int]] = [[] for _ in range(n)]
        self.counts: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        self.last: dict[int, int] = {}
        for k, m in enumerate(messages):
            for item in m.targets:
                self.used[place[item]].append(k)
            if m.source is not None:
                self.sent[place[m.source]].append(k)
            ends = m.targets if m.source is None else m.targets | {m.source}
            self.last[k] = max(place[item] for item in ends)
        first = len(self.sizes)
        self.class_of = [first + problem.class_of[item] for item in order]
        for c, members in enumerate(problem.classes):
            self.last[first + c] = max(place[item] for item in members)
        self.first_cut = first + len(problem.classes)
        self.counters: list[Counter] = []
        for number, cut in enumerate(cuts):
            read = sorted(cut.items, key=lambda item: place[item])
            for nth, item in enumerate(read):
                self.counts[place[item]].append((number, nth))
            self.counters.append(Counter(cut, read))
            self.last[self.first_cut + number] = place[read[-1]]

    def step(self, position: int, states: dict[_State, int]) -> _Step:
        """Read one item from every state, out and in."""
        found: dict[_State, int] = {}
        following = np.zeros((2, len(states)), dtype=np.int64)
        charges = np.zeros((2, len(states)), dtype=np.int64)
        counted: dict[int, list[tuple[int, int]]] = {}
        blocked: list[int] = []
        for state, number in states.items():
            status = dict(state)
            if self.class_of[position] in status:
                blocked.append(number)
            else:
                after = dict(state)
                charges[1, number] = self._charge(position, 1, after)
                for cut, gain in self._count(position, after):
                    counted.setdefault(cut, []).append((number, gain))
                following[1, number] = self._number(position, after, found)
            charges[0, number] = self._charge(position, 0, status)
            self._skip(position, status)
            following[0, number] = self._number(position, status, found)
        return _Step(
            states=found,
            following=(following[0], following[1]),
            charges=(charges[0], charges[1]),
            counted=tuple(
                (cut, *np.array(gains, dtype=np.int64).T)
                for cut, gains in counted.items()
            ),
            blocked=np.array(blocked, dtype=np.int64),
        )

    def _charge(self, position: int, choice: int, status: dict[int, int]) -> int:
        """Note what an item makes and uses; return what falls due.

        An item in the set has what it makes and asks for what it uses; what an item
        out of it makes is missing, or due if asked for.
        """
        charge = 0
        for k in self.sent[position]:
            if choice == self.inside[k]:
                status[k] = _Status.SETTLED
            elif status.get(k) == _Status.ASKED:
                charge += self.sizes[k]
                status[k] = _Status.SETTLED
            else:
                status[k] = _Status.MISSING
        for k in self.used[position]:
            before = status.get(k)
            if choice != self.inside[k] or k in self.forgotten:
                continue
            if before is None and k not in self.outside:
                status[k] = _Status.ASKED
            elif before in (None, _Status.MISSING):
                charge += self.sizes[k]
                status[k] = _Status.SETTLED
        return charge

    def _skip(self, position: int, status: dict[int, int]) -> None:
        """Close the class of an item that is out, and turn the cuts' counters."""
        status[self.class_of[position]] = _CLOSED
        for cut, nth in self.counts[position]:
            counter = self.counters[cut]
            self._turn(status, cut, counter.out(nth, self._state(status, cut, nth)))

    def _count(
        self, position: int, status: dict[int, int]
    ) -> Iterator[tuple[int, int]]:
        """Count an item that is in, cut by cut; yield what is more than nothing."""
        for cut, nth in self.counts[position]:
            state = self._state(status, cut, nth)
            gain, after = self.counters[cut].into(nth, state)
            self._turn(status, cut, after)
            if gain:
                yield cut, gain

    def _state(self, status: dict[int, int], cut: int, nth: int) -> int:
        """State of a cut's counter before its nth item."""
        if nth == 0:
            return self.counters[cut].start
        return status.get(self.first_cut + cut, 0)

    def _turn(self, status: dict[int, int], cut: int, state: int) -> None:
        """Note the state of a cut's counter; 0 needs no note."""
        if state:
            status[self.first_cut + cut] = state
        else:
            status.pop(self.first_cut + cut, None)

    def _number(
        self, position: int, status: dict[int, int], found: dict[_State, int]
    ) -> int:
        """Number the state that a status makes; forget what no longer matters."""
        key = tuple(
            sorted(
                (k, value)
                for k, value in status.items()
                if self.last[k] > position and k not in self.forgotten
            )
        )
        return found.setdefault(key, len(found))

    def forget(self, states: dict[_State, int]) -> bool:
        """Take the smallest message in play for settled; False if there is none."""
        live = {k for state in states for k, _ in state if k < len(self.sizes)}
        if not live:
            return False
        self.forgotten.add(min(live, key=lambda k: self.sizes[k]))
        return True
