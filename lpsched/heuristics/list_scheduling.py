"""List scheduling of any graph: balanced loads, and modulo scheduling upwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lpsched.analysis.freedom import has_free_delays
from lpsched.analysis.packing import earliest_phases
from lpsched.analysis.precedence import PlacedGraph, Placement
from lpsched.analysis.sites import Sites
from lpsched.analysis.timing import (
    complete,
    least_staleness_laps,
    retime,
    time_order,
)
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.over import Over, never
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import NoScheduleError, UnsupportedError
from lpsched.heuristics.modulo import ModuloScheduler
from lpsched.heuristics.periods import first_success, serial_period
from lpsched.heuristics.sequential import sequential
from lpsched.verify import verify

__all__ = ["balanced_placement", "list_schedule"]

#: The search ends within 1/n of the period it has found, with n the first figure over
#: the number of ops, and at least the second.
FINE_OPS, COARSEST = 100_000, 16


def list_schedule(graph: Graph, over: Over = never) -> Schedule:
    """Schedule any graph: the best of three ways, by period, then by staleness.

    Longest ops first to the device then least loaded, timed at the largest load (the
    only way needed where delays are free); iterative modulo scheduling at periods
    from a lower bound up; everything on one device. A period is given up where a
    device's memory would be exceeded, so that under tight memory limits a schedule may
    be missed.

    Parameters
    ----------
    over : callable
        Once it says so, no more periods are tried.

    Raises
    ------
    NoScheduleError
        If none of them fits.
    """
    sites = Sites.of(graph)
    for group in sites.groups:
        if graph.occupies_device(group[0]) and not sites.common(group):
            text = f"no device is allowed to all of {', '.join(group)}"
            raise NoScheduleError(text)
    placement, load = balanced_placement(graph, sites)
    found = [_accepted(graph, complete(graph, placement, load, over=over))]
    if found[0] is None or not has_free_delays(graph):
        found.append(_modulo(graph, sites, placement, found[0], over))
    try:
        found.insert(0, sequential(graph))
    except (NoScheduleError, UnsupportedError) as reason:
        if not any(found):
            text = f"list scheduling found no period; on one device: {reason}"
            raise NoScheduleError(text) from reason
    return min(filter(None, found), key=_rank)


def _rank(schedule: Schedule) -> tuple[int, int]:
    return schedule.period, sum(schedule.delays.values())


def _accepted(graph: Graph, schedule: Schedule | None) -> Schedule | None:
    """Return a schedule if there is one and no device's memory is exceeded."""
    return None if schedule is None or verify(graph, schedule) else schedule


def balanced_placement(graph: Graph, sites: Sites) -> tuple[dict[OpId, DeviceId], int]:
    """Give colocated ops a device, longest first, each where the load stays least.

    Returns the placement and the least period it allows: the largest load, at least 1.
    """
    loads = dict.fromkeys(graph.device_ids, 0)
    placement: dict[OpId, DeviceId] = {}
    for _, ticks, group in sorted(_work(graph, sites), key=lambda entry: -entry[0]):
        after = {device: loads[device] + t for device, t in ticks.items()}
        device = min(after, key=after.__getitem__)
        loads[device] = after[device]
        placement |= dict.fromkeys(group, device)
    return placement, max([1, *loads.values()])


def _work(
    graph: Graph, sites: Sites
) -> Iterator[tuple[int, Mapping[DeviceId, int], Sequence[OpId]]]:
    """Groups that occupy a device, with their ticks on the fastest and on each."""
    for group in sites.groups:
        if graph.occupies_device(group[0]):
            ticks = _ticks(graph, group, sites)
            yield min(ticks.values()), ticks, group


def _ticks(graph: Graph, group: Sequence[OpId], sites: Sites) -> dict[DeviceId, int]:
    """Ticks that a group takes on each device left to it."""
    devices = [device for device in sites.common(group) if device is not None]
    if all(isinstance(graph.op_by_id[op].duration, int) for op in group):
        return dict.fromkeys(devices, sum(graph.duration(op, None) for op in group))
    return {p: sum(graph.duration(op, p) for op in group) for p in devices}


def _modulo(
    graph: Graph,
    sites: Sites,
    placement: Placement,
    best: Schedule | None,
    over: Over,
) -> Schedule | None:
    """Search for a period below that of `best`, from the least that loads allow."""
    placed = PlacedGraph.of(graph, placement)
    order = [(op,) for op in placed.ops]
    scheduler = ModuloScheduler(graph, sites)

    def attempt(period: int) -> Schedule | None:
        if over():
            return None
        places = scheduler.attempt(period, over)
        if places is not None:
            found = _accepted(graph, _timed(graph, period, places))
            if found is not None:
                return found
        if max(placed.loads().values(), default=0) > period:
            return None
        found = time_order(placed, period, order, (earliest_phases,))
        return _accepted(graph, found)

    work = [least for least, _, _ in _work(graph, sites)]
    low = max([1, *work, -(-sum(work) // max(1, len(graph.devices)))])
    high = max(low, serial_period(placed)) if best is None else best.period - 1
    if low > high:
        return None
    fine = max(COARSEST, FINE_OPS // max(1, len(graph.ops)))
    found = first_success(attempt, low, high, fine=fine)
    if found is None:
        return None
    return _accepted(graph, least_staleness_laps(graph, found)) or found


def _timed(graph: Graph, period: int, places: Mapping[OpId, Placed]) -> Schedule | None:
    """Lap again what modulo scheduling has placed."""
    placement = {op: placed.device for op, placed in places.items()}
    phases = {
        op: placed.start % period
        for op, placed in places.items()
        if placed.device is not None and graph.duration(op, placed.device) > 0
    }
    return retime(graph, period, placement, phases)
