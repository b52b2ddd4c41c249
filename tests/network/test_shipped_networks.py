"""The shipped networks have the published numbers of parameters and products."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lpsched.core.graph import Graph
from lpsched.core.io import load_instance
from lpsched.errors import FormatError
from lpsched.network import (
    compile_network,
    find_shipped,
    load_shipped,
    shipped_names,
)
from lpsched.network.shapes import works_of

DATA = Path(__file__).resolve().parents[1] / "data"


def durations(graph: Graph, kind: str = "") -> int:
    """Sum of the durations of one kind of op, or of all."""
    return sum(
        graph.duration(op.id, graph.device_ids[0])
        for op in graph.ops
        if kind in ("", op.kind)
    )


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # torchvision's documentation of its weights
        ("alexnet", 61_100_840),
        ("vgg16", 138_357_544),
        ("resnet18", 11_689_512),
        ("resnet50", 25_557_032),
        ("mobilenet-v2", 3_504_872),
        # 156 + 2,416 + 48,120 + 10,164 + 850
        ("lenet5", 61_706),
        # the published weights of GPT-2, head and token embedding counted once
        ("gpt2-small", 124_439_808),
        ("gpt2-medium", 354_823_168),
        # the published weights: BERT with its pooler, LLaMA with a head of its own
        ("bert-base", 109_482_240),
        ("llama-7b", 6_738_415_616),
        # 784 * 256 + 256 + 256 * 10 + 10
        ("tiny-mlp", 203_530),
    ],
)
def test_parameters_are_as_published(name: str, parameters: int) -> None:
    graph = compile_network(load_shipped(name), devices=1).graph
    weights = [t.size for t in graph.tensors if t.id.startswith("w")]
    assert sum(weights) == parameters


@pytest.mark.parametrize("name", ["vgg16", "alexnet"])
def test_the_whole_graph_costs_what_the_reference_says(name: str) -> None:
    """On one device the period is the total: the reference table's first row."""
    table = json.loads((DATA / "layerpipe_macs.json").read_text())["networks"][name]
    graph = compile_network(load_shipped(name), devices=1).graph
    assert durations(graph) == table[0]["pipedream"]
    assert durations(graph) == {"vgg16": 46_324_088_832, "alexnet": 2_072_288_640}[name]


@pytest.mark.parametrize(
    ("name", "forward"),
    [
        ("alexnet", 714_188_480),
        ("vgg16", 15_470_264_320),
        ("resnet18", 1_814_073_344),
        ("resnet50", 4_089_184_256),
        ("mobilenet-v2", 300_774_272),
        # 12 blocks on 128 tokens and the pooler on one: 22.4 G operations
        ("bert-base", 12 * (12 * 768**2 * 128 + 2 * 128**2 * 768) + 768**2),
        (
            "gpt2-medium",
            24 * (12 * 1024**2 * 1024 + 2 * 1024**2 * 1024) + 1024 * 1024 * 50257,
        ),
        # four projections, scores, and three products of the gated MLP
        (
            "llama-7b",
            2048 * 32 * (4 * 4096**2 + 2 * 2048 * 4096 + 3 * 4096 * 11008)
            + 2048 * 4096 * 32000,
        ),
        # 12 blocks of 12 d^2 t + 2 t^2 d and the head, t = 1,024 and d = 768
        (
            "gpt2-small",
            12 * (12 * 768**2 * 1024 + 2 * 1024**2 * 768) + 1024 * 768 * 50257,
        ),
    ],
)
def test_forward_products_are_as_published(name: str, forward: int) -> None:
    """The published multiply-adds: 0.71, 15.5, 1.8, 4.1 and 0.30 G for images.

    torchvision's documentation of its weights (GFLOPS, a multiply-add counted once);
    transformers by the products of their definition.
    """
    graph = compile_network(load_shipped(name), devices=1).graph
    assert durations(graph, "F") == forward


def test_every_convolution_and_linear_layer_costs_the_same_in_f_i_and_w() -> None:
    graph = compile_network(load_shipped("vgg16"), devices=1).graph
    cost: dict[tuple[str, str], int] = {}
    for op in graph.ops:
        key = (op.layer or "", op.kind)
        cost[key] = cost.get(key, 0) + graph.duration(op.id, None)
    layers = [layer for layer, kind in cost if kind == "W"]
    assert len(layers) == 16
    for layer in layers:
        assert cost[layer, "F"] == cost[layer, "W"]
        assert cost.get((layer, "I"), cost[layer, "F"]) == cost[layer, "F"]
    assert ("conv1_1", "I") not in cost


def test_attention_costs_its_scores_twice_in_the_activation_gradient() -> None:
    """Both factors of a product of activations have a gradient; W has none of it."""
    graph = compile_network(load_shipped("gpt2-small"), devices=1).graph
    cost = {
        kind: sum(
            graph.duration(op.id, None)
            for op in graph.ops
            if op.layer == "h3_attn" and op.kind == kind
        )
        for kind in "FIW"
    }
    projections, scores = 4 * 768**2 * 1024, 2 * 1024**2 * 768
    assert cost == {
        "F": projections + scores,
        "I": projections + 2 * scores,
        "W": projections,
    }


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_network_has_an_origin_and_one_sample(name: str) -> None:
    network = load_shipped(name)
    assert network.name == name
    assert network.origin
    assert network.batch == 1
    works, unknown, faults = works_of(network)
    assert len(works) == len(network.layers)
    assert not unknown
    assert not faults


def test_the_six_networks_are_shipped() -> None:
    assert set(shipped_names()) >= {
        "tiny-mlp", "lenet5", "alexnet", "vgg16", "resnet18", "gpt2-small",
    }  # fmt: skip


def test_a_name_that_is_not_shipped_lists_those_that_are() -> None:
    with pytest.raises(FormatError, match=r"there are .*vgg16"):
        load_shipped("vgg61")


def test_residual_blocks_join_two_paths() -> None:
    network = load_shipped("resnet18")
    assert network.layer_by_name["layer2_0_add"].inputs == (
        "layer2_0_bn2",
        "layer2_0_down_bn",
    )
    assert network.successors["layer1_0_add"] == ("layer1_1_conv1", "layer1_1_add")


def test_an_instance_may_name_a_shipped_network_where_no_file_has_that_name(
    tmp_path: Path,
) -> None:
    path = tmp_path / "i.yaml"
    path.write_text("schema: lpsched/instance/1\nnetwork: tiny-mlp\ndevices: 2\n")
    assert load_instance(path, resolve=find_shipped).network == load_shipped("tiny-mlp")
    with pytest.raises(FormatError, match=r"network \(.*tiny-mlp\): cannot be read"):
        load_instance(path)
    (tmp_path / "tiny-mlp").write_text(
        "schema: lpsched/network/1\nname: mine\nlayers: [{name: a, forward: 1}]\n"
    )
    network = load_instance(path, resolve=find_shipped).network
    assert network is not None
    assert network.name == "mine"
