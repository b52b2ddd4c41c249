"""The cyclic dataflow graph that is scheduled (`lpsched/graph/1`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NewType

from lpsched.core.shown import Shown

__all__ = [
    "Consumer",
    "Delay",
    "DelayName",
    "Dependence",
    "Device",
    "DeviceId",
    "Edge",
    "Graph",
    "Link",
    "Op",
    "OpId",
    "Resident",
    "Tensor",
    "TensorId",
]

OpId = NewType("OpId", str)
DeviceId = NewType("DeviceId", str)
TensorId = NewType("TensorId", str)
DelayName = NewType("DelayName", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A processor; `memory` in the graph's size unit, None for no limit."""

    id: DeviceId
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A one-way connection of two distinct devices.

    A transfer of `size` units takes ``latency + ceil(size / units_per_tick)``
    ticks; without a rate it takes `latency`.
    """

    latency: int = 0
    units_per_tick: int | None = None

    def transfer_ticks(self, size: int) -> int:
        """Ticks that a tensor of `size` units needs on this link."""
        if self.units_per_tick is None:
            return self.latency
        return self.latency + -(-size // self.units_per_tick)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """The range of a named delay, in iterations; `max` None for no limit."""

    min: int = 1
    max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation of an iteration.

    Attributes
    ----------
    duration : int or mapping of device to int
        Ticks on any device, or per device.
    devices : tuple of DeviceId or None
        The devices allowed; None for all; empty if the op occupies no device.
    """

    id: OpId
    kind: str
    duration: int | Mapping[DeviceId, int]
    devices: tuple[DeviceId, ...] | None = None
    layer: str | None = None
    stage: int | None = None
    microbatch: int | None = None
    part: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A use of a tensor: by which op, how many iterations later, with what lag."""

    op: OpId
    delay: int | DelayName = 0
    lag: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A value made once an iteration and used by consumers."""

    id: TensorId
    size: int
    producer: OpId
    consumers: tuple[Consumer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """Order without data: no transfer, no memory."""

    src: OpId
    dst: OpId
    delay: int | DelayName = 0
    lag: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """Memory that a device pays once if it runs any of the ops."""

    size: int
    ops: tuple[OpId, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """One precedence: a tensor's use or a dependence (`tensor` None, no transfer)."""

    src: OpId
    dst: OpId
    delay: int | DelayName
    lag: int
    tensor: Tensor | None


@dataclass(frozen=True, kw_only=True)
class Graph(Shown):
    """A cyclic dataflow graph with its platform.

    Build one with keywords, or read one with `lpsched.core.io.load_graph`. The
    constructor does not check references; `lpsched.core.io.graph_from_document`
    does, and `checked` runs the same checks on a graph made in Python.

    Attributes
    ----------
    links : mapping of (DeviceId, DeviceId) to Link
        Connections that differ from `link`, every field filled in.
    unfolding : int
        Iterations of the network that one iteration of this graph holds.
    flush : bool
        If true, iterations do not overlap.
    source : mapping or None
        The document this graph was read from, unchanged: its digest identifies
        the graph.
    """

    name: str
    devices: tuple[Device, ...]
    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...] = ()
    dependences: tuple[Dependence, ...] = ()
    delays: Mapping[DelayName, Delay] = field(default_factory=dict)
    link: Link = Link()
    links: Mapping[tuple[DeviceId, DeviceId], Link] = field(default_factory=dict)
    colocate: tuple[tuple[OpId, ...], ...] = ()
    residents: tuple[Resident, ...] = ()
    unfolding: int = 1
    flush: bool = False
    time_unit: str = "tick"
    size_unit: str = "element"
    source: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def op_by_id(self) -> Mapping[OpId, Op]:
        """Ops by id, in the graph's order."""
        return {op.id: op for op in self.ops}

    @cached_property
    def device_ids(self) -> tuple[DeviceId, ...]:
        """Ids of the devices, in the graph's order."""
        return tuple(device.id for device in self.devices)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Every precedence of the graph: tensor uses first, then dependences."""
        uses = [
            Edge(t.producer, c.op, c.delay, c.lag, t)
            for t in self.tensors
            for c in t.consumers
        ]
        orders = [Edge(d.src, d.dst, d.delay, d.lag, None) for d in self.dependences]
        return (*uses, *orders)

    def allowed(self, op: OpId) -> tuple[DeviceId, ...]:
        """Return the devices `op` may run on; empty if it occupies none."""
        devices = self.op_by_id[op].devices
        return self.device_ids if devices is None else devices

    def occupies_device(self, op: OpId) -> bool:
        """Tell whether `op` needs a device at all."""
        return bool(self.allowed(op))

    def duration(self, op: OpId, device: DeviceId | None) -> int:
        """Ticks that `op` takes on `device` (None for an op without a device)."""
        duration = self.op_by_id[op].duration
        if isinstance(duration, int):
            return duration
        if device is None:
            raise ValueError(f"op {op!r} has a duration per device; name one")
        return duration[device]

    def link_between(self, src: DeviceId, dst: DeviceId) -> Link:
        """Return the connection from one device to another, distinct one."""
        return self.links.get((src, dst), self.link)

    def transfer_ticks(
        self, tensor: Tensor | None, src: DeviceId | None, dst: DeviceId | None
    ) -> int:
        """Ticks between the end of a producer and the earliest use of its tensor.

        0 on one device, for order without data, and where either op occupies no
        device.
        """
        if tensor is None or src is None or dst is None or src == dst:
            return 0
        return self.link_between(src, dst).transfer_ticks(tensor.size)

    def delay_range(self, delay: int | DelayName) -> tuple[int, int | None]:
        """Least and greatest value of an edge's delay (None: no limit)."""
        if isinstance(delay, int):
            return delay, delay
        named = self.delays[delay]
        return named.min, named.max

    def with_delay_max(self, value: int | None) -> Graph:
        """Return the graph with every named delay's `max` set to `value`."""
        return self.replace(
            delays={k: Delay(min=d.min, max=value) for k, d in self.delays.items()}
        )

    def replace(self, **changes: Any) -> Graph:  # noqa: ANN401 - any field
        """Return a copy with some fields changed; it has a digest of its own."""
        names = [n for n in self.__dataclass_fields__ if n != "source"]
        values = {name: getattr(self, name) for name in names}
        unknown = set(changes) - set(values)
        if unknown:
            raise TypeError(f"Graph has no field {sorted(unknown)}")
        return Graph(**(values | changes))
