"""zb-v: two stages on each device in a V, run greedily under the memory limit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import product
from typing import Any

from lpsched.analysis.chain import StageMemory, device_room, stage_memory
from lpsched.analysis.pipeline import Pipeline, Slot
from lpsched.errors import NoScheduleError
from lpsched.heuristics.synchronous.clock import Clock
from lpsched.heuristics.synchronous.orders import Orders, folded

__all__ = ["fold_orders"]

#: Restarts that each setting may use to even out what devices wait.
_MOST_RESTARTS = 50


def fold_orders(pipeline: Pipeline) -> Iterator[tuple[int, Orders]]:
    """Orders of ZB-V's greedy scheduler under each of its four settings.

    Yields the longest time that a device waits after its first op, and the orders,
    for each setting that the memory allows. After a warm-up each device runs one I a
    round, of the stage whose gradient is there, then one F; W's run where memory is
    short or a device would wait longer than the others have. A run is repeated with
    the waits of the last one allowed for as long as that shortens the longest wait.
    Where a device has no limit, or nothing is held, there is room for 2p microbatches
    of one stage on p devices, each held in halves until its I and its W.

    Source: Qi et al., *Zero Bubble Pipeline Parallelism* (ICLR 2024), sec. 5 (ZB-V),
    and the rules of its published scheduler.
    """
    for fill_back, fill_forward in product((True, False), repeat=2):
        best: Clock | None = None
        for _ in range(_MOST_RESTARTS):
            before = None if best is None else list(best.idle.values())
            run = _Fold(pipeline, before, {"I": fill_back, "F": fill_forward})
            try:
                run.run()
            except NoScheduleError:
                break
            if best is not None and run.longest_wait() >= max(best.idle.values()):
                break
            best = run.clock
        if best is not None:
            yield max(best.idle.values()), best.orders


def _default(pipeline: Pipeline, p: int) -> dict[str, Any]:
    """Memory of 1F1B where the graph says nothing of it."""
    held = stage_memory(pipeline)
    rooms = [device_room(pipeline, device) for device in pipeline.stages_on]
    if None not in rooms and any(memory.forward for memory in held.values()):
        return {}
    alike = StageMemory(forward=2, input_grad=-1)
    return {"held": dict.fromkeys(held, alike), "room": 4 * p}


class _Fold:
    """One run: `before` are the waits of an earlier run, by device."""

    def __init__(
        self, pipeline: Pipeline, before: list[int] | None, fills: dict[str, bool]
    ) -> None:
        self._pairs = folded(pipeline, "zb-v")
        self.clock = Clock(pipeline, **_default(pipeline, len(self._pairs)))
        self._names = list(pipeline.stages_on)
        self._devices = range(len(self._pairs))
        self._count = pipeline.microbatches
        self._pipeline = pipeline
        self._before = before or [0] * len(self._pairs)
        self._fills = fills
        self._waiting: list[deque[int]] = [deque() for _ in self._pairs]

    def longest_wait(self) -> int:
        """Longest time that a device has waited after its first op."""
        return max(self.clock.idle.values())

    def run(self) -> None:
        """Run everything; raise `NoScheduleError` where memory does not suffice."""
        self._fill_down()
        self._fill_up()
        for _ in range(2 * self._count):
            for d in self._devices:
                while not self._has_room("I", d):
                    self._weight(d)
            self._backwards()
            self._forwards()
        for d in self._devices:
            while self._waiting[d]:
                self._weight(d)

    # -- warm-up ---------------------------------------------------------------
    def _fill_down(self) -> None:
        """Run the first microbatch's F's, and more F's while they are on their way."""
        for d in self._devices:
            self.clock.put("F", self._pairs[d][0])
        for d in reversed(self._devices):
            while self._fits_before_second(d):
                for e in range(d + 1):
                    self.clock.put("F", self._pairs[e][0])
            self.clock.put("F", self._pairs[d][1])

    def _fits_before_second(self, d: int) -> bool:
        """Whether devices 0 to d can run one more F each before F comes back to d."""
        first, second = self._pairs[d]
        slot, back = self.clock.next("F", first), self.clock.next("F", second)
        if slot is None or back is None or d == len(self._pairs) - 1:
            return False
        arrival = self.clock.ready(back)
        end = self.clock.free[self._names[d]] + self._pipeline.duration(slot)
        if arrival is None or end > arrival:
            return False
        kept = (1 + 2 * d) * self.clock.memory(first).forward
        rooms = [self.clock.has_room("F", self._pairs[e][0]) for e in range(d)]
        return all(rooms) and self.clock.has_room("F", first, more=kept)

    def _fill_up(self) -> None:
        """Run F's of both stages in turn until no device has fewer than that before."""
        chunk, stuck = 0, 0
        for d in self._devices[1:]:
            while self._lags_behind(d) and stuck < 2:
                moved = [
                    self._try_forward(e, chunk) for e in self._devices[: d - 1 : -1]
                ]
                stuck = 0 if any(moved) else stuck + 1
                chunk = 1 - chunk

    def _lags_behind(self, d: int) -> bool:
        done = self.clock.done
        mine = [done["F", s] for s in self._pairs[d]]
        others = [done["F", s] for s in self._pairs[d - 1]]
        return sum(mine) < sum(others) or mine[1] <= others[1] < self._count

    def _try_forward(self, d: int, chunk: int) -> bool:
        stage = self._pairs[d][chunk]
        slot = self.clock.next("F", stage)
        if slot is None or self.clock.ready(slot) is None:
            return False
        if not self.clock.has_room("F", stage):
            return False
        self.clock.put("F", stage)
        return True

    # -- rounds ----------------------------------------------------------------
    def _backwards(self) -> None:
        """Run an I on each device: of its first stage if the gradient is there."""
        chunks = [self._next_backward(d) for d in self._devices]
        for d in reversed(self._devices):
            if chunks[d] == 0:
                self._put_filling("I", d, 0)
        for d in self._devices:
            if chunks[d] == 1:
                self._put_filling("I", d, 1)

    def _next_backward(self, d: int) -> int:
        first, second = self._pairs[d]
        done = self.clock.done
        if done["I", first] >= done["I", second]:
            return 1
        slot = self.clock.next("I", first)
        arrived = slot is not None and self.clock.ready(slot) is not None
        return 0 if arrived or done["I", second] >= self._count else 1

    def _forwards(self) -> None:
        """Run an F on each device: of its second stage if its input is there."""
        for d in self._devices:
            chunk = self._next_forward(d)
            if chunk is not None:
                while not self.clock.has_room("F", self._pairs[d][chunk]):
                    self._weight(d)
                self._put_filling("F", d, chunk)

    def _next_forward(self, d: int) -> int | None:
        for chunk in (1, 0):
            slot = self.clock.next("F", self._pairs[d][chunk])
            if slot is not None and self.clock.ready(slot) is not None:
                return chunk
        return None

    def _has_room(self, kind: str, d: int) -> bool:
        return all(self.clock.has_room(kind, stage) for stage in self._pairs[d])

    def _weight(self, d: int) -> None:
        if not self._waiting[d]:
            raise NoScheduleError("no W is left that could make room")
        self.clock.put("W", self._waiting[d].popleft())

    def _put_filling(self, kind: str, d: int, chunk: int) -> None:
        """Run an F or I after the W's that fit into a wait for another device."""
        stage = self._pairs[d][chunk]
        slot = self.clock.next(kind, stage)
        arrival = None if slot is None else self._arrival(slot)
        if arrival is not None:
            self._fill(
                d, arrival, more=(kind == "I" and chunk == 0) or self._fills[kind]
            )
        self.clock.put(kind, stage)
        if kind == "I":
            self._waiting[d].append(stage)

    def _arrival(self, slot: Slot) -> int | None:
        """When what a slot needs arrives from another device; None from its own."""
        source = self._pipeline.source(slot)
        homes = self._pipeline.devices
        if source is None or homes[source.stage] == homes[slot.stage]:
            return None
        return self.clock.ready(slot)

    def _fill(self, d: int, arrival: int, *, more: bool) -> None:
        """Run W's until `arrival`, and one `more` if the wait is too long for one."""
        name, waiting = self._names[d], self._waiting[d]
        while waiting:
            weight = self.clock.next("W", waiting[0])
            ticks = 0 if weight is None else self._pipeline.duration(weight)
            if self.clock.free[name] + ticks > arrival:
                break
            self._weight(d)
        allowed = max(self.longest_wait(), max(self._before) - self._before[d])
        wait = arrival - self.clock.free[name]
        if waiting and more and wait > allowed - self.clock.idle[name]:
            self._weight(d)
