"""What a network document's layers say of each other: names, inputs, shared weights.

Runs on the plain document and passes over what is malformed, so that faults of both
kinds are reported at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lpsched.core.io.faults import shown
from lpsched.core.io.layer_document import LAYER_TYPES
from lpsched.core.order import topological_order
from lpsched.errors import Fault

__all__ = ["layer_inputs", "layer_names", "network_faults", "unknown_name"]

Plain = Mapping[str, Any]


def network_faults(raw: Plain) -> list[Fault]:
    """Every fault between the parts of a network document."""
    layers = list(_layers(raw))
    faults = [
        *_duplicates(layers),
        *(fault for i, layer in layers for fault in _type_faults(i, layer)),
        *_input_faults(raw, layers),
        *_shares_faults(layers),
    ]
    if raw.get("layers") in ((), []):
        faults.append(Fault("layers", "expected at least one layer"))
    return faults


def layer_names(raw: Plain) -> tuple[str, ...]:
    """Names of the layers, as far as the document can be read."""
    names = (layer.get("name") for _, layer in _layers(raw))
    return tuple(name for name in names if isinstance(name, str))


def layer_inputs(index: int, layer: Plain, layers: Sequence[Any]) -> tuple[str, ...]:
    """Predecessors of a layer: those it names, else the layer above."""
    inputs = layer.get("inputs")
    if isinstance(inputs, list | tuple):
        return tuple(name for name in inputs if isinstance(name, str))
    above = layers[index - 1] if index else None
    name = above.get("name") if isinstance(above, Mapping) else None
    return (name,) if isinstance(name, str) else ()


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Say that `name` is unknown and what might have been meant."""
    names = list(dict.fromkeys(known))
    if not names:
        return f"unknown {what} {name!r}; there are none"
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"unknown {what} {name!r}; did you mean {close[0]!r}?"
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"unknown {what} {name!r}; known: {listed}"


def _layers(raw: Plain) -> Iterator[tuple[int, Plain]]:
    layers = raw.get("layers")
    if isinstance(layers, list | tuple):
        for i, layer in enumerate(layers):
            if isinstance(layer, Mapping):
                yield i, layer


def _duplicates(layers: Sequence[tuple[int, Plain]]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for i, layer in layers:
        name = layer.get("name")
        if isinstance(name, str) and first.setdefault(name, i) != i:
            text = f"{name!r} is taken by layers[{first[name]}]"
            yield Fault(f"layers[{i}].name", text)


def _type_faults(index: int, layer: Plain) -> Iterator[Fault]:
    name = layer.get("type")
    if isinstance(name, str) and name not in LAYER_TYPES:
        close = difflib.get_close_matches(name, LAYER_TYPES, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        text = f"unknown layer type {name!r}{hint} (known: {', '.join(LAYER_TYPES)})"
        yield Fault(f"layers[{index}].type", text)
    elif "type" in layer and not isinstance(name, str):
        known = ", ".join(LAYER_TYPES)
        text = f"expected a layer type, got {shown(name)} (known: {known})"
        yield Fault(f"layers[{index}].type", text)
    elif "type" not in layer and "forward" not in layer:
        text = (
            "give the layer a `type` or its costs (`forward`, `input_grad`, "
            f"`weight_grad`); known types: {', '.join(LAYER_TYPES)}"
        )
        yield Fault(f"layers[{index}]", text)


def _input_faults(raw: Plain, layers: Sequence[tuple[int, Plain]]) -> Iterator[Fault]:
    known = layer_names(raw)
    predecessors: dict[str, tuple[str, ...]] = dict.fromkeys(known, ())
    for i, layer in layers:
        inputs = layer_inputs(i, layer, raw["layers"])
        listed = layer.get("inputs")
        for j, name in enumerate(listed if isinstance(listed, list | tuple) else ()):
            if isinstance(name, str) and name not in predecessors:
                text = unknown_name("layer", name, known)
                yield Fault(f"layers[{i}].inputs[{j}]", text)
        if len(set(inputs)) < len(inputs):
            yield Fault(f"layers[{i}].inputs", "a layer is listed twice")
        name = layer.get("name")
        if isinstance(name, str):
            predecessors[name] = tuple(n for n in inputs if n in predecessors)
    if len(predecessors) < len(known):
        return  # two layers of one name would look like a cycle
    _, cycle = topological_order(predecessors)
    if cycle:
        text = f"the layers form a cycle: {' -> '.join((*cycle, cycle[0]))}"
        yield Fault("layers", text)


def _shares_faults(layers: Sequence[tuple[int, Plain]]) -> Iterator[Fault]:
    by_name = {
        layer["name"]: layer
        for _, layer in layers
        if isinstance(layer.get("name"), str)
    }
    for i, layer in layers:
        name = layer.get("shares")
        if not isinstance(name, str):
            continue
        path = f"layers[{i}].shares"
        owner = by_name.get(name)
        if owner is None:
            yield Fault(path, unknown_name("layer", name, by_name))
        elif owner is layer:
            yield Fault(path, "a layer cannot share its own weights")
        elif isinstance(owner.get("shares"), str):
            text = f"{name!r} shares the weights of {owner['shares']!r}; name that one"
            yield Fault(path, text)
        elif owner.get("trainable") is False and layer.get("trainable", True) is True:
            text = f"{name!r} is not trainable; say `trainable: false` here too"
            yield Fault(path, text)
        if "update" in layer and owner is not None:
            text = f"the layer that owns the weights, {name!r}, updates them"
            yield Fault(f"layers[{i}].update", text)
