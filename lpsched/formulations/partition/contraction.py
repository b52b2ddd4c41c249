"""Items that take no time join a neighbour where that never costs anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lpsched.formulations.partition.problem import (
    DeviceGroup,
    ItemSet,
    Message,
    Placed,
    Problem,
    merged_messages,
)

__all__ = ["Contraction", "contract"]


@dataclass(frozen=True, kw_only=True)
class Contraction:
    """A smaller problem of the same optimum, and the items each item stands for.

    Attributes
    ----------
    leaders : tuple of int
        Of each item's members the one that the others join.
    """

    problem: Problem
    members: tuple[ItemSet, ...]
    leaders: tuple[int, ...]

    def expand(self, items: ItemSet) -> ItemSet:
        """Return the items of the original problem."""
        return frozenset().union(*(self.members[item] for item in items))

    def shrink(self, placed: Placed) -> Placed:
        """Return a partition of the smaller problem, no dearer than one of the larger.

        An item is where that of its members is which takes time, if any does.
        """
        home = {item: d for d, items in enumerate(placed) for item in items}
        found: list[set[int]] = [set() for _ in placed]
        for item, leader in enumerate(self.leaders):
            found[home[leader]].add(item)
        return tuple(map(frozenset, found))


def contract(problem: Problem) -> Contraction:
    r"""Merge items that take no time as long as one gains by joining another.

    *Neighbours.* Let z take no time wherever q may run, and move z from any other
    device to q's. For certain that saves what only q sends to z or z to q,

    .. math:: \sum_{m:\; q \to \{z\}} size_m + \sum_{m:\; z \to \{q\}} size_m,

    and at the worst it costs one more copy of each other message of z that q has no
    part in. If the former is no less than the latter, some best placement has z where
    q is.

    *Items of a class*, on devices d and e, cost h(d) + h(e) by messages of their own
    and I(d, e) by those that both use, where :math:`I(d, e) \ge I(d), I(e)`. Both on
    d, or both on e, cost no more on average; so in some best placement they share a
    device.

    Where every partition matters nothing is merged, nor where devices have limits of
    their own: what takes no time may take memory, and who receives what then counts.
    """
    members = [frozenset({i}) for i in range(problem.num_items)]
    leaders = list(range(problem.num_items))
    while True:
        is_fixed = problem.is_rigid or problem.is_capped
        merged = None if is_fixed else _merged(problem)
        if merged is None:
            return Contraction(
                problem=problem, members=tuple(members), leaders=tuple(leaders)
            )
        problem, kept = merged
        members = [frozenset().union(*(members[i] for i in some)) for some in kept]
        leaders = [leaders[some[0]] for some in kept]


def _merged(problem: Problem) -> tuple[Problem, list[list[int]]] | None:
    """Merge what can be merged at once; return which became one, leaders first."""
    touching: list[list[Message]] = [[] for _ in range(problem.num_items)]
    for m in problem.messages:
        for item in _ends(m):
            touching[item].append(m)
    groups: list[list[int]] = [[item] for item in range(problem.num_items)]
    changed: set[int] = set()
    for z in range(problem.num_items):
        if z in changed or not _takes_no_time(problem, z):
            continue
        for q in _twins(problem, z) or _partners(problem, z, touching[z]):
            if q not in changed:
                groups[q] += groups[z]
                groups[z] = []
                # Their messages are no longer what they were, nor are those of others.
                changed.update(v for k in (z, q) for m in touching[k] for v in _ends(m))
                changed.update((z, q))
                break
    kept = [group for group in groups if group]
    return (_joined(problem, kept), kept) if len(kept) < problem.num_items else None


def _ends(message: Message) -> ItemSet:
    source = message.source
    return message.targets if source is None else message.targets | {source}


def _takes_no_time(problem: Problem, item: int) -> bool:
    return all(group.loads[item] in (0, None) for group in problem.groups)


def _twins(problem: Problem, z: int) -> list[int]:
    """The others of an item's class."""
    members = problem.classes[problem.class_of[z]]
    return [item for item in members if item != z]


def _partners(problem: Problem, z: int, messages: Sequence[Message]) -> list[int]:
    """Items that z may join."""
    near = {item for m in messages for item in _ends(m)} - {z}
    return [
        q
        for q in sorted(near)
        if all(g.loads[q] is None or g.loads[z] == 0 for g in problem.groups)
        and _gain(z, q, messages) >= 0
    ]


def _gain(z: int, q: int, messages: Sequence[Message]) -> int:
    """What joining q saves for certain, less what it may cost."""
    total = 0
    for m in messages:
        if _ends(m) == {z, q}:
            total += m.size
        elif q not in _ends(m):
            total -= m.size
    return total


def _joined(problem: Problem, kept: Sequence[Sequence[int]]) -> Problem:
    """Make one item of each list of items, of which one at most takes time."""
    number = {item: i for i, items in enumerate(kept) for item in items}
    groups = [
        DeviceGroup(
            count=group.count,
            loads=tuple(_load([group.loads[v] for v in items]) for items in kept),
        )
        for group in problem.groups
    ]
    messages = []
    for m in problem.messages:
        source = None if m.source is None else number[m.source]
        targets = frozenset(number[v] for v in m.targets) - {source}
        messages.append(Message(size=m.size, source=source, targets=targets))
    return replace(
        problem,
        num_items=len(kept),
        groups=tuple(groups),
        messages=merged_messages(messages),
    )


def _load(ticks: Sequence[int | None]) -> int | None:
    """Ticks of one item in place of several; None if one of them may not run."""
    known = [t for t in ticks if t is not None]
    return sum(known) if len(known) == len(ticks) else None
