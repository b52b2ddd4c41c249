"""`lpsched/graph/1`: its checks, and both conversions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lpsched.core.graph import (
    Consumer,
    Delay,
    DelayName,
    Dependence,
    Device,
    DeviceId,
    Graph,
    Link,
    Op,
    OpId,
    Resident,
    Tensor,
    TensorId,
)
from lpsched.core.io.faults import validate
from lpsched.core.io.graph_model import (
    GraphDocument,
    LinkOverride,
    OpDocument,
    TensorDocument,
)
from lpsched.core.io.plain import as_tuples
from lpsched.core.io.references import reference_faults
from lpsched.errors import FormatError

__all__ = [
    "checked",
    "digest",
    "graph_from_document",
    "graph_to_document",
    "resolved_link",
]

GRAPH_SCHEMA = "lpsched/graph/1"


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 over the JSON: sorted keys, no spaces, UTF-8 unescaped."""
    text = json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()


def graph_from_document(raw: Mapping[str, Any], *, source: str | None = None) -> Graph:
    """Check a graph document and build the graph.

    Raises
    ------
    FormatError
        With every fault of the document and its references.
    """
    plain = as_tuples(raw)
    document, faults = validate(GraphDocument, plain)
    faults += reference_faults(plain)
    if faults:
        raise FormatError(faults, source=source)
    return _graph(document, raw)


def checked(graph: Graph) -> Graph:
    """Check a graph made in Python as if it were read; return it."""
    graph_from_document(graph_to_document(graph), source=f"graph {graph.name!r}")
    return graph


def _graph(document: GraphDocument, raw: Mapping[str, Any]) -> Graph:
    link = Link(
        latency=document.link.latency, units_per_tick=document.link.units_per_tick
    )
    return Graph(
        name=document.name,
        time_unit=document.time_unit,
        size_unit=document.size_unit,
        unfolding=document.unfolding,
        flush=document.flush,
        devices=tuple(
            Device(id=DeviceId(d.id), memory=d.memory) for d in document.devices
        ),
        link=link,
        links=dict(resolved_link(override, link) for override in document.links),
        delays={
            DelayName(k): Delay(min=d.min, max=d.max)
            for k, d in document.delays.items()
        },
        ops=tuple(_op(op) for op in document.ops),
        tensors=tuple(_tensor(tensor) for tensor in document.tensors),
        dependences=tuple(
            Dependence(
                src=OpId(d.src), dst=OpId(d.dst), delay=_delay(d.delay), lag=d.lag
            )
            for d in document.dependences
        ),
        colocate=tuple(tuple(map(OpId, group)) for group in document.colocate),
        residents=tuple(
            Resident(size=r.size, ops=tuple(map(OpId, r.ops)))
            for r in document.residents
        ),
        source=raw,
    )


def resolved_link(
    override: LinkOverride, link: Link
) -> tuple[tuple[DeviceId, DeviceId], Link]:
    """Fill the fields that an override leaves open from the default link."""
    given = override.model_fields_set
    resolved = Link(
        latency=override.latency if "latency" in given else link.latency,
        units_per_tick=(
            override.units_per_tick
            if "units_per_tick" in given
            else link.units_per_tick
        ),
    )
    return (DeviceId(override.src), DeviceId(override.dst)), resolved


def _op(op: OpDocument) -> Op:
    duration = op.duration
    return Op(
        id=OpId(op.id),
        kind=op.kind,
        duration=(
            duration
            if isinstance(duration, int)
            else {DeviceId(k): v for k, v in duration.items()}
        ),
        devices=None if op.devices is None else tuple(map(DeviceId, op.devices)),
        layer=op.layer,
        stage=op.stage,
        microbatch=op.microbatch,
        part=op.part,
    )


def _tensor(tensor: TensorDocument) -> Tensor:
    return Tensor(
        id=TensorId(tensor.id),
        size=tensor.size,
        producer=OpId(tensor.producer),
        consumers=tuple(
            Consumer(op=OpId(c.op), delay=_delay(c.delay), lag=c.lag)
            for c in tensor.consumers
        ),
    )


def _delay(delay: int | str) -> int | DelayName:
    return delay if isinstance(delay, int) else DelayName(delay)


def graph_to_document(graph: Graph) -> dict[str, Any]:
    """Return the graph's document: as read, else with defaults left out."""
    if graph.source is not None:
        return dict(graph.source)
    document: dict[str, Any] = {
        "schema": GRAPH_SCHEMA,
        "name": graph.name,
        "time_unit": graph.time_unit,
        "size_unit": graph.size_unit,
        "unfolding": graph.unfolding,
        "flush": graph.flush,
        "devices": [_some(id=d.id, memory=d.memory) for d in graph.devices],
        "link": {
            "latency": graph.link.latency,
            "units_per_tick": graph.link.units_per_tick,
        },
        "links": [
            {
                "src": src,
                "dst": dst,
                "latency": link.latency,
                "units_per_tick": link.units_per_tick,
            }
            for (src, dst), link in graph.links.items()
        ],
        "delays": {k: {"min": d.min, "max": d.max} for k, d in graph.delays.items()},
        "ops": [_op_document(op) for op in graph.ops],
        "tensors": [
            {
                "id": t.id,
                "size": t.size,
                "producer": t.producer,
                "consumers": [_use_document("op", c.op, c) for c in t.consumers],
            }
            for t in graph.tensors
        ],
        "dependences": [
            {"src": d.src, **_use_document("dst", d.dst, d)} for d in graph.dependences
        ],
        "colocate": [list(group) for group in graph.colocate],
        "residents": [{"size": r.size, "ops": list(r.ops)} for r in graph.residents],
    }
    empty = ("links", "delays", "dependences", "colocate", "residents")
    return {k: v for k, v in document.items() if v or k not in empty}


def _op_document(op: Op) -> dict[str, Any]:
    duration = op.duration if isinstance(op.duration, int) else dict(op.duration)
    return _some(
        id=op.id,
        kind=op.kind,
        duration=duration,
        devices=None if op.devices is None else list(op.devices),
        layer=op.layer,
        stage=op.stage,
        microbatch=op.microbatch,
        part=op.part,
    )


def _use_document(key: str, op: OpId, use: Consumer | Dependence) -> dict[str, Any]:
    return {
        key: op,
        **({"delay": use.delay} if use.delay != 0 else {}),
        **({"lag": use.lag} if use.lag else {}),
    }


def _some(**values: Any) -> dict[str, Any]:  # noqa: ANN401 - plain data
    return {k: v for k, v in values.items() if v is not None}
