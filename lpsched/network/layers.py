"""What each layer type makes of its inputs: output shape, parameters, products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

from lpsched.core.network import (
    Activation,
    AdaptivePool,
    Add,
    Attention,
    BatchNorm,
    Concat,
    Conv2d,
    Custom,
    Dropout,
    Embedding,
    Flatten,
    GlobalPool,
    LayerNorm,
    LayerType,
    Linear,
    Multiply,
    Pair,
    Pool,
    PositionEmbedding,
    RmsNorm,
    Select,
    Shape,
)

__all__ = ["Operand", "ShapeError", "Work", "work_of"]


class ShapeError(ValueError):
    """A layer that cannot take its inputs; `key` names the setting at fault."""

    def __init__(self, message: str, *, key: str = "") -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of a layer: where it comes from and its shape."""

    source: str
    shape: Shape

    def __str__(self) -> str:
        return f"{list(self.shape)} from {self.source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one layer does to one sample.

    Attributes
    ----------
    output : tuple of int
        Shape of the output.
    parameters : int
        Learned numbers, biases and scales included.
    weight_macs : int
        Multiply-accumulates with parameters; additions of a bias are not counted.
    free_macs : int
        Multiply-accumulates of two activations (attention's scores).
    """

    output: Shape
    parameters: int = 0
    weight_macs: int = 0
    free_macs: int = 0


@singledispatch
def work_of(layer: LayerType, operands: Sequence[Operand]) -> Work:
    """Work of one layer on its inputs, in their order.

    Raises
    ------
    ShapeError
        The layer cannot take inputs of these shapes.
    """
    raise TypeError(f"no rule for {type(layer).__name__} of {len(operands)} inputs")


def _only(operands: Sequence[Operand], name: str) -> Operand:
    if len(operands) == 1:
        return operands[0]
    listed = ", ".join(operand.source for operand in operands)
    text = f"{name} takes one input, got {len(operands)} ({listed}); join them by"
    raise ShapeError(f"{text} an add or concat layer", key="inputs")


def _image(operands: Sequence[Operand], name: str) -> tuple[int, Pair]:
    operand = _only(operands, name)
    if len(operand.shape) != 3:
        text = f"{name} takes [channels, height, width], got {operand}"
        raise ShapeError(text)
    channels, height, width = operand.shape
    return channels, Pair(height, width)


@work_of.register
def _(layer: Linear, operands: Sequence[Operand]) -> Work:
    operand = _only(operands, "linear")
    if len(operand.shape) > 2:
        text = f"linear takes [features] or [tokens, features], got {operand}"
        raise ShapeError(f"{text}; put a layer of type flatten between them")
    rows, features = operand.shape[:-1], operand.shape[-1]
    bias = layer.out if layer.bias else 0
    return Work(
        output=(*rows, layer.out),
        parameters=features * layer.out + bias,
        weight_macs=math.prod(rows) * features * layer.out,
    )


@work_of.register
def _(layer: Conv2d, operands: Sequence[Operand]) -> Work:
    channels, image = _image(operands, "conv2d")
    for count, what in ((channels, "input"), (layer.out, "output")):
        if count % layer.groups:
            text = f"{count} {what} channels cannot be shared by {layer.groups} groups"
            raise ShapeError(text, key="groups")
    windows = _extents(
        image,
        kernel=layer.kernel,
        stride=layer.stride,
        padding=layer.padding,
        dilation=layer.dilation,
    )
    filters = layer.kernel.height * layer.kernel.width * channels // layer.groups
    return Work(
        output=(layer.out, windows.height, windows.width),
        parameters=layer.out * filters + (layer.out if layer.bias else 0),
        weight_macs=layer.out * filters * windows.height * windows.width,
    )


def _extents(
    image: Pair, *, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> Pair:
    """Windows along the height and along the width of an image."""
    rows = _windows(
        image.height, kernel.height, stride.height, padding.height, dilation.height
    )
    columns = _windows(
        image.width, kernel.width, stride.width, padding.width, dilation.width
    )
    return Pair(rows, columns)


def _windows(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    r"""Windows along one axis, the last of them whole.

    .. math:: \lfloor (n + 2p - d(k - 1) - 1) / s \rfloor + 1
    """
    reach = dilation * (kernel - 1) + 1
    room = size + 2 * padding - reach
    if room < 0:
        text = f"a window of {reach} does not fit into {size} + 2 * {padding} padding"
        raise ShapeError(text, key="kernel")
    return room // stride + 1


@work_of.register
def _(layer: Pool, operands: Sequence[Operand]) -> Work:
    channels, image = _image(operands, f"{layer.function}_pool")
    kernel, padding = layer.kernel, layer.padding
    if 2 * padding.height > kernel.height or 2 * padding.width > kernel.width:
        raise ShapeError("expected at most half the kernel", key="padding")
    windows = _extents(
        image,
        kernel=kernel,
        stride=layer.stride,
        padding=padding,
        dilation=Pair(1, 1),
    )
    return Work(output=(channels, windows.height, windows.width))


@work_of.register
def _(layer: AdaptivePool, operands: Sequence[Operand]) -> Work:
    channels, _size = _image(operands, f"adaptive_{layer.function}_pool")
    return Work(output=(channels, layer.out.height, layer.out.width))


@work_of.register
def _(layer: GlobalPool, operands: Sequence[Operand]) -> Work:
    channels, _size = _image(operands, f"global_{layer.function}_pool")
    return Work(output=(channels,))


@work_of.register
def _(layer: Activation, operands: Sequence[Operand]) -> Work:
    return Work(output=_only(operands, layer.function).shape)


@work_of.register
def _(_layer: Dropout, operands: Sequence[Operand]) -> Work:
    return Work(output=_only(operands, "dropout").shape)


@work_of.register
def _(layer: BatchNorm, operands: Sequence[Operand]) -> Work:
    shape = _only(operands, "batchnorm").shape
    return Work(output=shape, parameters=2 * shape[0] if layer.affine else 0)


@work_of.register
def _(layer: LayerNorm, operands: Sequence[Operand]) -> Work:
    shape = _only(operands, "layernorm").shape
    return Work(output=shape, parameters=2 * shape[-1] if layer.affine else 0)


@work_of.register
def _(layer: RmsNorm, operands: Sequence[Operand]) -> Work:
    shape = _only(operands, "rmsnorm").shape
    return Work(output=shape, parameters=shape[-1] if layer.affine else 0)


@work_of.register
def _(_layer: Add, operands: Sequence[Operand]) -> Work:
    return _elementwise(operands, "add")


@work_of.register
def _(_layer: Multiply, operands: Sequence[Operand]) -> Work:
    return _elementwise(operands, "multiply")


def _elementwise(operands: Sequence[Operand], name: str) -> Work:
    if len({operand.shape for operand in operands}) > 1:
        listed = ", ".join(map(str, operands))
        text = f"{name} takes inputs of one shape, got {listed}"
        raise ShapeError(text, key="inputs")
    return Work(output=operands[0].shape)


@work_of.register
def _(layer: Concat, operands: Sequence[Operand]) -> Work:
    first, axis = operands[0].shape, layer.axis
    if axis >= len(first):
        text = f"expected an axis < {len(first)}, got {axis} for {operands[0]}"
        raise ShapeError(text, key="axis")
    others = {(o.shape[:axis], o.shape[axis + 1 :], len(o.shape)) for o in operands}
    if len(others) > 1:
        listed = ", ".join(map(str, operands))
        text = f"concat takes shapes that differ along axis {axis} only, got {listed}"
        raise ShapeError(text, key="inputs")
    joined = sum(operand.shape[axis] for operand in operands)
    return Work(output=(*first[:axis], joined, *first[axis + 1 :]))


@work_of.register
def _(_layer: Flatten, operands: Sequence[Operand]) -> Work:
    return Work(output=(math.prod(_only(operands, "flatten").shape),))


@work_of.register
def _(layer: Select, operands: Sequence[Operand]) -> Work:
    operand, axis = _only(operands, "select"), layer.axis
    if axis >= len(operand.shape):
        text = f"expected an axis < {len(operand.shape)}, got {axis} for {operand}"
        raise ShapeError(text, key="axis")
    if layer.index >= operand.shape[axis]:
        text = f"expected an index < {operand.shape[axis]}, got {layer.index}"
        raise ShapeError(text, key="index")
    left = (*operand.shape[:axis], *operand.shape[axis + 1 :])
    return Work(output=left or (1,))


@work_of.register
def _(layer: Embedding, operands: Sequence[Operand]) -> Work:
    operand = _only(operands, "embedding")
    if len(operand.shape) != 1:
        raise ShapeError(f"embedding takes [tokens], got {operand}")
    table = layer.vocabulary * layer.out
    return Work(output=(*operand.shape, layer.out), parameters=table)


def _sequence(operands: Sequence[Operand], name: str) -> tuple[int, int]:
    operand = _only(operands, name)
    if len(operand.shape) != 2:
        raise ShapeError(f"{name} takes [tokens, features], got {operand}")
    tokens, features = operand.shape
    return tokens, features


@work_of.register
def _(layer: PositionEmbedding, operands: Sequence[Operand]) -> Work:
    tokens, features = _sequence(operands, "position_embedding")
    positions = tokens if layer.positions is None else layer.positions
    if positions < tokens:
        text = f"expected at least one position per token ({tokens}), got {positions}"
        raise ShapeError(text, key="positions")
    return Work(output=(tokens, features), parameters=positions * features)


@work_of.register
def _(layer: Attention, operands: Sequence[Operand]) -> Work:
    """Queries, keys, values and output: four d x d products a token.

    Scores and their use are two t x t x d products of activations; a causal mask
    saves nothing in dense kernels, so all t x t of them count.
    """
    tokens, features = _sequence(operands, "attention")
    if features % layer.heads:
        text = f"{features} features cannot be shared by {layer.heads} heads"
        raise ShapeError(text, key="heads")
    weights = 4 * features * features
    return Work(
        output=(tokens, features),
        parameters=weights + (4 * features if layer.bias else 0),
        weight_macs=tokens * weights,
        free_macs=2 * tokens * tokens * features,
    )


@work_of.register
def _(layer: Custom, _operands: Sequence[Operand]) -> Work:
    return Work(
        output=layer.shape,
        parameters=layer.parameters,
        weight_macs=sum(p.macs for p in layer.products if p.weights),
        free_macs=sum(p.macs for p in layer.products if not p.weights),
    )
