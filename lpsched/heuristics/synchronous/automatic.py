"""zb-auto: forwards as far as memory and time allow, W where a device would wait."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from lpsched.analysis.pipeline import Pipeline
from lpsched.errors import NoScheduleError
from lpsched.heuristics.synchronous.clock import Clock
from lpsched.heuristics.synchronous.orders import Orders

__all__ = ["SETTINGS", "Setting", "automatic_order", "automatic_orders"]


class Setting(NamedTuple):
    """What the greedy scheduler leaves open.

    `early`: warm up only as long as no forward delays the first I. `careful`: skip a
    forward where the next stage could start its I sooner for it. `greedy`: run a W
    even into a wait that is no longer than those of the most idle stage.
    """

    early: bool
    careful: bool
    greedy: bool


#: All settings, those that win most often first.
SETTINGS = tuple(Setting(*flags) for flags in product((True, False), repeat=3))


def automatic_orders(pipeline: Pipeline) -> Iterator[tuple[int, Orders]]:
    """Orders of zero bubble's greedy scheduler under each of its eight settings.

    Yields the longest span of a stage and the orders, for each setting that the
    memory allows.
    """
    for setting in SETTINGS:
        try:
            clock = _run(pipeline, setting)
        except NoScheduleError:
            continue
        yield clock.span(), clock.orders


def automatic_order(pipeline: Pipeline, *, setting: Setting) -> Orders:
    """Order the ops as zero bubble's greedy scheduler does under one setting.

    Round after round each stage runs one I, and before it one F unless a stage after
    it has to catch up; W's run where memory is short, where one fits into a wait, and
    at the setting's choice where it would just not.

    Source: Qi et al., *Zero Bubble Pipeline Parallelism* (ICLR 2024), sec. 3.1 and
    the rules of its published scheduler.

    Raises
    ------
    NoScheduleError
        The memory does not suffice.
    """
    return _run(pipeline, setting).orders


def _run(pipeline: Pipeline, setting: Setting) -> Clock:
    run = _Automatic(pipeline, setting)
    run.run()
    return run.clock


class _Automatic:
    """One run under one setting."""

    def __init__(self, pipeline: Pipeline, setting: Setting) -> None:
        self.clock = Clock(pipeline)
        self._pipeline = pipeline
        self._devices = pipeline.devices
        self._stages = range(pipeline.num_stages)
        self._early, self._careful, self._greedy = setting

    def run(self) -> None:
        """Run everything; raise `NoScheduleError` where memory does not suffice."""
        self._warm_up()
        for _ in range(1, self._pipeline.microbatches):
            wanted = [self._wants_forward(s) for s in self._stages]
            for s in self._stages:
                if all(wanted[s:]):
                    self._put_filling("F", s)
            for s in reversed(self._stages):
                self._put_filling("I", s)
        for s in self._stages:
            while self.clock.pending(s):
                self.clock.put("W", s)

    # -- warm-up ---------------------------------------------------------------
    def _warm_up(self) -> None:
        """Run the first F's, more while the first I is on its way, then the first I."""
        for s in self._stages:
            self.clock.put("F", s)
        for s, more in enumerate(self._more_forwards()):
            for _ in range(more):
                self.clock.put("F", s)
        for s in reversed(self._stages):
            self.clock.put("I", s)

    def _more_forwards(self) -> list[int]:
        """Forwards beyond the first that fit before the first I arrives.

        Each stage has fewer than the one before, unless it then has all of them.
        """
        more = [0] * len(self._stages)
        arrival = 0
        for s in reversed(self._stages):
            free = self.clock.free[self._devices[s]]
            if s < self._pipeline.num_stages - 1:
                arrival += self._pipeline.up[s]
                more[s] = self._fitting(s, free, arrival)
                free += sum(self._pipeline.ticks["F"][s][1 : 1 + more[s]])
            arrival = max(free, arrival) + self._pipeline.ticks["I"][s][0]
        for s in self._stages[1:]:
            if 1 + more[s] < self._pipeline.microbatches:
                most = max(0, more[s - 1] - 1)
                more[s] = min(more[s], most)
        return more

    def _fitting(self, stage: int, free: int, arrival: int) -> int:
        ticks, held = self._pipeline.ticks["F"][stage], self.clock.memory(stage)
        count = 0
        while 1 + count < self._pipeline.microbatches:
            if not self.clock.has_room("F", stage, more=count * held.forward):
                break
            end = free + ticks[1 + count]
            if end > arrival if self._early else free >= arrival:
                break
            free = end
            count += 1
        return count

    # -- rounds ----------------------------------------------------------------
    def _wants_forward(self, stage: int) -> bool:
        """Whether a stage has another F, and the next one no need to catch up."""
        clock, following = self.clock, stage + 1
        slot = clock.next("F", stage)
        if slot is None:
            return False
        if following not in self._stages or not self._careful:
            return True
        if clock.done["F", stage] < clock.done["F", following] + 2:
            return True
        back = self._next_gradient(following)
        free = clock.free[self._devices[stage]]
        if free >= back:
            return False
        ticks = self._pipeline.duration(slot)
        if free + ticks + self._ticks_to_make_room(stage) <= back:
            return True
        return back - free > self._leeway(stage)

    def _next_gradient(self, stage: int) -> int:
        """When the stage before could have an I, if this one ran an F and its I now."""
        free = self.clock.free[self._devices[stage]]
        slots = (self.clock.next(kind, stage) for kind in "FI")
        ticks = sum(self._pipeline.duration(slot) for slot in slots if slot)
        return free + ticks + self._pipeline.up[stage - 1]

    def _ticks_to_make_room(self, stage: int) -> int:
        """Ticks of the W's that have to run before an F has memory."""
        clock, held = self.clock, self.clock.memory(stage)
        done, ticks, count = clock.done["W", stage], 0, 0
        while count < clock.pending(stage) and not clock.has_room(
            "F", stage, more=-count * held.weight_grad
        ):
            ticks += self._pipeline.ticks["W"][stage][done + count]
            count += 1
        return ticks

    def _leeway(self, stage: int) -> int:
        """How much less a stage has waited than the one that has most."""
        return max(self.clock.idle.values()) - self.clock.idle[self._devices[stage]]

    def _put_filling(self, kind: str, stage: int) -> None:
        """Run an F or I after the W's that make room for it or fill the wait."""
        clock, device = self.clock, self._devices[stage]
        while not clock.has_room(kind, stage):
            clock.put("W", stage)
        slot = clock.next(kind, stage)
        ready = None if slot is None else clock.ready(slot)
        while ready is not None and clock.pending(stage):
            weight = clock.next("W", stage)
            wait = ready - clock.free[device]
            if weight is None or self._pipeline.duration(weight) > wait:
                break
            clock.put("W", stage)
        if ready is not None and clock.pending(stage):
            wait = ready - clock.free[device]
            if wait > 0 and (self._greedy or wait > self._leeway(stage)):
                clock.put("W", stage)
        if kind == "I" and stage == 0 and clock.next("F", stage) is None:
            while clock.pending(stage):
                clock.put("W", stage)
        clock.put(kind, stage)
