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
from lpsched.core.io.graph_document import LinkDocument, LinkOverride
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
    """A device; `speed` divides durations."""

    id: Identifier
    speed: SpeedField = 1
    memory: Count | None = None


class DeviceCountDocument(Document):
    """So many devices alike."""

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
    """How costs become ticks; `model` defaults to what the network gives."""

    model: Literal["macs", "systolic", "roofline", "given"] | None = None
    tick: PositiveNumberField | None = None
    size_tick: PositiveNumberField | None = None
    rounding: RoundingRule = "nearest"
    least: Count = 1
    saves: Saves = "output"


class DataflowDocument(Document):
    """A dataflow per kind of op."""

    F: Dataflow
    I: Dataflow  # noqa: E741 - the op's name
    W: Dataflow


class SystolicCostsDocument(CostsDocument):
    """Cycles of a systolic array of `rows` by `cols`."""

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
    """In how many parts each kind of op is split."""

    F: Parts = 1
    I: Parts = 2  # noqa: E741 - the op's name
    W: Parts = 1


class StalenessDocument(Document):
    """One of `max`, `fixed` and `rule`; `groups` goes with the rule."""

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
    """The training regime."""

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
    """Where ops may run; `rule` defaults to ``stages`` where stages are given."""

    rule: PlacementRule | None = None
    stages: StagesField | None = None
    arrangement: Arrangement | None = None
    pins: dict[str, Identifier] = Field(default_factory=dict)
    colocate: tuple[tuple[str, ...], ...] = ()


class KnownDocument(Document):
    """The best value known and why to believe it."""

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
    """What to schedule: a network or a graph, a platform and a regime."""

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
