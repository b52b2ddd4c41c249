"""The same problem with a rule left out: a bound, and often the answer."""

from __future__ import annotations

from lpsched.core.graph import Device, Graph

__all__ = ["has_memory_limit", "without_memory_limits"]


def has_memory_limit(graph: Graph) -> bool:
    """Tell whether any device's memory is limited."""
    return any(device.memory is not None for device in graph.devices)


def without_memory_limits(graph: Graph) -> Graph:
    """Return the graph with every device's memory unlimited."""
    free = tuple(Device(id=device.id) for device in graph.devices)
    return graph.replace(devices=free)
