"""Shapes, parameters and multiply-accumulates of every layer type, by hand."""

from __future__ import annotations

import pytest

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
    Product,
    RmsNorm,
    Select,
    Shape,
)
from lpsched.network.layers import Operand, ShapeError, Work, work_of


def square(size: int) -> Pair:
    """Return the same extent both ways."""
    return Pair(size, size)


def work(layer: LayerType, *shapes: Shape) -> Work:
    """Work of a layer on inputs of these shapes."""
    return work_of(layer, [Operand(f"x{i}", shape) for i, shape in enumerate(shapes)])


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (
            Linear(out=3),
            (5,),
            Work(output=(3,), parameters=5 * 3 + 3, weight_macs=5 * 3),
        ),
        (  # every one of 7 tokens is multiplied, the weights are the same
            Linear(out=3, bias=False),
            (7, 5),
            Work(output=(7, 3), parameters=15, weight_macs=7 * 15),
        ),
        (  # VGG's first layer: 3 x 3 over 3 channels, 224 x 224 places
            Conv2d(out=64, kernel=square(3), padding=square(1)),
            (3, 224, 224),
            Work(
                output=(64, 224, 224),
                parameters=64 * 27 + 64,
                weight_macs=64 * 27 * 224 * 224,
            ),
        ),
        (  # AlexNet's first: floor((224 + 4 - 11) / 4) + 1 = 55
            Conv2d(out=64, kernel=square(11), stride=square(4), padding=square(2)),
            (3, 224, 224),
            Work(
                output=(64, 55, 55),
                parameters=64 * 363 + 64,
                weight_macs=64 * 363 * 55 * 55,
            ),
        ),
        (  # two groups: each filter sees 2 of 4 channels
            Conv2d(out=6, kernel=Pair(1, 3), groups=2, bias=False),
            (4, 5, 5),
            Work(output=(6, 5, 3), parameters=6 * 6, weight_macs=36 * 15),
        ),
        (  # depthwise, dilated: reach 1 + 2 * 2 = 5, so 9 - 5 + 1 = 5 places
            Conv2d(out=4, kernel=square(3), dilation=square(2), groups=4, bias=False),
            (4, 9, 9),
            Work(output=(4, 5, 5), parameters=36, weight_macs=36 * 25),
        ),
        (
            Pool(function="max", kernel=square(3), stride=square(2)),
            (64, 55, 55),
            Work(output=(64, 27, 27)),
        ),
        (
            Pool(function="avg", kernel=Pair(2, 4), stride=Pair(2, 4)),
            (3, 8, 8),
            Work(output=(3, 4, 2)),
        ),
        (
            AdaptivePool(function="avg", out=Pair(6, 7)),
            (9, 13, 5),
            Work(output=(9, 6, 7)),
        ),
        (GlobalPool(function="max"), (512, 7, 7), Work(output=(512,))),
        (Activation(function="relu"), (4, 5), Work(output=(4, 5))),
        (Dropout(), (4, 5), Work(output=(4, 5))),
        (BatchNorm(), (64, 7, 7), Work(output=(64, 7, 7), parameters=128)),
        (LayerNorm(), (7, 64), Work(output=(7, 64), parameters=128)),
        (LayerNorm(affine=False), (7, 64), Work(output=(7, 64))),
        (RmsNorm(), (7, 64), Work(output=(7, 64), parameters=64)),
        (Flatten(), (512, 7, 7), Work(output=(25088,))),
        (Select(), (128, 768), Work(output=(768,))),
        (Select(axis=1, index=2), (4, 5, 6), Work(output=(4, 6))),
        (Select(), (5,), Work(output=(1,))),
        (  # whatever the input: 2 products of 3 x 4 by 4 x 5 learned, one not
            Custom(
                shape=(2, 3, 5),
                parameters=20,
                products=(
                    Product(rows=3, inner=4, columns=5, count=2),
                    Product(rows=3, inner=7, columns=1, weights=False),
                ),
            ),
            (99,),
            Work(output=(2, 3, 5), parameters=20, weight_macs=120, free_macs=21),
        ),
        (
            Embedding(vocabulary=100, out=8),
            (7,),
            Work(output=(7, 8), parameters=800),
        ),
        (PositionEmbedding(), (7, 8), Work(output=(7, 8), parameters=56)),
        (
            PositionEmbedding(positions=10),
            (7, 8),
            Work(output=(7, 8), parameters=80),
        ),
        (  # 4 projections of 8 x 8 for 7 tokens; scores and values 7 x 7 x 8 each
            Attention(heads=2),
            (7, 8),
            Work(
                output=(7, 8),
                parameters=4 * 64 + 4 * 8,
                weight_macs=7 * 256,
                free_macs=2 * 7 * 7 * 8,
            ),
        ),
    ],
)
def test_a_layer_makes_what_its_definition_says(
    layer: LayerType, shape: Shape, expected: Work
) -> None:
    assert work(layer, shape) == expected


def test_add_and_concat_join_inputs() -> None:
    assert work(Add(), (3, 4), (3, 4), (3, 4)) == Work(output=(3, 4))
    assert work(Multiply(), (3, 4), (3, 4)) == Work(output=(3, 4))
    assert work(Concat(), (3, 4, 4), (5, 4, 4)) == Work(output=(8, 4, 4))
    assert work(Concat(axis=1), (3, 4), (3, 1)) == Work(output=(3, 5))


@pytest.mark.parametrize(
    ("layer", "shapes", "key", "message"),
    [
        (Linear(out=3), [(4, 5, 6)], "", "put a layer of type flatten between"),
        (Linear(out=3), [(4,), (4,)], "inputs", "join them by an add or concat"),
        (Conv2d(out=3, kernel=square(3)), [(784,)], "", "[channels, height, width]"),
        (Conv2d(out=3, kernel=square(9)), [(1, 8, 8)], "kernel", "does not fit into 8"),
        (Conv2d(out=4, kernel=square(1), groups=2), [(3, 1, 1)], "groups", "3 input"),
        (Conv2d(out=3, kernel=square(1), groups=2), [(2, 1, 1)], "groups", "3 output"),
        (
            Pool(function="max", kernel=square(2), stride=square(2), padding=square(2)),
            [(1, 4, 4)],
            "padding",
            "half the kernel",
        ),
        (GlobalPool(function="avg"), [(7,)], "", "[channels, height, width]"),
        (Add(), [(3,), (4,)], "inputs", "one shape, got [3] from x0, [4] from x1"),
        (Multiply(), [(3,), (4,)], "inputs", "multiply takes inputs of one shape"),
        (Select(axis=2), [(4, 8)], "axis", "expected an axis < 2, got 2"),
        (Select(index=4), [(4, 8)], "index", "expected an index < 4, got 4"),
        (Concat(axis=1), [(3,), (3,)], "axis", "expected an axis < 1, got 1"),
        (Concat(), [(3, 4), (3, 5)], "inputs", "differ along axis 0 only"),
        (Concat(), [(3, 4), (3,)], "inputs", "differ along axis 0 only"),
        (Embedding(vocabulary=9, out=2), [(3, 4)], "", "embedding takes [tokens]"),
        (PositionEmbedding(positions=3), [(4, 5)], "positions", "per token (4)"),
        (Attention(heads=3), [(4, 8)], "heads", "8 features cannot be shared by 3"),
        (Attention(heads=3), [(8,)], "", "[tokens, features], got [8] from x0"),
    ],
)
def test_a_layer_says_what_it_takes(
    layer: LayerType, shapes: list[Shape], key: str, message: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        work(layer, *shapes)
    assert caught.value.key == key
    assert message in str(caught.value)
