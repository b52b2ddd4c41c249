"""Deadline list scheduling: one stage a device, aimed at a period under test."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lpsched.analysis.chain import Chain
from lpsched.analysis.pipeline import Pipeline
from lpsched.analysis.synchronous import Room, longest_paths, tails
from lpsched.heuristics.synchronous.clock import Clock
from lpsched.heuristics.synchronous.orders import Orders

__all__ = ["Deadlines", "deadline_orders", "deadlines_for", "quiet_tails"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Latest starts by kind, stage and microbatch; idle ticks allowed on each stage."""

    latest: Mapping[str, Sequence[Sequence[int]]]
    idle: Sequence[int]

    def shifted(self, earlier: Mapping[str, int]) -> Deadlines:
        """Return deadlines so many ticks earlier, by kind: these run sooner then."""
        latest = {
            kind: [[d - earlier.get(kind, 0) for d in row] for row in rows]
            for kind, rows in self.latest.items()
        }
        return Deadlines(latest=latest, idle=self.idle)


def quiet_tails(chain: Chain, rooms: Sequence[Room]) -> list[int]:
    """Idle ticks that each stage needs after its last F: tail_1, if room is short."""
    paths = longest_paths(chain, rooms, 1)
    found = []
    for s, room in enumerate(rooms):
        short = chain.microbatches > room.cap
        found.append(max(0, int(tails(chain, room, s, paths)[0])) if short else 0)
    return found


def deadlines_for(chain: Chain, rooms: Sequence[Room], period: int) -> Deadlines:
    r"""Latest starts of all ops for a period T, from the last microbatch to the first.

    Stage s runs from its light-speed arrival :math:`\sigma_s` to :math:`\sigma_s + T`
    (to T with flush), and may idle D ticks, :math:`\tau` of them at its end
    (`quiet_tails`). In that time there must be room for what is left of each kind and
    for what must come between; with P = f + b + w,

    .. math::
        W(i) &\le \mathrm{end} - (m - i) w \\
        F(i) &\le \mathrm{end} - (m - i) P - \tau,\; I(i) - f,\; F(i + 1) - f,\;
            F(s + 1, i) - f - c \\
        I(i) &\le \mathrm{end} - (m - i)(b + w),\; I(i + 1) - b,\;
            I(s - 1, i) - b - c', \\
            &\quad \sigma + D - \tau + f \min(m, K + i) + i (b + w),\;
            F(K + i) - (\text{least work to make room for it})

    where the fourth of I, with :math:`\tau` only if K + i < m, counts the work that can
    precede it, and I(0) is rounded down to k f plus at most D (`Ramp`).
    """
    return _Maker(chain, rooms, period).deadlines()


class _Maker:
    """Deadlines of one chain at one period."""

    def __init__(self, chain: Chain, rooms: Sequence[Room], period: int) -> None:
        self._chain, self._rooms = chain, rooms
        self._count = chain.microbatches
        stages = range(chain.num_stages)
        self._begin = [sum(chain.forward[:s]) + sum(chain.down[:s]) for s in stages]
        spans = [period - chain.offset(s) - chain.update[s] for s in stages]
        self._end = [b + t for b, t in zip(self._begin, spans, strict=True)]
        self._idle = [spans[s] - self._count * chain.work(s) for s in stages]
        self._quiet = quiet_tails(chain, rooms)
        self._return = [room.least_work(0) for room in rooms]
        blank = [[0] * self._count for _ in stages]
        self._latest = {kind: [list(row) for row in blank] for kind in "FIW"}

    def deadlines(self) -> Deadlines:
        stages = range(self._chain.num_stages)
        for i in range(self._count - 1, -1, -1):
            for s in stages:
                self._latest["I"][s][i] = self._input_grad(s, i)
            for s in reversed(stages):
                self._latest["F"][s][i] = self._forward(s, i)
                rest = (self._count - i) * self._chain.weight_grad[s]
                self._latest["W"][s][i] = self._end[s] - rest
        return Deadlines(latest=self._latest, idle=self._idle)

    def _input_grad(self, s: int, i: int) -> int:
        chain, cap = self._chain, self._rooms[s].cap
        f, b = chain.forward[s], chain.input_grad[s]
        rest = b + chain.weight_grad[s]
        quiet = self._quiet[s] if cap + i < self._count else 0
        before = f * min(self._count, cap + i) + i * rest
        limits = [
            self._end[s] - (self._count - i) * rest,
            self._begin[s] + self._idle[s] - quiet + before,
        ]
        if cap + i < self._count:
            limits.append(self._latest["F"][s][cap + i] - self._return[s])
        if i < self._count - 1:
            limits.append(self._latest["I"][s][i + 1] - b)
        if s > 0:
            limits.append(self._latest["I"][s - 1][i] - b - chain.up[s - 1])
        latest = min(limits)
        return self._rounded(s, latest) if i == 0 else latest

    def _rounded(self, s: int, latest: int) -> int:
        """Round I(0) down to a whole number of F's after the first, and idle ticks."""
        f, begin = self._chain.forward[s], self._begin[s]
        if f == 0:
            return latest
        k = min(self._rooms[s].cap, (latest - begin) // f)
        return min(latest, begin + k * f + self._idle[s])

    def _forward(self, s: int, i: int) -> int:
        chain = self._chain
        f = chain.forward[s]
        whole = (self._count - i) * chain.work(s)
        limits = [
            self._end[s] - whole - self._quiet[s],
            self._latest["I"][s][i] - f,
        ]
        if s < chain.num_stages - 1:
            limits.append(self._latest["F"][s + 1][i] - f - chain.down[s])
        if i < self._count - 1:
            limits.append(self._latest["F"][s][i + 1] - f)
        return min(limits)


class _Choice(NamedTuple):
    """An op that a stage could run: when it is due and when it can start."""

    deadline: int
    rank: int
    kind: str
    ready: int


def deadline_orders(pipeline: Pipeline, deadlines: Deadlines) -> Orders | None:
    """Run whichever op is due first on the stage that is free first.

    A stage waits for an op that is known to arrive while another would run and to be
    due before that ends, as long as its idle ticks suffice.

    Returns
    -------
    Orders or None
        None if memory brings the stages to a standstill.
    """
    return _Dispatcher(pipeline, deadlines).run()


class _Dispatcher:
    """Stages wake up when they get free and when something arrives."""

    def __init__(self, pipeline: Pipeline, deadlines: Deadlines) -> None:
        self._pipeline, self._deadlines = pipeline, deadlines
        self._clock = Clock(pipeline)
        self._due: list[tuple[int, int]] = [(0, 0)]

    def run(self) -> Orders | None:
        clock, pipeline = self._clock, self._pipeline
        while self._due:
            now, stage = heapq.heappop(self._due)
            if now < clock.free[pipeline.devices[stage]]:
                continue
            choices = self._choices(stage)
            ready = sorted(c for c in choices if c.ready <= now)
            coming = [c for c in choices if c.ready > now]
            if not ready:
                if coming:
                    first = min(c.ready for c in coming)
                    heapq.heappush(self._due, (first, stage))
                continue
            until = self._waits(stage, now, ready[0], coming)
            if until is None:
                self._put(stage, ready[0].kind)
            else:
                heapq.heappush(self._due, (until, stage))
        orders = clock.orders
        total = 3 * pipeline.num_stages * pipeline.microbatches
        return orders if sum(map(len, orders.values())) == total else None

    def _choices(self, stage: int) -> list[_Choice]:
        found = []
        for rank, kind in enumerate("FIW"):
            slot = self._clock.next(kind, stage)
            ready = None if slot is None else self._clock.ready(slot)
            if slot is None or ready is None:
                continue
            if self._clock.has_room(kind, stage):
                due = self._deadlines.latest[kind][stage][slot.microbatch]
                found.append(_Choice(due, rank, kind, ready))
        return found

    def _waits(
        self, stage: int, now: int, choice: _Choice, coming: Sequence[_Choice]
    ) -> int | None:
        """Tick until which to wait for a more urgent op; None to run the choice."""
        device = self._pipeline.devices[stage]
        slot = self._clock.next(choice.kind, stage)
        end = now + (0 if slot is None else self._pipeline.duration(slot))
        left = self._deadlines.idle[stage] - self._clock.idle[device]
        left -= now - self._clock.free[device]
        arrivals = [
            c.ready
            for c in coming
            if c.ready < end and end > c.deadline and c.ready - now <= left
        ]
        return min(arrivals, default=None)

    def _put(self, stage: int, kind: str) -> None:
        clock, devices = self._clock, self._pipeline.devices
        clock.put(kind, stage)
        free = clock.free[devices[stage]]
        heapq.heappush(self._due, (free, stage))
        neighbour = {"F": stage + 1, "I": stage - 1}.get(kind, -1)
        if 0 <= neighbour < len(devices):
            wait = self._pipeline.down if kind == "F" else self._pipeline.up
            arrival = free + wait[min(stage, neighbour)]
            wake = max(arrival, clock.free[devices[neighbour]])
            heapq.heappush(self._due, (wake, neighbour))
