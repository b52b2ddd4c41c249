"""Names ordered after their predecessors, or the cycle that forbids it."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

__all__ = ["topological_order"]


def topological_order(
    predecessors: Mapping[str, Sequence[str]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Order names so that each follows its predecessors.

    Of the names that may come next, the one declared first does, so an order that
    is valid as declared is kept.

    Parameters
    ----------
    predecessors : mapping of str to sequence of str
        The predecessors of every name, all of them keys.

    Returns
    -------
    order : tuple of str
        Every name if there is no cycle, else those that no cycle precedes.
    cycle : tuple of str
        Names of one cycle in the direction of the flow, its first not repeated;
        empty if there is none.
    """
    names = list(predecessors)
    position = {name: i for i, name in enumerate(names)}
    waiting = {name: len(set(before)) for name, before in predecessors.items()}
    followers: dict[str, list[str]] = {name: [] for name in names}
    for name, before in predecessors.items():
        for other in dict.fromkeys(before):
            followers[other].append(name)
    ready = [position[name] for name in names if not waiting[name]]
    order: list[str] = []
    while ready:
        name = names[heapq.heappop(ready)]
        order.append(name)
        for follower in followers[name]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, position[follower])
    stuck = [name for name in names if waiting[name]]
    return tuple(order), _cycle(predecessors, stuck)


def _cycle(
    predecessors: Mapping[str, Sequence[str]], stuck: Sequence[str]
) -> tuple[str, ...]:
    """Walk back from a stuck name, always to a stuck one, until a name returns."""
    if not stuck:
        return ()
    left = set(stuck)
    walk: dict[str, None] = {}
    name = stuck[0]
    while name not in walk:
        walk[name] = None
        name = next(other for other in predecessors[name] if other in left)
    names = list(walk)
    return tuple(reversed(names[names.index(name) :]))
