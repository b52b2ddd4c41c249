"""What to schedule: a network, a platform and a regime (`lpsched/instance/1`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from lpsched.core.graph import DeviceId, Graph, Link
from lpsched.core.network import Network, Saves

__all__ = [
    "DEFAULT_OBJECTIVE",
    "Arrangement",
    "CostModel",
    "CostModelName",
    "Instance",
    "Known",
    "Mode",
    "Placement",
    "PlacementRule",
    "Processor",
    "RoundingRule",
    "Split",
    "Staleness",
    "Training",
]

DEFAULT_OBJECTIVE = ("period", "communication", "staleness")

CostModelName = Literal["macs", "systolic", "roofline", "given"]
RoundingRule = Literal["nearest", "up"]
Mode = Literal["asynchronous", "synchronous"]
PlacementRule = Literal["free", "contiguous", "stages"]
Arrangement = Literal["loop", "v", "mirrored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """A device of the platform.

    `speed` divides durations; `memory` is in the graph's size unit (as a graph's
    device and link state theirs), None for no limit.
    """

    id: DeviceId
    speed: Fraction = Fraction(1)
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """How a layer's costs become ticks.

    Attributes
    ----------
    model : str or None
        Where times come from; None lets the network decide (see
        `lpsched.network.costs.cost_model_of`).
    tick, size_tick : Fraction or None
        One tick in the unit of the times, one unit of size in that of the sizes;
        None for a choice by `lpsched.network.ticks`.
    rounding : str
        ``nearest`` (halves up) or ``up``.
    least : int
        Fewest ticks of any work that is more than zero.
    saves : str
        What a layer's activation gradient needs back unless the layer says.
    parameters : mapping
        The model's own parameters (`rows`, `cols`, `dataflow`, `peak`, ...).
    """

    model: CostModelName | None = None
    tick: Fraction | None = None
    size_tick: Fraction | None = None
    rounding: RoundingRule = "nearest"
    least: int = 1
    saves: Saves = "output"
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """In how many parts each kind of op is split."""

    forward: int = 1
    input_grad: int = 2
    weight_grad: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Staleness:
    """The range of the named delays: a delay is 1 + staleness.

    Attributes
    ----------
    least : int
        The least staleness.
    most : int or None
        The greatest; None for no limit.
    layerpipe2 : bool
        If true, each delay is 1 + 2 S(l), S(l) groups after the layer's, and the
        other two are not used.
    groups : tuple of tuple of str or None
        The groups of layers in pipeline order; None for the placement's stages.
    """

    least: int = 0
    most: int | None = None
    layerpipe2: bool = False
    groups: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The training regime; `split` None for the regime's default."""

    mode: Mode = "asynchronous"
    microbatches: int | None = None
    split: Split | None = None
    fuse_backward: bool = False
    staleness: Staleness = Staleness()
    flush: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where ops may run.

    Attributes
    ----------
    stages : tuple of tuple of str, int or None
        Layers of each stage, or how many stages are to be found.
    arrangement : str or None
        How stages follow the devices; None for ``loop``: stage s on device s mod P.
    pins : mapping of str to DeviceId
        Layers (or ops), or stages by number, on a device of the user's choice.
    colocate : tuple of tuple of str
        Layers (or ops) that share a device.
    """

    rule: PlacementRule = "free"
    stages: tuple[tuple[str, ...], ...] | int | None = None
    arrangement: Arrangement | None = None
    pins: Mapping[str, DeviceId] = field(default_factory=dict)
    colocate: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The best value of an objective known so far, and why to believe it."""

    value: int
    bound: int | None = None
    proof: str | None = None
    method: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A network or a graph, a platform and a training regime.

    Exactly one of `network` and `graph` is set; a graph states its own platform and
    regime. `lpsched.network.compile_instance` makes the graph that is scheduled.
    """

    name: str
    origin: str | None = None
    network: Network | None = None
    graph: Graph | None = None
    devices: tuple[Processor, ...] = ()
    link: Link = field(default_factory=Link)
    links: Mapping[tuple[DeviceId, DeviceId], Link] = field(default_factory=dict)
    costs: CostModel = CostModel()
    training: Training = Training()
    placement: Placement = Placement()
    objective: tuple[str, ...] = DEFAULT_OBJECTIVE
    period_slack: Fraction = Fraction(0)
    max_period: int | None = None
    known: Mapping[str, Known] = field(default_factory=dict)
