"""ONNX models: layers, products, weights, shapes; by hand and by shipped networks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_models import model_of, network_as_onnx, weight

from lpsched.core.io import network_from_document, network_to_document
from lpsched.core.network import Custom, Network, Product
from lpsched.errors import (
    FormatError,
    LpschedError,
    MissingExtraError,
    UnsupportedError,
)
from lpsched.network import compile_network, load_shipped
from lpsched.network.readers.onnx import read_onnx


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401 - any attribute
    """Make a node named after its first output; "-" leaves an input out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    made = outputs.split()
    return helper.make_node(op, names, made, name=f"n_{made[0]}", **attributes)


def read(model: onnx.ModelProto, **options: Any) -> Network:  # noqa: ANN401
    """Read a model from its bytes."""
    data = model.SerializeToString()
    return read_onnx(data, source="net.onnx", **options).document


def custom(network: Network, name: str) -> Custom:
    """Return what a layer makes."""
    kind = network.layer_by_name[name].type
    assert isinstance(kind, Custom)
    return kind


def totals(network: Network) -> dict[str, int]:
    """Ticks of all F, I and W."""
    graph = compile_network(network, devices=1).graph
    found = dict.fromkeys("FIW", 0)
    for op in graph.ops:
        found[op.kind] += graph.duration(op.id, None)
    return found


def test_a_small_network_of_images_by_hand() -> None:
    """Conv 3 to 8 on 6 x 6, pooled to 3 x 3, then 72 to 10; two samples."""
    network = read(
        model_of(
            [
                node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
                node("Relu", "c", "r"),
                node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
                node("Flatten", "p", "f"),
                node("Gemm", "f v u", "y", transB=1),
            ],
            {"x": [2, 3, 6, 6]},
            ["y"],
            [
                weight("w", 8, 3, 3, 3),
                weight("b", 8),
                weight("v", 10, 72),
                weight("u", 10),
            ],
        )
    )
    names = [layer.name for layer in network.layers]
    assert names == ["n_c", "n_r", "n_p", "n_f", "n_y"]
    assert custom(network, "n_c") == Custom(
        shape=(2, 8, 6, 6),
        parameters=224,
        products=(Product(rows=72, inner=27, columns=8),),
    )
    assert custom(network, "n_f") == Custom(shape=(2, 72), view=True)
    assert custom(network, "n_y").products == (Product(rows=2, inner=72, columns=10),)
    assert custom(network, "n_y").parameters == 730
    saves = [layer.saves for layer in network.layers]
    assert saves == ["none", "output", "both", "none", "none"]
    assert (network.input, network.batch) == ((2, 3, 6, 6), 1)
    conv, gemm = 72 * 27 * 8, 2 * 72 * 10
    assert totals(network) == {"F": conv + gemm, "I": gemm, "W": conv + gemm}
    assert network_from_document(network_to_document(network)) == network


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "mobilenet-v2"])
def test_a_shipped_network_comes_back_from_onnx_with_the_same_work(name: str) -> None:
    """Every layer has the same products and parameters, two samples at once."""
    network = load_shipped(name)
    found = read(network_as_onnx(network, batch=2))
    assert totals(found) == {k: 2 * v for k, v in totals(network).items()}
    graphs = [compile_network(net, devices=1).graph for net in (network, found)]
    sizes = [sum(t.size for t in g.tensors if t.id.startswith("w")) for g in graphs]
    assert sizes[0] == sizes[1]
    learned = [{op.layer for op in g.ops if op.kind == "W"} for g in graphs]
    assert learned[0] == learned[1]


def test_statistics_of_a_normalisation_are_not_learned() -> None:
    network = read(
        model_of(
            [node("BatchNormalization", "x s b m v", "y")],
            {"x": [1, 4, 5, 5]},
            ["y"],
            [weight(name, 4) for name in "sbmv"],
        )
    )
    assert custom(network, "n_y").parameters == 8
    assert network.layers[0].saves == "input"


def attention_model(*extra: onnx.NodeProto) -> onnx.ModelProto:
    """One head of attention over an embedding, its head tied to the embedding."""
    return model_of(
        [
            node("Gather", "wte ids", "e"),
            node("MatMul", "e wq", "q"),
            node("MatMul", "e wk", "k"),
            node("Transpose", "k", "kt", perm=[0, 2, 1]),
            node("MatMul", "q kt", "s"),
            node("Softmax", "s", "p"),
            node("MatMul", "p e", "a"),
            node("Transpose", "wte", "head", perm=[1, 0]),
            node("MatMul", "a head", "y"),
            *extra,
        ],
        {"ids": ["batch", "tokens"]},
        ["y"],
        [weight("wte", 100, 8), weight("wq", 8, 8), weight("wk", 8, 8)],
        kinds={"ids": TensorProto.INT64},
    )


def test_a_transformer_shares_the_weights_of_its_ends() -> None:
    """2 samples of 5 tokens; the transposed table is the table, counted once."""
    network = read(attention_model(), dims={"batch": 2, "tokens": 5})
    by_name = network.layer_by_name
    assert by_name["n_y"].shares == "n_e"
    assert "n_head" not in by_name
    assert [custom(network, n).parameters for n in ("n_e", "n_y")] == [800, 800]
    graph = compile_network(network, devices=2).graph
    assert sum(t.size for t in graph.tensors if t.id.startswith("w")) == 800 + 2 * 64
    assert custom(network, "n_q").products == (Product(rows=10, inner=8, columns=8),)
    assert custom(network, "n_s").products == (
        Product(rows=5, inner=8, columns=5, count=2, weights=False),
    )
    assert by_name["n_s"].saves == "input"
    learned, free = 10 * 8 * (8 + 8 + 100), 2 * 2 * 5 * 8 * 5
    assert totals(network) == {
        "F": learned + free,
        "I": learned + 2 * free,
        "W": learned,
    }


def test_open_dimensions_are_named_or_given() -> None:
    model = attention_model()
    with pytest.raises(FormatError) as caught:
        read(model)
    (fault,) = caught.value.faults
    assert fault.message == "is open; give it with --dims tokens=N"
    imported = read_onnx(
        model.SerializeToString(), source="net.onnx", dims={"tokens": 4}
    )
    assert "the open dimension 'batch' is taken as 1" in imported.remarks
    assert custom(imported.document, "n_y").shape == (1, 4, 100)
    with pytest.raises(FormatError, match=r"'token'.*open are: batch, tokens"):
        read(model, dims={"token": 4})


def test_a_dimension_without_a_name_goes_by_its_input_and_place() -> None:
    model = model_of([node("Relu", "x", "y")], {"x": [None, None]}, ["y"])
    with pytest.raises(FormatError, match=r"dims x\.1=N"):
        read(model)
    assert custom(read(model, dims={"x.1": 7}), "n_y").shape == (1, 7)


def test_a_layer_of_shared_and_other_weights_is_told_in_two() -> None:
    """Both read w; each bias is its own, in a part without work."""
    network = read(
        model_of(
            [node("Gemm", "x w b", "h"), node("Gemm", "h w c", "y")],
            {"x": [3, 4]},
            ["y"],
            [weight("w", 4, 4), weight("b", 4), weight("c", 4)],
        )
    )
    told: list[tuple[object, ...]] = [
        (x.name, x.inputs, x.shares, x.parameters) for x in network.layers
    ]
    assert told == [
        ("n_h", (), None, 16),
        ("n_h_weights", ("n_h",), None, 4),
        ("n_y", ("n_h_weights",), "n_h", 16),
        ("n_y_weights", ("n_y",), None, 4),
    ]
    assert custom(network, "n_y_weights").view
    assert totals(network) == {"F": 96, "I": 48, "W": 96}


def test_shapes_computed_in_the_model_are_constants() -> None:
    """Reshape to (Shape(x)[0], -1): no layer but the reshape itself."""
    network = read(
        model_of(
            [
                node("Shape", "x", "s"),
                node("Gather", "s zero", "n"),
                node("Unsqueeze", "n axes", "n1"),
                node("Concat", "n1 rest", "to", axis=0),
                node("Reshape", "x to", "y"),
                node("Relu", "x", "dead"),
            ],
            {"x": [2, 3, 4]},
            ["y"],
            [
                helper.make_tensor("zero", TensorProto.INT64, [], [0]),
                helper.make_tensor("axes", TensorProto.INT64, [1], [0]),
                helper.make_tensor("rest", TensorProto.INT64, [1], [-1]),
            ],
        )
    )
    (layer,) = network.layers
    assert layer.type == Custom(shape=(2, 12), view=True)


def test_weights_kept_in_nodes_count_where_they_multiply() -> None:
    """A filter made by ConstantOfShape is learned, a constant that is added is not."""
    value = helper.make_tensor("v", TensorProto.FLOAT, [5], [0.0] * 5)
    network = read(
        model_of(
            [
                node("ConstantOfShape", "dims", "w"),
                node("Constant", "", "c", value=value),
                node("MatMul", "x w", "h"),
                node("Add", "h c", "y"),
            ],
            {"x": [3, 4]},
            ["y"],
            [helper.make_tensor("dims", TensorProto.INT64, [2], [4, 5])],
        )
    )
    assert [x.parameters for x in network.layers] == [20, 0]


def matmul_shapes(rng: Random) -> tuple[list[int], list[int]]:
    """Random shapes that can be multiplied, with broadcasting."""
    m, k, n = (rng.randint(1, 4) for _ in range(3))
    batch = [rng.randint(1, 3) for _ in range(rng.randint(0, 2))]
    first = [rng.choice([1, b]) for b in batch][rng.randint(0, len(batch)) :]
    second = [rng.choice([1, b]) for b in batch][rng.randint(0, len(batch)) :]
    return [*first, m, k], [*second, k, n]


@given(st.integers(0, 10**6), st.sampled_from(["none", "left", "right"]))
@settings(deadline=None, max_examples=60)
def test_a_product_has_a_mac_for_each_result_and_inner_index(
    seed: int, learned: str
) -> None:
    first, second = matmul_shapes(Random(seed))
    shapes = {"a": first, "b": second}
    name = {"left": "a", "right": "b"}.get(learned)
    weights = [weight(name, *shapes.pop(name))] if name else []
    model = model_of([node("MatMul", "a b", "y")], shapes, ["y"], weights)
    network = read(model)
    kind = custom(network, "n_y")
    size = 1
    for extent in kind.shape:
        size *= extent
    assert sum(p.macs for p in kind.products) == size * first[-1]
    assert all(p.weights == (learned != "none") for p in kind.products)


@pytest.mark.parametrize(
    ("made", "inputs", "weights", "expected"),
    [
        (  # 2 groups of 4 / 2 channels; 5 x 5 places make windows of 3 x 3
            node("ConvTranspose", "x w", "y", group=2),
            {"x": [1, 4, 5, 5]},
            [weight("w", 4, 3, 3, 3)],
            [Product(rows=25, inner=2, columns=27, count=2)],
        ),
        (  # 7 steps of 2 samples: 3 to 4 gates of 5, and the state at each step
            node("LSTM", "x w r", "y", hidden_size=5),
            {"x": [7, 2, 3]},
            [weight("w", 1, 20, 3), weight("r", 1, 20, 5)],
            [
                Product(rows=14, inner=3, columns=20),
                Product(rows=2, inner=5, columns=20, count=7),
            ],
        ),
        (  # b and h count, i and j are rows and columns, d goes
            node("Einsum", "x z", "y", equation="bhid,bhjd->bhij"),
            {"x": [2, 3, 4, 5], "z": [2, 3, 6, 5]},
            [],
            [Product(rows=4, inner=5, columns=6, count=6, weights=False)],
        ),
        (
            node("Einsum", "w x", "y", equation="oi,bi->bo"),
            {"x": [7, 3]},
            [weight("w", 4, 3)],
            [Product(rows=7, inner=3, columns=4)],
        ),
        (
            node("Gemm", "x w", "y", transA=1),
            {"x": [3, 7]},
            [weight("w", 3, 4)],
            [Product(rows=7, inner=3, columns=4)],
        ),
        (  # a vector on the left, as NumPy has it
            node("MatMul", "x w", "y"),
            {"x": [3]},
            [weight("w", 3, 4)],
            [Product(rows=1, inner=3, columns=4)],
        ),
        (  # depthwise
            node("Conv", "x w", "y", group=6),
            {"x": [1, 6, 5, 5]},
            [weight("w", 6, 1, 3, 3)],
            [Product(rows=9, inner=9, columns=1, count=6)],
        ),
    ],
)
def test_products_of_operators_by_hand(
    made: onnx.NodeProto,
    inputs: Mapping[str, Sequence[int]],
    weights: list[onnx.TensorProto],
    expected: list[Product],
) -> None:
    network = read(model_of([made], dict(inputs), ["y"], weights))
    assert list(custom(network, "n_y").products) == expected


@pytest.mark.parametrize("flat", ["heads apart", "heads in a row"])
def test_attention_as_one_operator(flat: str) -> None:
    """Three inputs of 2 samples, 4 heads, 5 tokens, width 8; queries of 3 tokens."""
    if flat == "heads apart":
        made = node("Attention", "q k v", "y")
        shapes = {"q": [2, 4, 3, 8], "k": [2, 4, 5, 8], "v": [2, 4, 5, 6]}
    else:
        made = node("Attention", "q k v", "y", q_num_heads=4, kv_num_heads=4)
        shapes = {"q": [2, 3, 32], "k": [2, 5, 32], "v": [2, 5, 24]}
    model = model_of([made], shapes, ["y"])
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", 23))
    assert custom(read(model), "n_y").products == (
        Product(rows=3, inner=8, columns=5, count=8, weights=False),
        Product(rows=3, inner=5, columns=6, count=8, weights=False),
    )


def test_an_equation_of_one_factor_multiplies_nothing() -> None:
    made = node("Einsum", "x", "y", equation="ij->ji")
    network = read(model_of([made], {"x": [2, 3]}, ["y"]))
    assert custom(network, "n_y") == Custom(shape=(3, 2))


def test_of_several_outputs_those_that_are_read_count() -> None:
    """Split in three: the third is not read, the first two make one output of 8."""
    nodes = [node("Split", "x", "a b c", axis=1), node("Add", "a b", "y")]
    model = model_of(nodes, {"x": [2, 6]}, ["y"])
    model.opset_import[0].version = 18
    nodes[0].attribute.append(helper.make_attribute("num_outputs", 3))
    model.graph.node[0].CopyFrom(nodes[0])
    assert custom(read(model), "n_a").shape == (8,)


def test_sparse_weights_count_what_they_hold() -> None:
    values = helper.make_tensor("w", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    places = helper.make_tensor("i", TensorProto.INT64, [3], [0, 5, 7])
    model = model_of([node("MatMul", "x w", "y")], {"x": [2, 4]}, ["y"])
    sparse = helper.make_sparse_tensor(values, places, [4, 5])
    model.graph.sparse_initializer.append(sparse)
    shape = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5])
    model.graph.output[0].CopyFrom(shape)
    kind = custom(read(model), "n_y")
    assert kind.parameters == 3
    assert kind.products == (Product(rows=2, inner=4, columns=5),)


def test_unknown_operators_are_named_in_one_message() -> None:
    mine = helper.make_node("Mine", ["x"], ["a"], name="m", domain="my.ops")
    nodes = [mine, node("Foo", "x", "b"), node("Foo", "b", "c"), node("Relu", "x", "d")]
    model = model_of([*nodes, node("Sum", "a c d", "y")], {"x": [2, 3]}, ["y"])
    model.opset_import.append(helper.make_opsetid("my.ops", 1))
    shapes = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])
        for name in "abcy"
    ]
    model.graph.value_info.extend(shapes)
    with pytest.raises(UnsupportedError) as caught:
        read(model)
    assert str(caught.value) == (
        "net.onnx: operators whose cost is not known: my.ops.Mine (1), Foo (2); "
        "--unknown-zero takes it as zero"
    )
    imported = read_onnx(
        model.SerializeToString(), source="net.onnx", unknown_zero=True
    )
    assert "operators whose cost is taken as zero: my.ops.Mine (1), Foo (2)" in (
        imported.remarks
    )
    assert totals(imported.document) == {"F": 0, "I": 0, "W": 0}


def test_an_unknown_shape_is_told_at_its_node() -> None:
    model = model_of([node("Foo", "x", "a"), node("Relu", "a", "y")], {"x": [2]}, ["y"])
    with pytest.raises(FormatError) as caught:
        read(model, unknown_zero=True)
    assert [str(fault) for fault in caught.value.faults] == [
        "node 'n_a' (Foo): the shape of its output 'a' is not known",
        "node 'n_y' (Relu): the shape of its output 'y' is not known",
    ]


def test_functions_of_a_model_are_written_out() -> None:
    opset = helper.make_opsetid("", 17)
    twice = helper.make_function(
        "mine", "Twice", ["a"], ["b"],
        [node("Relu", "a", "t"), node("Tanh", "t", "b")], [opset],
    )  # fmt: skip
    call = helper.make_node("Twice", ["x"], ["y"], domain="mine")
    model = model_of([call], {"x": [2, 3]}, ["y"])
    model.opset_import.append(helper.make_opsetid("mine", 1))
    model.functions.append(twice)
    kinds = [layer.saves for layer in read(model).layers]
    assert kinds == ["output", "output"]


GOOD = model_of(
    [
        node("Conv", "x w", "c"),
        node("Relu", "c", "r"),
        node("Gemm", "f v", "y"),
        node("Flatten", "r", "f"),
    ],
    {"x": [1, 3, 6, 6]},
    ["y"],
    [weight("w", 8, 3, 3, 3), weight("v", 128, 10)],
)


def test_nodes_may_stand_in_any_order() -> None:
    names = [layer.name for layer in read(GOOD).layers]
    assert names == ["n_c", "n_r", "n_f", "n_y"]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([], "the model has no nodes"),
        ([node("Relu", "z", "y")], r"node 0 'n_y' \(Relu\): nothing makes its input"),
        ([node("Relu", "x", "z")], "output 'y': nothing makes it"),
        ([node("Relu", "x", "x")], "'x' is made more than once"),
        (
            [node("Relu", "x", "y"), node("Tanh", "x", "y")],
            r"node 1 'n_y' \(Tanh\): 'y' is made more than once",
        ),
        (
            [node("Add", "x b", "y"), node("Relu", "y", "b")],
            r"node \d 'n_\w' \(\w+\): is on a cycle of 2 nodes",
        ),
        ([node("Constant", "", "y", value_int=3)], "no output depends on an input"),
    ],
)
def test_a_model_that_does_not_join_is_refused(
    nodes: list[onnx.NodeProto], message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        read(model_of(nodes, {"x": [2, 3]}, ["y"]))


@pytest.mark.parametrize(
    ("made", "dims", "message"),
    [
        (node("Conv", "x w", "y"), [2, 3], "its inputs do not fit the operator"),
        (node("Gemm", "x w", "y"), [2, 3], "its inputs do not fit the operator"),
        (node("MatMul", "x v", "y"), [2, 3], "its inputs do not fit the operator"),
        (node("MatMul", "x", "y"), [2, 3], "its inputs do not fit the operator"),
        (node("MatMul", "x -", "y"), [2, 3], "its input 1 is left out"),
        (node("MatMul", "x e", "y"), [2, 3], "its inputs have no elements"),
        (node("MatMul", "x u", "y"), [2, 3], "its inputs do not fit the operator"),
    ],
)
def test_shapes_that_do_not_fit_are_told_at_their_node(
    made: onnx.NodeProto, dims: list[int], message: str
) -> None:
    """The output's shape is stated, so that inference cannot complain first."""
    weights = [weight("w", 8, 3, 3, 3), weight("v", 4, 5), weight("e", 3, 0)]
    model = model_of([made], {"x": dims}, ["y"], [*weights, weight("u")])
    shape = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 8])
    model.graph.output[0].CopyFrom(shape)
    with pytest.raises(FormatError) as caught:
        read(model)
    assert f"node 'n_y' ({made.op_type}): {message}" in str(caught.value)


def test_an_output_without_elements_is_refused() -> None:
    model = model_of([node("Relu", "x", "y")], {"x": [2, 3]}, ["y"])
    shape = helper.make_tensor_value_info("y", TensorProto.FLOAT, [0, 3])
    model.graph.output[0].CopyFrom(shape)
    with pytest.raises(FormatError, match=r"has no elements|cannot be inferred"):
        read(model)


def test_an_input_that_is_no_tensor_with_a_shape_is_refused() -> None:
    model = model_of([node("Relu", "x", "y")], {"x": [2, 3]}, ["y"])
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(FormatError, match="input 'x': expected a tensor with a shape"):
        read(model)


def test_far_too_many_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lpsched.network.readers.onnx_model.MAX_NODES", 3)
    with pytest.raises(FormatError, match="more than 3 nodes: taken for a mistake"):
        read(GOOD)


def test_onnx_is_loaded_only_to_read_a_model() -> None:
    code = "import sys, lpsched.network.readers; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_the_package_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "onnx.inliner", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lpsched\[onnx\]'"):
        read(GOOD)


@pytest.mark.parametrize("data", [b"", b"rubbish", b"\x08\x07", bytes(range(256))])
def test_what_is_no_model_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"net\.onnx: "):
        read_onnx(data, source="net.onnx")


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=300)
def test_a_damaged_file_never_crashes_the_reader(seed: int) -> None:
    """Cut short or with bytes changed, it is read or refused with its name."""
    rng = Random(seed)
    data = bytearray(GOOD.SerializeToString())
    if rng.random() < 0.3:
        del data[rng.randrange(len(data)) :]
    else:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    told = "net.onnx: "
    try:
        read_onnx(bytes(data), source="net.onnx")
    except LpschedError as error:
        told = str(error)
    assert told.startswith("net.onnx: ")
