"""The delays that loops need at a given period: a bound of the staleness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lpsched.analysis.certified import Bound, ceil_div, certified
from lpsched.analysis.cycles import max_cycle_ratio, relax, sweep_order
from lpsched.analysis.dataflow import Arc
from lpsched.analysis.sites import Sites
from lpsched.core.graph import DelayName, Graph
from lpsched.core.over import Over, never
from lpsched.errors import OutOfTimeError

__all__ = ["DelayNeed", "least_delays", "staleness_bound"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayNeed:
    """The least value of a named delay that some loop permits.

    Attributes
    ----------
    value : int
        In iterations.
    edges : tuple of int
        The loop, as indices into ``graph.edges``; empty if `value` is the delay's
        own minimum.
    """

    value: int
    edges: tuple[int, ...] = ()


def least_delays(
    graph: Graph, period: int, *, over: Over = never
) -> dict[DelayName, DelayNeed] | None:
    r"""Bound each named delay from below at a period, whatever the placement.

    A loop with a uses of delay j, weight W and delay D on its other edges (each at its
    maximum; without a maximum the loop says nothing) needs

    .. math:: d_j \ge \Bigl\lceil \frac{W + x_1 + \dots + x_m - D\,T}{a\,T} \Bigr\rceil

    where :math:`m = \lceil \sum_v t_v / T \rceil` devices at least run the loop's ops v
    that occupy one; if m >= 2, m of its edges join different devices, at the least
    extra costs x. The loop is the one of greatest ratio before transfers, by
    `max_cycle_ratio`.

    Parameters
    ----------
    period : int
        T, in ticks; the bounds hold for shorter periods too.

    Returns
    -------
    dict or None
        By delay; None if some loop does not fit with every delay at its maximum.

    Raises
    ------
    OutOfTimeError
        `over` says so before every delay has been looked at.
    """
    loops = _Loops(Sites.of(graph), period)
    if not loops.fit():
        return None
    needs = {}
    for name in graph.delays:
        if over():
            raise OutOfTimeError("not every delay has been looked at")
        needs[name] = loops.need(name)
    return needs


def staleness_bound(
    graph: Graph, *, period: int | None, over: Over = never
) -> Bound | None:
    """Bound the sum over named delays of (value - 1), at periods up to `period`.

    Without a period it is the delays' own minima that count. None if some loop cannot
    be met at this period at all.
    """
    if period is None:
        needs = {name: DelayNeed(value=d.min) for name, d in graph.delays.items()}
    else:
        found = least_delays(graph, period, over=over)
        if found is None:
            return None
        needs = found
    value = sum(need.value - 1 for need in needs.values())
    loops = {name: list(need.edges) for name, need in needs.items() if need.edges}
    return certified("staleness", "loops", value, {"period": period, "loops": loops})


class _Loops:
    """The arcs that loops through a named delay are made of, at a period."""

    def __init__(self, sites: Sites, period: int) -> None:
        graph = sites.graph
        number = {op.id: i for i, op in enumerate(graph.ops)}
        self._sites = sites
        self._period = period
        #: Arcs of limited delay, which shortens them; by its name, those of each delay.
        self._limited: list[Arc] = []
        self._uses: defaultdict[DelayName, list[Arc]] = defaultdict(list)
        for index, edge in enumerate(graph.edges):
            u, v, weight = number[edge.src], number[edge.dst], sites.edge_weight(edge)
            _, delay = graph.delay_range(edge.delay)
            if delay is not None:
                self._limited.append(Arc(u, v, weight - delay * period, 0, index))
            if isinstance(edge.delay, str):
                self._uses[edge.delay].append(Arc(u, v, weight, 1, index))
        self._after: list[list[int]] = [[] for _ in number]
        self._before: list[list[int]] = [[] for _ in number]
        for arc in self._limited:
            self._after[arc.src].append(arc.dst)
            self._before[arc.dst].append(arc.src)

    def fit(self) -> bool:
        """Tell whether no loop takes longer than the greatest delays allow."""
        lengths = [arc.weight for arc in self._limited]
        order = sweep_order(len(self._after), self._limited)
        return not relax(self._limited, lengths, [0] * len(self._after), order)

    def need(self, name: DelayName) -> DelayNeed:
        """Bound one delay."""
        least = self._sites.graph.delays[name].min
        num_nodes, arcs = self._through(name)
        floor = Fraction(self._period * (least - 1))
        ratio = max_cycle_ratio(num_nodes, arcs, floor=floor)
        loop = [arcs[i].key for i in ratio.cycle]
        value = _loop_need(self._sites, loop, name, self._period)
        if value <= least:
            return DelayNeed(value=least)
        return DelayNeed(value=value, edges=tuple(loop))

    def _through(self, name: DelayName) -> tuple[int, list[Arc]]:
        """Nodes, numbered anew, and arcs of the loops that use a delay."""
        uses, edges = self._uses[name], self._sites.graph.edges
        ahead = _reached((arc.dst for arc in uses), self._after)
        behind = _reached((arc.src for arc in uses), self._before)
        number = {node: i for i, node in enumerate(sorted(ahead & behind))}
        others = (arc for arc in self._limited if edges[arc.key].delay != name)
        arcs = [
            arc._replace(src=number[arc.src], dst=number[arc.dst])
            for arc in (*others, *uses)
            if arc.src in number and arc.dst in number
        ]
        return len(number), sorted(arcs, key=lambda arc: arc.key)


def _reached(first: Iterable[int], following: Sequence[Sequence[int]]) -> set[int]:
    """The nodes that some can be followed to, themselves among them."""
    reached = set(first)
    waiting = list(reached)
    while waiting:
        for node in following[waiting.pop()]:
            if node not in reached:
                reached.add(node)
                waiting.append(node)
    return reached


def _loop_need(sites: Sites, loop: Sequence[int], name: DelayName, period: int) -> int:
    """Least value of the delay by the formula of `least_delays`; 0 for no loop."""
    edges = [sites.graph.edges[i] for i in loop]
    ops = {edge.src for edge in edges if sites.graph.occupies_device(edge.src)}
    num_devices = ceil_div(sum(map(sites.least_duration, ops)), period)
    extras = sorted(x for e in edges if (x := sites.crossing_cost(e)) is not None)
    weight = sum(map(sites.edge_weight, edges))
    if num_devices >= 2:
        weight += sum(extras[:num_devices])
    uses = sum(edge.delay == name for edge in edges)
    others = (edge.delay for edge in edges if edge.delay != name)
    weight -= period * sum(sites.graph.delay_range(delay)[1] or 0 for delay in others)
    return ceil_div(weight, uses * period) if uses else 0
