"""Certificates that follow edges: `cycle`, `path` and `loops`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lpsched.core.graph import DelayName, Edge, Graph, OpId
from lpsched.verify.evidence import (
    Certificate,
    Hosts,
    RefusedError,
    ceil_div,
    hosts,
    is_whole,
    least_work,
    read_integer,
    run_ticks,
    sequence,
)
from lpsched.verify.runs import transfer_ticks

__all__ = ["cycle_bound", "edge_pairs", "loops_bound", "path_bound"]


@dataclass(frozen=True, slots=True)
class _Walk:
    """What consecutive edges cost.

    Attributes
    ----------
    work : int
        Sum over the edges of the least ``t_u + c + lag``, in ticks.
    delay : int
        Sum of the delays, each at its maximum; uses of the delay asked for apart.
    uses : int
        How many edges carry the delay asked for.
    extra : tuple of int
        For each edge whose ops can sit on two devices, how much more than its least
        it costs then, 0 if an op occupies none; ascending.
    """

    work: int
    delay: int
    uses: int
    extra: tuple[int, ...]


def cycle_bound(graph: Graph, certificate: Certificate) -> int | None:
    r"""Value of a ``cycle`` certificate; None: no period at all is possible.

    Summing the precedences around a closed walk, starts cancel:

    .. math:: D\,T \ge W, \quad
        W = \sum_e \min_{p,q} (t_u(p) + c_{pq} + \mathrm{lag}_e), \quad
        D = \sum_e k_e^{\max}

    With ``"transfers": true``: the distinct ops v that occupy devices either all sit
    on one device d, then :math:`T \ge \sum_v t_v(d)`; or on m >= 2 devices, then
    :math:`m\,T \ge \sum_v \min_d t_v(d)`, and the walk enters each of them, so that
    at least m of its edges cross and :math:`D\,T \ge W + x_1 + \dots + x_m` with the
    m least extras. (It may enter a device by way of ops that occupy none; their edges,
    two or more each time, count as extras of 0.) The least over all m holds.

    Fields: ``edges`` (indices into `Graph.edges`, consecutive, closed), ``ops`` (the
    source of each edge), ``transfers`` (default false).
    """
    edges = _edges(graph, sequence(certificate, "edges"), closed=True)
    ops = [edge.src for edge in edges]
    _expect_ops(certificate, ops)
    host = hosts(graph)
    walk = _walk(graph, host, edges)
    if walk.delay == 0 and walk.work > 0:
        return None
    plain = ceil_div(walk.work, walk.delay) if walk.delay else 0
    if certificate.get("transfers", False) is not True:
        return plain
    distinct = [op for op in dict.fromkeys(ops) if host.allowed[op]]
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
    if not ops:
        return 0
    common = [d for d in graph.device_ids if all(d in host.allowed[op] for op in ops)]
    loads = (sum(run_ticks(graph, op, d) for op in ops) for d in common)
    return min(loads, default=None)


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
    edges = _edges(graph, sequence(certificate, "edges"), closed=False)
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


def loops_bound(graph: Graph, certificate: Certificate) -> int:
    r"""Value of a ``loops`` certificate: the delays that loops need at a period.

    A closed walk with a uses of the delay j, work W and delay D on its other edges
    needs, at a period of T or less,

    .. math:: d_j \ge \Bigl\lceil \frac{W + x_1 + \dots + x_m - D\,T}{a\,T} \Bigr\rceil

    where m devices at least run its ops, :math:`m\,T \ge \sum_v \min_d t_v(d)`, and
    the m least extras count if m >= 2 (see `cycle_bound`). The staleness is at least
    the sum over all named delays of that, or of their minimum if greater, less 1.

    Fields: ``period`` (T, or null), ``loops`` (by delay, indices into `Graph.edges`;
    none without a period).
    """
    loops = certificate.get("loops")
    if not isinstance(loops, Mapping):
        raise RefusedError("expected a mapping at 'loops'")
    host = hosts(graph)
    least = {name: delay.min for name, delay in graph.delays.items()}
    for name, indices in loops.items():
        if name not in least or not isinstance(indices, list | tuple):
            raise RefusedError(f"loops: expected a list of edges for a delay: {name!r}")
        edges = _edges(graph, indices, closed=True)
        period = read_integer(certificate, "period", least=1)
        need = _delay_need(graph, host, edges, name, period)
        least[name] = max(least[name], need)
    return sum(value - 1 for value in least.values())


def _delay_need(
    graph: Graph, host: Hosts, edges: Sequence[Edge], name: DelayName, period: int
) -> int:
    walk = _walk(graph, host, edges, name)
    if walk.uses == 0:
        raise RefusedError(f"no edge of the loop carries the delay {name!r}")
    ops = [op for op in {edge.src for edge in edges} if host.allowed[op]]
    load = least_work(graph, host, ops, dict.fromkeys(graph.device_ids, 1))
    num_devices = ceil_div(load, period)
    extra = sum(walk.extra[:num_devices]) if num_devices >= 2 else 0
    ticks = walk.work + extra - walk.delay * period
    return ceil_div(ticks, walk.uses * period)


def _expect_ops(certificate: Certificate, ops: Sequence[OpId]) -> None:
    if list(sequence(certificate, "ops")) != list(ops):
        raise RefusedError("the ops are not those of the edges, in their order")


def _edges(graph: Graph, indices: Iterable[object], *, closed: bool) -> list[Edge]:
    """Return the edges that the indices name, each beginning where the last ended."""
    found: list[Edge] = []
    for index in indices:
        if not is_whole(index) or index >= len(graph.edges):
            raise RefusedError("the graph has no edge of some index")
        edge = graph.edges[index]
        if found and found[-1].dst != edge.src:
            raise RefusedError(
                f"the edge to {found[-1].dst!r} is followed by one from {edge.src!r}"
            )
        found.append(edge)
    if closed and (not found or found[-1].dst != found[0].src):
        raise RefusedError("the edges do not close")
    return found


def _walk(
    graph: Graph, host: Hosts, edges: Sequence[Edge], asked: DelayName | None = None
) -> _Walk:
    work, delay, uses, extra = 0, 0, 0, []
    for edge in edges:
        _, most = graph.delay_range(edge.delay)
        if edge.delay == asked:
            uses += 1
        elif most is None:
            raise RefusedError(f"delay {edge.delay!r} on the walk has no maximum")
        else:
            delay += most
        pairs = edge_pairs(graph, host, edge)
        least = min(ticks for ticks, _ in pairs)
        work += least + edge.lag
        extra += sorted(ticks - least for ticks, apart in pairs if apart)[:1]
    return _Walk(work, delay, uses, tuple(sorted(extra)))


def edge_pairs(graph: Graph, host: Hosts, edge: Edge) -> list[tuple[int, bool]]:
    """Ticks ``t_u + c`` for every legal pair of devices, and whether they differ.

    An op without a device is its own place: whether it is another counts as open.
    """
    size = None if edge.tensor is None else edge.tensor.size
    together = host.group[edge.src] == host.group[edge.dst]
    found = []
    for p in host.allowed[edge.src] or (None,):
        t = run_ticks(graph, edge.src, p)
        for q in (p,) if together else host.allowed[edge.dst] or (None,):
            c = 0 if size is None else transfer_ticks(graph, size, p, q)
            found.append((t + c, p is None or q is None or p != q))
    return found
