"""A graph at one period T, in indices and in the largest exact unit of time.

What every exact model of a fixed period starts from: ops and devices by number, the
devices left to each op, durations and transfers divided by their common unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lpsched.core.graph import DelayName, DeviceId, Graph, OpId
from lpsched.errors import UnsupportedError

__all__ = ["Arc", "AtPeriod", "Bools", "Ints", "at_period"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Sums of times stay below this, so that int64 and the solvers stay exact.
LARGEST = 2**55


@dataclass(frozen=True, slots=True, kw_only=True)
class Arc:
    """One precedence ``s_v + k T >= s_u + t_u + c + lag`` between op numbers.

    Attributes
    ----------
    low, high : int
        The range of k; `high` None for no limit.
    name : DelayName or None
        The named delay k belongs to; None for a plain one.
    lag : int
        In units of `AtPeriod.unit`.
    tensor : int or None
        Number of the tensor carried; None for order without data (c = 0).
    """

    src: int
    dst: int
    low: int
    high: int | None
    name: DelayName | None
    lag: int
    tensor: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class AtPeriod:
    """A graph at one period; n ops, P devices.

    Device number P stands for "no device": only ops that occupy none are there; it
    has no transfers, no exclusivity and no memory. All times are in units of `unit`
    ticks. That loses nothing: with the devices and the order of all events fixed,
    every rule is a set of differences between starts, whose right-hand sides are
    multiples of the unit (a cap on the makespan enters any cycle once, so its floor
    will do), and such a system has a solution in multiples if it has any.

    Attributes
    ----------
    unit : int
        Ticks per unit of time: the gcd of T and of every duration, transfer and lag.
    period : int
        T, in units.
    allowed : array (n, P + 1) of bool
        Devices left to each op (placement and colocation taken into account).
    durations : array (n, P + 1) of int
        Duration of each op on each device; 0 where it is not allowed.
    arcs : tuple of Arc
        Every precedence of the graph, in the order of `Graph.edges`.
    transfers : tuple of array (P + 1, P + 1) of int
        Per tensor, the units a transfer takes from device to device.
    """

    graph: Graph
    unit: int
    period: int
    allowed: Bools
    durations: Ints
    arcs: tuple[Arc, ...]
    transfers: tuple[Ints, ...]
    op_numbers: Mapping[OpId, int] = field(repr=False)

    @property
    def num_ops(self) -> int:
        """Return n."""
        return len(self.graph.ops)

    @property
    def num_devices(self) -> int:
        """Return P; the number of "no device" too."""
        return len(self.graph.devices)

    def device_id(self, device: int) -> DeviceId | None:
        """Name a device number; None for "no device"."""
        ids = self.graph.device_ids
        return ids[device] if device < len(ids) else None

    def devices_of(self, op: int) -> list[int]:
        """Device numbers left to an op."""
        return [int(p) for p in np.flatnonzero(self.allowed[op])]

    def least_durations(self) -> Ints:
        """Shortest duration of each op over its devices, 0 without; shape (n,)."""
        far = np.iinfo(np.int64).max
        least = np.where(self.allowed, self.durations, far).min(axis=1, initial=far)
        return np.where(least == far, 0, least)

    def most_durations(self) -> Ints:
        """Longest duration of each op over its devices; shape (n,)."""
        most: Ints = np.where(self.allowed, self.durations, 0).max(axis=1, initial=0)
        return most

    def costs(self, arc: Arc) -> Ints:
        """``t_u(p) + c_pq + lag`` of an arc for devices p of u, q of v."""
        costs = self.durations[arc.src][:, None] + arc.lag
        if arc.tensor is None:
            return np.broadcast_to(costs, (self.num_devices + 1,) * 2)
        total: Ints = costs + self.transfers[arc.tensor]
        return total

    def with_delay_caps(self, staleness: int) -> AtPeriod:
        """Return the problem with what a cap on staleness leaves of each delay.

        Staleness is the sum of (value - 1) over the named delays, so no value can
        exceed its least by more than what the least values leave of the cap.
        """
        least = sum(delay.min - 1 for delay in self.graph.delays.values())
        spare = max(staleness - least, 0)

        def capped(arc: Arc) -> Arc:
            if arc.name is None:
                return arc
            high = arc.low + spare
            return replace(arc, high=high if arc.high is None else min(high, arc.high))

        arcs = tuple(map(capped, self.arcs))
        return replace(self, arcs=arcs)


def at_period(
    graph: Graph, period: int, *, placement: Mapping[OpId, DeviceId] | None = None
) -> AtPeriod:
    """Put a graph into numbers at period T (ticks), some ops already placed.

    Raises
    ------
    UnsupportedError
        Times so long that sums of them would leave 64-bit integers.
    """
    numbers = {op.id: v for v, op in enumerate(graph.ops)}
    _check_sizes(graph, period)
    allowed = _allowed(graph, numbers, placement or {})
    durations = _durations(graph, allowed)
    allowed[:, :-1] &= durations[:, :-1] <= period
    unit = math.gcd(period, *_times(graph, durations, allowed))
    scaled: Ints = np.where(allowed, durations, 0) // unit
    return AtPeriod(
        graph=graph,
        unit=unit,
        period=period // unit,
        allowed=allowed,
        durations=scaled,
        arcs=tuple(_arcs(graph, numbers, unit)),
        transfers=_transfers(graph, unit),
        op_numbers=numbers,
    )


def _check_sizes(graph: Graph, period: int) -> None:
    """Refuse what could leave 64 bits: no path or window exceeds this sum."""
    total, links = 0, {graph.link, *graph.links.values()}
    for edge in graph.edges:
        low, high = graph.delay_range(edge.delay)
        total += edge.lag + (low if high is None else high) * period
        if edge.tensor is not None:
            total += max(link.transfer_ticks(edge.tensor.size) for link in links)
    for op in graph.ops:
        duration = op.duration
        total += (
            duration if isinstance(duration, int) else max(duration.values(), default=0)
        )
    total += period * (len(graph.ops) + 1)
    if total > LARGEST:
        raise UnsupportedError(
            f"durations, transfers, lags and delays times the period sum to {total}, "
            f"more than {LARGEST}; use a longer tick or lower the largest delays"
        )


def _allowed(
    graph: Graph, numbers: Mapping[OpId, int], placement: Mapping[OpId, DeviceId]
) -> Bools:
    index = {device: p for p, device in enumerate(graph.device_ids)}
    allowed = np.zeros((len(graph.ops), len(index) + 1), dtype=np.bool_)
    for v, op in enumerate(graph.ops):
        devices = graph.allowed(op.id)
        if op.id in placement:
            devices = tuple(p for p in devices if p == placement[op.id])
        for device in devices:
            allowed[v, index[device]] = True
        allowed[v, -1] = not graph.occupies_device(op.id)
    groups = [[numbers[op] for op in group] for group in graph.colocate if group]
    for _ in groups:  # groups may overlap: once per group reaches a fixpoint
        for members in groups:
            allowed[members] = allowed[members].all(axis=0)
    return allowed


def _durations(graph: Graph, allowed: Bools) -> Ints:
    durations = np.zeros(allowed.shape, dtype=np.int64)
    for v, op in enumerate(graph.ops):
        if isinstance(op.duration, int):
            durations[v] = op.duration
        else:
            for p, device in enumerate(graph.device_ids):
                durations[v, p] = op.duration.get(device, 0)
    return durations


def _times(graph: Graph, durations: Ints, allowed: Bools) -> Iterator[int]:
    """Every time that enters a rule, in ticks."""
    yield from (int(t) for t in np.unique(durations[allowed]))
    yield from {edge.lag for edge in graph.edges}
    for size in {tensor.size for tensor in graph.tensors}:
        yield from (int(c) for c in np.unique(_matrix(graph, size)))


def _matrix(graph: Graph, size: int) -> Ints:
    """Transfer times, in ticks, of a tensor of some size between devices."""
    P = len(graph.devices)
    matrix = np.full((P + 1, P + 1), graph.link.transfer_ticks(size), dtype=np.int64)
    index = {device: p for p, device in enumerate(graph.device_ids)}
    for (src, dst), link in graph.links.items():
        matrix[index[src], index[dst]] = link.transfer_ticks(size)
    np.fill_diagonal(matrix, 0)
    matrix[-1, :] = matrix[:, -1] = 0
    return matrix


def _transfers(graph: Graph, unit: int) -> tuple[Ints, ...]:
    sizes = {tensor.size for tensor in graph.tensors}
    matrices = {size: _matrix(graph, size) // unit for size in sizes}
    return tuple(matrices[tensor.size] for tensor in graph.tensors)


def _arcs(graph: Graph, numbers: Mapping[OpId, int], unit: int) -> Iterator[Arc]:
    tensor_numbers = {tensor.id: i for i, tensor in enumerate(graph.tensors)}
    for edge in graph.edges:
        low, high = graph.delay_range(edge.delay)
        yield Arc(
            src=numbers[edge.src],
            dst=numbers[edge.dst],
            low=low,
            high=high,
            name=None if isinstance(edge.delay, int) else edge.delay,
            lag=edge.lag // unit,
            tensor=None if edge.tensor is None else tensor_numbers[edge.tensor.id],
        )
