"""A cycle too long for some devices pays for transfers among more of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lpsched.analysis.certified import Bound, ceil_div, certified
from lpsched.analysis.cycles import delay_free_order, max_cycle_ratio
from lpsched.analysis.dataflow import Arc, Flow
from lpsched.analysis.sites import Sites
from lpsched.core.graph import OpId

__all__ = ["transfer_bound"]

#: Arcs that the search may look at; beyond it does without some thresholds.
_MAX_STEPS = 2_000_000


def transfer_bound(sites: Sites, flow: Flow, *, least: int) -> Bound | None:
    r"""Bound the period by the transfers that cycles cannot do without.

    Take a closed walk of weight W and delay D through distinct ops v. If they run on
    m devices, these share their work; and if m >= 2, the walk enters each of them, so
    that m of its edges at least join different devices. With x₁ <= x₂ <= ... the least
    that each edge of it costs more when it does,

    .. math:: T \ge \min_m \max \Bigl( \Bigl\lceil \frac{1}{m} \sum_v t_v \Bigr\rceil,\;
       \Bigl\lceil \frac{W + x_1 + \dots + x_m}{D} \Bigr\rceil \Bigr)

    where for m = 1 all runs on the device best for it, without transfers. For every
    threshold θ, walks are sought among the edges that cost θ or more: the heaviest
    through each node for each delay, by dynamic programming. What is found holds; a
    stronger walk may exist. About θ is gained over the greatest cycle ratio: thresholds
    that cannot reach beyond `least` so are passed over.

    Parameters
    ----------
    sites, flow
        Of one graph in which no loop lacks delay.
    least : int
        A period known to bound, in ticks; only greater ones are sought.
    """
    search = _Search(sites, flow)
    best: tuple[int, ...] = ()
    for arcs in search.selections(least):
        for walk in search.walks(arcs, least):
            value = search.value(walk)
            if value > least:
                least, best = value, walk
    if not best:
        return None
    ops, edges = flow.names(best)
    certificate = {"ops": list(ops), "edges": list(edges), "transfers": True}
    return certified("period", "cycle", least, certificate)


class _Search:
    """Closed walks through ops that occupy devices, as numbers of the flow's arcs.

    Attributes
    ----------
    extra : mapping of int to int or None
        What each arc costs more between two devices; None if it joins no two.
    most_delay : int
        Greatest delay of the walks sought.
    """

    def __init__(self, sites: Sites, flow: Flow) -> None:
        self.sites = sites
        self.flow = flow
        self.ops: tuple[OpId, ...] = tuple(op.id for op in sites.graph.ops)
        graph = sites.graph
        bounded = [e for e in graph.edges if graph.delay_range(e.delay)[1] is not None]
        self.extra: dict[int, int | None] = {}
        for i, edge in enumerate(bounded):
            if (None,) not in (sites.allowed[edge.src], sites.allowed[edge.dst]):
                self.extra[i] = sites.crossing_cost(edge)
        self.most_delay = 2 * max((flow.arcs[i].delay for i in self.extra), default=1)

    def selections(self, least: int) -> Iterator[list[int]]:
        """Arcs that cost θ or more, for thresholds θ that may raise the bound."""
        thresholds = sorted({x for x in self.extra.values() if x}, reverse=True)
        sources = {a.dst for i in self.extra if (a := self.flow.arcs[i]).delay}
        steps = max(1, len(sources) * len(self.extra) * (self.most_delay + 1))
        every = max(1, ceil_div(len(thresholds) * steps, _MAX_STEPS))
        for theta in thresholds[::every] if steps <= _MAX_STEPS else ():
            chosen = [i for i, x in self.extra.items() if x is None or x >= theta]
            arcs = [self.flow.arcs[i] for i in chosen]
            ratio = max_cycle_ratio(len(self.flow.nodes), arcs).value
            if ratio is not None and ratio + theta > least:
                yield chosen

    def walks(self, chosen: Sequence[int], least: int) -> Iterator[tuple[int, ...]]:
        """Heaviest closed walks along `chosen` arcs, by source and delay."""
        arcs = [self.flow.arcs[i] for i in chosen]
        most = max((x for x in self.extra.values() if x), default=0)
        rank = [0] * len(self.flow.nodes)
        for position, node in enumerate(delay_free_order(len(rank), arcs)):
            rank[node] = position
        order = sorted(
            range(len(arcs)), key=lambda j: (arcs[j].delay, rank[arcs[j].src])
        )
        for source in sorted({arc.dst for arc in arcs if arc.delay}):
            table = _Table(arcs, order, source, len(rank), self.most_delay)
            for delay in range(2, self.most_delay + 1):
                if table.weight[delay][source] > (least - most) * delay:
                    yield tuple(chosen[j] for j in table.walk(source, delay))

    def value(self, walk: Sequence[int]) -> int:
        """Bound that a closed walk gives."""
        arcs = [self.flow.arcs[i] for i in walk]
        extras = sorted(x for i in walk if (x := self.extra[i]) is not None)
        weight, delay = sum(a.weight for a in arcs), sum(a.delay for a in arcs)
        ops = {self.ops[arc.src] for arc in arcs}
        graph = self.sites.graph
        loads = [
            sum(graph.duration(op, d) for op in ops) for d in self.sites.common(ops)
        ]
        cases = [min(loads)] if loads else []
        work = sum(self.sites.least_duration(op) for op in ops)
        for m in range(2, min(len(graph.devices), len(ops), len(extras)) + 1):
            crossed = ceil_div(weight + sum(extras[:m]), delay)
            cases.append(max(ceil_div(work, m), crossed))
        return min(cases, default=0)


class _Table:
    """``weight[D][v]``: the heaviest walk of delay D from the source to node v."""

    def __init__(
        self,
        arcs: Sequence[Arc],
        order: Sequence[int],
        source: int,
        num_nodes: int,
        most_delay: int,
    ) -> None:
        self.arcs = arcs
        self.weight = [[-1] * num_nodes for _ in range(most_delay + 1)]
        self.via = [[-1] * num_nodes for _ in range(most_delay + 1)]
        self.weight[0][source] = 0
        for delay, row in enumerate(self.weight):
            for j in order:
                src, dst, weight, more, _ = arcs[j]
                if row[src] < 0 or delay + more > most_delay:
                    continue
                reached = row[src] + weight
                if reached > self.weight[delay + more][dst]:
                    self.weight[delay + more][dst] = reached
                    self.via[delay + more][dst] = j

    def walk(self, node: int, delay: int) -> list[int]:
        """Arcs of the heaviest walk, in order of travel."""
        found: list[int] = []
        while (j := self.via[delay][node]) >= 0:
            found.append(j)
            node, delay = self.arcs[j].src, delay - self.arcs[j].delay
        return found[::-1]
