"""From a placement to a schedule: phases, then laps, then the least delays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lpsched.analysis.order_search import search_orders
from lpsched.analysis.packing import Packer
from lpsched.analysis.precedence import Block, PlacedGraph, Placement, Times
from lpsched.analysis.staleness import least_delay_sum
from lpsched.core.graph import Graph, OpId
from lpsched.core.io import graph_digest
from lpsched.core.over import Over, never
from lpsched.core.schedule import Placed, Schedule

__all__ = ["complete", "least_staleness_laps", "retime", "time_order"]


def retime(
    graph: Graph,
    period: int,
    placement: Placement,
    phases: Mapping[OpId, int],
    *,
    blocks: Iterable[Block] = (),
) -> Schedule | None:
    """Give each op the least lap, then each named delay the least value, if any do.

    Laps are longest paths with every named delay at its maximum (one without limit
    binds nothing); the least lap is 0.

    Parameters
    ----------
    phases : mapping of OpId to int
        Phases in ticks that do not overlap on any device. An op without a phase may
        start at any tick; it must occupy nothing.
    blocks : iterable of tuples of OpId
        Ops that stay back to back in one iteration.

    Returns
    -------
    Schedule or None
        None if no laps fit these phases, or the flush fails. Memory is not looked at.
    """
    placed = PlacedGraph.of(graph, placement, blocks)
    times = placed.times(period, phases, placed.greatest_delays())
    return None if times is None else _schedule(placed, period, times)


def least_staleness_laps(
    graph: Graph, schedule: Schedule, *, blocks: Iterable[Block] = ()
) -> Schedule:
    """Change laps and named delays so that the staleness is least for these phases.

    Devices and phases stay. Exact where `least_delay_sum` is; among the laps that
    allow these delays each op gets the least. Memory is not looked at, and may rise.
    """
    placement = {op: placed.device for op, placed in schedule.ops.items()}
    placed = PlacedGraph.of(graph, placement, blocks)
    starts = [schedule.ops[op].start for op in placed.ops]
    times = Times(starts=starts, delays=schedule.delays)
    return _schedule(
        placed, schedule.period, _less_stale(placed, schedule.period, times)
    )


def complete(
    graph: Graph, placement: Placement, period: int, *, over: Over = never
) -> Schedule | None:
    """Find a schedule of little staleness for a placement and a period.

    Searches orders of the ops (`search_orders`), gives the best few their least
    staleness, and returns the best. Always succeeds when `has_free_delays` holds,
    each device's load is <= T, and so is each op; None if no order tried fits. Memory
    is not looked at.

    Parameters
    ----------
    over : callable
        Once it says so, the first schedule that comes is good enough.
    """
    placed = PlacedGraph.of(graph, placement)
    if max(placed.loads().values(), default=0) > period:
        return None
    found = search_orders(placed, period, over)
    found.sort(key=lambda times: times.staleness)
    if not found:
        return None
    best = [
        times if over() else _less_stale(placed, period, times) for times in found[:3]
    ]
    return _schedule(placed, period, min(best, key=lambda times: times.staleness))


def time_order(
    placed: PlacedGraph, period: int, order: Sequence[Block], packers: Iterable[Packer]
) -> Schedule | None:
    """Time an order by the first way to pack it that admits laps, the least ones.

    Each device's load must be <= T, and the blocks of `placed` those of the order.
    None if no packer will do. Memory is not looked at.
    """
    for packer in packers:
        phases = packer(placed, period, order)
        if phases is not None:
            times = placed.times(period, phases, placed.greatest_delays())
            if times is not None:
                return _schedule(placed, period, times)
    return None


def _less_stale(placed: PlacedGraph, period: int, times: Times) -> Times:
    """Return the times of least staleness with the phases of these."""
    if times.staleness == sum(d.min - 1 for d in placed.graph.delays.values()):
        return times
    phases = [start % period for start in times.starts]
    delays = least_delay_sum(placed, period, phases)
    fixed = dict(zip(placed.ops, phases, strict=True))
    better = placed.times(period, fixed, delays)
    if better is None or better.staleness >= times.staleness:
        return times
    return better


def _schedule(placed: PlacedGraph, period: int, times: Times) -> Schedule:
    graph = placed.graph
    number = placed.number
    return Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=period,
        ops={
            op.id: Placed(placed.devices[number[op.id]], times.starts[number[op.id]])
            for op in graph.ops
        },
        delays=times.delays,
        graph_document=graph,
    )
