"""`lpsched/network/1`: the document model, its checks, and the way in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from lpsched.core.io.faults import validate
from lpsched.core.io.fields import NOT_EMPTY, Document, Name, Positive
from lpsched.core.io.layer_document import (
    LAYER_TYPES,
    AnyLayerDocument,
    LayerDocument,
)
from lpsched.core.io.network_references import layer_inputs, network_faults
from lpsched.core.io.numbers import exact, exact_cost
from lpsched.core.io.plain import as_tuples
from lpsched.core.network import Cost, Layer, MemoryDeltas, Network
from lpsched.errors import Fault, FormatError

__all__ = ["NetworkDocument", "judge_network", "network_from_document"]


class NetworkDocument(Document):
    """A neural network: a DAG of layers.

    Attributes
    ----------
    name
        Its name.
    origin
        Where the numbers come from.
    batch
        Samples that costs and activations cover.
    input
        Shape of one sample.
    time_unit
        Unit of the costs given, such as us.
    size_unit
        Unit of the sizes given, such as KiB.
    layers
        In topological order.
    """

    schema_: Literal["lpsched/network/1"] = Field(alias="schema")
    name: Name
    origin: str | None = None
    batch: Positive = 1
    input: Annotated[tuple[Positive, ...] | None, NOT_EMPTY] = None
    time_unit: Name | None = None
    size_unit: Name | None = None
    layers: tuple[AnyLayerDocument, ...]


def network_from_document(
    raw: Mapping[str, Any], *, source: str | None = None
) -> Network:
    """Check a network document and build the network.

    Whether the shapes fit is seen when the network is compiled.

    Raises
    ------
    FormatError
        With every fault of the document and its references.
    """
    network, faults = judge_network(raw)
    if network is None:
        raise FormatError(faults, source=source)
    return network


def judge_network(raw: Mapping[str, Any]) -> tuple[Network | None, list[Fault]]:
    """Build the network, or return None with every fault found."""
    plain = as_tuples(raw)
    document, faults = validate(NetworkDocument, _without_unknown_types(plain))
    faults += network_faults(plain)
    return (None, faults) if faults else (_network(document, plain), [])


def _without_unknown_types(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop what only a layer's type could explain where the type is unknown.

    `network_faults` reports the type; complaints about each of its keys would bury
    that.
    """
    layers = plain.get("layers")
    if not isinstance(layers, tuple):
        return plain
    return {**plain, "layers": tuple(_without_unknown_type(x) for x in layers)}


def _without_unknown_type(layer: object) -> object:
    if not isinstance(layer, dict) or "type" not in layer:
        return layer
    name = layer["type"]
    if isinstance(name, str) and name in LAYER_TYPES:
        return layer
    return {k: v for k, v in layer.items() if k in LayerDocument.model_fields}


def _network(document: NetworkDocument, plain: Mapping[str, Any]) -> Network:
    raw_layers = plain["layers"]
    return Network(
        name=document.name,
        origin=document.origin,
        batch=document.batch,
        input=document.input,
        time_unit=document.time_unit,
        size_unit=document.size_unit,
        layers=tuple(
            _layer(layer, layer_inputs(i, raw_layers[i], raw_layers))
            for i, layer in enumerate(document.layers)
        ),
    )


def _layer(layer: LayerDocument, inputs: tuple[str, ...]) -> Layer:
    memory = layer.memory
    return Layer(
        name=layer.name,
        inputs=inputs,
        type=layer.layer_type,
        forward=_cost(layer.forward),
        input_grad=_cost(layer.input_grad),
        weight_grad=_cost(layer.weight_grad),
        update=_cost(layer.update),
        output=None if layer.output is None else exact(layer.output),
        parameters=None if layer.parameters is None else exact(layer.parameters),
        activation=layer.fused_activation,
        saves=layer.saves,
        trainable=layer.trainable,
        shares=layer.shares,
        memory=(
            None
            if memory is None
            else MemoryDeltas(forward=exact(memory.F), input_grad=exact(memory.I))
        ),
    )


def _cost(
    value: float | dict[str, int | float] | tuple[int | float, ...] | None,
) -> Cost | None:
    return None if value is None else exact_cost(value)
