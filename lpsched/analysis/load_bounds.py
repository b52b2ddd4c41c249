"""Bounds of the period from work alone: devices, groups, unequal devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm

from lpsched.analysis.certified import Bound, ceil_div, certified
from lpsched.analysis.linear import LinearProgram, Row
from lpsched.analysis.sites import Sites
from lpsched.core.graph import DeviceId, OpId

__all__ = ["assignment_bound", "group_bound", "resource_bounds"]


def resource_bounds(sites: Sites) -> Iterator[Bound]:
    r"""Work that only some devices can do, shared evenly among them.

    .. math:: T \ge \Bigl\lceil \frac{1}{|D|} \sum_g \min_{d \in D}
       \sum_{v \in g} t_v(d) \Bigr\rceil

    over the colocate groups g that must run within D, for D all devices and each set
    of devices to which some group is confined.
    """
    busy = [group for group in sites.groups if sites.allowed[group[0]] != (None,)]
    confined = {group: frozenset(sites.allowed[group[0]]) for group in busy}
    everywhere = frozenset(sites.graph.device_ids)
    for devices in dict.fromkeys([everywhere, *confined.values()]):
        inside = [group for group in busy if confined[group] <= devices]
        work = sum(least_work(sites, group) for group in inside)
        if work > 0:
            yield certified(
                "period",
                "resource",
                ceil_div(work, len(devices)),
                {
                    "ops": [op for group in inside for op in group],
                    "devices": [d for d in sites.graph.device_ids if d in devices],
                },
            )


def group_bound(sites: Sites) -> Bound | None:
    r"""The longest op, or the most work that must share a device.

    .. math:: T \ge \max_g \min_d \sum_{v \in g} t_v(d)
    """
    busy = [group for group in sites.groups if sites.allowed[group[0]] != (None,)]
    if not busy:
        return None
    longest = max(busy, key=lambda group: least_work(sites, group))
    value = least_work(sites, longest)
    return certified("period", "resource", value, {"ops": list(longest), "group": True})


def least_work(sites: Sites, group: Sequence[OpId]) -> int:
    """Ticks of a colocate group on the device that runs it fastest."""
    graph = sites.graph
    if all(isinstance(graph.op_by_id[op].duration, int) for op in group):
        return sum(sites.least_duration(op) for op in group)
    return min(
        sum(graph.duration(op, site) for op in group)
        for site in sites.allowed[group[0]]
    )


#: Ticks of a group on each device that it may run on.
_Profile = tuple[tuple[DeviceId, int], ...]


def assignment_bound(sites: Sites) -> Bound | None:
    r"""The load bound of devices that differ in speed or in what they may run.

    For device weights y >= 0 that add up to 1, the highest load is at least the
    weighted mean load, hence

    .. math:: T \ge \sum_g \min_d y_d \sum_{v \in g} t_v(d).

    The best y is the dual of the linear program that assigns ops fractionally (HiGHS).
    It is rounded to rationals of several denominators and the bound recomputed in
    integers, which is valid for any y.

    Returns
    -------
    Bound or None
        None if all groups take the same on every device, where equal weights, the
        `resource_bounds`, are best.
    """
    profiles = Counter(_profiles(sites))
    devices = sites.graph.device_ids
    uniform = all(
        len(profile) == len(devices) and len({t for _, t in profile}) == 1
        for profile in profiles
    )
    if uniform:
        return None
    duals = _device_duals(profiles, devices)
    best: tuple[Fraction, dict[DeviceId, int]] | None = None
    for digits in (1, 2, 3, 6, 9, 12):
        weights = _rational(duals, 10**digits)
        total = sum(weights.values())
        if total:
            value = Fraction(_weighted_work(profiles, weights), total)
            if best is None or value > best[0]:
                best = value, weights
    if best is None:
        return None
    value, weights = best
    return certified(
        "period",
        "assignment",
        ceil_div(value.numerator, value.denominator),
        {"weights": weights, "denominator": sum(weights.values())},
    )


def _profiles(sites: Sites) -> Iterator[_Profile]:
    for group in sites.groups:
        ticks = [
            (site, sum(sites.graph.duration(op, site) for op in group))
            for site in sites.allowed[group[0]]
            if site is not None
        ]
        if any(t for _, t in ticks):
            yield tuple(ticks)


def _device_duals(
    profiles: Mapping[_Profile, int], devices: Sequence[DeviceId]
) -> dict[DeviceId, float]:
    """Duals of ``T >= load of d`` when ops may be divided among devices.

    Column 0 is T in units of the longest profile, the others the share of each profile
    on each of its devices.
    """
    unit = max((t for profile in profiles for _, t in profile), default=1)
    shares: list[Row] = []
    loads: dict[DeviceId, tuple[list[int], list[float]]] = {
        device: ([0], [1.0]) for device in devices
    }
    column = 1
    for profile, count in profiles.items():
        own = range(column, column + len(profile))
        shares.append(Row(own, [1.0] * len(profile), count, count))
        for i, (device, ticks) in zip(own, profile, strict=True):
            loads[device][0].append(i)
            loads[device][1].append(-ticks / unit)
        column += len(profile)
    rows = [Row(columns, values, 0.0) for columns, values in loads.values()]
    program = LinearProgram([1.0] + [0.0] * (column - 1))
    program.add([*rows, *shares])
    solution = program.minimise()
    if solution is None:
        return dict.fromkeys(devices, 1.0)
    return dict(zip(devices, solution.duals, strict=False))


def _rational(duals: Mapping[DeviceId, float], limit: int) -> dict[DeviceId, int]:
    """Integers proportional to the duals, each first rounded to a small fraction."""
    parts = {
        device: Fraction(max(0.0, y)).limit_denominator(limit)
        for device, y in duals.items()
    }
    scale = lcm(*(part.denominator for part in parts.values()))
    if scale > 10**15:  # unlike denominators: a decimal grid keeps integers readable
        return {device: round(part * limit) for device, part in parts.items()}
    return {device: int(part * scale) for device, part in parts.items()}


def _weighted_work(
    profiles: Mapping[_Profile, int], weights: Mapping[DeviceId, int]
) -> int:
    return sum(
        count * min(weights[device] * ticks for device, ticks in profile)
        for profile, count in profiles.items()
    )
