"""A neural network as a DAG of layers (`lpsched/network/1`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from lpsched.core.order import topological_order

__all__ = [
    "Activation",
    "AdaptivePool",
    "Add",
    "Amount",
    "Attention",
    "BatchNorm",
    "Concat",
    "Conv2d",
    "Cost",
    "Custom",
    "Dropout",
    "Embedding",
    "Flatten",
    "GlobalPool",
    "Layer",
    "LayerNorm",
    "LayerType",
    "Linear",
    "MemoryDeltas",
    "Multiply",
    "Network",
    "Pair",
    "Pool",
    "PoolFunction",
    "PositionEmbedding",
    "Product",
    "RmsNorm",
    "Saves",
    "Select",
    "Shape",
]

#: Extents of one sample, without the batch.
Shape = tuple[int, ...]
#: A time or size in the file's unit: one number, or one per device.
Amount = Fraction | Mapping[str, Fraction]
#: An amount, or a list of numbers, one per microbatch.
Cost = Amount | tuple[Fraction, ...]
#: What the activation gradient of a layer needs back.
Saves = Literal["input", "output", "both", "none"]
PoolFunction = Literal["max", "avg"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two extents of an image: along its height and along its width."""

    height: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A matrix product along the last axis of [features] or [tokens, features]."""

    out: int
    bias: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2d:
    """A convolution of [channels, height, width]."""

    out: int
    kernel: Pair
    stride: Pair = Pair(1, 1)
    padding: Pair = Pair(0, 0)
    dilation: Pair = Pair(1, 1)
    groups: int = 1
    bias: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Maximum or mean over windows of [channels, height, width]."""

    function: PoolFunction
    kernel: Pair
    stride: Pair
    padding: Pair = Pair(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptivePool:
    """Maximum or mean over as many windows as the output asks for."""

    function: PoolFunction
    out: Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalPool:
    """Maximum or mean over the whole image: [channels, ...] to [channels]."""

    function: PoolFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """A function of each element (or of each row, softmax)."""

    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout:
    """Elements dropped at random."""

    rate: Fraction = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNorm:
    """Normalisation per channel (the first axis); `affine`: scale and shift."""

    affine: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNorm:
    """Normalisation along the last axis; `affine`: scale and shift."""

    affine: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RmsNorm:
    """Scaling along the last axis to a root mean square of 1; `affine`: and more."""

    affine: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """The sum of its inputs, all of one shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiply:
    """The product of its inputs, element by element, all of one shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Concat:
    """Its inputs side by side along one axis of a sample."""

    axis: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flatten:
    """Any shape as one row of features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """One entry along an axis of a sample (the first token), which then is gone."""

    axis: int = 0
    index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """A learned row of `out` features for each token of a vocabulary."""

    vocabulary: int
    out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionEmbedding:
    """A learned row added at each position; `positions` None: as many as tokens."""

    positions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Multi-head self-attention of [tokens, features] with its four projections."""

    heads: int
    bias: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """Matrix products: `count` times [rows, inner] by [inner, columns], one sample.

    `weights` tells whether the second factor is learned or an activation too.
    """

    rows: int
    inner: int
    columns: int
    count: int = 1
    weights: bool = True

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all of them."""
        return self.count * self.rows * self.inner * self.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """Anything else, by what it makes: readers of other formats use it.

    Attributes
    ----------
    shape : tuple of int
        Shape of the output, whatever the inputs are.
    parameters : int
        Learned numbers.
    products : tuple of Product
        Its matrix products.
    view : bool
        If true, it only renames elements and moves none.
    """

    shape: Shape
    parameters: int = 0
    products: tuple[Product, ...] = ()
    view: bool = False


LayerType = (
    Linear
    | Conv2d
    | Pool
    | AdaptivePool
    | GlobalPool
    | Activation
    | Dropout
    | BatchNorm
    | LayerNorm
    | RmsNorm
    | Add
    | Multiply
    | Concat
    | Flatten
    | Select
    | Embedding
    | PositionEmbedding
    | Attention
    | Custom
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDeltas:
    """Memory that a forward takes and an activation gradient takes or gives back."""

    forward: Fraction
    input_grad: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer: what it computes, or what it costs, or both.

    Attributes
    ----------
    inputs : tuple of str
        The predecessors by name; empty for a root, which reads the network's input.
    type : LayerType or None
        What it computes; None if only costs are given.
    forward, input_grad, weight_grad, update : Cost or None
        Given times of F, I, W and U, in the network's time unit.
    output, parameters : Fraction or None
        Given sizes, in the network's size unit; `output` covers the whole batch.
    activation : str or None
        An activation fused into the layer; costs nothing.
    saves : str or None
        What the activation gradient needs back; None for the regime's default.
    trainable : bool
        If false, the layer has no weight gradient.
    shares : str or None
        The layer whose weights this one uses.
    memory : MemoryDeltas or None
        Stated deltas of memory in place of sizes (synchronous pipelines).
    """

    name: str
    inputs: tuple[str, ...] = ()
    type: LayerType | None = None
    forward: Cost | None = None
    input_grad: Cost | None = None
    weight_grad: Cost | None = None
    update: Cost | None = None
    output: Fraction | None = None
    parameters: Fraction | None = None
    activation: str | None = None
    saves: Saves | None = None
    trainable: bool = True
    shares: str | None = None
    memory: MemoryDeltas | None = None


@dataclass(frozen=True, kw_only=True)
class Network:
    """A DAG of layers.

    Read one with `lpsched.core.io.load_network`. The constructor does not check
    references; `lpsched.core.io.network_from_document` does.

    Attributes
    ----------
    layers : tuple of Layer
        In the order declared.
    input : tuple of int or None
        The shape of one sample.
    batch : int
        Samples that costs and activations cover (one microbatch if synchronous).
    time_unit, size_unit : str or None
        Units of the given costs; None where the file names none.
    """

    name: str
    layers: tuple[Layer, ...]
    input: Shape | None = None
    batch: int = 1
    origin: str | None = None
    time_unit: str | None = None
    size_unit: str | None = None

    @cached_property
    def layer_by_name(self) -> Mapping[str, Layer]:
        """Layers by name, in the order declared."""
        return {layer.name: layer for layer in self.layers}

    @cached_property
    def ordered_layers(self) -> tuple[Layer, ...]:
        """Layers after their predecessors, otherwise as declared.

        Raises
        ------
        ValueError
            The layers form a cycle; documents with one are refused on the way in.
        """
        inputs = {layer.name: layer.inputs for layer in self.layers}
        order, cycle = topological_order(inputs)
        if cycle:
            raise ValueError(f"the layers form a cycle: {' -> '.join(cycle)}")
        return tuple(self.layer_by_name[name] for name in order)

    @cached_property
    def successors(self) -> Mapping[str, tuple[str, ...]]:
        """The layers that read each layer's output, in topological order."""
        found: dict[str, list[str]] = {layer.name: [] for layer in self.layers}
        for layer in self.ordered_layers:
            for name in layer.inputs:
                found[name].append(layer.name)
        return {name: tuple(after) for name, after in found.items()}
