"""The same problem with a rule left out: a bound, and often the answer."""

from __future__ import annotations

from lpsched.core.graph import Device, Graph

__all__ = ["has_memory_limit", "with_at_most", "with_memory", "without_memory_limits"]


def has_memory_limit(graph: Graph) -> bool:
    """Tell whether any device's memory is limited."""
    return any(device.memory is not None for device in graph.devices)


def without_memory_limits(graph: Graph) -> Graph:
    """Return the graph with every device's memory unlimited."""
    return with_memory(graph, None)


def with_memory(graph: Graph, limit: int | None) -> Graph:
    """Return the graph with this memory on every device; None for no limit."""
    devices = tuple(Device(id=device.id, memory=limit) for device in graph.devices)
    return graph.replace(devices=devices)


def with_at_most(graph: Graph, cap: int) -> Graph:
    """Return the graph with no more memory than the cap on any device."""
    devices = tuple(
        Device(id=d.id, memory=cap if d.memory is None else min(cap, d.memory))
        for d in graph.devices
    )
    return graph.replace(devices=devices)
