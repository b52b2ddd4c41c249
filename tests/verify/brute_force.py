"""Whether a tiny graph has any schedule of some period, by trying them all."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from lpsched.core.graph import DeviceId, Graph, OpId

__all__ = ["is_schedulable"]


def is_schedulable(graph: Graph, period: int) -> bool:
    """Try every placement and every phase; laps by longest path (tiny graphs only)."""
    ops = [op.id for op in graph.ops]
    for devices in product(*(graph.allowed(op) or (None,) for op in ops)):
        place = dict(zip(ops, devices, strict=True))
        if any(len({place[op] for op in group}) > 1 for group in graph.colocate):
            continue
        for phases in product(range(period), repeat=len(ops)):
            phase = dict(zip(ops, phases, strict=True))
            if _fits(graph, period, place, phase) and _has_laps(
                graph, period, place, phase
            ):
                return True
    return False


def _fits(
    graph: Graph,
    period: int,
    place: Mapping[OpId, DeviceId | None],
    phase: Mapping[OpId, int],
) -> bool:
    busy = [
        (device, (phase[op] + i) % period)
        for op, device in place.items()
        if device is not None
        for i in range(graph.duration(op, device))
    ]
    return len(set(busy)) == len(busy)


def _has_laps(
    graph: Graph,
    period: int,
    place: Mapping[OpId, DeviceId | None],
    phase: Mapping[OpId, int],
) -> bool:
    laps = dict.fromkeys(place, 0)
    for _ in range(len(laps) + 1):
        is_settled = True
        for e in graph.edges:
            most = graph.delay_range(e.delay)[1]
            if most is None:
                continue
            c = graph.transfer_ticks(e.tensor, place[e.src], place[e.dst])
            ready = phase[e.src] + graph.duration(e.src, place[e.src]) + c + e.lag
            need = laps[e.src] - most - (phase[e.dst] - ready) // period
            if laps[e.dst] < need:
                laps[e.dst], is_settled = need, False
        if is_settled:
            return True
    return False
