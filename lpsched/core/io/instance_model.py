"""The document model of `lpsched/instance/1`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from lpsched.core.instance import Arrangement, Mode, PlacementRule, RoundingRule
from lpsched.core.io.faults import branch
from lpsched.core.io.fields import (
    NOT_EMPTY,
    Count,
    Document,
    Identifier,
    Name,
    Positive,
)
from lpsched.core.io.graph_model import LinkDocument, LinkOverride
from lpsched.core.io.numbers import (
    NumberField,
    PositiveNumberField,
    ShareField,
    SpeedField,
)
from lpsched.core.limits import MAX_DEVICES
from lpsched.core.network import Saves

__all__ = [
    "AnyCostsDocument",
    "CostsDocument",
    "DeviceCountDocument",
    "InstanceDocument",
    "KnownDocument",
    "PlacementDocument",
    "ProcessorDocument",
    "RooflineCostsDocument",
    "StalenessDocument",
    "SystolicCostsDocument",
    "TrainingDocument",
]

#: More parts of an op than this are taken for a mistake.
MAX_PARTS = 1_000

Objective = Literal["period", "communication", "staleness", "peak_memory", "makespan"]
Dataflow = Literal["output", "weight", "input"]
DeviceCount = Annotated[int, Field(ge=1, le=MAX_DEVICES)]
Parts = Annotated[int, Field(ge=1, le=MAX_PARTS)]


def _container_kind(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    if isinstance(value, dict):
        return branch("mapping")
    return branch("list") if isinstance(value, tuple) else branch("scalar")


class ProcessorDocument(Document):
    """A device; `speed` divides durations.

    Attributes
    ----------
    id
        Its name.
    speed
        Divides durations, rounded up: an integer or a fraction such as "3/2".
    memory
        Limit in the size unit; none for no limit.
    """

    id: Identifier
    speed: SpeedField = 1
    memory: Count | None = None


class DeviceCountDocument(Document):
    """So many devices alike.

    Attributes
    ----------
    count
        How many.
    speed
        As of a single device.
    memory
        Limit of each.
    """

    count: DeviceCount
    speed: SpeedField = 1
    memory: Count | None = None


DevicesField = Annotated[
    Annotated[DeviceCount, Tag(branch("scalar"))]
    | Annotated[DeviceCountDocument, Tag(branch("mapping"))]
    | Annotated[
        tuple[ProcessorDocument, ...],
        NOT_EMPTY,
        Tag(branch("list")),
    ],
    Discriminator(_container_kind),
]


class CostsDocument(Document):
    """How costs become ticks; `model` defaults to what the network gives.

    Attributes
    ----------
    model
        Where times come from.
    tick
        One tick in the unit of the times.
    size_tick
        One unit of size in that of the sizes.
    rounding
        How times become whole ticks.
    least
        Fewest ticks of any work at all.
    saves
        What I needs back, unless the layer says.
    """

    model: Literal["macs", "systolic", "roofline", "given"] | None = None
    tick: PositiveNumberField | None = None
    size_tick: PositiveNumberField | None = None
    rounding: RoundingRule = "nearest"
    least: Count = 1
    saves: Saves = "output"


class DataflowDocument(Document):
    """A dataflow per kind of op.

    Attributes
    ----------
    F
        Of forwards.
    I
        Of input gradients.
    W
        Of weight gradients.
    """

    F: Dataflow
    I: Dataflow  # noqa: E741 - the op's name
    W: Dataflow


class SystolicCostsDocument(CostsDocument):
    """Cycles of a systolic array of `rows` by `cols`.

    Attributes
    ----------
    model
        The name of this cost model.
    rows
        Rows of the array.
    cols
        Its columns.
    dataflow
        What stays in place.
    """

    model: Literal["systolic"]
    rows: Positive
    cols: Positive
    dataflow: Annotated[
        Annotated[Dataflow, Tag(branch("scalar"))]
        | Annotated[DataflowDocument, Tag(branch("mapping"))],
        Discriminator(_container_kind),
    ] = "output"


class RooflineCostsDocument(CostsDocument):
    """Time by arithmetic (`peak`) or by traffic (`bandwidth`), whichever is longer.

    `peak` in MACs and `bandwidth` in bytes per time unit, which `time_unit` names.

    Attributes
    ----------
    model
        The name of this cost model.
    peak
        MACs per time unit.
    bandwidth
        Bytes per time unit.
    bytes_per_element
        Size of a number.
    time_unit
        The unit meant.
    """

    model: Literal["roofline"]
    peak: PositiveNumberField
    bandwidth: PositiveNumberField
    bytes_per_element: Positive = 4
    time_unit: Name = "tick"


def _costs_kind(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    model = value.get("model") if isinstance(value, dict) else None
    if model == "systolic":
        return branch("SystolicCostsDocument")
    if model == "roofline":
        return branch("RooflineCostsDocument")
    return branch("CostsDocument")


AnyCostsDocument = Annotated[
    Annotated[CostsDocument, Tag(branch("CostsDocument"))]
    | Annotated[SystolicCostsDocument, Tag(branch("SystolicCostsDocument"))]
    | Annotated[RooflineCostsDocument, Tag(branch("RooflineCostsDocument"))],
    Discriminator(_costs_kind),
]


class SplitDocument(Document):
    """In how many parts each kind of op is split.

    Attributes
    ----------
    F
        Parts of F.
    I
        Parts of I.
    W
        Parts of W.
    """

    F: Parts = 1
    I: Parts = 2  # noqa: E741 - the op's name
    W: Parts = 1


class StalenessDocument(Document):
    """One of `max`, `fixed` and `rule`; `groups` goes with the rule.

    Attributes
    ----------
    max
        Most staleness: delays from 1 to max + 1.
    fixed
        The staleness: delays of 1 + fixed.
    rule
        Delays of 1 + 2 S(l), S(l) groups after the layer.
    groups
        Groups of layers; default the stages.
    """

    max: Count | None = None
    fixed: Count | None = None
    rule: Literal["layerpipe2"] | None = None
    groups: tuple[tuple[str, ...], ...] | None = None


def _one_form(staleness: StalenessDocument) -> StalenessDocument:
    given = staleness.model_fields_set - {"groups"}
    if len(given) != 1:
        raise ValueError("expected exactly one of `max`, `fixed` and `rule`")
    if staleness.groups is not None and staleness.rule is None:
        raise ValueError("`groups` goes with `rule: layerpipe2`")
    return staleness


class TrainingDocument(Document):
    """The training regime.

    Attributes
    ----------
    mode
        With delayed gradients, or microbatch by microbatch.
    microbatches
        How many, if synchronous.
    split
        In how many parts each kind of op is split.
    fuse_backward
        One op B instead of I and W.
    staleness
        Range of the delays; none, no limit.
    flush
        If true, iterations do not overlap.
    """

    mode: Mode = "asynchronous"
    microbatches: Positive | None = None
    split: SplitDocument | None = None
    fuse_backward: bool = False
    staleness: Annotated[StalenessDocument, AfterValidator(_one_form)] | None = None
    flush: bool = False


StagesField = Annotated[
    Annotated[DeviceCount, Tag(branch("scalar"))]
    | Annotated[tuple[tuple[str, ...], ...], NOT_EMPTY, Tag(branch("list"))],
    Discriminator(
        lambda v: branch("list") if isinstance(v, tuple) else branch("scalar")
    ),
]


class PlacementDocument(Document):
    """Where ops may run; `rule` defaults to ``stages`` where stages are given.

    Attributes
    ----------
    rule
        Anywhere, in contiguous pieces, or stage by stage.
    stages
        Layers of each stage, or how many are to be found.
    arrangement
        How stages follow the devices; default loop: stage s on device s mod P.
    pins
        Layers or stages on a device of your choice.
    colocate
        Layers that share a device.
    """

    rule: PlacementRule | None = None
    stages: StagesField | None = None
    arrangement: Arrangement | None = None
    pins: dict[str, Identifier] = Field(default_factory=dict)
    colocate: tuple[tuple[str, ...], ...] = ()


class KnownDocument(Document):
    """The best value known and why to believe it.

    Attributes
    ----------
    value
        The best known.
    bound
        The best proved.
    proof
        Its kind.
    method
        What found the value.
    seconds
        How long that took.
    """

    value: Count
    bound: Count | None = None
    proof: str | None = None
    method: str | None = None
    seconds: NumberField | None = None


FileOrInline = Annotated[
    Annotated[str, Tag(branch("scalar"))]
    | Annotated[dict[str, Any], Tag(branch("mapping"))],
    Discriminator(
        lambda v: branch("mapping") if isinstance(v, dict) else branch("scalar")
    ),
]


class InstanceDocument(Document):
    """What to schedule: a network or a graph, a platform and a regime.

    Attributes
    ----------
    name
        Its name.
    origin
        Where it comes from.
    network
        Path, name or document of a network.
    graph
        Path or document of a graph, instead of a network.
    devices
        A count, a count with properties, or a list.
    link
        Every connection of two devices.
    links
        Connections that differ.
    costs
        How costs become ticks.
    training
        The regime.
    placement
        Where ops may run.
    objective
        What to minimise, in order; default period, communication, staleness.
    period_slack
        Share by which later objectives may lengthen the period.
    max_period
        The longest period allowed.
    known
        Best values known.
    """

    schema_: Literal["lpsched/instance/1"] = Field(alias="schema")
    name: Name | None = None
    origin: str | None = None
    network: FileOrInline | None = None
    graph: FileOrInline | None = None
    devices: DevicesField | None = None
    link: LinkDocument = LinkDocument()
    links: tuple[LinkOverride, ...] = ()
    costs: AnyCostsDocument = CostsDocument()
    training: TrainingDocument = TrainingDocument()
    placement: PlacementDocument = PlacementDocument()
    objective: Annotated[tuple[Objective, ...] | None, NOT_EMPTY] = None
    period_slack: ShareField = 0
    max_period: Positive | None = None
    known: dict[Objective, KnownDocument] = Field(default_factory=dict)
