"""Are two graphs the same up to a retiming? The retiming between them, or none."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable

from lpsched.analysis.dataflow import (
    AnyGraph,
    Flow,
    Node,
    flow_of,
    require_fixed_delays,
)
from lpsched.analysis.retiming import apply_retiming
from lpsched.core.graph import Graph
from lpsched.errors import InstanceError

__all__ = ["retiming_between"]


def retiming_between(before: AnyGraph, after: AnyGraph) -> dict[Node, int] | None:
    r"""Find the retiming that turns one graph into another.

    It must satisfy :math:`r(v) - r(u) = k_{after}(u \to v) - k_{before}(u \to v)` on
    every edge, which leaves one choice for each part that hangs together: from any
    node of it along its edges, in either direction. Applied to `before` it has to give
    `after` in every detail but the graph's name.

    Parameters
    ----------
    before, after : Graph or networkx.MultiDiGraph
        Two graphs of one type, with fixed delays.

    Returns
    -------
    dict or None
        The retiming, its least lap 0 in each part; None if `after` is no retiming of
        `before`: another op, edge, size or duration, or a loop of other delay.

    Raises
    ------
    InstanceError
        If a graph has named delays, or attributes that are no integers.

    Notes
    -----
    Source: the laps are the node potentials of Leiserson and Saxe, *Retiming
    synchronous circuitry* (1991), lemma 1: a retiming changes no loop's delay, and
    graphs whose loops all agree are retimings of each other.
    """
    require_fixed_delays(before)
    require_fixed_delays(after)
    old, new = flow_of(before), flow_of(after)
    if old.nodes != new.nodes or [a.key for a in old.arcs] != [a.key for a in new.arcs]:
        return None
    retiming = {old.nodes[i]: lap for i, lap in _laps(old, new).items()}
    try:
        retimed = apply_retiming(before, retiming)
    except InstanceError:
        return None
    return retiming if _same(retimed, after) else None


def _laps(old: Flow, new: Flow) -> dict[int, int]:
    """Laps along a spanning tree of each part, the least of each part 0."""
    steps: list[list[tuple[int, int]]] = [[] for _ in old.nodes]
    for a, b in zip(old.arcs, new.arcs, strict=True):
        steps[a.src].append((a.dst, b.delay - a.delay))
        steps[a.dst].append((a.src, a.delay - b.delay))
    laps: dict[int, int] = {}
    for start in range(len(old.nodes)):
        if start not in laps:
            part = _reach(start, steps)
            least = min(part.values())
            laps |= {node: lap - least for node, lap in part.items()}
    return laps


def _reach(start: int, steps: list[list[tuple[int, int]]]) -> dict[int, int]:
    laps = {start: 0}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for other, more in steps[node]:
            if other not in laps:
                laps[other] = laps[node] + more
                queue.append(other)
    return laps


def _same(one: AnyGraph, other: AnyGraph) -> bool:
    if isinstance(one, Graph) or isinstance(other, Graph):
        return (
            isinstance(one, Graph)
            and isinstance(other, Graph)
            and one.replace(name=other.name) == other
        )
    return _items(one.nodes(data=True)) == _items(other.nodes(data=True)) and _items(
        ((u, v, key), data) for u, v, key, data in one.edges(keys=True, data=True)
    ) == _items(
        ((u, v, key), data) for u, v, key, data in other.edges(keys=True, data=True)
    )


def _items(
    pairs: Iterable[tuple[Hashable, dict[str, object]]],
) -> dict[Hashable, dict[str, object]]:
    return dict(pairs)
