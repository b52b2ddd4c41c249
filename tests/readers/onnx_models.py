"""Small ONNX models for tests, and shipped networks written as ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import TensorProto, helper

from lpsched.core.network import (
    Add,
    BatchNorm,
    Conv2d,
    GlobalPool,
    Layer,
    Linear,
    Network,
    Pool,
)
from lpsched.network.shapes import works_of

__all__ = ["model_of", "network_as_onnx", "weight"]

Dims = Sequence[int | str | None]


def weight(name: str, *dims: int, kind: int = TensorProto.FLOAT) -> onnx.TensorProto:
    """Return an initializer without its data: only its shape matters here."""
    tensor = onnx.TensorProto(name=name, data_type=kind)
    tensor.dims.extend(dims)
    return tensor


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Dims],
    outputs: Sequence[str],
    weights: Sequence[onnx.TensorProto] = (),
    *,
    kinds: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """Build a model; `kinds` names inputs that are no floats."""
    kinds = kinds or {}
    graph = helper.make_graph(
        list(nodes),
        "net",
        [
            helper.make_tensor_value_info(
                name, kinds.get(name, TensorProto.FLOAT), list(dims)
            )
            for name, dims in inputs.items()
        ],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
            for name in outputs
        ],
        list(weights),
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


class _Builder:
    """Nodes and weights of a network of images, layer by layer."""

    def __init__(self, network: Network) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._works, _, _ = works_of(network)
        self._network = network

    def add(self, layer: Layer) -> None:
        """Write a layer, and its fused activation as a node of its own."""
        inputs = list(layer.inputs) or ["x"]
        if isinstance(layer.type, Conv2d):
            self._conv(layer, layer.type, inputs)
        elif isinstance(layer.type, BatchNorm):
            channels = self._works[layer.name].output[0]
            names = [f"{layer.name}.{i}" for i in range(4)]
            self.weights += [weight(name, channels) for name in names]
            self._node("BatchNormalization", layer, [*inputs, *names])
        elif isinstance(layer.type, Pool):
            self._node(
                "MaxPool",
                layer,
                inputs,
                kernel_shape=[layer.type.kernel.height, layer.type.kernel.width],
                strides=[layer.type.stride.height, layer.type.stride.width],
                pads=[layer.type.padding.height, layer.type.padding.width] * 2,
            )
        elif isinstance(layer.type, Add):
            self._node("Add", layer, inputs)
        elif isinstance(layer.type, GlobalPool):
            pooled = f"{layer.name}.pooled"
            node = helper.make_node("GlobalAveragePool", inputs, [pooled], pooled)
            self.nodes.append(node)
            self._node("Flatten", layer, [pooled])
        elif isinstance(layer.type, Linear):
            self._linear(layer, layer.type, inputs)

    def _conv(self, layer: Layer, kind: Conv2d, inputs: list[str]) -> None:
        channels = self._works[layer.inputs[0]].output[0] if layer.inputs else 3
        kernel = (kind.kernel.height, kind.kernel.width)
        name = f"{layer.name}.w"
        self.weights.append(weight(name, kind.out, channels // kind.groups, *kernel))
        self._node(
            "Conv",
            layer,
            [*inputs, name],
            strides=[kind.stride.height, kind.stride.width],
            pads=[kind.padding.height, kind.padding.width] * 2,
            group=kind.groups,
        )

    def _linear(self, layer: Layer, kind: Linear, inputs: list[str]) -> None:
        features = self._works[layer.inputs[0]].output[0]
        names = [f"{layer.name}.w", f"{layer.name}.b"]
        self.weights.append(weight(names[0], kind.out, features))
        self.weights.append(weight(names[1], kind.out))
        self._node("Gemm", layer, [*inputs, *names], transB=1)

    def _node(
        self, op: str, layer: Layer, inputs: list[str], **attributes: int | list[int]
    ) -> None:
        out = f"{layer.name}.raw" if layer.activation else layer.name
        made = helper.make_node(op, inputs, [out], name=layer.name)
        made.attribute.extend(
            helper.make_attribute(key, value) for key, value in attributes.items()
        )
        self.nodes.append(made)
        if layer.activation:
            name = f"{layer.name}.{layer.activation}"
            self.nodes.append(helper.make_node("Relu", [out], [layer.name], name=name))


def network_as_onnx(network: Network, batch: int) -> onnx.ModelProto:
    """Write a network of images as a framework would export it."""
    builder = _Builder(network)
    for layer in network.ordered_layers:
        builder.add(layer)
    shape = network.input or ()
    last = network.ordered_layers[-1].name
    return model_of(builder.nodes, {"x": [batch, *shape]}, [last], builder.weights)
