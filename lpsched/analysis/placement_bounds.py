"""Bounds of communication and memory that hold for every placement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from heapq import nsmallest
from itertools import repeat
from math import ceil
from operator import attrgetter

import networkx as nx

from lpsched.analysis.certified import Bound, ceil_div, certified
from lpsched.analysis.sites import Site, Sites
from lpsched.core.graph import OpId, Tensor, TensorId

__all__ = ["communication_bounds", "memory_bounds", "total_memory", "working_sets"]


def communication_bounds(sites: Sites, *, period: int | None) -> Iterator[Bound]:
    """Bound the communication of a period, in the graph's size unit.

    ``confined``: tensors whose consumers cannot all run where the producer does.
    ``connected``: ops joined by tensors, too much work for one device at `period`.
    """
    forced = {t.id: n for t in sites.graph.tensors if (n := _forced_copies(sites, t))}
    sizes = {t.id: t.size for t in sites.graph.tensors}
    value = sum(sizes[tensor] * copies for tensor, copies in forced.items())
    yield certified("communication", "confined", value, {"copies": forced})
    if period is not None:
        yield _connected_bound(sites, period)


def _forced_copies(sites: Sites, tensor: Tensor) -> int:
    """Devices other than the producer's that must receive a tensor, at the least.

    For each place of the producer: consumers that may not run there and pairwise share
    no device need a copy each.
    """
    needs = [frozenset(sites.allowed[c.op]) for c in tensor.consumers]
    places = sites.allowed[tensor.producer]
    if None in places:
        return 0
    return min(_disjoint([need for need in needs if p not in need]) for p in places)


def _disjoint(sets: Sequence[frozenset[Site]]) -> int:
    """Size of a family of disjoint sets, small ones first."""
    taken: set[Site] = {None}
    count = 0
    for devices in sorted(sets, key=len):
        if taken.isdisjoint(devices):
            taken |= devices
            count += 1
    return count


def _connected_bound(sites: Sites, period: int) -> Bound:
    r"""Least traffic that keeps ops together which one device cannot hold.

    Ops joined by tensors and of total work :math:`\sum t` need
    :math:`m = \lceil \sum t / T \rceil` devices; to join these takes m - 1 arrivals of
    a tensor at a device. The least sizes count, each as often as the tensor has
    consumers.
    """
    graph = sites.graph
    uses = {
        tensor: [c.op for c in tensor.consumers if graph.occupies_device(c.op)]
        for tensor in graph.tensors
        if graph.occupies_device(tensor.producer)
    }
    joined: nx.Graph[OpId] = nx.Graph()
    joined.add_nodes_from(op.id for op in graph.ops if graph.occupies_device(op.id))
    for tensor, users in uses.items():
        nx.add_star(joined, [tensor.producer, *users])
    value, parts = 0, []
    for ops in nx.connected_components(joined):
        num_devices = ceil_div(sum(map(sites.least_duration, ops)), period)
        arrivals = [
            size
            for tensor, users in uses.items()
            if tensor.producer in ops
            for size in repeat(tensor.size, len(users))
        ]
        cost = sum(nsmallest(num_devices - 1, arrivals))
        if cost:
            value += cost
            parts.append({"ops": [op.id for op in graph.ops if op.id in ops]})
    certificate = {"period": period, "parts": parts}
    return certified("communication", "connected", value, certificate)


def memory_bounds(sites: Sites, *, period: int | None) -> Iterator[Bound]:
    """Bound the highest device peak, in the graph's size unit.

    ``working_set``: what one op alone keeps alive while it runs. ``average``: what all
    devices together must keep, shared evenly.
    """
    sets = working_sets(sites)
    if sets:
        yield max(sets.values(), key=attrgetter("value"))
    if sites.graph.devices:
        yield _average_bound(sites, period)


def working_sets(sites: Sites) -> dict[OpId, Bound]:
    """Return what each op keeps alive on its device while it runs."""
    graph = sites.graph
    touched: dict[OpId, list[Tensor]] = {op.id: [] for op in graph.ops}
    for tensor in graph.tensors:
        if graph.occupies_device(tensor.producer):
            for op in {tensor.producer, *(c.op for c in tensor.consumers)}:
                touched[op].append(tensor)
    residents = _residents(sites)
    return {
        op: _working_set(sites, op, tensors, residents.get(sites.group_of[op], ()))
        for op, tensors in touched.items()
        if graph.occupies_device(op) and sites.least_duration(op) > 0
    }


def _residents(sites: Sites) -> dict[int, list[int]]:
    """Numbers of the residents that each group of colocated ops keeps."""
    kept: dict[int, list[int]] = {}
    for i, resident in enumerate(sites.graph.residents):
        for group in {sites.group_of[op] for op in resident.ops}:
            kept.setdefault(group, []).append(i)
    return kept


def _working_set(
    sites: Sites, op: OpId, tensors: Iterable[Tensor], residents: Sequence[int]
) -> Bound:
    """Residents of the op's group, its results, and its operands.

    All are on the op's device from its start to its end. The same tensor in two
    iterations is two copies: the versions that delays tell apart for certain count.
    """
    value = sum(sites.graph.residents[i].size for i in residents)
    copies: dict[TensorId, int] = {}
    for tensor in tensors:
        delays = {c.delay for c in tensor.consumers if c.op == op}
        fixed = {delay for delay in delays if isinstance(delay, int)}
        named = int(bool(delays) and not fixed)
        copies[tensor.id] = len(fixed) + named + int(tensor.producer == op)
        value += copies[tensor.id] * tensor.size
    certificate = {"op": op, "copies": copies, "residents": list(residents)}
    return certified("peak_memory", "working_set", value, certificate)


def _average_bound(sites: Sites, period: int | None) -> Bound:
    """Share what all devices together must keep evenly among the P of them."""
    value = ceil(total_memory(sites, period=period) / len(sites.graph.devices))
    return certified("peak_memory", "average", value, {"period": period})


def total_memory(sites: Sites, *, period: int | None) -> Fraction:
    r"""Every resident once, and every tensor for as long as it must live.

    .. math:: \sum_r size_r + \frac{1}{T} \sum_a size_a (t_{u} + \max_v t_v)

    A tensor lives while its producer u and any one consumer v run, wherever they do.
    """
    graph = sites.graph
    volume = 0
    for tensor in graph.tensors:
        if graph.occupies_device(tensor.producer):
            ops = [c.op for c in tensor.consumers if graph.occupies_device(c.op)]
            use = max(map(sites.least_duration, ops), default=0)
            volume += tensor.size * (sites.least_duration(tensor.producer) + use)
    paid = (r for r in graph.residents if any(map(graph.occupies_device, r.ops)))
    size = sum(resident.size for resident in paid)
    return Fraction(size) if period is None else size + Fraction(volume, period)
