"""Schedules as traces: devices and links as tracks, transfers as flows, memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from lpsched.analysis.metrics import copies
from lpsched.core.graph import DeviceId, Edge, Graph, Op, OpId, TensorId
from lpsched.core.schedule import Schedule
from lpsched.errors import UnsupportedError
from lpsched.export.trace import Slice, Trace, lanes, tick_ns

__all__ = [
    "MAX_EVENTS",
    "add_schedule",
    "default_iterations",
    "memory_levels",
    "perfetto_text",
]

#: Viewers do not open more than some millions.
MAX_EVENTS = 2_000_000
#: A tick of no known length is drawn as a microsecond.
_TICK_NS = 1_000


def perfetto_text(
    schedules: Sequence[tuple[str, Graph, Schedule]], *, iterations: int | None = None
) -> str:
    """Write named schedules as one trace, a process each.

    Parameters
    ----------
    schedules
        Name, graph and schedule of each; schedules that the verifier accepts.
    iterations : int, optional
        How many run, from prologue to epilogue; by default `default_iterations`.

    Raises
    ------
    UnsupportedError
        For more than `MAX_EVENTS` events.
    """
    trace = Trace()
    for name, graph, schedule in schedules:
        add_schedule(trace, name, graph, schedule, iterations=iterations)
        if len(trace.events) > MAX_EVENTS:
            _refuse(len(trace.events))
    units = {graph.time_unit: f"{_tick(graph)} ns" for _, graph, _ in schedules}
    return trace.text(ticks=units)


def _refuse(events: int) -> None:
    text = f"a trace of {events:,} events, more than {MAX_EVENTS:,}"
    raise UnsupportedError(f"{text}: fewer iterations would do")


def _tick(graph: Graph) -> Fraction:
    return Fraction(tick_ns(graph.time_unit) or _TICK_NS)


def default_iterations(graph: Graph, schedule: Schedule) -> int:
    """Enough to see the pipeline fill, two periods of the steady state, and drain."""
    laps = [schedule.lap(op.id) for op in graph.ops] or [0]
    return max(laps) - min(laps) + 3


def add_schedule(
    trace: Trace,
    name: str,
    graph: Graph,
    schedule: Schedule,
    *,
    iterations: int | None = None,
    tick: Fraction | None = None,
) -> None:
    """Add a schedule as a process: devices, links, flows and memory.

    Parameters
    ----------
    tick : Fraction, optional
        Nanoseconds of a tick, if the graph's unit is not to say it.
    """
    count = iterations or default_iterations(graph, schedule)
    if count * (len(graph.ops) + 3 * len(graph.edges)) > 4 * MAX_EVENTS:
        _refuse(count * (len(graph.ops) + len(graph.edges)))
    unit = f"period {schedule.period:,} {graph.time_unit}"
    pid = trace.process(f"{name}: {graph.name}, {unit}")
    _Writer(trace, pid, graph, schedule, count, tick or _tick(graph)).write()


class _Writer:
    """Adds one schedule, unrolled over iterations 0 to count - 1."""

    def __init__(
        self,
        trace: Trace,
        pid: int,
        graph: Graph,
        schedule: Schedule,
        count: int,
        tick: Fraction,
    ) -> None:
        self._trace = trace
        self._pid = pid
        self._graph = graph
        self._schedule = schedule
        self._iterations = range(count)
        self._tick = tick
        self._first = min((p.start for p in schedule.ops.values()), default=0)
        self._copies = copies(graph, schedule)
        #: Track and slice of each run of an op, and of each transfer to a device.
        self._runs: dict[tuple[OpId, int], tuple[int, Slice]] = {}
        self._transfers: dict[tuple[TensorId, DeviceId, int], tuple[int, Slice]] = {}

    def write(self) -> None:
        """Add the tracks of devices and links, then flows and counters."""
        self._add_ops()
        self._add_links()
        for edge in self._graph.edges:
            self._add_flows(edge)
        for device in self._graph.device_ids:
            self._add_memory(device)

    def _device(self, op: OpId) -> DeviceId | None:
        return self._schedule.ops[op].device

    def _ns(self, time: int, iteration: int = 0) -> int:
        """Nanoseconds, from the first start, of what comes again each iteration."""
        ticks = time + iteration * self._schedule.period - self._first
        return int(ticks * self._tick)

    def _slice(
        self, name: str, kind: str, times: range, details: dict[str, Any]
    ) -> Slice:
        """Build a slice of an iteration; whole nanoseconds keep neighbours apart."""
        start = self._ns(times.start, details["iteration"])
        end = self._ns(times.stop, details["iteration"])
        return Slice(
            name=name,
            kind=kind,
            start=start,
            length=end - start,
            details={key: value for key, value in details.items() if value is not None},
        )

    # -- devices ---------------------------------------------------------------
    def _add_ops(self) -> None:
        by_device: defaultdict[DeviceId | None, list[Op]] = defaultdict(list)
        for op in self._graph.ops:
            by_device[self._device(op.id)].append(op)
        for device in self._graph.device_ids:
            self._add_track(device, by_device[device])
        for op in by_device[None]:  # they occupy nothing and may overlap
            self._add_track(f"{op.id} (no device)", [op])

    def _add_track(self, name: str, ops: Sequence[Op]) -> None:
        tid = self._trace.track(self._pid, name)
        runs = {(op.id, n): self._run(op, n) for op in ops for n in self._iterations}
        for key, piece in sorted(runs.items(), key=lambda run: run[1].start):
            self._runs[key] = (tid, piece)
            self._trace.slice(self._pid, tid, piece)

    def _run(self, op: Op, iteration: int) -> Slice:
        ticks = self._graph.duration(op.id, self._device(op.id))
        details = {
            "iteration": iteration,
            "layer": op.layer,
            "stage": op.stage,
            "microbatch": op.microbatch,
            "lap": self._schedule.lap(op.id),
            "ticks": ticks,
        }
        start = self._schedule.ops[op.id].start
        return self._slice(op.id, op.kind, range(start, start + ticks), details)

    # -- links -----------------------------------------------------------------
    def _add_links(self) -> None:
        """Add a track for each link that is used, more where transfers overlap."""
        by_link: defaultdict[str, dict[Slice, tuple[TensorId, DeviceId, int]]]
        by_link = defaultdict(dict)
        for tensor, device, birth, _ in self._copies:
            src = self._device(tensor.producer)
            ticks = self._graph.transfer_ticks(tensor, src, device)
            for n in self._iterations if ticks else ():
                details = {"iteration": n, "units": tensor.size}
                times = range(birth, birth + ticks)
                piece = self._slice(tensor.id, "transfer", times, details)
                by_link[f"{src} → {device}"][piece] = (tensor.id, device, n)
        for link, pieces in sorted(by_link.items()):
            for i, lane in enumerate(lanes(list(pieces))):
                more = f" ({i + 1})" if i else ""
                tid = self._trace.track(self._pid, link + more)
                for piece in lane:
                    self._transfers[pieces[piece]] = (tid, piece)
                    self._trace.slice(self._pid, tid, piece)

    def _add_flows(self, edge: Edge) -> None:
        """Add arrows from a producer over the link to a user on another device."""
        device = self._device(edge.dst)
        if edge.tensor is None or device in (None, self._device(edge.src)):
            return
        delay = self._schedule.delay(edge.delay)
        for n in self._iterations[: max(0, len(self._iterations) - delay)]:
            tid, made = self._runs[edge.src, n]
            stops = [(tid, made.last)]
            if (sent := self._transfers.get((edge.tensor.id, device, n))) is not None:
                stops.append((sent[0], sent[1].start))
            tid, used = self._runs[edge.dst, n + delay]
            stops.append((tid, used.start))
            self._trace.flow(edge.tensor.id, self._pid, stops)

    # -- memory ----------------------------------------------------------------
    def _add_memory(self, device: DeviceId) -> None:
        levels = memory_levels(self._graph, self._schedule, device, self._iterations)
        name, unit = f"memory of {device}", self._graph.size_unit
        scaled = [(self._ns(tick), level) for tick, level in levels]
        self._trace.counter(self._pid, name, unit, scaled)


def memory_levels(
    graph: Graph, schedule: Schedule, device: DeviceId, iterations: range
) -> list[tuple[int, int]]:
    """What a device holds from the first start of a run to its last end.

    Copies that earlier iterations would have left for this run are there from its
    beginning; those that later ones would use stay to the end.

    Returns
    -------
    list of (tick, units)
        The level from each tick on.
    """
    places, period = schedule.ops, schedule.period
    first = min(p.start for p in places.values()) + iterations[0] * period
    last = iterations[-1] * period + max(
        p.start + graph.duration(op, p.device) for op, p in places.items()
    )
    steps: Counter[int] = Counter({first: 0})
    for resident in graph.residents:
        if any(places[op].device == device for op in resident.ops):
            steps[first] += resident.size
    for tensor, home, birth, death in copies(graph, schedule):
        if home != device:
            continue
        most = max((schedule.delay(use.delay) for use in tensor.consumers), default=0)
        for n in range(iterations[0] - most, iterations[-1] + 1):
            begin, end = max(first, birth + n * period), min(last, death + n * period)
            if begin < end:
                steps[begin] += tensor.size
                steps[end] -= tensor.size
    ticks = sorted(steps)
    return list(zip(ticks, accumulate(steps[tick] for tick in ticks), strict=True))
