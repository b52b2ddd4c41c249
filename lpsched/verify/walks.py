"""Certificates that follow edges: `cycle` and `path`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lpsched.core.graph import DeviceId, Edge, Graph, OpId
from lpsched.verify.evidence import (
    Certificate,
    Hosts,
    RefusedError,
    ceil_div,
    hosts,
    is_whole,
    least_work,
    run_ticks,
    sequence,
)
from lpsched.verify.runs import transfer_ticks

__all__ = ["cycle_bound", "path_bound"]


@dataclass(frozen=True, slots=True)
class _Walk:
    """What consecutive edges cost.

    Attributes
    ----------
    work : int
        Sum over the edges of the least ``t_u + c + lag``, in ticks.
    delay : int
        Sum of the delays, each at its maximum.
    extra : tuple of int
        For each edge whose ops can sit on two devices, how much more than its least
        it costs then; ascending.
    """

    work: int
    delay: int
    extra: tuple[int, ...]


def cycle_bound(graph: Graph, certificate: Certificate) -> int | None:
    r"""Value of a ``cycle`` certificate; None: no period at all is possible.

    Summing the precedences around a closed walk, starts cancel:

    .. math:: D\,T \ge W, \quad
        W = \sum_e \min_{p,q} (t_u(p) + c_{pq} + \mathrm{lag}_e), \quad
        D = \sum_e k_e^{\max}

    With ``"transfers": true``, if all ops occupy devices: either all sit on one
    device d, then :math:`T \ge \sum_v t_v(d)` over the distinct ops; or on m >= 2
    devices, then :math:`m\,T \ge \sum_v \min_d t_v(d)`, and the walk enters each of
    them, so that at least m of its edges cross and :math:`D\,T \ge W + x_1 + \dots +
    x_m` with the m least extras. The least over all m holds in any case.

    Fields: ``edges`` (indices into `Graph.edges`, consecutive, closed), ``ops`` (the
    source of each edge), ``transfers`` (default false).
    """
    edges = _edges(graph, certificate)
    ops = [edge.src for edge in edges]
    if not edges or edges[-1].dst != ops[0]:
        raise RefusedError("the edges do not close")
    _expect_ops(certificate, ops)
    host = hosts(graph)
    walk = _walk(graph, host, edges)
    if walk.delay == 0 and walk.work > 0:
        return None
    plain = ceil_div(walk.work, walk.delay) if walk.delay else 0
    if certificate.get("transfers", False) is not True:
        return plain
    distinct = list(dict.fromkeys(ops))
    cases = [_together(graph, host, distinct)]
    least = least_work(graph, host, distinct, dict.fromkeys(graph.device_ids, 1))
    for m in range(2, min(len(graph.devices), len(distinct), len(walk.extra)) + 1):
        apart = walk.work + sum(walk.extra[:m])
        if walk.delay:
            cases.append(max(ceil_div(least, m), ceil_div(apart, walk.delay)))
        elif apart == 0:
            cases.append(ceil_div(least, m))
    possible = [value for value in cases if value is not None]
    return max(plain, min(possible)) if possible else None


def _together(graph: Graph, host: Hosts, ops: Sequence[OpId]) -> int | None:
    """Least load of one device that runs all the ops; None: none may."""
    common: tuple[DeviceId, ...] = host.occupied_by(ops[0])
    for op in ops[1:]:
        common = tuple(d for d in common if d in host.occupied_by(op))
    return min(
        (sum(run_ticks(graph, op, d) for op in ops) for d in common), default=None
    )


def path_bound(graph: Graph, certificate: Certificate, *, closed: bool) -> int:
    r"""Value of a ``path`` certificate: an iteration cannot be shorter.

    Along consecutive edges without delay, ``last end - first start`` is at least
    the sum of their :math:`\min (t_u + c + \mathrm{lag})` plus the last op's least
    duration. It bounds the makespan and, with flush (`closed`), the period.

    Fields: ``edges`` (indices into `Graph.edges`, maybe none), ``ops`` (one more
    than the edges).
    """
    if closed and not graph.flush:
        raise RefusedError("a path bounds the period only with flush")
    edges = _edges(graph, certificate)
    if edges:
        ops = [edges[0].src, *(edge.dst for edge in edges)]
    else:
        ops = [OpId(str(op)) for op in sequence(certificate, "ops")[:1]]
    if not ops or ops[0] not in graph.op_by_id:
        raise RefusedError("expected a path of at least one op of the graph")
    _expect_ops(certificate, ops)
    host = hosts(graph)
    walk = _walk(graph, host, edges)
    if walk.delay:
        raise RefusedError(f"the path carries delay: {walk.delay}")
    last = ops[-1]
    return walk.work + min(
        run_ticks(graph, last, d) for d in host.allowed[last] or (None,)
    )


def _expect_ops(certificate: Certificate, ops: Sequence[OpId]) -> None:
    if list(sequence(certificate, "ops")) != list(ops):
        raise RefusedError("the ops are not those of the edges, in their order")


def _edges(graph: Graph, certificate: Certificate) -> list[Edge]:
    """Return the edges that the indices name, each beginning where the last ended."""
    found: list[Edge] = []
    for index in sequence(certificate, "edges"):
        if not is_whole(index) or index >= len(graph.edges):
            raise RefusedError("the graph has no edge of some index")
        edge = graph.edges[index]
        if found and found[-1].dst != edge.src:
            raise RefusedError(
                f"the edge to {found[-1].dst!r} is followed by one from {edge.src!r}"
            )
        found.append(edge)
    return found


def _walk(graph: Graph, host: Hosts, edges: Sequence[Edge]) -> _Walk:
    work, delay, extra = 0, 0, []
    for edge in edges:
        _, most = graph.delay_range(edge.delay)
        if most is None:
            raise RefusedError(f"delay {edge.delay!r} on the walk has no maximum")
        pairs = _pairs(graph, host, edge)
        least = min(ticks for ticks, _ in pairs)
        work += least + edge.lag
        delay += most
        extra += sorted(ticks - least for ticks, apart in pairs if apart)[:1]
    return _Walk(work, delay, tuple(sorted(extra)))


def _pairs(graph: Graph, host: Hosts, edge: Edge) -> list[tuple[int, bool]]:
    """Ticks ``t_u + c`` for every legal pair of devices, and whether they differ."""
    size = None if edge.tensor is None else edge.tensor.size
    together = host.group[edge.src] == host.group[edge.dst]
    found = []
    for p in host.allowed[edge.src] or (None,):
        t = run_ticks(graph, edge.src, p)
        for q in (p,) if together else host.allowed[edge.dst] or (None,):
            c = 0 if size is None else transfer_ticks(graph, size, p, q)
            found.append((t + c, p is not None and q is not None and p != q))
    return found
