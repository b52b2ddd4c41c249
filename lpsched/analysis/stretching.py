"""A schedule at a longer period: it keeps every rule and raises no peak."""

from __future__ import annotations

from lpsched.core.graph import Graph
from lpsched.core.io import graph_digest
from lpsched.core.schedule import Placed, Schedule

__all__ = ["stretched"]


def stretched(graph: Graph, schedule: Schedule, period: int) -> Schedule:
    r"""Turn a schedule of period T into one of a longer period T'.

    Each op keeps its lap and its phase at its *end* e = s + t:

    .. math:: e' = e + \lfloor e / T \rfloor (T' - T), \qquad s' = e' - t

    No rule breaks and no device holds more (keeping laps and phases of the starts could
    raise a peak). So feasibility is monotone in the period, and so are staleness,
    communication and peak memory.

    Parameters
    ----------
    schedule : Schedule
        Valid for the graph.
    period : int
        T', at least the schedule's period, in ticks.

    Raises
    ------
    ValueError
        If the period is shorter than the schedule's.
    """
    longer = period - schedule.period
    if longer < 0:
        raise ValueError(f"expected a period >= {schedule.period}, got {period}")
    ops = {}
    for op, placed in schedule.ops.items():
        end = placed.start + graph.duration(op, placed.device)
        start = placed.start + end // schedule.period * longer
        ops[op] = Placed(placed.device, start)
    return Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=period,
        ops=ops,
        delays=schedule.delays,
        graph_document=graph,
    )
