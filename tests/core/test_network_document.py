"""Network documents: what is read, and every fault with its path."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lpsched.core.io import load_network, network_from_document, parse_text
from lpsched.core.io.layer_document import LAYER_TYPES
from lpsched.core.network import Conv2d, Linear, MemoryDeltas, Network, Pair, Pool
from lpsched.core.order import topological_order
from lpsched.errors import FormatError


def read(text: str) -> Network:
    """Read a network from YAML whose head is written for it."""
    head = "schema: lpsched/network/1\nname: net\n"
    return network_from_document(parse_text(head + text, source="net.yaml"))


def faults(text: str) -> dict[str, str]:
    """Faults of a network by path."""
    with pytest.raises(FormatError) as caught:
        read(text)
    return {fault.path: fault.message for fault in caught.value.faults}


def test_the_example_of_the_format_is_read() -> None:
    network = read("""
origin: "where the numbers come from"
batch: 32
input: [784]
layers:
  - {name: fc1, type: linear, out: 256, activation: relu}
  - {name: fc2, type: linear, out: 10}
""")
    assert (network.batch, network.input) == (32, (784,))
    assert [layer.inputs for layer in network.layers] == [(), ("fc1",)]
    assert network.layers[0].type == Linear(out=256)
    assert network.layers[0].activation == "relu"
    assert network.origin == "where the numbers come from"


def test_given_costs_are_read_as_the_exact_numbers_written() -> None:
    network = read("""
time_unit: ms
layers:
  - {name: a, forward: 12, input_grad: 0.1, weight_grad: {d0: 9, d1: 4.5}, update: 0,
     output: 8192, parameters: 200704, memory: {F: 3, I: -1}}
  - {name: b, forward: [1, 2.5], input_grad: 1, weight_grad: 1}
""")
    first, second = network.layers
    assert first.input_grad == Fraction(1, 10)
    assert first.weight_grad == {"d0": Fraction(9), "d1": Fraction(9, 2)}
    assert first.update == 0
    assert first.output == 8192
    assert first.parameters == 200704
    assert first.memory == MemoryDeltas(forward=Fraction(3), input_grad=Fraction(-1))
    assert second.forward == (Fraction(1), Fraction(5, 2))


def test_windows_may_be_square_or_not_and_pools_stride_by_their_kernel() -> None:
    conv, pool = read("""
layers:
  - {name: c, type: conv2d, out: 8, kernel: [3, 5], padding: [1, 2], bias: false}
  - {name: p, type: max_pool, kernel: 2}
""").layers
    assert conv.type == Conv2d(out=8, kernel=Pair(3, 5), padding=Pair(1, 2), bias=False)
    assert pool.type == Pool(function="max", kernel=Pair(2, 2), stride=Pair(2, 2))


def test_every_type_that_messages_list_is_read() -> None:
    needs: dict[str, dict[str, Any]] = {
        "linear": {"out": 1},
        "conv2d": {"out": 1, "kernel": 1},
        "max_pool": {"kernel": 1},
        "avg_pool": {"kernel": 1},
        "adaptive_max_pool": {"out": 1},
        "adaptive_avg_pool": {"out": [1, 1]},
        "embedding": {"vocabulary": 1, "out": 1},
        "attention": {"heads": 1},
        "custom": {"shape": [1]},
    }
    layers = [
        {"name": name, "type": name, **needs.get(name, {})} for name in LAYER_TYPES
    ]
    document = {"schema": "lpsched/network/1", "name": "all", "layers": layers}
    network = network_from_document(document)
    assert all(layer.type is not None for layer in network.layers)


def test_layers_may_be_declared_in_any_order() -> None:
    network = read("""
layers:
  - {name: last, forward: 1, inputs: [left, right]}
  - {name: left, forward: 1, inputs: [first]}
  - {name: first, forward: 1, inputs: []}
  - {name: right, forward: 1, inputs: [first]}
""")
    assert [layer.name for layer in network.layers] == [
        "last", "left", "first", "right",
    ]  # fmt: skip
    assert [layer.name for layer in network.ordered_layers] == [
        "first", "left", "right", "last",
    ]  # fmt: skip
    assert network.successors["first"] == ("left", "right")


def test_anchors_and_merges_of_yaml_work() -> None:
    network = read("""
layers:
  - &block {name: a, type: linear, out: 4, bias: false}
  - {<<: *block, name: b, activation: gelu}
""")
    assert network.layers[1].type == Linear(out=4, bias=False)
    assert network.layers[1].inputs == ("a",)


def test_all_faults_come_at_once_each_with_its_path() -> None:
    found = faults("""
batch: 0
input: [3, 0]
layers:
  - {name: a, type: conv2d, out: 0, kernl: 3}
  - {name: "a b", forward: -1, input_grad: yes, weight_grad: {d0: x}}
  - {name: c, type: linear, out: 2.5, inputs: [zz]}
  - {name: a, type: conv, out: 3}
  - {name: e, out: 3}
  - 7
""")
    assert found["batch"] == "expected an integer >= 1, got 0"
    assert found["input[1]"] == "expected an integer >= 1, got 0"
    assert found["layers[0].out"] == "expected an integer >= 1, got 0"
    assert found["layers[0].kernel"] == "required, but missing"
    assert "did you mean 'kernel'?" in found["layers[0].kernl"]
    assert "a b" in found["layers[1].name"]
    assert found["layers[1].forward"] == "expected a number >= 0, got -1"
    assert found["layers[1].input_grad"] == 'expected a number, got "yes"'
    assert found["layers[1].weight_grad.d0"] == 'expected a number, got "x"'
    assert found["layers[2].out"] == "expected an integer, got 2.5"
    assert found["layers[2].inputs[0]"].startswith("unknown layer 'zz'")
    assert found["layers[3].name"] == "'a' is taken by layers[0]"
    assert found["layers[3].type"].startswith("unknown layer type 'conv'")
    assert "layers[3].out" not in found  # only its type could say whether that is one
    assert found["layers[4]"].startswith("give the layer a `type` or its costs")
    assert found["layers[5]"] == "expected a mapping, got 7"


def test_an_unknown_type_lists_the_known_ones_and_guesses() -> None:
    message = faults("layers: [{name: a, type: conv, out: 3}]")["layers[0].type"]
    assert "did you mean 'conv2d'?" in message
    assert all(name in message for name in LAYER_TYPES)


def test_an_unknown_key_lists_those_of_the_layer_s_own_type() -> None:
    message = faults("layers: [{name: a, type: flatten, kernel: 3}]")
    assert "out" not in message["layers[0].kernel"].split("known: ")[1].split(", ")
    assert "activation" in message["layers[0].kernel"]


def test_a_cycle_is_named_in_the_direction_of_the_flow() -> None:
    found = faults("""
layers:
  - {name: root, forward: 1}
  - {name: a, forward: 1, inputs: [root, c]}
  - {name: b, forward: 1}
  - {name: c, forward: 1}
""")
    text = found["layers"].removeprefix("the layers form a cycle: ")
    names = text.split(" -> ")
    assert names[0] == names[-1]
    rotated = names[names.index("a") : -1] + names[: names.index("a")]
    assert rotated == ["a", "b", "c"]


def test_a_layer_that_reads_itself_is_a_cycle() -> None:
    found = faults("layers: [{name: a, forward: 1, inputs: [a]}]")
    assert found["layers"] == "the layers form a cycle: a -> a"


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("layers: []", "layers", "expected at least one layer"),
        ("batch: 1", "layers", "required, but missing"),
        ("layers: {a: 1}", "layers", "expected a list"),
        ("layers: [{type: linear, out: 1}]", "layers[0].name", "required"),
        ("layers: [{name: 1, forward: 1}]", "layers[0].name", "put it in quotes"),
        ("layers: [{name: '', forward: 1}]", "layers[0].name", "expected text"),
        ("layers: [{name: 'a/b', forward: 1}]", "layers[0].name", "expected text"),
        ("layers: [{name: 'é', forward: 1}]", "layers[0].name", "expected text"),
        ("layers: [{name: a, forward: 1e30}]", "layers[0].forward", "expected a"),
        (f"layers: [{{name: a, forward: {10**30}}}]", "layers[0].forward", "<="),
        ("layers: [{name: a, forward: true}]", "layers[0].forward", "a number"),
        ("layers: [{name: a, forward: -0.5}]", "layers[0].forward", ">= 0"),
        ("layers: [{name: a, forward: [1, -2]}]", "layers[0].forward[1]", ">= 0"),
        ("layers: [{name: a, forward: 1, saves: all}]", "layers[0].saves", "'both'"),
        ("layers: [{name: a, forward: 1, inputs: b}]", "layers[0].inputs", "a list"),
        ("layers: [{name: a, type: [x]}]", "layers[0].type", "expected a layer type"),
        ("input: []\nlayers: [{name: a, forward: 1}]", "input", "at least one"),
        (
            "layers: [{name: a, type: max_pool, kernel: [1, 2, 3]}]",
            "layers[0].kernel",
            "at most 2",
        ),
        (
            "layers: [{name: a, forward: 1}, {name: b, forward: 1, inputs: [a, a]}]",
            "layers[1].inputs",
            "a layer is listed twice",
        ),
        (
            "layers: [{name: a, forward: 1}, {name: b, forward: 1, inputs: [A]}]",
            "layers[1].inputs[0]",
            "unknown layer 'A'; known: a, b",
        ),
    ],
)
def test_bad_networks_are_refused_with_a_helpful_word(
    text: str, path: str, message: str
) -> None:
    assert message in faults(text)[path]


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf"])
def test_no_time_is_infinite_or_undefined(value: str) -> None:
    found = faults(f"layers: [{{name: a, forward: {value}}}]")
    assert "no finite number" in found["layers[0].forward"]


@pytest.mark.parametrize(
    ("owner", "sharer", "message"),
    [
        ("", "shares: zz", "unknown layer 'zz'"),
        ("", "shares: b", "cannot share its own"),
        ("shares: b", "shares: a", "shares the weights of 'b'; name that one"),
        ("trainable: false", "shares: a", "say `trainable: false` here too"),
    ],
)
def test_weights_are_shared_with_their_owner_only(
    owner: str, sharer: str, message: str
) -> None:
    found = faults(f"""
layers:
  - {{name: a, forward: 1, {owner}}}
  - {{name: b, forward: 1, {sharer}}}
""")
    assert message in found["layers[1].shares"]


def test_the_owner_of_shared_weights_updates_them() -> None:
    found = faults("""
layers:
  - {name: a, forward: 1}
  - {name: b, forward: 1, shares: a, update: 1}
""")
    assert "'a', updates them" in found["layers[1].update"]


def test_a_network_is_read_from_a_file_and_faults_name_it(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text("schema: lpsched/network/1\nname: n\nlayers: [{name: a}]\n")
    with pytest.raises(FormatError, match=r"net\.yaml: layers\[0\]: give the layer"):
        load_network(path)
    with pytest.raises(FormatError, match="No such file"):
        load_network(tmp_path / "missing.yaml")


def test_a_declared_order_that_is_valid_is_kept() -> None:
    order, cycle = topological_order({"z": (), "y": (), "x": ("z",), "a": ("y",)})
    assert (order, cycle) == (("z", "y", "x", "a"), ())


def test_two_layers_of_one_name_are_no_cycle() -> None:
    found = faults("layers: [{name: a, forward: 1}, {name: a, forward: 1}]")
    assert found == {"layers[1].name": "'a' is taken by layers[0]"}


def test_a_type_that_is_null_is_shown_as_the_file_has_it() -> None:
    found = faults("layers: [{name: a, type: null}]")
    assert "expected a layer type, got null" in found["layers[0].type"]
