"""What is placed: ops that share a device, and how long each takes on every device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import gcd

import numpy as np
import numpy.typing as npt

from lpsched.analysis.sites import Sites
from lpsched.core.graph import DeviceId, OpId
from lpsched.errors import NoScheduleError, UnsupportedError

__all__ = ["Problem", "Profile", "Ticks", "Where", "read_problem"]

#: Integers up to here are exact as floats; formats allow no more in all.
_MOST = 2**53

#: Ticks of an item on each device, in units of the problem; None where not allowed.
Profile = tuple[int | None, ...]
#: Device number of each item.
Where = tuple[int, ...]
#: Items by devices.
Ticks = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Items to spread over devices so that the highest load is least.

    Attributes
    ----------
    items : tuple of tuple of OpId
        Ops that must share a device and take time wherever they run.
    profiles : tuple of Profile
        One per item.
    unit : int
        Ticks of the graph in one unit: the greatest common divisor of all durations.
    idle : mapping of OpId to DeviceId
        Ops left out because they take no time on this device.
    """

    devices: tuple[DeviceId, ...]
    items: tuple[tuple[OpId, ...], ...]
    profiles: tuple[Profile, ...]
    unit: int
    idle: Mapping[OpId, DeviceId]

    @cached_property
    def never(self) -> int:
        """More than any load can be."""
        return 1 + sum(max(t for t in p if t is not None) for p in self.profiles)

    @cached_property
    def ticks(self) -> Ticks:
        """Units by item and device, `never` where not allowed."""
        rows = [[self.never if t is None else t for t in p] for p in self.profiles]
        table: Ticks = np.array(rows, dtype=np.int64)
        return table.reshape(len(rows), len(self.devices))

    @cached_property
    def is_uniform(self) -> bool:
        """Whether every item may run on every device and takes as long on each."""
        return all(None not in p and len(set(p)) == 1 for p in self.profiles)

    @cached_property
    def kinds(self) -> Mapping[Profile, tuple[int, ...]]:
        """Items of equal profile, which are interchangeable."""
        found: dict[Profile, list[int]] = {}
        for i, profile in enumerate(self.profiles):
            found.setdefault(profile, []).append(i)
        return {profile: tuple(items) for profile, items in found.items()}

    def part(self, items: Sequence[int], devices: Sequence[int]) -> Problem:
        """Return the problem of some items on some devices, renumbered."""
        return Problem(
            devices=tuple(self.devices[d] for d in devices),
            items=tuple(self.items[i] for i in items),
            profiles=tuple(tuple(self.profiles[i][d] for d in devices) for i in items),
            unit=self.unit,
            idle={},
        )

    def loads(self, where: Where) -> list[int]:
        """Load of each device, in units."""
        loads = [0] * len(self.devices)
        for profile, d in zip(self.profiles, where, strict=True):
            ticks = profile[d]
            loads[d] += self.never if ticks is None else ticks
        return loads

    def placement(self, where: Where) -> dict[OpId, DeviceId]:
        """Device of every op that occupies one."""
        placed = dict(self.idle)
        for ops, d in zip(self.items, where, strict=True):
            placed.update(dict.fromkeys(ops, self.devices[d]))
        return placed

    def where(self, placement: Mapping[OpId, DeviceId]) -> Where:
        """Device numbers of a placement.

        Raises
        ------
        ValueError
            If it leaves out an op, parts ops that share a device, or puts one where it
            may not run.
        """
        number: dict[DeviceId | None, int]
        number = {device: d for d, device in enumerate(self.devices)}
        where: list[int] = []
        for ops, profile in zip(self.items, self.profiles, strict=True):
            seen = {placement.get(op) for op in ops}
            d = number.get(seen.pop())
            if seen or d is None or profile[d] is None:
                raise ValueError(f"no legal device for {', '.join(ops)} in placement")
            where.append(d)
        return tuple(where)


def read_problem(sites: Sites) -> Problem:
    """Collect the items of a graph.

    Raises
    ------
    NoScheduleError
        If ops that must share a device have none in common.
    UnsupportedError
        If all durations together exceed what floats count exactly.
    """
    devices = sites.graph.device_ids
    items: list[tuple[OpId, ...]] = []
    profiles: list[Profile] = []
    idle: dict[OpId, DeviceId] = {}
    for group in sites.groups:
        _require_common_device(sites, group)
        if sites.allowed[group[0]] == (None,):
            continue
        profile = _profile(sites, group)
        if 0 in profile:
            idle.update(dict.fromkeys(group, devices[profile.index(0)]))
        else:
            items.append(group)
            profiles.append(profile)
    unit = gcd(*(t for t in chain(*profiles) if t is not None)) or 1
    problem = Problem(
        devices=devices,
        items=tuple(items),
        profiles=tuple(
            tuple(None if t is None else t // unit for t in p) for p in profiles
        ),
        unit=unit,
        idle=idle,
    )
    if problem.never * unit > _MOST:
        raise UnsupportedError(f"durations sum to over {_MOST} ticks; use a longer one")
    return problem


def _require_common_device(sites: Sites, group: Sequence[OpId]) -> None:
    if len({frozenset(sites.allowed[op]) for op in group}) > 1:
        raise NoScheduleError(f"no device is allowed to all of {', '.join(group)}")


def _profile(sites: Sites, group: Sequence[OpId]) -> Profile:
    allowed = set(sites.allowed[group[0]])
    return tuple(
        sum(sites.graph.duration(op, d) for op in group) if d in allowed else None
        for d in sites.graph.device_ids
    )
