"""Certificates of work between what must come before it and what must follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lpsched.core.graph import Graph, OpId
from lpsched.verify.evidence import (
    Certificate,
    Hosts,
    RefusedError,
    ceil_div,
    hosts,
    read_devices,
    read_integer,
    read_ops,
    run_ticks,
    sequence,
)
from lpsched.verify.walks import edge_pairs

__all__ = ["window_bound"]


def window_bound(graph: Graph, certificate: Certificate, *, closed: bool) -> int:
    r"""Value of a ``window`` certificate.

    Every op S listed may run on the devices D alone; a path without delay leads to it
    that takes h ticks at least, and one on from its end that takes q. Within one
    iteration the ops on a device run in turn, so that its span is at least

    .. math:: h + \lceil \sum_{v \in S} \min_d t_v(d) / |D| \rceil + q

    It bounds the makespan and, with flush (`closed`), the period.

    Fields: ``ops``, ``devices``, ``head`` (h), ``tail`` (q).
    """
    if closed and not graph.flush:
        raise RefusedError("a window bounds the period only with flush")
    ops = read_ops(graph, sequence(certificate, "ops"))
    devices = read_devices(graph, certificate)
    head, tail = read_integer(certificate, "head"), read_integer(certificate, "tail")
    host = hosts(graph)
    before, after = _before(graph, host), _after(graph, host)
    work = 0
    for op in ops:
        ticks = [run_ticks(graph, op, d) for d in host.occupied_by(op)]
        if not set(host.allowed[op]) <= set(devices):
            raise RefusedError(f"op {op!r} may also run elsewhere")
        if before[op] < head:
            raise RefusedError(f"op {op!r} may start after {before[op]}, not {head}")
        if max(0, after[op] - max(ticks)) < tail:
            raise RefusedError(f"less than {tail} may follow op {op!r}")
        work += min(ticks)
    if not ops:
        raise RefusedError("expected at least one op")
    return head + ceil_div(work, len(devices)) + tail


def _before(graph: Graph, host: Hosts) -> Mapping[OpId, int]:
    """Longest path without delay to the start of each op, in ticks."""
    return _longest(
        dict.fromkeys(graph.op_by_id, 0),
        [(src, dst, ticks) for src, dst, ticks in _free(graph, host)],
    )


def _after(graph: Graph, host: Hosts) -> Mapping[OpId, int]:
    """Longest path without delay from the start of each op to an end, in ticks."""
    own = {
        op: min(run_ticks(graph, op, d) for d in host.allowed[op] or (None,))
        for op in graph.op_by_id
    }
    return _longest(own, [(dst, src, ticks) for src, dst, ticks in _free(graph, host)])


def _free(graph: Graph, host: Hosts) -> list[tuple[OpId, OpId, int]]:
    """Edges without delay and the least ticks between the starts of their ends."""
    return [
        (edge.src, edge.dst, min(edge_pairs(graph, host, edge))[0] + edge.lag)
        for edge in graph.edges
        if edge.delay == 0
    ]


def _longest(
    values: dict[OpId, int], steps: Sequence[tuple[OpId, OpId, int]]
) -> Mapping[OpId, int]:
    """Raise each value to what a step from another gives, until none rises."""
    for _ in range(len(values) + 1):
        rising = False
        for src, dst, ticks in steps:
            if values[src] + ticks > values[dst]:
                values[dst] = values[src] + ticks
                rising = True
        if not rising:
            return values
    raise RefusedError("a loop takes time but carries no delay: no schedule exists")
