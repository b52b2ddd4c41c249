"""The memory rule: which tensor copies live when, and what each device holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lpsched.core.graph import DeviceId, Graph, OpId, Tensor
from lpsched.core.schedule import Schedule
from lpsched.errors import Violation
from lpsched.verify.runs import Run, delay_value, runs, transfer_ticks

__all__ = ["Copy", "check_memory", "copies", "peak", "resident_sizes"]


@dataclass(frozen=True, slots=True)
class Copy:
    """Iteration 0's copy of a tensor on a device, alive in ``[birth, death)``."""

    tensor: Tensor
    device: DeviceId
    birth: int
    death: int

    def alive(self, phase: int, period: int) -> int:
        """How many iterations' copies are alive at a phase: q or q + 1.

        A life of ``q * T + r`` ticks is q copies always and one more while the
        phase is within r ticks of the birth's.
        """
        q, r = divmod(self.death - self.birth, period)
        return q + (1 if (phase - self.birth) % period < r else 0)


def copies(graph: Graph, schedule: Schedule) -> dict[DeviceId, list[Copy]]:
    """Copies by device; tensors of size 0 or made without a device have none."""
    run = runs(graph, schedule)
    found: dict[DeviceId, list[Copy]] = {device: [] for device in graph.device_ids}
    for tensor in graph.tensors:
        maker = run.get(tensor.producer)
        if maker is not None and tensor.size > 0:
            for copy in _copies_of(graph, schedule, tensor, maker, run):
                found[copy.device].append(copy)
    return found


def _copies_of(
    graph: Graph,
    schedule: Schedule,
    tensor: Tensor,
    maker: Run,
    run: Mapping[OpId, Run],
) -> Iterator[Copy]:
    """One copy at home, and one on each device with a use.

    At home it lives from the producer's start to the latest of the producer's end,
    the last use there and the end of the last outgoing transfer; elsewhere from the
    producer's end to the later of the last use there and its arrival. A use with
    delay k ends at ``s + t + k * T``.
    """
    home = maker.device
    if home is None:
        return
    last_use: dict[DeviceId, int] = {}
    for use in tensor.consumers:
        user, k = run.get(use.op), delay_value(schedule, use.delay)
        if user is None or user.device is None or k is None:
            continue
        end = user.end + k * schedule.period
        last_use[user.device] = max(end, last_use.get(user.device, end))
    home_death = max(maker.end, last_use.pop(home, maker.end))
    for device, used in last_use.items():
        arrival = maker.end + transfer_ticks(graph, tensor.size, home, device)
        home_death = max(home_death, arrival)
        yield Copy(tensor, device, maker.end, max(arrival, used))
    yield Copy(tensor, home, maker.start, home_death)


def peak(period: int, alive: Iterable[Copy]) -> tuple[int, int]:
    """Most units held at once, and the first phase at which they are.

    Steps at births and deaths only: the cost does not grow with the period.
    """
    level, change = 0, {0: 0}
    for copy in alive:
        size = copy.tensor.size
        q, r = divmod(copy.death - copy.birth, period)
        level += q * size
        if r:
            begin = copy.birth % period
            end = begin + r
            change[begin] = change.get(begin, 0) + size
            if end >= period:  # wraps: already alive at phase 0 until end - T
                end -= period
                level += size
            change[end] = change.get(end, 0) - size
    best: tuple[int, int] | None = None
    for phase in sorted(change):
        level += change[phase]
        if best is None or level > best[0]:
            best = level, phase
    return best or (0, 0)


def resident_sizes(graph: Graph, schedule: Schedule) -> dict[DeviceId, int]:
    """Units that each device pays once for what it runs."""
    run = runs(graph, schedule)
    total = dict.fromkeys(graph.device_ids, 0)
    for resident in graph.residents:
        homes = {run[op].device for op in resident.ops if op in run}
        for device in homes:
            if device is not None:
                total[device] += resident.size
    return total


def check_memory(graph: Graph, schedule: Schedule) -> tuple[Violation, ...]:
    """Residents and copies alive never exceed a device's memory, at any phase."""
    if all(device.memory is None for device in graph.devices):
        return ()
    resident = resident_sizes(graph, schedule)
    by_device = copies(graph, schedule)
    found = []
    for device in graph.devices:
        if device.memory is None:
            continue
        alive = by_device[device.id]
        held, phase = peak(schedule.period, alive)
        excess = resident[device.id] + held - device.memory
        if excess > 0:
            biggest = _biggest(schedule.period, phase, alive)
            text = ", ".join(f"{units} made by {op!r}" for op, units in biggest)
            found.append(
                Violation(
                    rule="memory",
                    message=f"device {device.id!r} holds {resident[device.id] + held} "
                    f"{graph.size_unit}s at phase {phase}, its memory is "
                    f"{device.memory}: residents {resident[device.id]}, copies {held}"
                    + (f" (most: {text})" if text else ""),
                    ops=tuple(op for op, _ in biggest),
                    device=device.id,
                    time=phase,
                    excess=excess,
                )
            )
    return tuple(found)


def _biggest(
    period: int, phase: int, alive: Sequence[Copy], count: int = 3
) -> list[tuple[OpId, int]]:
    """Producers of most units alive at a phase, and those units, most first."""
    units: dict[OpId, int] = {}
    for copy in alive:
        held = copy.alive(phase, period) * copy.tensor.size
        if held:
            maker = copy.tensor.producer
            units[maker] = units.get(maker, 0) + held
    return sorted(units.items(), key=lambda item: -item[1])[:count]
