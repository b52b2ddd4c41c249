"""An order of the items in which few messages are in play at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from lpsched.formulations.deadline import UNLIMITED, Deadline
from lpsched.formulations.partition.automaton import Automaton, build_automaton
from lpsched.formulations.partition.problem import Message, Problem

__all__ = ["narrow_automaton"]


def narrow_automaton(
    problem: Problem,
    order: Sequence[int] | None = None,
    *,
    most_states: int,
    with_rest: bool = False,
    is_urgent: bool = False,
    deadline: Deadline = UNLIMITED,
) -> Automaton:
    """Build the automaton of fewest states among those of some orders.

    One is the order of the graph, which is by layers where it was built from layers,
    each class at its first item; the others keep the number of open messages and
    classes low, from several items. Those come first that promise few states.

    Parameters
    ----------
    order : sequence of int, optional
        The only order to look at.
    is_urgent : bool
        The first order will do in which no messages have to be merged.

    Raises
    ------
    OutOfTimeError
        It is not built in time.
    """
    best: Automaton | None = None
    orders = list(_orders(problem, deadline)) if order is None else [order]
    for some in sorted(orders, key=lambda some: _openness(problem, some)):
        most_in_all = None
        if best is not None and not best.is_relaxed:
            if is_urgent:
                break
            most_in_all = sum(best.widths)
        found = build_automaton(
            problem,
            some,
            with_rest=with_rest,
            most_states=most_states,
            most_in_all=most_in_all,
            deadline=deadline,
        )
        if found is not None and (best is None or _size(found) < _size(best)):
            best = found
    if best is None:
        raise ValueError("an automaton without cuts always fits")
    return best


def _size(automaton: Automaton) -> tuple[bool, int]:
    return automaton.is_relaxed, sum(automaton.widths)


def _orders(problem: Problem, deadline: Deadline) -> Iterator[Sequence[int]]:
    items = range(problem.num_items)
    yield [item for members in problem.classes for item in members]
    degree = [0] * problem.num_items
    for m in problem.messages:
        for item in _ends(m):
            degree[item] += 1
    starts = sorted(items, key=lambda item: (degree[item], item))
    for start in dict.fromkeys([0, *starts[:3]]) if problem.num_items else ():
        yield _greedy(problem, start, deadline)


def _openness(problem: Problem, order: Sequence[int]) -> int:
    r"""Sum over positions of :math:`2^k`, with k things open that begin and end there.

    Each message, and each class of several items, has two states as long as it is open.
    """
    place = {item: i for i, item in enumerate(order)}
    change = [0] * (len(order) + 1)
    for items in _together(problem):
        change[min(place[item] for item in items)] += 1
        change[max(place[item] for item in items)] -= 1
    return sum(1 << k for k in accumulate(change))


def _together(problem: Problem) -> list[frozenset[int]]:
    """Items that each message or class has to do with."""
    ends = [_ends(m) for m in problem.messages]
    return ends + [frozenset(some) for some in problem.classes if len(some) > 1]


def _ends(message: Message) -> frozenset[int]:
    source = message.source
    return message.targets if source is None else message.targets | {source}


def _greedy(problem: Problem, start: int, deadline: Deadline) -> list[int]:
    """Take next the item that leaves the fewest messages open; ties in order."""
    ends = _together(problem)
    touching: list[list[int]] = [[] for _ in range(problem.num_items)]
    for k, items in enumerate(ends):
        for item in items:
            touching[item].append(k)
    left = [len(items) for items in ends]
    opened: set[int] = set()
    order: list[int] = []
    waiting = dict.fromkeys(range(problem.num_items))
    item = start
    while waiting:
        deadline.check()
        order.append(item)
        del waiting[item]
        for k in touching[item]:
            left[k] -= 1
            opened.add(k)
        opened -= {k for k in touching[item] if not left[k]}
        if waiting:
            item = min(waiting, key=lambda v: _growth(touching[v], opened, left))
    return order


def _growth(messages: Sequence[int], opened: set[int], left: Sequence[int]) -> int:
    """How many more messages are open once an item has been read."""
    return sum((k not in opened) - (left[k] == 1) for k in messages)
