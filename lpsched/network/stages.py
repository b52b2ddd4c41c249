"""Stages: lists of layers, and the devices that an arrangement gives them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lpsched.core.graph import DeviceId
from lpsched.core.instance import Arrangement, Placement
from lpsched.errors import Fault, UnsupportedError

__all__ = ["arranged", "membership", "stage_lists"]


def stage_lists(placement: Placement) -> tuple[tuple[str, ...], ...] | None:
    """Return the stages as listed; None if the placement has none.

    Raises
    ------
    UnsupportedError
        The stages are to be found, which this version does not do.
    """
    if placement.rule == "contiguous" or isinstance(placement.stages, int):
        text = "placement: stages that are to be found (`rule: contiguous` or a count)"
        raise UnsupportedError(f"{text} are not built yet; list the layers of each")
    return placement.stages


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
    turns back there, so that the last device has two stages in a row.

    Raises
    ------
    UnsupportedError
        ``mirrored`` belongs to synchronous pipelines, which are not built yet.
    """
    if arrangement == "mirrored":
        text = "placement.arrangement: 'mirrored' is not built yet; use loop, v or pins"
        raise UnsupportedError(text)
    order = (*devices, *reversed(devices)) if arrangement == "v" else tuple(devices)
    return tuple(order[s % len(order)] for s in range(count))
