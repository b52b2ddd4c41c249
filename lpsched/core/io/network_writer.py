"""`lpsched/network/1`: the way out, each number exactly as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from lpsched.core.io.files import document_text, write_text
from lpsched.core.io.numbers import exact, plain_number
from lpsched.core.network import (
    Activation,
    AdaptivePool,
    Cost,
    GlobalPool,
    Layer,
    LayerType,
    Network,
    Pair,
    Pool,
    PositionEmbedding,
    Product,
)
from lpsched.errors import Fault, InstanceError

__all__ = ["network_to_document", "save_network"]

NETWORK_SCHEMA = "lpsched/network/1"


def network_to_document(network: Network) -> dict[str, Any]:
    """Return the network's document, defaults left out.

    Reading it gives the same network.

    Raises
    ------
    InstanceError
        Numbers that no JSON reader would read back exactly (a third, say).
    """
    faults: list[Fault] = []
    above: str | None = None
    layers = []
    for i, layer in enumerate(network.layers):
        layers.append(_layer(layer, above, f"layers[{i}]", faults))
        above = layer.name
    if faults:
        raise InstanceError(faults, source=network.name)
    head = {
        "schema": NETWORK_SCHEMA,
        "name": network.name,
        "origin": network.origin,
        "batch": network.batch,
        "input": None if network.input is None else list(network.input),
        "time_unit": network.time_unit,
        "size_unit": network.size_unit,
    }
    return {**_some(head), "layers": layers}


def save_network(network: Network, path: str | Path) -> None:
    """Write a network file, whole or not at all."""
    write_text(path, document_text(network_to_document(network)))


def _layer(
    layer: Layer, above: str | None, path: str, faults: list[Fault]
) -> dict[str, Any]:
    """Document of one layer; numbers that cannot be written are noted."""
    default = () if above is None else (above,)
    writer = _Numbers(path, faults)
    document = {
        "name": layer.name,
        "inputs": None if layer.inputs == default else list(layer.inputs),
        "forward": writer.cost("forward", layer.forward),
        "input_grad": writer.cost("input_grad", layer.input_grad),
        "weight_grad": writer.cost("weight_grad", layer.weight_grad),
        "update": writer.cost("update", layer.update),
        "output": writer.cost("output", layer.output),
        "parameters": writer.cost("parameters", layer.parameters),
        "activation": layer.activation,
        "saves": layer.saves,
        "trainable": None if layer.trainable else False,
        "shares": layer.shares,
    }
    if layer.memory is not None:
        document["memory"] = {
            "F": writer.cost("memory.F", layer.memory.forward),
            "I": writer.cost("memory.I", layer.memory.input_grad),
        }
    written = _some(document)
    kind = {} if layer.type is None else _type(layer.type)
    name = {"name": written.pop("name")}
    return {**name, **kind, **written}


class _Numbers:
    """Writes exact numbers as JSON has them, and notes those it cannot."""

    def __init__(self, path: str, faults: list[Fault]) -> None:
        self._path = path
        self._faults = faults

    def cost(self, key: str, cost: Cost | None) -> Any:  # noqa: ANN401 - plain data
        """One number, one per device, or one per microbatch."""
        if isinstance(cost, Mapping):
            return {k: self._number(f"{key}.{k}", v) for k, v in cost.items()}
        if isinstance(cost, tuple):
            return [self._number(f"{key}[{i}]", v) for i, v in enumerate(cost)]
        return None if cost is None else self._number(key, cost)

    def _number(self, key: str, number: Fraction) -> int | float:
        plain = plain_number(number)
        if exact(plain) != number:
            text = f"{number} cannot be written exactly; round it first"
            self._faults.append(Fault(f"{self._path}.{key}", text))
        return plain


def _type(kind: LayerType) -> dict[str, Any]:
    """Name of a layer's type and its settings, defaults left out."""
    settings = {
        f.name: _setting(getattr(kind, f.name))
        for f in fields(kind)
        if f.default is MISSING or getattr(kind, f.name) != f.default
    }
    if isinstance(kind, Activation):
        return {"type": kind.function}
    if isinstance(kind, Pool | AdaptivePool | GlobalPool):
        prefix = {Pool: "", AdaptivePool: "adaptive_", GlobalPool: "global_"}
        del settings["function"]
        return {"type": f"{prefix[type(kind)]}{kind.function}_pool", **settings}
    if isinstance(kind, PositionEmbedding):
        return {"type": "position_embedding", **settings}
    return {"type": type(kind).__name__.lower(), **settings}


def _setting(value: Any) -> Any:  # noqa: ANN401 - any field of a layer type
    if isinstance(value, Pair):
        square = value.height == value.width
        return value.height if square else [value.height, value.width]
    if isinstance(value, Product):
        return {
            f.name: getattr(value, f.name)
            for f in fields(value)
            if getattr(value, f.name) != f.default
        }
    if isinstance(value, tuple):
        return [_setting(item) for item in value]
    return plain_number(value) if isinstance(value, Fraction) else value


def _some(document: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in document.items() if v is not None}
