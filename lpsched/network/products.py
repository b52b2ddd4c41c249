"""The matrix products of each layer type: forward, and of its two gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Literal

from lpsched.core.network import (
    Attention,
    Conv2d,
    Custom,
    Layer,
    LayerType,
    Linear,
    Product,
    Saves,
    Shape,
)
from lpsched.network.layers import Work

__all__ = ["ShapedLayer", "Time", "products_of", "products_of_time"]

#: Which op of a layer: F, I or W.
Time = Literal["forward", "input_grad", "weight_grad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedLayer:
    """A typed layer with the shapes of one sample that a cost model needs.

    Attributes
    ----------
    operands : tuple of Shape
        Shapes of its inputs.
    work : Work
        What it does to one sample.
    batch : int
        Samples that one op treats.
    saves : str
        What its activation gradient needs back.
    """

    layer: Layer
    type: LayerType
    operands: tuple[Shape, ...]
    work: Work
    batch: int
    saves: Saves


@singledispatch
def products_of(
    layer: LayerType, operands: Sequence[Shape], work: Work
) -> tuple[Product, ...]:
    """Products of the forward pass on one sample; none for most layer types.

    Their multiply-accumulates sum up to those of `lpsched.network.layers.work_of`.
    """
    del layer, operands, work
    return ()


@products_of.register
def _(layer: Linear, operands: Sequence[Shape], work: Work) -> tuple[Product, ...]:
    del work
    *rows, features = operands[0]
    return (Product(rows=math.prod(rows), inner=features, columns=layer.out),)


@products_of.register
def _(layer: Conv2d, operands: Sequence[Shape], work: Work) -> tuple[Product, ...]:
    """By im2col: a row for each place, as wide as a window; a product per group."""
    _, height, width = work.output
    window = layer.kernel.height * layer.kernel.width * operands[0][0]
    return (
        Product(
            rows=height * width,
            inner=window // layer.groups,
            columns=layer.out // layer.groups,
            count=layer.groups,
        ),
    )


@products_of.register
def _(layer: Attention, operands: Sequence[Shape], work: Work) -> tuple[Product, ...]:
    """Four projections, then scores and their use in each head."""
    del work
    tokens, features = operands[0]
    width = features // layer.heads
    return (
        Product(rows=tokens, inner=features, columns=features, count=4),
        Product(
            rows=tokens, inner=width, columns=tokens, count=layer.heads, weights=False
        ),
        Product(
            rows=tokens, inner=tokens, columns=width, count=layer.heads, weights=False
        ),
    )


@products_of.register
def _(layer: Custom, operands: Sequence[Shape], work: Work) -> tuple[Product, ...]:
    del operands, work
    return layer.products


def products_of_time(shaped: ShapedLayer, time: Time) -> tuple[Product, ...]:
    r"""Products that one op of a layer computes for the whole batch.

    With :math:`Y = X W`, F computes Y, I computes :math:`\mathrm{d}X = \mathrm{d}Y\,
    W^\top` and W computes :math:`\mathrm{d}W = X^\top \mathrm{d}Y`. Samples share the
    weights, so they add rows. Where both factors are activations there is a product per
    sample, I computes the gradients of both, and W none.
    """
    found: list[Product] = []
    for one in products_of(shaped.type, shaped.operands, shaped.work):
        m, k, n = one.rows, one.inner, one.columns
        if one.weights:
            m *= shaped.batch
            count = one.count
        else:
            count = one.count * shaped.batch
        product = replace(one, rows=m, count=count)
        left = replace(product, rows=m, inner=n, columns=k)
        right = replace(product, rows=k, inner=m, columns=n)
        if time == "forward":
            found.append(product)
        elif time == "input_grad":
            found += [left] if one.weights else [left, right]
        elif one.weights:
            found.append(right)
    return tuple(found)
