"""Certificates that count work: `resource`, `assignment` and `packing`."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate

from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.verify.evidence import (
    Certificate,
    Hosts,
    NotCheckableError,
    RefusedError,
    ceil_div,
    hosts,
    is_whole,
    least_work,
    read_devices,
    read_integer,
    read_ops,
    run_ticks,
    sequence,
)

__all__ = ["assignment_bound", "can_exceed", "packing_bound", "resource_bound"]

#: States that the check of a packing certificate may visit: a second or two.
_MAX_STATES = 500_000


def resource_bound(graph: Graph, certificate: Certificate) -> int:
    r"""Value of a ``resource`` certificate.

    Ops that can run on the devices D alone: :math:`T \ge \lceil \sum_v \min_d t_v(d) /
    |D| \rceil`. With ``"group": true`` the ops must share a device (one op does):
    :math:`T \ge \min_d \sum_v t_v(d)`.

    Fields: ``ops``; ``devices``, unless ``group`` (default false).
    """
    ops = read_ops(graph, sequence(certificate, "ops"))
    if not ops:
        raise RefusedError("expected at least one op")
    host = hosts(graph)
    if certificate.get("group", False) is True:
        if len({host.group[op] for op in ops}) > 1:
            raise RefusedError("the ops need not share a device")
        return least_work(graph, host, ops, dict.fromkeys(graph.device_ids, 1))
    devices = read_devices(graph, certificate)
    _expect_confined(host, ops, devices)
    work = least_work(graph, host, ops, dict.fromkeys(devices, 1))
    return ceil_div(work, len(devices))


def _expect_confined(
    host: Hosts, ops: Sequence[OpId], devices: Sequence[DeviceId]
) -> None:
    listed = set(devices)
    for op in ops:
        other = [d for d in host.occupied_by(op) if d not in listed]
        if other:
            raise RefusedError(f"op {op!r} may also run on {other[0]!r}")


def assignment_bound(graph: Graph, certificate: Certificate) -> int:
    r"""Value of an ``assignment`` certificate, for devices of unequal speed.

    For weights :math:`y_d \ge 0` with sum 1, the highest load is at least the
    weighted mean load, and that is at least (weak duality)

    .. math:: T \ge \sum_v \min_d y_d \, t_v(d)

    over all ops that occupy a device.

    Fields: ``weights`` (integer numerator per device, 0 if left out),
    ``denominator`` (their sum).
    """
    denominator = read_integer(certificate, "denominator", least=1)
    weights = _weights(certificate, graph.device_ids)
    if sum(weights.values()) != denominator:
        raise RefusedError("the weights do not sum to the denominator")
    host = hosts(graph)
    ops = [op for op, devices in host.allowed.items() if devices]
    y = {DeviceId(d): w for d, w in weights.items()}
    return ceil_div(least_work(graph, host, ops, y), denominator)


def _weights(
    certificate: Certificate, keys: Sequence[str] | None = None
) -> dict[str, int]:
    """Return the mapping at ``weights``: integers >= 0, with keys among `keys`."""
    value = certificate.get("weights")
    if not isinstance(value, Mapping):
        raise RefusedError("expected a mapping at 'weights'")
    for key, weight in value.items():
        if keys is not None and key not in keys:
            raise RefusedError(f"weights: {key!r} is no device of the graph")
        if not is_whole(weight):
            raise RefusedError(f"weights: expected an integer >= 0 for {key!r}")
    return dict(value)


def packing_bound(graph: Graph, certificate: Certificate) -> int:
    """Value of a ``packing`` certificate: the items do not fit at ``refuted``.

    Weigh the items so that no set of them with total duration <= T' weighs more than
    C. If together they weigh more than C on each of the P devices, some device's
    load exceeds T', so that T >= T' + 1.

    Fields: ``refuted`` (T'), ``capacity`` (C), ``weights`` (by duration, the key a
    string), ``devices`` (P of them, the only ones the ops may run on), ``items``
    (lists of ops, several only if they must share a device) or ``ops`` (each an item
    of its own). Each op's duration must be the same wherever it may run.
    """
    refuted = read_integer(certificate, "refuted")
    capacity = read_integer(certificate, "capacity")
    weights = _weights(certificate)
    devices = read_devices(graph, certificate)
    host = hosts(graph)
    durations = [
        _item_duration(graph, host, item, devices)
        for item in _items(graph, certificate)
    ]
    for duration in durations:
        if str(duration) not in weights:
            raise RefusedError(f"no weight for the duration {duration}")
    counted = Counter(durations)
    kinds = [(d, weights[str(d)], count) for d, count in counted.items()]
    total = sum(weight * count for _, weight, count in kinds)
    if total <= capacity * len(devices):
        raise RefusedError(
            f"the items weigh {total}, not more than {capacity} on each of "
            f"{len(devices)} devices"
        )
    if can_exceed(kinds, refuted, capacity):
        raise RefusedError(f"some items fit in {refuted} and weigh over {capacity}")
    return refuted + 1


def _items(graph: Graph, certificate: Certificate) -> list[list[OpId]]:
    if "items" not in certificate:
        return [[op] for op in read_ops(graph, sequence(certificate, "ops"))]
    raw = sequence(certificate, "items")
    if not all(isinstance(item, list | tuple) and item for item in raw):
        raise RefusedError("expected each item to be a list of ops")
    names = iter(read_ops(graph, [name for item in raw for name in item], "items"))
    return [[next(names) for _ in item] for item in raw]


def _item_duration(
    graph: Graph, host: Hosts, item: Sequence[OpId], devices: Sequence[DeviceId]
) -> int:
    """Ticks of an item: its ops share a device and take as long on each allowed."""
    if len({host.group[op] for op in item}) > 1:
        raise RefusedError(
            f"the ops of the item of {item[0]!r} need not share a device"
        )
    _expect_confined(host, item, devices)
    total = 0
    for op in item:
        ticks = {run_ticks(graph, op, d) for d in host.occupied_by(op)}
        if len(ticks) > 1:
            raise RefusedError(f"op {op!r} is not equally long on all its devices")
        total += ticks.pop()
    return total


def can_exceed(kinds: Sequence[tuple[int, int, int]], room: int, target: int) -> bool:
    """Tell whether items that fit in `room` can weigh more than `target`.

    An exact knapsack over ``(duration, weight, count)``: kinds by falling weight per
    tick, states (ticks used, weight) of which only the undominated stay, and of
    those only the ones that the fractional fill of the remaining room can lift above
    the target.

    Raises
    ------
    NotCheckableError
        More than half a million states.
    """
    target -= sum(weight * count for ticks, weight, count in kinds if ticks == 0)
    usable = sorted(
        ((d, w, n) for d, w, n in kinds if 0 < d <= room and w > 0),
        key=lambda kind: Fraction(kind[1], kind[0]),
        reverse=True,
    )
    fill = _Fill(usable)
    states, visited = [(0, 0)], 0
    for i, (ticks, weight, count) in enumerate(usable):
        reached: dict[int, int] = {}
        for used, value in states:
            if value + fill.weight(i, room - used) <= target:
                continue
            for n in range(min(count, (room - used) // ticks) + 1):
                at = used + n * ticks
                reached[at] = max(reached.get(at, 0), value + n * weight)
            visited += n + 1
            if visited > _MAX_STATES:
                raise NotCheckableError(f"the knapsack has over {_MAX_STATES} states")
        states = _undominated(reached)
    return target < 0 or any(value > target for _, value in states)


def _undominated(reached: Mapping[int, int]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for used, value in sorted(reached.items()):
        if not kept or value > kept[-1][1]:
            kept.append((used, value))
    return kept


class _Fill:
    """Most weight that kinds i, i + 1, ... can add, items divisible."""

    def __init__(self, kinds: Sequence[tuple[int, int, int]]) -> None:
        self.kinds = kinds
        self.ticks = [0, *accumulate(d * n for d, _, n in kinds)]
        self.weights = [0, *accumulate(w * n for _, w, n in kinds)]

    def weight(self, first: int, room: int) -> int:
        """Return that weight, rounded down, for `room` ticks."""
        end = self.ticks[first] + room
        whole = bisect_right(self.ticks, end) - 1
        weight = self.weights[whole] - self.weights[first]
        if whole < len(self.kinds):
            ticks, per_item, _ = self.kinds[whole]
            weight += (end - self.ticks[whole]) * per_item // ticks
        return weight
