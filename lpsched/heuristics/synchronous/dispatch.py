"""List scheduling by deadlines: each device runs what is due first, memory allowing."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lpsched.analysis.pipeline import Pipeline
from lpsched.heuristics.synchronous.clock import Clock
from lpsched.heuristics.synchronous.orders import Orders

__all__ = ["Deadlines", "deadline_orders", "due_dates"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Latest starts by kind, stage and microbatch; idle ticks allowed by stage."""

    latest: Mapping[str, Sequence[Sequence[int]]]
    idle: Sequence[int]

    def shifted(self, earlier: Mapping[str, int]) -> Deadlines:
        """Return deadlines so many ticks earlier, by kind: these run sooner then."""
        latest = {
            kind: [[d - earlier.get(kind, 0) for d in row] for row in rows]
            for kind, rows in self.latest.items()
        }
        return Deadlines(latest=latest, idle=self.idle)


def due_dates(pipeline: Pipeline) -> Deadlines:
    r"""Return deadlines for any placement, by what hangs on an op of a microbatch.

    .. math:: \mathrm{due}(v_m) = m P - \mathrm{tail}(v)

    with P the most work of a microbatch on any device, and the tail the longest way
    from v's start to the end of its microbatch. No device waits for what is to come.
    """
    stages = range(pipeline.num_stages)
    ticks = {kind: [min(row) for row in rows] for kind, rows in pipeline.ticks.items()}
    work = max(
        sum(ticks[kind][s] for kind in "FIW" for s in mine)
        for mine in pipeline.stages_on.values()
    )
    tail = {"W": ticks["W"], "I": [0] * len(stages), "F": [0] * len(stages)}
    for s in stages:
        rest = tail["W"][s]
        if s:
            rest = max(rest, pipeline.up[s - 1] + tail["I"][s - 1])
        tail["I"][s] = ticks["I"][s] + rest
    for s in reversed(stages):
        last = s == len(stages) - 1
        rest = tail["I"][s] if last else pipeline.down[s] + tail["F"][s + 1]
        tail["F"][s] = ticks["F"][s] + rest
    count = range(pipeline.microbatches)
    latest = {
        kind: [[m * work - tail[kind][s] for m in count] for s in stages]
        for kind in "FIW"
    }
    return Deadlines(latest=latest, idle=[0] * len(stages))


class _Choice(NamedTuple):
    """An op that a device could run: when it is due and when it can start."""

    deadline: int
    rank: int
    stage: int
    kind: str
    ready: int


def deadline_orders(pipeline: Pipeline, deadlines: Deadlines) -> Orders | None:
    """Run whichever op is due first on the device that is free first.

    A device waits for an op that is known to arrive while another would run and to be
    due before that ends, as long as its idle ticks suffice. An F leaves memory for the
    F's of the oldest microbatch that has not been through all stages of its device.

    Returns
    -------
    Orders or None
        None if memory brings the devices to a standstill.
    """
    return _Dispatcher(pipeline, deadlines).run()


class _Dispatcher:
    """Devices wake up when they get free and when something arrives."""

    def __init__(self, pipeline: Pipeline, deadlines: Deadlines) -> None:
        self._pipeline, self._deadlines = pipeline, deadlines
        self._clock = Clock(pipeline)
        self._names = list(pipeline.stages_on)
        self._number = {name: d for d, name in enumerate(self._names)}
        self._due: list[tuple[int, int]] = [(0, d) for d in range(len(self._names))]

    def run(self) -> Orders | None:
        """Dispatch until nothing is left, or nothing can run."""
        while self._due:
            now, d = heapq.heappop(self._due)
            if now < self._clock.free[self._names[d]]:
                continue
            choices = self._choices(d)
            ready = [c for c in choices if c.ready <= now]
            if ready:
                until = self._waits(d, now, min(ready), choices)
                if until is None:
                    self._put(min(ready))
                    continue
            else:
                until = min((c.ready for c in choices), default=None)
            if until is not None:
                heapq.heappush(self._due, (until, d))
        orders = self._clock.orders
        total = 3 * self._pipeline.num_stages * self._pipeline.microbatches
        return orders if sum(map(len, orders.values())) == total else None

    def _choices(self, d: int) -> list[_Choice]:
        found = []
        for stage in self._pipeline.stages_on[self._names[d]]:
            for rank, kind in enumerate("FIW"):
                slot = self._clock.next(kind, stage)
                ready = None if slot is None else self._clock.ready(slot)
                if slot is None or ready is None:
                    continue
                more = self._reserved(stage) if kind == "F" else 0
                if self._clock.has_room(kind, stage, more=more):
                    due = self._deadlines.latest[kind][stage][slot.microbatch]
                    found.append(_Choice(due, rank, stage, kind, ready))
        return found

    def _reserved(self, stage: int) -> int:
        """Memory to leave for the F's of the oldest microbatch on the way."""
        mine = self._pipeline.stages_on[self._pipeline.devices[stage]]
        done = {s: self._clock.done["F", s] for s in mine}
        oldest = min(done.values())
        waiting = (s for s in mine if done[s] == oldest and s != stage)
        return sum(self._clock.memory(s).forward for s in waiting)

    def _waits(
        self, d: int, now: int, choice: _Choice, choices: Sequence[_Choice]
    ) -> int | None:
        """Tick until which to wait for a more urgent op; None to run the choice."""
        name = self._names[d]
        slot = self._clock.next(choice.kind, choice.stage)
        end = now + (0 if slot is None else self._pipeline.duration(slot))
        left = self._deadlines.idle[choice.stage] - self._clock.idle[name]
        left -= now - self._clock.free[name]
        arrivals = [
            c.ready
            for c in choices
            if now < c.ready < end and end > c.deadline and c.ready - now <= left
        ]
        return min(arrivals, default=None)

    def _put(self, choice: _Choice) -> None:
        """Run the choice; wake its device, and the one that its result goes to."""
        stage, kind = choice.stage, choice.kind
        devices = self._pipeline.devices
        self._clock.put(kind, stage)
        free = self._clock.free[devices[stage]]
        heapq.heappush(self._due, (free, self._number[devices[stage]]))
        neighbour = {"F": stage + 1, "I": stage - 1}.get(kind, -1)
        if 0 <= neighbour < len(devices):
            wait = self._pipeline.down if kind == "F" else self._pipeline.up
            arrival = free + wait[min(stage, neighbour)]
            wake = max(arrival, self._clock.free[devices[neighbour]])
            heapq.heappush(self._due, (wake, self._number[devices[neighbour]]))
