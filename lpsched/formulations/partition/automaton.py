"""An automaton that reads items in order, in or out, and charges what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lpsched.formulations.deadline import UNLIMITED, Deadline
from lpsched.formulations.partition.machines import (
    Bools,
    Ints,
    Machine,
    Step,
    class_machine,
    cut_machine,
    message_machine,
)
from lpsched.formulations.partition.problem import Problem
from lpsched.formulations.partition.subset_rows import Cut

__all__ = ["Automaton", "Ints", "build_automaton"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Automaton:
    r"""What a set costs, item by item: the product of many small machines.

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
        Whether messages had to be left out: costs are then lower bounds.
    """

    order: tuple[int, ...]
    following: tuple[tuple[Ints, ...], tuple[Ints, ...]]
    charges: tuple[tuple[Ints, ...], tuple[Ints, ...]]
    counted: tuple[tuple[tuple[int, Ints, Ints], ...], ...]
    blocked: tuple[Ints, ...]
    widths: tuple[int, ...]
    is_relaxed: bool

    def place(self) -> list[int]:
        """Position of each item."""
        place = [0] * len(self.order)
        for position, item in enumerate(self.order):
            place[item] = position
        return place

    def with_cut(
        self, cut: Cut, number: int, *, most_in_all: int | None, most_states: int
    ) -> Automaton | None:
        """Return the automaton that counts a cut, too; None if it grows too wide."""
        wider = _times(self, cut_machine(cut, self.place()), most_states, cut=number)
        if wider is None or (
            most_in_all is not None and sum(wider.widths) > most_in_all
        ):
            return None
        return wider


def build_automaton(
    problem: Problem,
    order: Sequence[int],
    *,
    with_rest: bool = False,
    most_states: int = 4096,
    most_in_all: int | None = None,
    deadline: Deadline = UNLIMITED,
) -> Automaton | None:
    """Multiply the machines of all classes and messages, the largest messages first.

    The items of a class swap places, so that they come in ascending order. A message
    with which more states would arise at some position than allowed is left out, which
    only lowers costs. None if there are more than `most_in_all` states over all
    positions.

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
    automaton = _blank(order)
    place = automaton.place()
    for machine in _machines(problem, place, with_rest=with_rest):
        deadline.check()
        wider = _times(automaton, machine, most_states)
        automaton = wider or replace(automaton, is_relaxed=True)
        if most_in_all is not None and sum(automaton.widths) > most_in_all:
            return None
    return automaton


def _ascending(problem: Problem, order: Sequence[int]) -> list[int]:
    """Let the items of each class come in ascending order, where any of them comes."""
    waiting = [iter(members) for members in problem.classes]
    return [next(waiting[problem.class_of[item]]) for item in order]


def _machines(
    problem: Problem, place: Sequence[int], *, with_rest: bool
) -> Iterator[Machine]:
    for members in problem.classes:
        if len(members) > 1:
            yield class_machine(members, place)
    for message in sorted(problem.messages, key=lambda m: -m.size):
        yield message_machine(message, place)
        if with_rest:
            yield message_machine(message, place, inside=0)


def _blank(order: Sequence[int]) -> Automaton:
    """Return the automaton that has one state and charges nothing."""
    none = np.zeros(1, dtype=np.int64)
    all_none = (none,) * len(order)
    return Automaton(
        order=tuple(order),
        following=(all_none, all_none),
        charges=(all_none, all_none),
        counted=((),) * len(order),
        blocked=(none[:0],) * len(order),
        widths=(1,) * (len(order) + 1),
        is_relaxed=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _States:
    """States of a product before a position, as those of its two factors."""

    left: Ints
    right: Ints


def _times(
    automaton: Automaton, machine: Machine, most_states: int, *, cut: int | None = None
) -> Automaton | None:
    """Let a machine run along; None if too many states arise at some position.

    Only pairs of states that can be reached arise.

    Parameters
    ----------
    cut : int, optional
        Number of the cut that the machine counts.
    """
    first, last = min(machine.steps), max(machine.steps)
    count = automaton.widths[first]
    states = _States(left=np.arange(count), right=np.full(count, machine.start))
    following = [list(some) for some in automaton.following]
    charges = [list(some) for some in automaton.charges]
    counted, blocked = list(automaton.counted), list(automaton.blocked)
    widths = list(automaton.widths)
    for i in range(first, last + 1):
        step = machine.steps.get(i)
        bars = _blocked(automaton, i, states, step)
        blocked[i] = np.flatnonzero(bars)
        counted[i] = _counted(automaton, i, states, step, cut)
        for choice in (0, 1):
            due = automaton.charges[choice][i][states.left]
            if step is not None and step.charges is not None:
                due = due + step.charges[choice][states.right]
            charges[choice][i] = due
        moved = _moved(automaton, i, states, step, bars)
        if i == last:  # the machine is in state 0 whatever came before
            following[0][i], following[1][i] = moved[0].left, moved[1].left
            break
        out, into, states = _numbered(*moved, able=~bars, size=machine.size)
        following[0][i], following[1][i] = out, into
        widths[i + 1] = len(states.left)
        if len(states.left) > most_states:
            return None
    return replace(
        automaton,
        following=(tuple(following[0]), tuple(following[1])),
        charges=(tuple(charges[0]), tuple(charges[1])),
        counted=tuple(counted),
        blocked=tuple(blocked),
        widths=tuple(widths),
    )


def _moved(
    automaton: Automaton, i: int, states: _States, step: Step | None, bars: Bools
) -> tuple[_States, _States]:
    """Where the pairs come to with the item out and in; to (0, 0) where barred."""
    found = []
    for choice, able in ((0, 1), (1, ~bars)):
        left = automaton.following[choice][i][states.left]
        right = states.right if step is None else step.following[choice][states.right]
        found.append(_States(left=left * able, right=right * able))
    return found[0], found[1]


def _numbered(
    out: _States, into: _States, *, able: Bools, size: int
) -> tuple[Ints, Ints, _States]:
    """Number the pairs that are reached."""
    codes = [pair.left * size + pair.right for pair in (out, into)]
    found, number = np.unique(
        np.concatenate([codes[0], codes[1][able]]), return_inverse=True
    )
    taken = np.zeros(len(able), dtype=np.int64)
    taken[able] = number[len(able) :]
    reached = _States(left=found // size, right=found % size)
    return number[: len(able)], taken, reached


def _blocked(automaton: Automaton, i: int, states: _States, step: Step | None) -> Bools:
    """From which of the pairs the item cannot be in."""
    bars = np.zeros(automaton.widths[i], dtype=np.bool_)
    bars[automaton.blocked[i]] = True
    bars = bars[states.left]
    if step is not None and step.blocked is not None:
        bars = bars | step.blocked[states.right]
    return bars


def _counted(
    automaton: Automaton, i: int, states: _States, step: Step | None, cut: int | None
) -> tuple[tuple[int, Ints, Ints], ...]:
    """What each cut counts in the product's states."""
    found = []
    for number, some, gains in automaton.counted[i]:
        dense = np.zeros(automaton.widths[i], dtype=np.int64)
        dense[some] = gains
        found.append((number, dense[states.left]))
    if cut is not None and step is not None and step.gains is not None:
        found.append((cut, step.gains[states.right]))
    return tuple(
        (number, np.flatnonzero(gains), gains[gains > 0])
        for number, gains in found
        if gains.any()
    )
