"""Systolic arrays and rooflines: hand-checked products, cycles and times."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import durations, graph_of, instance_of, network_of, timed

from lpsched.core.instance import CostModel
from lpsched.core.network import LayerType, Network, Product
from lpsched.network import compile_instance, load_shipped, shipped_names
from lpsched.network.costs import layer_costs, time_unit_of
from lpsched.network.products import ShapedLayer, Time, products_of, products_of_time
from lpsched.network.shapes import operand_shapes, works_of
from lpsched.network.systolic import Dataflow, cycles

WHOLE: dict[str, Any] = {"training": {"split": {"I": 1}}}
LINEARS = (
    {"name": "a", "type": "linear", "out": 4},
    {"name": "b", "type": "linear", "out": 3},
)
TIMES: tuple[Time, ...] = ("forward", "input_grad", "weight_grad")


def shaped_layers(network: Network, batch: int) -> list[ShapedLayer]:
    """Every typed layer of a network, as cost models see it."""
    works, _, _ = works_of(network)
    return [
        ShapedLayer(
            layer=layer,
            type=layer.type,
            operands=operand_shapes(network, layer, works),
            work=works[layer.name],
            batch=batch,
            saves="output",
        )
        for layer in network.layers
        if layer.type is not None
    ]


@pytest.mark.parametrize("name", shipped_names())
def test_products_have_the_macs_of_their_layers(name: str) -> None:
    """Both factors of a product of activations have a gradient; W has none of it."""
    for shaped in shaped_layers(load_shipped(name), batch=3):
        learned, free = 3 * shaped.work.weight_macs, 3 * shaped.work.free_macs
        macs = [sum(p.macs for p in products_of_time(shaped, time)) for time in TIMES]
        assert macs == [learned + free, learned + 2 * free, learned]


def test_attention_multiplies_in_each_head_of_each_sample() -> None:
    """4 tokens of 6 features, two heads of width 3; projections share their weights."""
    network = network_of({"name": "a", "type": "attention", "heads": 2}, input=[4, 6])
    (shaped,) = shaped_layers(network, batch=5)
    assert products_of(shaped.type, shaped.operands, shaped.work) == (
        Product(rows=4, inner=6, columns=6, count=4),
        Product(rows=4, inner=3, columns=4, count=2, weights=False),
        Product(rows=4, inner=4, columns=3, count=2, weights=False),
    )
    assert products_of_time(shaped, "input_grad") == (
        Product(rows=20, inner=6, columns=6, count=4),
        Product(rows=4, inner=4, columns=3, count=10, weights=False),
        Product(rows=3, inner=4, columns=4, count=10, weights=False),
        Product(rows=4, inner=3, columns=4, count=10, weights=False),
        Product(rows=4, inner=4, columns=3, count=10, weights=False),
    )
    assert products_of_time(shaped, "weight_grad") == (
        Product(rows=6, inner=20, columns=6, count=4),
    )


@pytest.mark.parametrize(
    ("dataflow", "expected"),
    [
        ("output", 3 * 2 * (4 + 2 + 7 - 2)),
        ("weight", 4 * 2 * (4 + 2 + 5 - 2)),
        ("input", 4 * 3 * (4 + 2 + 3 - 2)),
    ],
)
def test_cycles_of_a_product_by_hand(dataflow: Dataflow, expected: int) -> None:
    """5 x 7 by 7 x 3 on 2 x 2 units: folds times 2R + C + streamed - 2."""
    product = Product(rows=5, inner=7, columns=3)
    assert cycles(product, 2, 2, dataflow) == expected
    many = Product(rows=5, inner=7, columns=3, count=4)
    assert cycles(many, 2, 2, dataflow) == 4 * expected


@given(*[st.integers(1, 9)] * 3)
@settings(deadline=None)
def test_one_fold_takes_as_long_as_its_wavefront(rows: int, cols: int, k: int) -> None:
    """Unit (r, c) meets operand t at cycle r + c + t; then the rows leave in turn."""
    last = max(r + c + t for r in range(rows) for c in range(cols) for t in range(k))
    product = Product(rows=rows, inner=k, columns=cols)
    assert cycles(product, rows, cols, "output") == last + 1 + rows


def test_a_convolution_is_a_product_by_im2col() -> None:
    """8 filters of 3 x 3 over 4 channels of 6 x 6, two samples, on 8 x 8 units.

    F is 72 x 36 by 36 x 8, I is 72 x 8 by 8 x 36, W is 36 x 72 by 72 x 8.
    """
    graph = graph_of(
        {"name": "a", "type": "conv2d", "out": 4, "kernel": 1},
        {"name": "b", "type": "conv2d", "out": 8, "kernel": 3, "padding": 1},
        {"name": "c", "type": "relu"},
        network={"input": [1, 6, 6], "batch": 2},
        costs={"model": "systolic", "rows": 8, "cols": 8},
        **WHOLE,
    )
    found = durations(graph)
    assert found["Fb"] == 9 * 1 * (16 + 8 + 36 - 2)
    assert found["Ib"] == 9 * 5 * (16 + 8 + 8 - 2)
    assert found["Wb"] == 5 * 1 * (16 + 8 + 72 - 2)
    assert (found["Fc"], found["Ic"]) == (0, 0)
    assert graph.time_unit == "cycle"


def test_a_depthwise_convolution_uses_one_column_a_group() -> None:
    """Six groups of 25 x 9 by 9 x 1, each filling and draining 4 x 4 units."""
    conv = {"name": "a", "type": "conv2d", "out": 6, "kernel": 3, "padding": 1}
    graph = graph_of(
        {**conv, "groups": 6},
        network={"input": [6, 5, 5]},
        costs={"model": "systolic", "rows": 4, "cols": 4, "dataflow": "weight"},
    )
    assert durations(graph)["Fa"] == 6 * (3 * 1) * (8 + 4 + 25 - 2)


def test_each_kind_of_op_may_have_its_own_dataflow() -> None:
    """F of b is 2 x 4 by 4 x 3, I 2 x 3 by 3 x 4, W 4 x 2 by 2 x 3."""
    flows = {"F": "input", "I": "weight", "W": "output"}
    graph = graph_of(
        *LINEARS,
        network={"input": [5], "batch": 2},
        costs={"model": "systolic", "rows": 2, "cols": 2, "dataflow": flows},
        **WHOLE,
    )
    found = durations(graph)
    assert found["Fb"] == (2 * 1) * (4 + 2 + 3 - 2)
    assert found["Ib"] == (2 * 2) * (4 + 2 + 2 - 2)
    assert found["Wb"] == (2 * 2) * (4 + 2 + 2 - 2)


def roofline(network: Network, **parameters: int) -> dict[str, list[Fraction | None]]:
    """Exact times of F, I, W of each layer."""
    model = CostModel(model="roofline", parameters=parameters)
    costs, faults = layer_costs(network, model, ())
    assert not faults
    return {
        name: [
            t if isinstance(t, Fraction) else None
            for t in (c.forward, c.input_grad, c.weight_grad)
        ]
        for name, c in costs.items()
    }


def test_a_roofline_takes_the_longer_of_arithmetic_and_traffic() -> None:
    """Layer b: 2 x 4 by 4 x 3, 24 MACs each way; 12 + 3 parameters, 8 in, 6 out.

    F moves 8 + 15 + 6 = 29 numbers, I 6 + 15 + 8 and 6 saved = 35, W 8 + 6 + 6 + 15.
    """
    network = network_of(*LINEARS, input=[5], batch=2)
    slow = roofline(network, peak=1, bandwidth=1000)
    assert slow["b"] == [24, 24, 24]
    fast = roofline(network, peak=1000, bandwidth=8)
    assert fast["b"] == [Fraction(29 * 4, 8), Fraction(35 * 4, 8), Fraction(35 * 4, 8)]
    halves = roofline(network, peak=1000, bandwidth=8, bytes_per_element=2)
    assert halves["b"][0] == Fraction(29 * 2, 8)


def test_traffic_of_layers_without_products() -> None:
    """An embedding touches the rows it looks up, a view nothing, a norm its scale."""
    network = network_of(
        {"name": "e", "type": "embedding", "vocabulary": 1000, "out": 4},
        {"name": "n", "type": "layernorm", "saves": "input"},
        {"name": "f", "type": "flatten"},
        {"name": "c", "type": "custom", "shape": [12], "view": True},
        input=[3],
    )
    found = roofline(network, peak=1, bandwidth=4)
    assert found["e"] == [3 + 12 + 12, None, 3 + 12 + 12 + 12]
    assert found["n"] == [12 + 8 + 12, 12 + 8 + 12 + 12, 12 + 12 + 8]
    assert found["f"] == found["c"] == [0, 0, None]


def test_the_unit_of_a_rooflines_time_can_be_named() -> None:
    costs = {"model": "roofline", "peak": 2.5, "bandwidth": 1, "time_unit": "us"}
    compiled = compile_instance(
        instance_of(*LINEARS, network={"input": [5]}, costs=costs)
    )
    assert compiled.graph.time_unit == "us"
    model = CostModel(model="roofline", parameters={})
    assert time_unit_of(network_of(timed("a")), model) == "tick"


def test_times_in_the_models_own_unit_stand_for_what_would_be_counted() -> None:
    given = {**LINEARS[1], "forward": 7}
    costs = {"model": "systolic", "rows": 2, "cols": 2}
    for unit, expected in (("cycle", 7), ("MAC", 2 * (4 + 2 + 4 - 2))):
        graph = graph_of(
            LINEARS[0],
            given,
            network={"input": [5], "time_unit": unit},
            costs=costs,
        )
        assert durations(graph)["Fb"] == expected


def test_a_custom_layer_is_priced_by_its_products_whatever_its_input() -> None:
    kind: dict[str, Any] = {
        "type": "custom",
        "shape": [3, 5],
        "parameters": 20,
        "products": [
            {"rows": 3, "inner": 4, "columns": 5},
            {"rows": 3, "inner": 3, "columns": 5, "count": 2, "weights": False},
        ],
    }
    network = network_of({"name": "a", **kind}, {"name": "b", **kind}, batch=2)
    costs, faults = layer_costs(network, CostModel(model="macs"), ())
    assert not faults
    assert costs["b"].forward == 2 * (60 + 90)
    assert costs["b"].input_grad == 2 * (60 + 180)
    assert costs["b"].weight_grad == 2 * 60
    assert costs["b"].output == 30
    assert costs["b"].parameters == 20


def test_a_layer_type_without_a_rule_has_no_products() -> None:
    network = network_of({"name": "a", "type": "relu"}, input=[3])
    (shaped,) = shaped_layers(network, batch=1)
    kind: LayerType = shaped.type
    assert products_of(kind, shaped.operands, shaped.work) == ()
