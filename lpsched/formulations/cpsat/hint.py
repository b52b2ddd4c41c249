"""A schedule as values of the model's variables, to begin a search with."""

from __future__ import annotations

from ortools.sat.python.cp_model import IntVar

from lpsched.analysis.equal_devices import equal_devices
from lpsched.core.schedule import Schedule
from lpsched.formulations.cpsat.symmetry import ordered_ops
from lpsched.formulations.cpsat.variables import Variables

__all__ = ["hint_of", "stretched_starts"]


def hint_of(x: Variables, schedule: Schedule) -> list[tuple[IntVar, int]]:
    """Values of devices, starts and delays as the model would number this schedule.

    Interchangeable ops are sorted by start, equal devices renamed by first use,
    starts rotated to the anchor, and components shifted into their windows. A
    schedule of a shorter period is stretched (`stretched_starts`); of a longer one
    only the devices are kept. Nothing is promised: the values may break what the
    request adds.
    """
    at = x.scope.at
    number = {at.device_id(p): p for p in range(at.num_devices + 1)}
    homes = [number[schedule.ops[op.id].device] for op in at.graph.ops]
    times = stretched_starts(x, schedule)
    if times is not None and x.scope.options.symmetry:
        for ops in ordered_ops(x.scope):
            order = sorted(ops, key=lambda v: times[v])
            moved = [(homes[v], times[v]) for v in order]
            for v, (home, start) in zip(ops, moved, strict=True):
                homes[v], times[v] = home, start
    if x.scope.options.symmetry:
        homes = _renamed(x, homes)
    found = [
        (on, int(homes[v] == p))
        for (v, p), on in x.on.items()
        if x.scope.twin[v] == v and len(x.scope.domain[v]) > 1
    ]
    if times is not None and x.scope.is_timed:
        found += [(x.start[v], s) for v, s in enumerate(_shifted(x, times))]
        for name, k in x.delay.items():  # above its range a delay gains nothing
            found.append((k, min(schedule.delays[name], x.scope.delays[name][1])))
    return found


def stretched_starts(x: Variables, schedule: Schedule) -> list[int] | None:
    r"""Starts of a schedule at the period of the model, in units; None if longer.

    Each op keeps lap and phase at its end: with e = s + t and T' = T + ΔT,
    :math:`s' = e + \Delta T \lfloor e / T \rfloor - t`. No rule breaks and no peak
    rises (differences of ends only grow, by whole laps of ΔT).
    """
    at, graph = x.scope.at, x.scope.at.graph
    more = x.scope.request.period - schedule.period
    if more < 0:
        return None
    starts = []
    for op in graph.ops:
        placed = schedule.ops[op.id]
        t = graph.duration(op.id, placed.device)
        end = placed.start + t
        starts.append((end + more * (end // schedule.period) - t) // at.unit)
    return starts


def _renamed(x: Variables, homes: list[int]) -> list[int]:
    """Rename equal devices in the order in which ops, as the model sees them, use."""
    name = list(range(x.scope.at.num_devices + 1))
    for devices in equal_devices(x.scope.at):
        used = dict.fromkeys(
            homes[v]
            for v, head in enumerate(x.scope.twin)
            if head == v and homes[v] in devices
        )
        unused = [p for p in devices if p not in used]
        for new, old in zip(devices, [*used, *unused], strict=True):
            name[old] = new
    return [name[p] for p in homes]


def _shifted(x: Variables, starts: list[int]) -> list[int]:
    """Rotate the main anchor to 0, and each other component's into [0, T)."""
    windows, T = x.scope.windows, x.scope.period
    rotation = starts[windows.main_anchor]
    rotated = [s - rotation for s in starts]
    return [
        s - rotated[a] // T * T
        for s, a in zip(rotated, (int(a) for a in windows.anchor), strict=True)
    ]
