"""A period beyond which no longer period can help."""

from __future__ import annotations

from lpsched.core.graph import Edge, Graph

__all__ = ["period_horizon"]


def period_horizon(graph: Graph) -> int:
    r"""Period T_h such that a graph with a schedule has one of period T_h.

    .. math:: T_h = 1 + \sum_v \max_p t_v(p) + \sum_{(u,v)} (\max_{pq} c_{pq} + lag)

    A schedule of period T gives one of T + 1 (keep each op's lap and phase at its
    end), so only shrinking needs a proof. At T > T_h - 1 the ops, transfers and lags
    of one iteration cover at most T_h - 1 of the T phases, hence some phase φ lies in
    none of them. Remove one tick at φ in every period: each event x moves to
    x - ⌊(x - φ - 1)/T⌋. No op, transfer or lag contains φ, so all keep their length;
    the order of all events stays, and with it precedence, exclusivity and, at every
    phase, the set of copies alive. With flush, one iteration spans at most T phases:
    either φ is inside its span, which shrinks by one, or the span was below T.
    Times in ticks.
    """
    work = sum(
        max(graph.duration(op.id, p) for p in graph.allowed(op.id) or (None,))
        for op in graph.ops
    )
    return 1 + work + sum(_longest_wait(graph, edge) for edge in graph.edges)


def _longest_wait(graph: Graph, edge: Edge) -> int:
    transfers = (
        graph.transfer_ticks(edge.tensor, p, q)
        for p in graph.allowed(edge.src)
        for q in graph.allowed(edge.dst)
    )
    return edge.lag + max(transfers, default=0)
