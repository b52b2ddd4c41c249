"""Everything on one device: the baseline that needs no communication."""

from __future__ import annotations

from lpsched.analysis.packing import earliest_phases, pack_phases
from lpsched.analysis.precedence import topological_order
from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import NoScheduleError, UnsupportedError
from lpsched.heuristics.periods import scheduled_order

__all__ = ["sequential"]


def sequential(graph: Graph) -> Schedule:
    """Run all ops on the one device that takes the least time and has the memory.

    In topological order, one iteration after the other; an op that occupies no device
    runs beside.

    Raises
    ------
    UnsupportedError
        If no device is allowed to every op.
    NoScheduleError
        If no device has the memory, or no period suffices.
    """
    ops = [op.id for op in graph.ops if graph.occupies_device(op.id)]
    devices = [d for d in graph.device_ids if all(d in graph.allowed(o) for o in ops)]
    if ops and not devices:
        raise UnsupportedError("no device is allowed to every op")
    devices.sort(key=lambda device: sum(graph.duration(op, device) for op in ops))
    order = [(op,) for op in topological_order(graph)]
    reasons: list[NoScheduleError] = []
    for placement in [dict.fromkeys(ops, d) for d in devices] or [{}]:
        try:
            return scheduled_order(
                graph, placement, order, (pack_phases, earliest_phases)
            )
        except NoScheduleError as reason:
            reasons.append(reason)
    raise reasons[0]
