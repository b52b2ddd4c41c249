"""Small machines that keep track of one message, one class of items, or one cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpsched.formulations.partition.problem import Message
from lpsched.formulations.partition.subset_rows import Counter, Cut

__all__ = [
    "Bools",
    "Ints",
    "Machine",
    "Step",
    "class_machine",
    "cut_machine",
    "message_machine",
]

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """What a machine does when it reads an item that is out (0) or in (1).

    Attributes
    ----------
    following, charges : array (2, states)
        Per choice and state: the next state, and the cost that falls due.
    gains : array (states,) or None
        By how much the coefficient of a cut rises with the item in.
    blocked : array (states,) of bool or None
        From where the item cannot be in.
    """

    following: Ints
    charges: Ints | None = None
    gains: Ints | None = None
    blocked: Bools | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Machine:
    """States 0 to `size` - 1; after its last step it is in state 0.

    Attributes
    ----------
    steps : mapping of int to Step
        By position, ascending; elsewhere nothing changes.
    """

    size: int
    start: int
    steps: Mapping[int, Step]


def message_machine(
    message: Message, place: Sequence[int], *, inside: int = 1
) -> Machine:
    """Charge a message at the first target that is known to lack it.

    Before the source is read, state 1 says that a target asks for the message; after
    it, that the message is missing: the source is out, and nothing has been charged.

    Parameters
    ----------
    place : sequence of int
        Position of each item.
    inside : int
        The choice for an item with which it is in the set that the message is for.
    """
    targets = sorted(place[item] for item in message.targets)
    source = None if message.source is None else place[message.source]
    last = max(targets) if source is None else max(*targets, source)
    steps: dict[int, Step] = {}
    for position in sorted({*targets, *([] if source is None else [source])}):
        following = np.zeros((2, 2), dtype=np.int64)
        charges = np.zeros((2, 2), dtype=np.int64)
        for choice in (0, 1):
            is_in = choice == inside
            for state in (0, 1):
                if position == source:
                    # In: nothing is missing. Out: due if asked for, missing if not.
                    charges[choice, state] = 0 if is_in else state * message.size
                    following[choice, state] = 0 if is_in else 1 - state
                elif source is not None and position < source:
                    following[choice, state] = 1 if is_in else state
                else:
                    charges[choice, state] = state * message.size if is_in else 0
                    following[choice, state] = 0 if is_in else state
        if position == last:
            following[:] = 0
        steps[position] = Step(following=following, charges=charges)
    return Machine(size=2, start=int(source is None), steps=steps)


def class_machine(members: Sequence[int], place: Sequence[int]) -> Machine:
    """Let an item of a class be in only if those before it are: they are all alike."""
    positions = [place[item] for item in members]
    steps = {}
    for position in positions:
        is_last = position == positions[-1]
        following = np.array([[1, 1], [0, 0]], dtype=np.int64) * (not is_last)
        blocked = np.array([False, True])
        steps[position] = Step(following=following, blocked=blocked)
    return Machine(size=2, start=0, steps=steps)


def cut_machine(cut: Cut, place: Sequence[int]) -> Machine:
    """Count up the coefficient of a cut."""
    read = sorted(cut.items, key=lambda item: place[item])
    counter = Counter(cut, read)
    steps = {}
    for nth, item in enumerate(read):
        out, gains, into = np.array(counter.moves[nth], dtype=np.int64).T
        steps[place[item]] = Step(following=np.array([out, into]), gains=gains)
    size = max(map(len, counter.moves))
    return Machine(size=size, start=counter.start, steps=steps)
