"""From a graph to a placement problem, and from its item sets back to devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lpsched.analysis.memory_shares import (
    MemoryShare,
    average_shares,
    peak_shares,
)
from lpsched.analysis.metrics import received_sizes
from lpsched.analysis.sites import Sites
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.errors import SolverError
from lpsched.formulations.partition.problem import (
    DeviceGroup,
    ItemSet,
    Message,
    Placed,
    Problem,
    Share,
    merged_messages,
)

__all__ = ["Reading", "communication_of", "read_graph"]

#: Sums of memory stay below this.
_LARGEST = 2**59


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A graph's placement problem and what its numbers stand for.

    Attributes
    ----------
    items : tuple of tuple of OpId
        Ops that share a device, by item number.
    devices : tuple of tuple of DeviceId
        The devices of each group.
    """

    graph: Graph
    problem: Problem
    items: tuple[tuple[OpId, ...], ...]
    devices: tuple[tuple[DeviceId, ...], ...]

    def sets(
        self, placement: Mapping[OpId, DeviceId], *, overloaded: bool = False
    ) -> Placed | None:
        """Item set of each device; None if the placement is not legal here.

        With `overloaded`, it is if every device may run what it gets.
        """
        found: dict[DeviceId, set[int]] = {d: set() for g in self.devices for d in g}
        for item, ops in enumerate(self.items):
            places = {placement.get(op) for op in ops}
            device = places.pop()
            if places or device not in found or device is None:
                return None
            found[device].add(item)
        placed = tuple(frozenset(items) for items in found.values())
        groups = [g for g, devices in enumerate(self.devices) for _ in devices]
        if overloaded:
            loads = map(self.problem.load, placed, groups)
            return placed if all(load is not None for load in loads) else None
        fit = all(map(self.problem.fits, placed, groups))
        return placed if fit else None

    def placement(self, placed: Placed) -> dict[OpId, DeviceId]:
        """Device of every op that occupies one.

        Raises
        ------
        SolverError
            The sets are no partition, overload a device, or the communication that
            the graph has under this placement is not what the sets cost.
        """
        devices = [device for group in self.devices for device in group]
        placement = {
            op: device
            for device, items in zip(devices, placed, strict=True)
            for item in sorted(items)
            for op in self.items[item]
        }
        if self.sets(placement) != placed:
            raise SolverError("partition made sets of ops that are no placement")
        cost = sum(map(self.problem.cost, placed))
        seen = communication_of(self.graph, placement)
        if cost != seen:
            text = f"partition counts {cost} for a placement that communicates {seen}"
            raise SolverError(text)
        return placement


def communication_of(graph: Graph, placement: Mapping[OpId, DeviceId]) -> int:
    """Sizes of all tensors, once for each device that must receive them."""
    return sum(received_sizes(graph, placement).values())


def read_graph(graph: Graph, period: int) -> Reading:
    """Collect items, groups of like devices and messages of a graph.

    An item that no device is allowed to all of may run nowhere. Where memory is
    limited, what a device needs at the least counts (`lpsched.analysis.memory_shares`),
    in units of 1 / T that are made larger where sums would leave 64 bits. Devices are
    then alike only if times are, too.
    """
    sites = Sites.of(graph)
    items = [ops for ops in sites.groups if sites.allowed[ops[0]] != (None,)]
    item_of = {op: i for i, ops in enumerate(items) for op in ops}
    is_limited = any(device.memory is not None for device in graph.devices)
    unit, stocks = _stocks(graph, period, item_of) if is_limited else (1, ())
    kinds: dict[tuple[DeviceGroup, object], list[DeviceId]] = {}
    for device in graph.devices:
        loads = tuple(_load(sites, ops, device.id) for ops in items)
        memory = None if device.memory is None else device.memory * period // unit
        kind = DeviceGroup(count=1, loads=loads, memory=memory)
        times = _times(sites, items, device.id) if is_limited else None
        kinds.setdefault((kind, times), []).append(device.id)
    problem = Problem(
        period=period,
        num_items=len(items),
        groups=tuple(replace(kind, count=len(ids)) for (kind, _), ids in kinds.items()),
        messages=_messages(graph, item_of),
        stocks=stocks,
    ).without_misfits()
    return Reading(
        graph=graph,
        problem=problem,
        items=tuple(items),
        devices=tuple(map(tuple, kinds.values())),
    )


def _load(sites: Sites, ops: Sequence[OpId], device: DeviceId) -> int | None:
    if any(device not in sites.allowed[op] for op in ops):
        return None
    return sum(sites.graph.duration(op, device) for op in ops)


def _times(
    sites: Sites, items: Sequence[Sequence[OpId]], device: DeviceId
) -> tuple[object, ...]:
    """Return what times depend on: op by op, and on links that differ."""
    graph = sites.graph
    ticks = (
        graph.duration(op, device) if device in sites.allowed[op] else None
        for ops in items
        for op in ops
    )
    return (device if graph.links else None, *ticks)


def _stocks(
    graph: Graph, period: int, item_of: Mapping[OpId, int]
) -> tuple[int, tuple[tuple[Share, ...], ...]]:
    """Return the unit of memory, and what devices need."""
    sums = [average_shares(graph, period), peak_shares(graph, period)]
    unit = 1
    while max(sum(s.size for s in shares) for shares in sums) // unit > _LARGEST:
        unit *= 2
    return unit, tuple(_stock(shares, item_of, unit) for shares in sums)


def _stock(
    shares: Iterable[MemoryShare], item_of: Mapping[OpId, int], unit: int
) -> tuple[Share, ...]:
    """Shares by items, each rounded down: their sum is then no more than in truth."""
    sizes: dict[ItemSet, int] = {}
    for share in shares:
        items = frozenset(item_of[op] for op in share.ops if op in item_of)
        sizes[items] = sizes.get(items, 0) + share.size
    return tuple(
        Share(size=size // unit, items=items)
        for items, size in sizes.items()
        if size >= unit and items
    )


def _messages(graph: Graph, item_of: Mapping[OpId, int]) -> tuple[Message, ...]:
    """Messages between items; ops without a device neither send nor receive."""
    return merged_messages(
        Message(
            size=tensor.size,
            source=item_of[tensor.producer],
            targets=frozenset(
                item_of[c.op] for c in tensor.consumers if c.op in item_of
            )
            - {item_of[tensor.producer]},
        )
        for tensor in graph.tensors
        if tensor.producer in item_of
    )
