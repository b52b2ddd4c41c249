"""The document model of `lpsched/graph/1`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lpsched.core.io.fields import (
    Count,
    DelayField,
    Document,
    DurationField,
    Identifier,
    Name,
    Positive,
)

__all__ = [
    "ConsumerDocument",
    "GraphDocument",
    "LinkDocument",
    "LinkOverride",
    "OpDocument",
    "TensorDocument",
]


class DeviceDocument(Document):
    """A device.

    Attributes
    ----------
    id
        Its name.
    memory
        Limit in the size unit; none for no limit.
    """

    id: Identifier
    memory: Count | None = None


class LinkDocument(Document):
    """The default connection of two distinct devices.

    Attributes
    ----------
    latency
        Ticks of any transfer.
    units_per_tick
        Rate: a transfer takes latency + ⌈size / rate⌉ ticks; none, latency
        alone.
    """

    latency: Count = 0
    units_per_tick: Positive | None = None


class LinkOverride(Document):
    """Fields that differ for one ordered pair of devices.

    Attributes
    ----------
    src
        From this device.
    dst
        To this one.
    latency
        As of the link.
    units_per_tick
        As of the link.
    """

    src: Identifier
    dst: Identifier
    latency: Count = 0
    units_per_tick: Positive | None = None


class DelayDocument(Document):
    """The range of a named delay.

    Attributes
    ----------
    min
        Fewest iterations.
    max
        Most; none for no limit.
    """

    min: Positive = 1
    max: Positive | None = None


class OpDocument(Document):
    """One op.

    Attributes
    ----------
    id
        Its name.
    kind
        F, I, W, B (I and W in one), U, or any word.
    duration
        Ticks, or ticks per device.
    devices
        Those allowed; default all; empty if it occupies none.
    layer
        A label.
    stage
        A label.
    microbatch
        A label.
    part
        A label.
    """

    id: Identifier
    kind: Name
    duration: DurationField
    devices: tuple[Identifier, ...] | None = None
    layer: str | None = None
    stage: Count | None = None
    microbatch: Count | None = None
    part: Count | None = None


class ConsumerDocument(Document):
    """One use of a tensor.

    Attributes
    ----------
    op
        Who uses it.
    delay
        How many iterations later, or the name of a delay.
    lag
        Ticks after arrival.
    """

    op: Identifier
    delay: DelayField = 0
    lag: Count = 0


class TensorDocument(Document):
    """One tensor.

    Attributes
    ----------
    id
        Its name.
    size
        In the size unit.
    producer
        The op that makes it once an iteration.
    consumers
        Its uses.
    """

    id: Identifier
    size: Count
    producer: Identifier
    consumers: tuple[ConsumerDocument, ...] = ()


class DependenceDocument(Document):
    """Order without data.

    Attributes
    ----------
    src
        What comes before.
    dst
        What comes after.
    delay
        In iterations, or the name of a delay.
    lag
        Ticks in between.
    """

    src: Identifier
    dst: Identifier
    delay: DelayField = 0
    lag: Count = 0


class ResidentDocument(Document):
    """Memory that a device pays once.

    Attributes
    ----------
    size
        What a device pays if it runs any of the ops.
    ops
        These ops.
    """

    size: Count
    ops: tuple[Identifier, ...]


class GraphDocument(Document):
    """A cyclic dataflow graph with its platform.

    Attributes
    ----------
    name
        Its name.
    time_unit
        What a tick is.
    size_unit
        What sizes count.
    unfolding
        Iterations of the network in one of the graph.
    flush
        If true, one whole iteration fits in a period.
    devices
        The platform.
    link
        Every connection of two devices.
    links
        Connections that differ.
    delays
        Delays that are the solver's to choose.
    ops
        What is scheduled.
    tensors
        Values made and used.
    dependences
        Order without data.
    colocate
        Ops that share a device.
    residents
        Memory that a device pays once.
    """

    schema_: Literal["lpsched/graph/1"] = Field(alias="schema")
    name: Name
    time_unit: str = "tick"
    size_unit: str = "element"
    unfolding: Positive = 1
    flush: bool = False
    devices: tuple[DeviceDocument, ...]
    link: LinkDocument = LinkDocument()
    links: tuple[LinkOverride, ...] = ()
    delays: dict[Identifier, DelayDocument] = Field(default_factory=dict)
    ops: tuple[OpDocument, ...]
    tensors: tuple[TensorDocument, ...] = ()
    dependences: tuple[DependenceDocument, ...] = ()
    colocate: tuple[tuple[Identifier, ...], ...] = ()
    residents: tuple[ResidentDocument, ...] = ()
