"""The layers of a network document: one model per layer type."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, Tag

from lpsched.core.io.faults import branch
from lpsched.core.io.fields import NOT_EMPTY, Count, Document, Positive
from lpsched.core.io.numbers import (
    CostField,
    NumberField,
    RealField,
    exact,
)
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
    PoolFunction,
    PositionEmbedding,
    Product,
    RmsNorm,
    Saves,
    Select,
)

__all__ = [
    "ACTIVATIONS",
    "LAYER_TYPES",
    "AnyLayerDocument",
    "LayerDocument",
    "MemoryDocument",
]

ActivationName = Literal[
    "relu", "relu6", "leaky_relu", "gelu", "silu", "sigmoid", "tanh", "softmax"
]
ACTIVATIONS: tuple[str, ...] = get_args(ActivationName)

LayerName = Annotated[str, Field(pattern="^[A-Za-z0-9_-]+$")]


def _pair_kind(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    return branch("pair") if isinstance(value, tuple) else branch("integer")


PositivePair = Annotated[
    Annotated[Positive, Tag(branch("integer"))]
    | Annotated[tuple[Positive, Positive], Tag(branch("pair"))],
    Discriminator(_pair_kind),
]
CountPair = Annotated[
    Annotated[Count, Tag(branch("integer"))]
    | Annotated[tuple[Count, Count], Tag(branch("pair"))],
    Discriminator(_pair_kind),
]


def _pair(value: int | tuple[int, int]) -> Pair:
    return Pair(value, value) if isinstance(value, int) else Pair(*value)


class MemoryDocument(Document):
    """Deltas of memory: F takes, I takes or gives back, W gives the rest.

    Attributes
    ----------
    F
        What F takes when it starts.
    I
        What I takes, or gives back if negative, when it ends.
    """

    F: NumberField
    I: RealField  # noqa: E741 - the op's name


class LayerDocument(Document):
    """A layer with its costs given; also what every typed layer may say.

    Attributes
    ----------
    name
        Letters, digits, `_` and `-`.
    inputs
        Predecessors; default the layer above; empty for a root.
    forward
        Time of F.
    input_grad
        Time of I.
    weight_grad
        Time of W.
    update
        Time of U; none, and W updates.
    output
        Size of the activation.
    parameters
        Size of the weights.
    saves
        What I needs back of the forward pass.
    trainable
        If false, there is no W.
    shares
        The layer whose weights this one uses.
    memory
        Deltas of memory instead of tensors that are kept.
    """

    name: LayerName
    inputs: tuple[str, ...] | None = None
    forward: CostField | None = None
    input_grad: CostField | None = None
    weight_grad: CostField | None = None
    update: CostField | None = None
    output: NumberField | None = None
    parameters: NumberField | None = None
    saves: Saves | None = None
    trainable: bool = True
    shares: str | None = None
    memory: MemoryDocument | None = None

    @property
    def layer_type(self) -> LayerType | None:
        """What the layer computes."""
        return None

    @property
    def fused_activation(self) -> str | None:
        """The activation fused into the layer."""
        return None


class ComputedLayerDocument(LayerDocument):
    """A layer with a type; `activation` is fused into it and costs nothing."""

    activation: ActivationName | None = None

    @property
    def fused_activation(self) -> str | None:
        """The activation fused into the layer."""
        return self.activation


class LinearDocument(ComputedLayerDocument):
    """A matrix product along the last axis."""

    type: Literal["linear"]
    out: Positive
    bias: bool = True

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return Linear(out=self.out, bias=self.bias)


class Conv2dDocument(ComputedLayerDocument):
    """A convolution of images."""

    type: Literal["conv2d"]
    out: Positive
    kernel: PositivePair
    stride: PositivePair = 1
    padding: CountPair = 0
    dilation: PositivePair = 1
    groups: Positive = 1
    bias: bool = True

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return Conv2d(
            out=self.out,
            kernel=_pair(self.kernel),
            stride=_pair(self.stride),
            padding=_pair(self.padding),
            dilation=_pair(self.dilation),
            groups=self.groups,
            bias=self.bias,
        )


class PoolDocument(ComputedLayerDocument):
    """Maximum or mean over windows; `stride` defaults to the kernel."""

    type: Literal["max_pool", "avg_pool"]
    kernel: PositivePair
    stride: PositivePair | None = None
    padding: CountPair = 0

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        stride = self.kernel if self.stride is None else self.stride
        return Pool(
            function=_function(self.type),
            kernel=_pair(self.kernel),
            stride=_pair(stride),
            padding=_pair(self.padding),
        )


class AdaptivePoolDocument(ComputedLayerDocument):
    """Maximum or mean to an image of a stated size."""

    type: Literal["adaptive_max_pool", "adaptive_avg_pool"]
    out: PositivePair

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return AdaptivePool(function=_function(self.type), out=_pair(self.out))


class GlobalPoolDocument(ComputedLayerDocument):
    """Maximum or mean over the whole image, one number per channel."""

    type: Literal["global_max_pool", "global_avg_pool"]

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return GlobalPool(function=_function(self.type))


def _function(pool: str) -> PoolFunction:
    return "max" if "max" in pool else "avg"


class ActivationDocument(LayerDocument):
    """An activation as a layer of its own."""

    type: ActivationName

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return Activation(function=self.type)


class DropoutDocument(ComputedLayerDocument):
    """Elements dropped at random."""

    type: Literal["dropout"]
    rate: Annotated[float, Field(ge=0, lt=1)] = 0.5

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return Dropout(rate=exact(self.rate))


class NormDocument(ComputedLayerDocument):
    """Normalisation; `affine`: with a learned scale and shift."""

    type: Literal["batchnorm", "layernorm", "rmsnorm"]
    affine: bool = True

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        if self.type == "rmsnorm":
            return RmsNorm(affine=self.affine)
        norm = BatchNorm if self.type == "batchnorm" else LayerNorm
        return norm(affine=self.affine)


class PlainDocument(ComputedLayerDocument):
    """A layer type without parameters of its own."""

    type: Literal["add", "multiply", "flatten"]

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        if self.type == "flatten":
            return Flatten()
        return Add() if self.type == "add" else Multiply()


class ConcatDocument(ComputedLayerDocument):
    """Inputs side by side; `axis` counts a sample's axes from 0 (channels)."""

    type: Literal["concat"]
    axis: Count = 0

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return Concat(axis=self.axis)


class SelectDocument(ComputedLayerDocument):
    """One entry along an axis of a sample."""

    type: Literal["select"]
    axis: Count = 0
    index: Count = 0

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return Select(axis=self.axis, index=self.index)


class EmbeddingDocument(ComputedLayerDocument):
    """A learned row per token of a vocabulary."""

    type: Literal["embedding"]
    vocabulary: Positive
    out: Positive

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return Embedding(vocabulary=self.vocabulary, out=self.out)


class PositionEmbeddingDocument(ComputedLayerDocument):
    """A learned row added at each position."""

    type: Literal["position_embedding"]
    positions: Positive | None = None

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return PositionEmbedding(positions=self.positions)


class AttentionDocument(ComputedLayerDocument):
    """Multi-head self-attention with its four projections."""

    type: Literal["attention"]
    heads: Positive
    bias: bool = True

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return Attention(heads=self.heads, bias=self.bias)


class ProductDocument(Document):
    """Matrix products of one sample: [rows, inner] by [inner, columns]."""

    rows: Positive
    inner: Positive
    columns: Positive
    count: Positive = 1
    weights: bool = True


class CustomDocument(ComputedLayerDocument):
    """Anything else, by its output's shape, its parameters and matrix products."""

    type: Literal["custom"]
    shape: Annotated[tuple[Positive, ...], NOT_EMPTY]
    parameters: Count = 0
    products: tuple[ProductDocument, ...] = ()
    view: bool = False

    @property
    def layer_type(self) -> LayerType:
        """What the layer computes."""
        return Custom(
            shape=self.shape,
            parameters=self.parameters,
            products=tuple(Product(**dict(product)) for product in self.products),
            view=self.view,
        )


_COMPUTED: tuple[type[ComputedLayerDocument | ActivationDocument], ...] = (
    LinearDocument,
    Conv2dDocument,
    PoolDocument,
    AdaptivePoolDocument,
    GlobalPoolDocument,
    ActivationDocument,
    DropoutDocument,
    NormDocument,
    PlainDocument,
    ConcatDocument,
    SelectDocument,
    EmbeddingDocument,
    PositionEmbeddingDocument,
    AttentionDocument,
    CustomDocument,
)
_MODEL_BY_TYPE: dict[str, str] = {
    name: model.__name__
    for model in _COMPUTED
    for name in get_args(model.model_fields["type"].annotation)
}
#: Every layer type by the name that files use.
LAYER_TYPES: tuple[str, ...] = tuple(_MODEL_BY_TYPE)


def _layer_kind(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    """Pick the model of a layer's type; without a known one, of its costs."""
    name = value.get("type") if isinstance(value, dict) else None
    if isinstance(name, str) and name in _MODEL_BY_TYPE:
        return branch(_MODEL_BY_TYPE[name])
    return branch("LayerDocument")


AnyLayerDocument = Annotated[
    Annotated[LayerDocument, Tag(branch("LayerDocument"))]
    | Annotated[LinearDocument, Tag(branch("LinearDocument"))]
    | Annotated[Conv2dDocument, Tag(branch("Conv2dDocument"))]
    | Annotated[PoolDocument, Tag(branch("PoolDocument"))]
    | Annotated[AdaptivePoolDocument, Tag(branch("AdaptivePoolDocument"))]
    | Annotated[GlobalPoolDocument, Tag(branch("GlobalPoolDocument"))]
    | Annotated[ActivationDocument, Tag(branch("ActivationDocument"))]
    | Annotated[DropoutDocument, Tag(branch("DropoutDocument"))]
    | Annotated[NormDocument, Tag(branch("NormDocument"))]
    | Annotated[PlainDocument, Tag(branch("PlainDocument"))]
    | Annotated[ConcatDocument, Tag(branch("ConcatDocument"))]
    | Annotated[SelectDocument, Tag(branch("SelectDocument"))]
    | Annotated[EmbeddingDocument, Tag(branch("EmbeddingDocument"))]
    | Annotated[PositionEmbeddingDocument, Tag(branch("PositionEmbeddingDocument"))]
    | Annotated[AttentionDocument, Tag(branch("AttentionDocument"))]
    | Annotated[CustomDocument, Tag(branch("CustomDocument"))],
    Discriminator(_layer_kind),
]
