"""Whether delays are free, so that the period is pure load balancing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from lpsched.analysis.precedence import topological_order
from lpsched.core.graph import DeviceId, Edge, Graph, OpId

__all__ = ["has_free_delays", "least_period"]


def has_free_delays(graph: Graph, *, but_for_memory: bool = False) -> bool:
    """Tell whether any placement with load <= T has a schedule of period T.

    So it is if there is no memory limit and no flush, and every cycle either passes
    a named delay without an upper limit or is a self-loop of delay >= 1 without lag:
    pack each device in any cyclic order and give laps by longest path (design: free
    delays decouple). Runs in time linear in the graph.

    Parameters
    ----------
    but_for_memory : bool
        Leave memory limits aside.
    """
    limited = any(device.memory is not None for device in graph.devices)
    if graph.flush or (limited and not but_for_memory):
        return False
    binding = [edge for edge in graph.edges if _binds(graph, edge)]
    rank = {op: i for i, op in enumerate(topological_order(graph, binding))}
    return all(rank[edge.src] < rank[edge.dst] for edge in binding)


def least_period(graph: Graph, placement: Mapping[OpId, DeviceId]) -> int:
    """Least period of a placement where delays are free: its greatest load.

    Parameters
    ----------
    placement : mapping of OpId to DeviceId
        Of every op that occupies a device.
    """
    loads: Counter[DeviceId] = Counter()
    for op, device in placement.items():
        loads[device] += graph.duration(op, device)
    return max([1, *loads.values()])


def _binds(graph: Graph, edge: Edge) -> bool:
    """Tell whether an edge may close a cycle that limits the period."""
    low, high = graph.delay_range(edge.delay)
    if high is None:
        return False
    return edge.src != edge.dst or low == 0 or edge.lag > 0
