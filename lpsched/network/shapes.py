"""The work of every layer of a network, or every fault of its shapes."""

from __future__ import annotations

from collections.abc import Mapping

from lpsched.core.network import Custom, Layer, Network, Shape
from lpsched.errors import Fault
from lpsched.network.layers import Operand, ShapeError, Work, work_of

__all__ = ["layer_paths", "operand_shapes", "works_of"]


def layer_paths(network: Network) -> Mapping[str, str]:
    """Where each layer stands in its file: ``layers[3]``."""
    return {layer.name: f"layers[{i}]" for i, layer in enumerate(network.layers)}


def works_of(network: Network) -> tuple[dict[str, Work], dict[str, str], list[Fault]]:
    """Work of each layer of the network, on one sample.

    Returns
    -------
    works : dict of str to Work
        For every layer whose shape can be told.
    unknown : dict of str to str
        For every other layer without a fault of its own: why its shape is unknown.
        That is a fault only if the shape is needed.
    faults : list of Fault
        One per layer that cannot take its inputs.
    """
    works: dict[str, Work] = {}
    unknown: dict[str, str] = {}
    faults: list[Fault] = []
    paths = layer_paths(network)
    for layer in network.ordered_layers:
        operands, reason = _operands(network, layer, works)
        if layer.type is None:
            unknown[layer.name] = "the layer has no `type`"
        elif reason and not isinstance(layer.type, Custom):
            unknown[layer.name] = reason
        else:
            try:
                works[layer.name] = work_of(layer.type, operands)
            except ShapeError as error:
                path = f"{paths[layer.name]}.{error.key}".rstrip(".")
                faults.append(Fault(path, str(error)))
    return works, unknown, [*faults, *_tie_faults(network, works, paths)]


def operand_shapes(
    network: Network, layer: Layer, works: Mapping[str, Work]
) -> tuple[Shape, ...]:
    """Shapes of a layer's inputs; none where one is unknown (a custom layer's)."""
    operands, _reason = _operands(network, layer, works)
    return tuple(operand.shape for operand in operands)


def _operands(
    network: Network, layer: Layer, works: Mapping[str, Work]
) -> tuple[list[Operand], str]:
    """Inputs of a layer with their shapes, or why they are unknown."""
    if not layer.inputs:
        if network.input is None:
            return [], "the file gives no `input`, the shape of one sample"
        return [Operand("the network's input", network.input)], ""
    operands = []
    for name in layer.inputs:
        if name not in works:
            text = f"that of {name!r} is unknown"
            typed = network.layer_by_name[name].type is not None
            return [], text if typed else f"{text}, for it has no `type`"
        operands.append(Operand(repr(name), works[name].output))
    return operands, ""


def _tie_faults(
    network: Network, works: Mapping[str, Work], paths: Mapping[str, str]
) -> list[Fault]:
    """Layers that share weights have equally many of them."""
    faults = []
    for layer in network.layers:
        owner = layer.shares
        if owner is None or layer.name not in works or owner not in works:
            continue
        own, shared = works[layer.name].parameters, works[owner].parameters
        if own != shared:
            text = f"{layer.name!r} needs {own} parameters, {owner!r} has {shared}"
            faults.append(Fault(f"{paths[layer.name]}.shares", text))
    return faults
