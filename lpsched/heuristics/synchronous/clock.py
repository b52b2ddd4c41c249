"""Ops put on devices one after another, each as soon as it can start."""

from __future__ import annotations

from collections.abc import Mapping

from lpsched.analysis.chain import StageMemory, device_room, stage_memory
from lpsched.analysis.pipeline import Pipeline, Slot
from lpsched.core.graph import DeviceId
from lpsched.errors import NoScheduleError

__all__ = ["Clock"]


class Clock:
    """What each device has run, when it is free, and what it holds.

    Microbatches of a kind run in index order on each stage. What a microbatch holds is
    taken at its least (`stage_memory`): a schedule built here is to be verified.

    Parameters
    ----------
    held : mapping of int to StageMemory, optional
        What a microbatch holds on each stage, in place of what the graph says.
    room : int, optional
        Memory of every device for it, in place of what the graph says.

    Attributes
    ----------
    orders : dict of DeviceId to list of Slot
        What each device has run.
    free, idle : dict of DeviceId to int
        When a device is free, and how long it has waited since its first op.
    done : dict of (kind, stage) to int
        Microbatches that have run.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        held: Mapping[int, StageMemory] | None = None,
        room: int | None = None,
    ) -> None:
        devices = tuple(pipeline.stages_on)
        self.pipeline = pipeline
        self.orders: dict[DeviceId, list[Slot]] = {d: [] for d in devices}
        self.free = dict.fromkeys(devices, 0)
        self.idle = dict.fromkeys(devices, 0)
        self.first = dict.fromkeys(devices, 0)
        stages = range(pipeline.num_stages)
        self.done = {(kind, s): 0 for kind in "FIW" for s in stages}
        self._ends: dict[Slot, int] = {}
        self._held = stage_memory(pipeline) if held is None else held
        self._level = dict.fromkeys(devices, 0)
        self._room = {
            d: device_room(pipeline, d) if room is None else room for d in devices
        }

    def next(self, kind: str, stage: int) -> Slot | None:
        """Return the next slot of a kind on a stage; None after the last one."""
        done = self.done[kind, stage]
        return Slot(kind, stage, done) if done < self.pipeline.microbatches else None

    def ready(self, slot: Slot) -> int | None:
        """Tick at which a slot may start for its source; None if that has not run."""
        source = self.pipeline.source(slot)
        if source is None:
            return 0
        end = self._ends.get(source)
        return None if end is None else end + self.pipeline.wait(slot)

    def end(self, slot: Slot) -> int | None:
        """When a slot ends; None if it has not run."""
        return self._ends.get(slot)

    def pending(self, stage: int) -> int:
        """W's that could run."""
        return self.done["I", stage] - self.done["W", stage]

    def memory(self, stage: int) -> StageMemory:
        """What a microbatch holds on a stage."""
        return self._held[stage]

    def has_room(self, kind: str, stage: int, *, more: int = 0) -> bool:
        """Whether the device has memory for the next op of a stage, and `more`."""
        device = self.pipeline.devices[stage]
        room, held = self._room[device], self._held[stage]
        if room is None:
            return True
        need = {
            "F": held.forward + held.during_forward,
            "I": held.during_input_grad,
            "W": held.during_weight_grad,
        }
        return self._level[device] + need[kind] + more <= room

    def put(self, kind: str, stage: int) -> Slot:
        """Run the next op of a kind on a stage.

        Raises
        ------
        NoScheduleError
            There is no memory for it, or what it waits for has not run.
        """
        slot = self.next(kind, stage)
        ready = None if slot is None else self.ready(slot)
        if slot is None or ready is None or not self.has_room(kind, stage):
            raise NoScheduleError(f"no {kind} of stage {stage} can run here")
        device, held = self.pipeline.devices[stage], self._held[stage]
        start = max(self.free[device], ready)
        if self.orders[device]:
            self.idle[device] += start - self.free[device]
        else:
            self.first[device] = start
        self.free[device] = self._ends[slot] = start + self.pipeline.duration(slot)
        change = {"F": held.forward, "I": held.input_grad, "W": -held.weight_grad}
        self._level[device] += change[kind]
        self.done[kind, stage] += 1
        self.orders[device].append(slot)
        return slot

    def span(self) -> int:
        """Longest time from a device's first start to its last end."""
        return max(self.free[d] - self.first[d] for d in self.free)
