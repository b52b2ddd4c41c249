"""Reading a certificate, and the platform facts that every kind of one rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.errors import LpschedError

__all__ = [
    "Certificate",
    "Hosts",
    "NotCheckableError",
    "RefusedError",
    "ceil_div",
    "hosts",
    "is_whole",
    "least_work",
    "read_devices",
    "read_integer",
    "read_ops",
    "run_ticks",
    "sequence",
]

Certificate = Mapping[str, Any]


class RefusedError(LpschedError):
    """The certificate does not prove what it should; the message says why."""


class NotCheckableError(LpschedError):
    """No verdict: there is nothing to check, or too much; the message says which."""


def ceil_div(value: int, by: int) -> int:
    """``ceil(value / by)`` for by > 0."""
    return -(-value // by)


def sequence(certificate: Certificate, key: str) -> tuple[Any, ...]:
    """Return the list at `key`."""
    value = certificate.get(key)
    if not isinstance(value, list | tuple):
        raise RefusedError(f"expected a list at {key!r}")
    return tuple(value)


def is_whole(value: object) -> TypeGuard[int]:
    """Tell whether a value is an integer >= 0 of at most 60 digits.

    Longer ones prove nothing that these do not, and products of them cannot even be
    printed.
    """
    return type(value) is int and 0 <= value < 10**60


def read_integer(certificate: Certificate, key: str, *, least: int = 0) -> int:
    """Return the integer >= `least` at `key`."""
    value = certificate.get(key)
    if not is_whole(value) or value < least:
        raise RefusedError(f"expected an integer >= {least} at {key!r}")
    return value


def read_ops(graph: Graph, names: Iterable[object], what: str = "ops") -> list[OpId]:
    """Return ids of ops of the graph, each named once."""
    known = graph.op_by_id
    found: dict[OpId, None] = {}
    for name in names:
        if not isinstance(name, str) or OpId(name) not in known:
            raise RefusedError(f"{what}: the graph has no op {name!r}")
        if OpId(name) in found:
            raise RefusedError(f"{what}: op {name!r} is counted twice")
        found[OpId(name)] = None
    return list(found)


def read_devices(graph: Graph, certificate: Certificate) -> list[DeviceId]:
    """Return the devices listed, each once, at least one."""
    known = set(graph.device_ids)
    names = sequence(certificate, "devices")
    for name in names:
        if not isinstance(name, str) or DeviceId(name) not in known:
            raise RefusedError(f"the graph has no device {name!r}")
    if not names or len(set(names)) < len(names):
        raise RefusedError("expected devices, each listed once")
    return [DeviceId(name) for name in names]


@dataclass(frozen=True, slots=True)
class Hosts:
    """Where ops can run once colocation is taken into account.

    Attributes
    ----------
    group : mapping of OpId to OpId
        The same representative for ops that must share a device.
    allowed : mapping of OpId to tuple of DeviceId
        Devices that every op of the group may run on (if there is none, so that
        there is no schedule, the op's own); empty for an op that occupies no device.
    """

    group: Mapping[OpId, OpId]
    allowed: Mapping[OpId, tuple[DeviceId, ...]]

    def occupied_by(self, op: OpId) -> tuple[DeviceId, ...]:
        """Return the devices of an op that must occupy one."""
        if not self.allowed[op]:
            raise RefusedError(f"op {op!r} occupies no device")
        return self.allowed[op]


def hosts(graph: Graph) -> Hosts:
    """Close the colocate groups (they may share ops) and meet their devices."""
    parent = {op.id: op.id for op in graph.ops}

    def root(op: OpId) -> OpId:
        while parent[op] != op:
            parent[op] = parent[parent[op]]
            op = parent[op]
        return op

    for members in graph.colocate:
        for op in members[1:]:
            parent[root(op)] = root(members[0])
    own = {
        op.id: graph.device_ids if op.devices is None else op.devices
        for op in graph.ops
    }
    shared: dict[OpId, tuple[DeviceId, ...]] = {}
    for op, devices in own.items():
        before = shared.get(root(op), devices)
        shared[root(op)] = tuple(d for d in before if d in devices)
    return Hosts(
        group={op: root(op) for op in own},
        allowed={op: shared[root(op)] or devices for op, devices in own.items()},
    )


def run_ticks(graph: Graph, op: OpId, device: DeviceId | None) -> int:
    """Duration t of an op on a device that it may run on (None: on none)."""
    duration = graph.op_by_id[op].duration
    if isinstance(duration, int):
        return duration
    if device is None:
        raise RefusedError(f"op {op!r} has a duration per device and no device")
    return duration[device]


def least_work(
    graph: Graph, host: Hosts, ops: Iterable[OpId], weight: Mapping[DeviceId, int]
) -> int:
    r"""Least weighted ticks that ops take, wherever they are placed.

    .. math:: \sum_g \min_d \; y_d \sum_{v \in g} t_v(d)

    over the colocate groups g among the ops and the devices d allowed to each; a
    device without weight counts 0.
    """
    groups: dict[OpId, list[OpId]] = {}
    for op in ops:
        groups.setdefault(host.group[op], []).append(op)
    return sum(
        min(
            weight.get(d, 0) * sum(run_ticks(graph, op, d) for op in members)
            for d in host.occupied_by(members[0])
        )
        for members in groups.values()
    )
