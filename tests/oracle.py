"""Brute force at one period: every device and every start within some laps.

Knows nothing of windows, phases, horizons or solvers. It tries starts within ``laps``
periods of the first op's (which starts at 0: rotating a schedule keeps it valid),
holds each against the rules as formats.md states them, and has the verifier confirm
what it keeps. So it never reports a value that no schedule has: a solver whose proved
optimum is above it is wrong, and so is one that calls infeasible what it solves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from factories import make_schedule

from lpsched.core.graph import DelayName, DeviceId, Edge, Graph, OpId
from lpsched.core.schedule import Schedule
from lpsched.verify import measure, verify

__all__ = ["brute_force", "figures"]

Placement = Mapping[OpId, DeviceId | None]


def brute_force(
    graph: Graph,
    period: int,
    objective: str | None = None,
    caps: Mapping[str, int] | None = None,
    *,
    laps: int = 2,
    placement: Mapping[OpId, DeviceId] | None = None,
) -> int | None:
    """Least value of an objective at a period, None if no schedule was found.

    Parameters
    ----------
    objective : str or None
        ``communication``, ``staleness``, ``peak_memory`` or ``makespan``; None asks
        whether there is any schedule, and 0 says yes.
    caps : mapping of str to int
        Upper limits of any of these.
    laps : int
        Starts lie within this many periods of the first op's.
    placement : mapping of OpId to DeviceId
        Ops whose device is given.
    """
    best: int | None = None
    for devices in _placements(graph, period, placement or {}):
        for timing in _timings(graph, period, devices, laps):
            value = timing.figure(objective)
            if best is not None and value >= best:
                if objective == "communication":
                    break  # the same for every schedule of a placement
                continue
            kept = all(timing.figure(name) <= cap for name, cap in (caps or {}).items())
            if kept and not verify(graph, timing.schedule()):
                best = value
                if best == 0:
                    return 0
    return best


def figures(graph: Graph, schedule: Schedule) -> dict[str, int]:
    """Every figure that can be minimised."""
    measured = measure(graph, schedule)
    return {
        "communication": measured.communication,
        "staleness": measured.staleness,
        "peak_memory": measured.peak_memory,
        "makespan": measured.makespan,
    }


def _placements(
    graph: Graph, period: int, fixed: Mapping[OpId, DeviceId]
) -> Iterator[dict[OpId, DeviceId | None]]:
    """Every choice of devices that keeps colocation and loads of at most T."""
    choices = [
        [d for d in graph.allowed(op.id) if fixed.get(op.id, d) == d]
        if graph.occupies_device(op.id)
        else [None]
        for op in graph.ops
    ]
    for devices in product(*choices):
        placement = dict(zip((op.id for op in graph.ops), devices, strict=True))
        load = dict.fromkeys(graph.device_ids, 0)
        for op, device in placement.items():
            if device is not None:
                load[device] += graph.duration(op, device)
        together = all(len({placement[v] for v in g}) <= 1 for g in graph.colocate)
        if together and max(load.values(), default=0) <= period:
            yield placement


def _timings(
    graph: Graph, period: int, placement: Placement, laps: int
) -> Iterator[_Timing]:
    """Enumerate the starts of a placement that keep all rules but memory."""
    waits = [
        (edge.src, edge.dst, _wait_of(graph, edge, placement), edge.delay)
        for edge in graph.edges
    ]
    durations = {v: graph.duration(v, device) for v, device in placement.items()}
    timing = _Timing(graph, period, placement, durations, waits)
    order = list(placement)

    def extend() -> Iterator[_Timing]:
        if len(timing.starts) == len(order):
            yield timing
            return
        v = order[len(timing.starts)]
        low, high = timing.room(v, laps * period if timing.starts else 0)
        for start in range(low, high + 1):
            if timing.is_free(v, start):
                timing.starts[v] = start
                if not graph.flush or timing.figure("makespan") <= period:
                    yield from extend()
                del timing.starts[v]

    yield from extend()


def _wait_of(graph: Graph, edge: Edge, placement: Placement) -> int:
    """Ticks ``t_u + c + lag`` of an edge."""
    src, dst = placement[edge.src], placement[edge.dst]
    transfer = graph.transfer_ticks(edge.tensor, src, dst)
    return graph.duration(edge.src, src) + transfer + edge.lag


@dataclass(frozen=True)
class _Timing:
    """Starts given so far, changed in place as the enumeration goes on."""

    graph: Graph
    period: int
    placement: Placement
    durations: Mapping[OpId, int]
    waits: Sequence[tuple[OpId, OpId, int, int | DelayName]]
    starts: dict[OpId, int] = field(default_factory=dict)

    def schedule(self) -> Schedule:
        """Build the schedule, each delay the least."""
        placed = {str(v): (self.placement[v], s) for v, s in self.starts.items()}
        delays = {str(name): value for name, value in self.delays().items()}
        return make_schedule(self.graph, self.period, placed, **delays)

    def figure(self, name: str | None) -> int:
        """Measure one figure; 0 without a name."""
        if name is None:
            return 0
        if name == "staleness":
            return sum(self.delays().values()) - len(self.graph.delays)
        if name == "makespan":
            ends = (s + self.durations[v] for v, s in self.starts.items())
            return max(ends) - min(self.starts.values())
        return figures(self.graph, self.schedule())[name]

    def is_free(self, v: OpId, start: int) -> bool:
        """Tell whether v overlaps no earlier op on its device, modulo T."""
        t, device = self.durations[v], self.placement[v]
        return all(
            device is None
            or self.placement[u] != device
            or not (t and self.durations[u])
            or self.durations[u] <= (start - s) % self.period <= self.period - t
            for u, s in self.starts.items()
        )

    def room(self, v: OpId, reach: int) -> tuple[int, int]:
        """Starts of v that the edges to ops already placed leave."""
        low, high = -reach, reach
        for src, dst, wait, delay in self.waits:
            most = self.graph.delay_range(delay)[1]
            if most is None:
                continue
            least = wait - most * self.period
            if src == dst == v and least > 0:
                return 1, 0
            if dst == v and src in self.starts:
                low = max(low, self.starts[src] + least)
            if src == v and dst in self.starts:
                high = min(high, self.starts[dst] - least)
        return low, high

    def delays(self) -> dict[DelayName, int]:
        """Least value of each named delay for these starts."""
        least: dict[DelayName, int] = {k: d.min for k, d in self.graph.delays.items()}
        for src, dst, wait, delay in self.waits:
            if not isinstance(delay, int):
                late = self.starts[src] + wait - self.starts[dst]
                least[delay] = max(least[delay], -(-late // self.period))
        return least
