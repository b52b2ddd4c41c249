"""Retiming: moving delays through ops without changing what a graph computes.

A retiming r gives each node a number of iterations (in a schedule: its lap), and each
edge the retimed delay k(u→v) + r(v) - r(u) >= 0. Around a loop r cancels, so that loops
keep their delays and the graph its iteration bound.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeAlias, overload

from lpsched.analysis.certified import ceil_div
from lpsched.analysis.cycles import delay_free_order
from lpsched.analysis.dataflow import (
    AnyGraph,
    MultiDiGraph,
    Node,
    fixed_delay,
    flow_of,
    require_fixed_delays,
)
from lpsched.core.graph import DelayName, DeviceId, Edge, Graph, OpId
from lpsched.core.io import graph_digest
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import Fault, InstanceError, UnsupportedError

__all__ = [
    "Retiming",
    "apply_retiming",
    "cutset_retiming",
    "retime_schedule",
    "schedule_from_retiming",
    "schedule_retiming",
]

#: Iterations by which each node is moved; nodes left out stay.
Retiming: TypeAlias = Mapping[Node, int]


@overload
def apply_retiming(graph: Graph, retiming: Retiming) -> Graph: ...
@overload
def apply_retiming(graph: MultiDiGraph, retiming: Retiming) -> MultiDiGraph: ...
def apply_retiming(graph: AnyGraph, retiming: Retiming) -> AnyGraph:
    r"""Return the graph with its delays moved.

    .. math:: k_r(u \to v) = k(u \to v) + r(v) - r(u)

    in iterations. Everything else stays.

    Raises
    ------
    InstanceError
        If a retimed delay would be negative, naming each such edge; if the retiming
        names an unknown node; if the graph has named delays (see `fix_delays`).

    Notes
    -----
    Source: Leiserson and Saxe, *Retiming synchronous circuitry* (1991), sec. 3; the
    sign is theirs.
    """
    require_fixed_delays(graph)
    _require_legal(graph, retiming)
    return (
        _retimed_graph(graph, retiming)
        if isinstance(graph, Graph)
        else _retimed_bare(graph, retiming)
    )


def _require_legal(graph: AnyGraph, retiming: Retiming) -> None:
    flow = flow_of(graph)
    known = set(flow.nodes)
    faults = [
        Fault(f"retiming.{node}", "the graph has no such node")
        for node in retiming
        if node not in known
    ]
    for arc in flow.arcs:
        u, v = flow.nodes[arc.src], flow.nodes[arc.dst]
        delay = arc.delay + retiming.get(v, 0) - retiming.get(u, 0)
        if delay < 0:
            faults.append(Fault(f"edge {u!r} -> {v!r}", f"retimed delay {delay} < 0"))
    if faults:
        raise InstanceError(faults)


def _retimed_graph(graph: Graph, retiming: Retiming) -> Graph:
    def moved(delay: int | DelayName, src: OpId, dst: OpId) -> int:
        return fixed_delay(delay) + retiming.get(dst, 0) - retiming.get(src, 0)

    return graph.replace(
        tensors=tuple(
            replace(
                t,
                consumers=tuple(
                    replace(c, delay=moved(c.delay, t.producer, c.op))
                    for c in t.consumers
                ),
            )
            for t in graph.tensors
        ),
        dependences=tuple(
            replace(d, delay=moved(d.delay, d.src, d.dst)) for d in graph.dependences
        ),
    )


def _retimed_bare(graph: MultiDiGraph, retiming: Retiming) -> MultiDiGraph:
    result: MultiDiGraph = graph.copy()
    for u, v, data in result.edges(data=True):
        data["delay"] += retiming.get(v, 0) - retiming.get(u, 0)
    return result


def cutset_retiming(
    graph: AnyGraph, nodes: Collection[Node], delays: int = 1
) -> dict[Node, int]:
    """Move delays across the cut between some nodes and all others.

    Every edge into `nodes` gains `delays`, every edge out of them loses as many.
    Pipelining is the case of a cut that all edges cross inwards.

    Parameters
    ----------
    nodes : collection of hashable
        One side of the cut: the part that runs later.
    delays : int, optional
        Iterations by which it runs later; may be negative.

    Returns
    -------
    dict
        The retiming; hand it to `apply_retiming`.

    Raises
    ------
    InstanceError
        If some edge out of `nodes` has fewer delays to give, naming each; if a node
        is unknown; if the graph has named delays.

    Notes
    -----
    Source: Parhi, *VLSI Digital Signal Processing Systems* (1999), sec. 4.2.2.
    """
    require_fixed_delays(graph)
    retiming = dict.fromkeys(nodes, delays)
    _require_legal(graph, retiming)
    return retiming


def schedule_retiming(schedule: Schedule) -> dict[Node, int]:
    """Read the retiming from a schedule: the lap of each op.

    With the schedule's delays it is legal: `apply_retiming` to the graph with these
    fixed never meets a negative delay.
    """
    return {op: schedule.lap(op) for op in schedule.ops}


def retime_schedule(
    schedule: Schedule,
    retiming: Retiming,
    graph: Graph,
    *,
    delays: Mapping[DelayName, int] | None = None,
) -> Schedule:
    """Turn a schedule of one graph into one of its retimed graph.

    An op moved by r iterations begins r periods earlier: start - r·T. With a
    schedule's own retiming every lap becomes 0. The opposite retiming leads back.

    Parameters
    ----------
    retiming : mapping
        From the schedule's graph to `graph`.
    graph : Graph
        The retimed graph, for which the answer is a schedule.
    delays : mapping, optional
        Values of the named delays of `graph`, if it has any.
    """
    return Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=schedule.period,
        delays=dict(delays or {}),
        ops={
            op: Placed(
                placed.device, placed.start - retiming.get(op, 0) * schedule.period
            )
            for op, placed in schedule.ops.items()
        },
        graph_document=graph,
    )


def schedule_from_retiming(
    graph: Graph,
    retiming: Retiming,
    placement: Mapping[OpId, DeviceId] | None = None,
) -> Schedule:
    r"""Build a schedule whose laps are a retiming, without ops that wrap.

    Within a period ops run in an order that respects the retimed graph's edges without
    delay, each as soon as its operands and its device are there, at phase φ. The period
    is the least that these phases allow:

    .. math:: T = \max \Bigl( \max_v \varphi_v + t_v,\; \max_{k_r(u \to v) \ge 1}
       \Bigl\lceil \frac{\varphi_u + t_u + c + lag - \varphi_v}{k_r(u \to v)}
       \Bigr\rceil \Bigr)

    For ops that occupy no device it is the retimed graph's clock period (lags aside).
    An op of no duration at the very end of a period counts to the next: its lap is one
    more. Memory limits are not looked at.

    Parameters
    ----------
    retiming : mapping
        Laps; see `min_period_retiming`, `schedule_retiming`.
    placement : mapping, optional
        Device of each op that has a choice.

    Raises
    ------
    InstanceError
        If the retiming is illegal, the graph has named delays, or an op lacks a device.
    UnsupportedError
        If the graph has a loop without delay, or flushes while laps differ.
    """
    retimed = apply_retiming(graph, retiming)
    laps = {op.id: retiming.get(op.id, 0) for op in graph.ops}
    if graph.flush and len(set(laps.values())) > 1:
        raise UnsupportedError("with flush all ops of an iteration share one lap")
    devices = _devices(graph, placement or {})
    phases = _phases(retimed, devices)
    period = _least_period(retimed, devices, phases)
    return Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=period,
        ops={op: Placed(devices[op], laps[op] * period + phases[op]) for op in phases},
        graph_document=graph,
    )


def _devices(
    graph: Graph, placement: Mapping[OpId, DeviceId]
) -> dict[OpId, DeviceId | None]:
    devices: dict[OpId, DeviceId | None] = {}
    faults = []
    for op in graph.ops:
        allowed = graph.allowed(op.id)
        chosen = placement.get(op.id, allowed[0] if len(allowed) == 1 else None)
        devices[op.id] = chosen
        if allowed and chosen not in allowed:
            text = f"needs one of its devices {', '.join(allowed)}, got {chosen}"
            faults.append(Fault(f"placement.{op.id}", text))
    if faults:
        raise InstanceError(faults)
    return devices


def _phases(retimed: Graph, devices: Mapping[OpId, DeviceId | None]) -> dict[OpId, int]:
    """Start each op once its operands of the same period and its device are there."""
    flow = flow_of(retimed)
    order = [retimed.ops[i].id for i in delay_free_order(len(flow.nodes), flow.arcs)]
    waiting: dict[OpId, list[Edge]] = {op: [] for op in order}
    for edge in retimed.edges:
        if edge.delay == 0:
            waiting[edge.dst].append(edge)
    phases: dict[OpId, int] = {}
    free: dict[DeviceId | None, int] = {}
    for op in order:
        device = devices[op]
        try:
            ready = [phases[e.src] + _ticks(retimed, devices, e) for e in waiting[op]]
        except KeyError:
            text = f"op {op!r} is on a loop without delay"
            raise UnsupportedError(text) from None
        phases[op] = max(ready, default=0)
        if device is not None:
            phases[op] = max(phases[op], free.get(device, 0))
            free[device] = phases[op] + retimed.duration(op, device)
    return phases


def _least_period(
    retimed: Graph,
    devices: Mapping[OpId, DeviceId | None],
    phases: Mapping[OpId, int],
) -> int:
    period = 1
    for op, phase in phases.items():
        period = max(period, phase + retimed.duration(op, devices[op]))
    for edge in retimed.edges:
        if isinstance(edge.delay, int) and edge.delay > 0:
            gap = phases[edge.src] + _ticks(retimed, devices, edge) - phases[edge.dst]
            period = max(period, ceil_div(gap, edge.delay))
    return period


def _ticks(graph: Graph, devices: Mapping[OpId, DeviceId | None], edge: Edge) -> int:
    """Ticks from the start of an edge's source to the earliest start of its target."""
    p, q = devices[edge.src], devices[edge.dst]
    transfer = graph.transfer_ticks(edge.tensor, p, q)
    return graph.duration(edge.src, p) + transfer + edge.lag
