"""Work that can begin only late and must end early: a bound of the makespan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lpsched.analysis.certified import Bound, ceil_div, certified
from lpsched.analysis.cycles import delay_free_order
from lpsched.analysis.dataflow import Flow
from lpsched.analysis.sites import Sites
from lpsched.core.graph import OpId

__all__ = ["window_bounds"]

#: Heads tried for one set of devices; more are thinned out.
_MAX_HEADS = 64


@dataclass(frozen=True, slots=True)
class _Job:
    """An op between its head and its tail, all in ticks."""

    op: OpId
    head: int
    work: int
    tail: int


def window_bounds(
    sites: Sites, flow: Flow, *, objective: str, least: int
) -> Iterator[Bound]:
    r"""Bound an iteration's span by what precedes and what follows some devices' work.

    Ops S that must run on the devices D begin at least h ticks after the first start
    of their iteration and end at least q ticks before its last end, by the longest
    paths without delay to and from them:

    .. math:: \mathrm{makespan} \ge h + \Bigl\lceil \frac{1}{|D|} \sum_{v \in S}
       \min_{d \in D} t_v(d) \Bigr\rceil + q

    It bounds the makespan and, with flush, the period. Tried for all devices and each
    set to which ops are confined, with S all ops of head >= h and tail >= q.

    Parameters
    ----------
    sites, flow
        Of one graph in which no loop lacks delay.
    objective : str
        ``makespan``, or ``period`` if the graph flushes.
    least : int
        A value known to bound; only greater ones are sought.
    """
    heads, tails = _heads_and_tails(flow)
    confined: dict[frozenset[object], list[_Job]] = {}
    for op, head, tail in zip(sites.graph.ops, heads, tails, strict=True):
        devices: frozenset[object] = frozenset(sites.allowed[op.id])
        work = sites.least_duration(op.id)
        if work > 0 and None not in devices:
            slowest = max(sites.graph.duration(op.id, d) for d in sites.allowed[op.id])
            job = _Job(op.id, head, work, max(0, tail - slowest))
            confined.setdefault(devices, []).append(job)
    everywhere: frozenset[object] = frozenset(sites.graph.device_ids)
    for devices in dict.fromkeys([everywhere, *confined]):
        jobs = [job for own in confined if own <= devices for job in confined[own]]
        best = max(
            _windows(jobs, len(devices)), key=lambda window: window[0], default=None
        )
        if best is None or best[0] <= least:
            continue
        value, head, tail = best
        ops = {job.op for job in jobs if job.head >= head and job.tail >= tail}
        certificate = {
            "ops": [op.id for op in sites.graph.ops if op.id in ops],
            "devices": [d for d in sites.graph.device_ids if d in devices],
            "head": head,
            "tail": tail,
        }
        yield certified(objective, "window", value, certificate)


def _windows(jobs: list[_Job], num_devices: int) -> Iterator[tuple[int, int, int]]:
    """Value, head and tail of every window that is worth a look."""
    heads = sorted({job.head for job in jobs})
    for head in heads[:: max(1, ceil_div(len(heads), _MAX_HEADS))]:
        late = [job for job in jobs if job.head >= head]
        late.sort(key=lambda job: -job.tail)
        work = 0
        for job in late:
            work += job.work
            yield head + ceil_div(work, num_devices) + job.tail, head, job.tail


def _heads_and_tails(flow: Flow) -> tuple[list[int], list[int]]:
    """Longest delay-free paths to each node's start, and from it to the last end."""
    rank = [0] * len(flow.nodes)
    for position, node in enumerate(delay_free_order(len(flow.nodes), flow.arcs)):
        rank[node] = position
    arcs = sorted(
        (arc for arc in flow.arcs if arc.delay == 0), key=lambda arc: rank[arc.src]
    )
    heads, tails = [0] * len(flow.nodes), list(flow.times)
    for arc in arcs:
        heads[arc.dst] = max(heads[arc.dst], heads[arc.src] + arc.weight)
    for arc in reversed(arcs):
        tails[arc.src] = max(tails[arc.src], arc.weight + tails[arc.dst])
    return heads, tails
