"""Stages: lists of layers, given or found, and the devices they have by arrangement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from lpsched.core.graph import DeviceId, Op
from lpsched.core.instance import Arrangement, Placement
from lpsched.errors import Fault
from lpsched.network.partition import fewest_stages, partition

__all__ = ["arranged", "found_stages", "membership", "stage_lists"]

#: Ticks of one layer on each device where all of it may run.
Load = Mapping[DeviceId, int]


def stage_lists(placement: Placement) -> tuple[tuple[str, ...], ...] | None:
    """Return the stages as listed; None if the placement has none, or a count."""
    return None if isinstance(placement.stages, int) else placement.stages


def found_stages(
    placement: Placement, ops: Iterable[tuple[Op, int]], devices: Sequence[DeviceId]
) -> tuple[Placement, list[str], list[Fault]]:
    """Find the stages that a placement asks for; return it with lists of layers.

    A count, or ``rule: contiguous`` (a stage for each device), asks for contiguous
    layers in the order of `ops`, cut so that the greatest load of a stage on its
    device is least; no stage is empty.

    Parameters
    ----------
    ops : iterable of (Op, int)
        With their layers and durations, layer after layer, and how often they run.

    Returns
    -------
    placement : Placement
        With lists, under ``rule: stages`` where it was ``contiguous``.
    notes : list of str
        What people should know: devices without a stage, or that fewer stages would
        have no greater load.
    faults : list of Fault
        More stages than layers, layers that may not run where they would have to, or
        ``rule: contiguous`` with lists that are not.
    """
    loads = _layer_loads(ops, devices)
    count = placement.stages
    if placement.rule == "contiguous":
        faults = list(_order_faults(stage_lists(placement) or (), loads))
        if faults:
            return placement, [], faults
        placement = replace(placement, rule="stages")
        if count is None:
            count = max(1, min(len(devices), len(loads)))
    if not isinstance(count, int):
        return placement, [], []
    if count > len(loads):
        text = f"expected at most a stage for each of {len(loads)} layers, got {count}"
        return placement, [], [Fault("placement.stages", text)]
    rows = list(_rows(placement, count, loads, devices))
    ends = partition(rows)
    if ends is None:
        text = f"no {count} contiguous stages may run on the devices that they have"
        return placement, [], [Fault("placement.stages", text)]
    names = list(loads)
    starts = (0, *ends[:-1])
    lists = tuple(tuple(names[i:j]) for i, j in zip(starts, ends, strict=True))
    notes = list(_notes(rows, ends, len(devices)))
    return replace(placement, stages=lists), notes, []


def _order_faults(
    lists: Sequence[Sequence[str]], layers: Iterable[str]
) -> Iterator[Fault]:
    """Complain of the first layer that goes back to a stage before the last one's."""
    stage_of = {name: i for i, names in enumerate(lists) for name in names}
    in_order = [(name, stage_of[name]) for name in layers if name in stage_of]
    for (above, before), (name, stage) in pairwise(in_order):
        if stage < before:
            text = (
                "`rule: contiguous` asks for stages in the order of the layers; "
                f"{name!r} of stage {stage} comes after {above!r} of stage {before}"
            )
            yield Fault("placement.stages", text)
            return


def _layer_loads(
    ops: Iterable[tuple[Op, int]], devices: Sequence[DeviceId]
) -> dict[str, Load]:
    found: dict[str, dict[DeviceId, int]] = {}
    for op, times in ops:
        if op.layer is None or op.devices == ():
            continue
        load = found.setdefault(op.layer, dict.fromkeys(devices, 0))
        for device in list(load):
            if op.devices is not None and device not in op.devices:
                del load[device]
            elif isinstance(op.duration, int):
                load[device] += times * op.duration
            else:
                load[device] += times * op.duration[device]
    return dict(found)


def _rows(
    placement: Placement,
    count: int,
    loads: Mapping[str, Load],
    devices: Sequence[DeviceId],
) -> Iterator[list[int | None]]:
    """Loads of every layer on the device of each stage; on the best if it is free."""
    homes = arranged(count, devices, placement.arrangement)
    for stage, home in enumerate(homes):
        if placement.rule == "stages":
            pinned = placement.pins.get(str(stage), home)
            mine = pinned if pinned in devices else home
            yield [load.get(mine) for load in loads.values()]
        else:
            yield [min(load.values(), default=None) for load in loads.values()]


def _notes(
    rows: Sequence[Sequence[int | None]], ends: Sequence[int], num_devices: int
) -> Iterator[str]:
    """Say where devices are left over, or fewer stages would carry as little."""
    if len(rows) < num_devices:
        yield f"{len(rows)} stages leave {num_devices - len(rows)} devices without work"
    if any(row != rows[0] for row in rows):
        return
    ticks = [t or 0 for t in rows[0]]
    starts = (0, *ends[:-1])
    most = max(sum(ticks[i:j]) for i, j in zip(starts, ends, strict=True))
    fewer = fewest_stages(ticks, most)
    if fewer < len(rows):
        yield f"{fewer} stages would have no greater load than these {len(rows)}"


def membership(
    lists: Sequence[Sequence[str]], layers: Iterable[str], path: str
) -> tuple[dict[str, int], list[Fault]]:
    """Index of the list that each layer stands in, with the faults of the lists."""
    known = set(layers)
    found: dict[str, int] = {}
    faults = []
    for i, names in enumerate(lists):
        for j, name in enumerate(names):
            if name not in known:
                faults.append(Fault(f"{path}[{i}][{j}]", f"unknown layer {name!r}"))
            elif name in found:
                text = f"the layer {name!r} stands in {path}[{found[name]}] already"
                faults.append(Fault(f"{path}[{i}][{j}]", text))
            found.setdefault(name, i)
    return found, faults


def arranged(
    count: int, devices: Sequence[DeviceId], arrangement: Arrangement | None
) -> tuple[DeviceId, ...]:
    """Device of each of `count` stages.

    ``loop`` (the default) starts over at the first device after the last; ``v``
    turns back there, so that the last device has two stages in a row; ``mirrored``
    loops over the first half of the stages (the middle one included) and gives each
    of the rest the device of its mirror image: stages s and count - 1 - s share one.
    """
    if arrangement == "mirrored":
        turn = range(count)
        return tuple(devices[min(s, count - 1 - s) % len(devices)] for s in turn)
    order = (*devices, *reversed(devices)) if arrangement == "v" else tuple(devices)
    return tuple(order[s % len(order)] for s in range(count))
