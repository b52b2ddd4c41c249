"""The delays that loops need at a given period: a bound of the staleness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lpsched.analysis.certified import Bound, ceil_div, certified
from lpsched.analysis.cycles import max_cycle_ratio
from lpsched.analysis.dataflow import Arc
from lpsched.analysis.sites import Sites
from lpsched.core.graph import DelayName, Edge, Graph

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


def least_delays(graph: Graph, period: int) -> dict[DelayName, DelayNeed] | None:
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
        By delay; None if some loop that no named delay can help does not fit.
    """
    sites = Sites.of(graph)
    weights = [sites.edge_weight(edge) for edge in graph.edges]
    needs = {}
    for name in graph.delays:
        need = _need(sites, weights, name, period)
        if need is None:
            return None
        needs[name] = need
    return needs


def staleness_bound(graph: Graph, *, period: int | None) -> Bound | None:
    """Bound the sum over named delays of (value - 1), at periods up to `period`.

    Without a period it is the delays' own minima that count. None if some loop cannot
    be met at this period at all.
    """
    if period is None:
        needs = {name: DelayNeed(value=d.min) for name, d in graph.delays.items()}
    else:
        found = least_delays(graph, period)
        if found is None:
            return None
        needs = found
    value = sum(need.value - 1 for need in needs.values())
    loops = {name: list(need.edges) for name, need in needs.items() if need.edges}
    return certified("staleness", "loops", value, {"period": period, "loops": loops})


def _need(
    sites: Sites, weights: Sequence[int], name: DelayName, period: int
) -> DelayNeed | None:
    graph = sites.graph
    number = {op.id: i for i, op in enumerate(graph.ops)}
    arcs, indices = [], []
    for index, edge in enumerate(graph.edges):
        uses, delay = _split(graph, edge, name)
        if delay is not None:
            weight = weights[index] - delay * period
            arcs.append(Arc(number[edge.src], number[edge.dst], weight, uses, index))
            indices.append(index)
    least = graph.delays[name].min
    ratio = max_cycle_ratio(len(number), arcs, floor=Fraction(period * (least - 1)))
    if ratio.value is None:
        return None
    loop = [indices[i] for i in ratio.cycle]
    value = _loop_need(sites, loop, name, period)
    if value <= least:
        return DelayNeed(value=least)
    return DelayNeed(value=value, edges=tuple(loop))


def _split(graph: Graph, edge: Edge, name: DelayName) -> tuple[int, int | None]:
    """Uses of the delay `name`, and the greatest delay beside it."""
    return (1, 0) if edge.delay == name else (0, graph.delay_range(edge.delay)[1])


def _loop_need(sites: Sites, loop: Sequence[int], name: DelayName, period: int) -> int:
    """Least value of the delay by the formula of `least_delays`; 0 for no loop."""
    edges = [sites.graph.edges[i] for i in loop]
    ops = {edge.src for edge in edges if sites.graph.occupies_device(edge.src)}
    num_devices = ceil_div(sum(map(sites.least_duration, ops)), period)
    extras = sorted(x for e in edges if (x := sites.crossing_cost(e)) is not None)
    weight = sum(map(sites.edge_weight, edges))
    if num_devices >= 2:
        weight += sum(extras[:num_devices])
    uses = 0
    for edge in edges:
        more, delay = _split(sites.graph, edge, name)
        uses += more
        weight -= period * (delay or 0)
    return ceil_div(weight, uses * period) if uses else 0
