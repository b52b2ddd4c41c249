"""A network that is written and read back is the same network."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpsched.core.io import (
    document_text,
    load_network,
    network_from_document,
    network_to_document,
    save_network,
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
    Layer,
    LayerNorm,
    LayerType,
    Linear,
    MemoryDeltas,
    Multiply,
    Network,
    Pair,
    Pool,
    PositionEmbedding,
    Product,
    RmsNorm,
    Select,
)
from lpsched.errors import InstanceError
from lpsched.network import load_shipped, shipped_names

TYPES: tuple[LayerType, ...] = (
    Linear(out=3),
    Linear(out=3, bias=False),
    Conv2d(
        out=8,
        kernel=Pair(3, 5),
        stride=Pair(2, 2),
        padding=Pair(1, 2),
        dilation=Pair(1, 2),
        groups=2,
        bias=False,
    ),
    Pool(function="max", kernel=Pair(3, 3), stride=Pair(2, 2), padding=Pair(1, 1)),
    Pool(function="avg", kernel=Pair(2, 4), stride=Pair(2, 4)),
    AdaptivePool(function="avg", out=Pair(6, 7)),
    GlobalPool(function="max"),
    Activation(function="gelu"),
    Dropout(),
    Dropout(rate=Fraction(1, 10)),
    BatchNorm(affine=False),
    LayerNorm(),
    RmsNorm(affine=False),
    Add(),
    Multiply(),
    Concat(axis=1),
    Flatten(),
    Select(axis=1, index=2),
    Embedding(vocabulary=9, out=4),
    PositionEmbedding(),
    PositionEmbedding(positions=5),
    Attention(heads=2, bias=False),
    Custom(
        shape=(2, 3),
        parameters=12,
        products=(
            Product(rows=2, inner=3, columns=4),
            Product(rows=1, inner=2, columns=3, count=4, weights=False),
        ),
        view=True,
    ),
)


def read_back(network: Network) -> Network:
    """Write a network as text and read it."""
    text = document_text(network_to_document(network))
    return network_from_document(json.loads(text))


def test_every_layer_type_is_written() -> None:
    assert {type(kind) for kind in TYPES} == set(get_args(LayerType))
    layers = tuple(
        Layer(
            name=f"l{i}",
            inputs=(f"l{i - 1}",) if i else (),
            type=kind,
            parameters=Fraction(12) if isinstance(kind, Custom) else None,
        )
        for i, kind in enumerate(TYPES)
    )
    network = Network(name="all", layers=layers, input=(3, 8, 8), batch=4)
    assert read_back(network).layers == layers


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_network_survives(name: str) -> None:
    network = load_shipped(name)
    assert read_back(network) == network


numbers = st.integers(0, 10**9).map(lambda n: Fraction(n, 1000))
costs: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    numbers,
    st.dictionaries(st.sampled_from("abc"), numbers, min_size=1),
    st.lists(numbers, min_size=1, max_size=3).map(tuple),
)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Layers with given costs and earlier layers as inputs."""
    layers: list[Layer] = []
    for i in range(draw(st.integers(1, 5))):
        names = [layer.name for layer in layers]
        inputs = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
        layers.append(
            Layer(
                name=f"l{i}",
                inputs=tuple(inputs),
                forward=draw(costs.filter(lambda c: c is not None)),
                input_grad=draw(costs),
                weight_grad=draw(costs),
                update=draw(st.one_of(st.none(), numbers)),
                output=draw(st.one_of(st.none(), numbers)),
                parameters=draw(st.one_of(st.none(), numbers)),
                saves=draw(st.sampled_from([None, "input", "both", "none"])),
                trainable=draw(st.booleans()),
                memory=draw(
                    st.none()
                    | st.builds(MemoryDeltas, forward=numbers, input_grad=numbers)
                ),
            )
        )
    return Network(
        name="net",
        layers=tuple(layers),
        origin=draw(st.none() | st.just("here")),
        time_unit="us",
        size_unit="byte",
    )


@given(networks())
@settings(deadline=None)
def test_given_costs_survive_exactly(network: Network) -> None:
    assert read_back(network) == network


def test_a_file_is_written(tmp_path: Path) -> None:
    network = load_shipped("resnet18")
    save_network(network, tmp_path / "net.json")
    assert load_network(tmp_path / "net.json") == network


def test_a_number_without_end_is_refused_with_its_path() -> None:
    layer = Layer(name="a", forward=Fraction(1, 3), weight_grad={"d0": Fraction(1, 7)})
    with pytest.raises(InstanceError) as caught:
        network_to_document(Network(name="net", layers=(layer,)))
    assert [fault.path for fault in caught.value.faults] == [
        "layers[0].forward",
        "layers[0].weight_grad.d0",
    ]
