"""`lpsched/instance/1`: its checks and the way in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from lpsched.core.graph import DeviceId, Graph, Link
from lpsched.core.instance import (
    DEFAULT_OBJECTIVE,
    CostModel,
    Instance,
    Known,
    Placement,
    PlacementRule,
    Processor,
    Split,
    Staleness,
    Training,
)
from lpsched.core.io.faults import validate
from lpsched.core.io.fields import Document
from lpsched.core.io.graph_document import graph_from_document, resolved_link
from lpsched.core.io.instance_model import (
    CostsDocument,
    DeviceCountDocument,
    InstanceDocument,
    KnownDocument,
    PlacementDocument,
    ProcessorDocument,
    StalenessDocument,
    TrainingDocument,
)
from lpsched.core.io.network_document import judge_network
from lpsched.core.io.numbers import exact
from lpsched.core.io.parse import read_document
from lpsched.core.io.plain import as_tuples
from lpsched.core.io.references import reference_faults
from lpsched.core.limits import MAX_DEVICES
from lpsched.core.network import Network
from lpsched.errors import Fault, FormatError

__all__ = ["InstanceDocument", "Resolve", "instance_from_document"]

Plain = Mapping[str, Any]
Part = TypeVar("Part")
#: From a name to the network that bears it; None for a name unknown.
Resolve = Callable[[str], Network | None]

#: What a graph states itself, so that an instance of a graph must not.
_BELONGS_TO_A_NETWORK = ("devices", "link", "links", "costs", "training")
_ANY_SCHEMA = "lpsched/(network|instance|graph|schedule)/1"


def instance_from_document(
    raw: Plain,
    *,
    source: str | None = None,
    folder: str | Path = ".",
    resolve: Resolve | None = None,
) -> Instance:
    """Check an instance document, read what it names, and build the instance.

    Parameters
    ----------
    folder : str or Path
        Where the paths inside the document begin: the folder of its file.
    resolve : callable, optional
        Finds a network that is named where no such file exists
        (`lpsched.network.find_shipped`); by default only files are named.

    Raises
    ------
    FormatError
        With every fault of the document, and of the network or graph it holds.
    """
    plain = as_tuples(raw)
    document, faults = validate(InstanceDocument, plain)
    network, network_faults = _named(raw, Path(folder), resolve), list[Fault]()
    if network is None:
        network, network_faults = _part(raw, "network", Path(folder), judge_network)
    graph, graph_faults = _part(raw, "graph", Path(folder), _judge_graph)
    faults += [*network_faults, *graph_faults, *_instance_faults(plain)]
    if faults:
        raise FormatError(faults, source=source)
    return _instance(document, network, graph)


def _named(raw: Plain, folder: Path, resolve: Resolve | None) -> Network | None:
    """Find the network by its name, unless a file has that name."""
    name = raw.get("network")
    if resolve is None or not isinstance(name, str):
        return None
    network = resolve(name)
    return None if network is None or (folder / name).is_file() else network


def _judge_graph(raw: Plain) -> tuple[Graph | None, list[Fault]]:
    try:
        return graph_from_document(raw), []
    except FormatError as error:
        return None, list(error.faults)


def _part(
    raw: Plain,
    key: str,
    folder: Path,
    judge: Callable[[Plain], tuple[Part | None, list[Fault]]],
) -> tuple[Part | None, list[Fault]]:
    """Read the network or graph that stands under `key`, inline or in a file."""
    inner, where = raw.get(key), key
    if isinstance(inner, str):
        path = folder / inner
        where = f"{key} ({path})"
        try:
            inner = read_document(path)
        except FormatError as error:
            return None, [_inside(where, fault) for fault in error.faults]
    if not isinstance(inner, Mapping):
        return None, []
    found = re.fullmatch(_ANY_SCHEMA, str(inner.get("schema")))
    if found and found[1] != key:
        article = "an" if found[1] == "instance" else "a"
        text = f"this is {article} {found[1]} ({found[0]}); a {key} is wanted"
        return None, [_inside(where, Fault("schema", text))]
    part, faults = judge(inner)
    return part, [_inside(where, fault) for fault in faults]


def _inside(where: str, fault: Fault) -> Fault:
    if where.endswith(")"):
        return Fault(where, str(fault))
    return Fault(f"{where}.{fault.path}".rstrip("."), fault.message)


def _instance_faults(plain: Plain) -> Iterator[Fault]:
    """Faults between the keys of the document."""
    has_graph = plain.get("graph") is not None
    if (plain.get("network") is not None) == has_graph:
        yield Fault("", "expected either `network` or `graph`")
    if has_graph:
        for key in _BELONGS_TO_A_NETWORK:
            if key in plain:
                yield Fault(key, "goes with a network; a graph states its own")
    elif plain.get("devices") is None:
        yield Fault("devices", "required, but missing: their number or a list of them")
    yield from _platform_faults(plain)
    yield from _regime_faults(_mapping(plain, "training"))
    yield from _stage_faults(_mapping(plain, "placement"))
    objective = plain.get("objective")
    if isinstance(objective, tuple) and len(set(map(str, objective))) < len(objective):
        yield Fault("objective", "an objective is listed twice")


def _mapping(plain: Plain, key: str) -> Plain:
    value = plain.get(key)
    return value if isinstance(value, Mapping) else {}


def _platform_faults(plain: Plain) -> list[Fault]:
    """Duplicate devices and bad links, by the rules of a graph."""
    devices: Any = plain.get("devices")
    if isinstance(devices, Mapping):
        devices = devices.get("count")
    if isinstance(devices, int):
        devices = [{"id": name} for name in _numbered(min(devices, MAX_DEVICES))]
    return reference_faults({"devices": devices, "links": plain.get("links")})


def _numbered(count: int) -> list[str]:
    return [f"d{i}" for i in range(count)]


def _regime_faults(training: Plain) -> Iterator[Fault]:
    if training.get("mode") != "synchronous" and "microbatches" in training:
        yield Fault("training.microbatches", "goes with `mode: synchronous`")
    if training.get("fuse_backward") is True:
        for kind in ("I", "W"):
            parts = _mapping(training, "split").get(kind, 1)
            if isinstance(parts, int) and parts > 1:
                text = f"with `fuse_backward` I and W are one op, got {parts} parts"
                yield Fault(f"training.split.{kind}", text)


def _stage_faults(placement: Plain) -> Iterator[Fault]:
    rule, stages = placement.get("rule"), placement.get("stages")
    if rule == "stages" and stages is None:
        yield Fault("placement.stages", "required by `rule: stages`, but missing")
    free = rule == "free" or (rule is None and stages is None)
    if "arrangement" in placement and free:
        yield Fault("placement.arrangement", "goes with `rule: stages`")


def _instance(
    document: InstanceDocument, network: Network | None, graph: Graph | None
) -> Instance:
    inner = network or graph
    link = Link(
        latency=document.link.latency, units_per_tick=document.link.units_per_tick
    )
    return Instance(
        name=document.name or (inner.name if inner else ""),
        origin=document.origin,
        network=network,
        graph=graph,
        devices=_processors(document.devices),
        link=link,
        links=dict(resolved_link(override, link) for override in document.links),
        costs=_costs(document.costs),
        training=_training(document.training),
        placement=_placement(document.placement),
        objective=document.objective or DEFAULT_OBJECTIVE,
        period_slack=exact(document.period_slack),
        max_period=document.max_period,
        known={name: _known(known) for name, known in document.known.items()},
    )


def _processors(
    devices: int | DeviceCountDocument | tuple[ProcessorDocument, ...] | None,
) -> tuple[Processor, ...]:
    if devices is None:
        return ()
    if isinstance(devices, tuple):
        return tuple(
            Processor(id=DeviceId(d.id), speed=Fraction(d.speed), memory=d.memory)
            for d in devices
        )
    if isinstance(devices, int):
        devices = DeviceCountDocument(count=devices)
    speed = Fraction(devices.speed)
    return tuple(
        Processor(id=DeviceId(name), speed=speed, memory=devices.memory)
        for name in _numbered(devices.count)
    )


def _costs(costs: CostsDocument) -> CostModel:
    own = set(type(costs).model_fields) - set(CostsDocument.model_fields)
    return CostModel(
        model=costs.model,
        tick=None if costs.tick is None else exact(costs.tick),
        size_tick=None if costs.size_tick is None else exact(costs.size_tick),
        rounding=costs.rounding,
        least=costs.least,
        saves=costs.saves,
        parameters={key: _parameter(getattr(costs, key)) for key in sorted(own)},
    )


def _parameter(value: Any) -> Any:  # noqa: ANN401 - plain data
    """A cost model's parameter as plain data, numbers exact."""
    if isinstance(value, Document):
        return value.model_dump()
    return exact(value) if isinstance(value, float) else value


def _training(training: TrainingDocument) -> Training:
    split = training.split
    return Training(
        mode=training.mode,
        microbatches=training.microbatches,
        split=(
            None
            if split is None
            else Split(forward=split.F, input_grad=split.I, weight_grad=split.W)
        ),
        fuse_backward=training.fuse_backward,
        staleness=_staleness(training.staleness),
        flush=training.flush,
    )


def _staleness(staleness: StalenessDocument | None) -> Staleness:
    if staleness is None:
        return Staleness()
    if staleness.rule is not None:
        return Staleness(layerpipe2=True, groups=staleness.groups)
    if staleness.fixed is not None:
        return Staleness(least=staleness.fixed, most=staleness.fixed)
    return Staleness(most=staleness.max)


def _placement(placement: PlacementDocument) -> Placement:
    given: PlacementRule = "free" if placement.stages is None else "stages"
    return Placement(
        rule=placement.rule or given,
        stages=placement.stages,
        arrangement=placement.arrangement,
        pins={name: DeviceId(device) for name, device in placement.pins.items()},
        colocate=placement.colocate,
    )


def _known(known: KnownDocument) -> Known:
    return Known(
        value=known.value,
        bound=known.bound,
        proof=known.proof,
        method=known.method,
        seconds=None if known.seconds is None else float(known.seconds),
    )
