"""Where ops can run once colocation is met, and what edges cost at the least."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import networkx as nx

from lpsched.core.graph import DeviceId, Edge, Graph, OpId

__all__ = ["Site", "Sites"]

#: A device, or None for an op that occupies none.
Site: TypeAlias = DeviceId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    """Groups of ops that share a device, and the devices left to each.

    Attributes
    ----------
    groups : tuple of tuple of OpId
        Every op in one group: colocate groups closed under shared ops, other ops
        alone. In the graph's order.
    group_of : mapping of OpId to int
        Index into `groups`.
    allowed : mapping of OpId to tuple of Site
        Devices allowed to all of the op's group; ``(None,)`` for an op that occupies
        no device. A group without a common device has no schedule; its ops keep
        their own devices here, so that bounds stay defined.
    """

    graph: Graph
    groups: tuple[tuple[OpId, ...], ...]
    group_of: Mapping[OpId, int]
    allowed: Mapping[OpId, tuple[Site, ...]]

    @classmethod
    def of(cls, graph: Graph) -> Sites:
        """Close the colocate groups and meet their devices."""
        ties: nx.Graph[OpId] = nx.Graph()
        ties.add_nodes_from(op.id for op in graph.ops)
        for members in graph.colocate:
            nx.add_path(ties, members)
        place = {op.id: i for i, op in enumerate(graph.ops)}
        groups = sorted(
            (
                tuple(sorted(group, key=place.__getitem__))
                for group in nx.connected_components(ties)
            ),
            key=lambda group: place[group[0]],
        )
        return cls(
            graph=graph,
            groups=tuple(groups),
            group_of={op: i for i, group in enumerate(groups) for op in group},
            allowed={op: s for group in groups for op, s in _meet(graph, group)},
        )

    def common(self, ops: Iterable[OpId]) -> tuple[Site, ...]:
        """Devices allowed to all of some ops, in the graph's order."""
        allowed = {self.allowed[op] for op in ops}
        if allowed == {self.graph.device_ids}:
            return self.graph.device_ids
        sets = [set(devices) for devices in allowed]
        sites: tuple[Site, ...] = (*self.graph.device_ids, None)
        return tuple(site for site in sites if all(site in s for s in sets))

    def least_duration(self, op: OpId) -> int:
        """Ticks that `op` takes on the fastest device left to it."""
        duration = self.graph.op_by_id[op].duration
        if isinstance(duration, int):
            return duration
        return min(self.graph.duration(op, site) for site in self.allowed[op])

    def edge_weight(self, edge: Edge) -> int:
        r"""Least ticks between the starts of an edge's ends, wherever they run.

        .. math:: w_{uv} = \min_{p, q} \; t_u(p) + c_{uv}(p, q) + \mathrm{lag}

        over the devices p, q left to u and v; p = q if they share a device.
        """
        least = self.least_duration(edge.src)
        targets = self.allowed[edge.dst]
        for p in self.allowed[edge.src]:
            free = edge.tensor is None or p is None or p in targets or None in targets
            if free and self.graph.duration(edge.src, p) == least:
                return least + edge.lag
        return min(ticks for ticks, _ in self._placements(edge))

    def crossing_cost(self, edge: Edge) -> int | None:
        """Ticks that an edge costs beyond its least if it joins two devices.

        None if it cannot; 0 if one of its ends occupies no device.
        """
        if (None,) in (self.allowed[edge.src], self.allowed[edge.dst]):
            return 0
        apart = [ticks for ticks, crossing in self._placements(edge) if crossing]
        return min(apart) - self.edge_weight(edge) if apart else None

    def _placements(self, edge: Edge) -> Iterable[tuple[int, bool]]:
        """Weight of an edge under each pair of devices; whether a transfer counts.

        One pair that shares a device and one that does not stand for all where
        devices and links are alike.
        """
        graph, src, dst = self.graph, edge.src, edge.dst
        sources, targets = self.allowed[src], self.allowed[dst]
        together = self.group_of[src] == self.group_of[dst]
        alike = not graph.links and isinstance(graph.op_by_id[src].duration, int)
        pairs: Iterable[tuple[Site, Site]]
        if together:
            pairs = [(p, p) for p in (sources[:1] if alike else sources)]
        elif alike:
            shared = set(targets).intersection(sources)
            pairs = [(p, p) for p in tuple(shared)[:1]]
            pairs += [(p, q) for p in sources[:2] for q in targets[:2] if p != q][:1]
        else:
            pairs = ((p, q) for p in sources for q in targets)
        for p, q in pairs:
            transfer = graph.transfer_ticks(edge.tensor, p, q)
            crossing = p != q and p is not None and q is not None
            yield graph.duration(src, p) + transfer + edge.lag, crossing


def _meet(
    graph: Graph, group: tuple[OpId, ...]
) -> Iterable[tuple[OpId, tuple[Site, ...]]]:
    common = set(graph.device_ids).intersection(*map(graph.allowed, group))
    for op in group:
        own = graph.allowed(op)
        left = tuple(device for device in own if device in common)
        yield op, left or own or (None,)
