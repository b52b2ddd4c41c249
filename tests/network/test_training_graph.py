"""The training graph, sentence by sentence of formats.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from small_networks import (
    durations,
    graph_of,
    instance_of,
    network_of,
    sizes,
    timed,
    uses,
)

from lpsched.core.graph import Graph
from lpsched.core.io import graph_from_document
from lpsched.errors import InstanceError
from lpsched.network import compile_instance, compile_network

SMALL = Path(__file__).resolve().parents[2] / "instances" / "small"


def rebuilt(graph: Graph, raw: Mapping[str, Any], colocate: list[Any]) -> Graph:
    """Compile the chain that a reference graph was made from, out of its figures."""
    ops, size = durations(graph), {t.id.split(".")[0]: 0 for t in graph.tensors}
    for tensor in graph.tensors:
        size[tensor.id.split(".")[0]] += tensor.size
    parts = 2 if "I2.0" in ops else 1
    layers = []
    for name in dict.fromkeys(op.layer for op in graph.ops):
        costs = {
            "forward": total(ops, f"F{name}"),
            "input_grad": total(ops, f"I{name}"),
            "weight_grad": total(ops, f"W{name}"),
            "output": size[f"a{name}"],
            "parameters": size[f"w{name}"],
        }
        layers.append({"name": name, **{k: v for k, v in costs.items() if v}})
    delay = next(iter(graph.delays.values()))
    return graph_of(
        *layers,
        name=graph.name,
        devices=[{"id": device} for device in graph.device_ids],
        link=raw["link"],
        training={
            "split": {"I": parts},
            "staleness": {"max": None if delay.max is None else delay.max - 1},
        },
        placement={
            "pins": {op.id: op.devices[0] for op in graph.ops if op.devices},
            "colocate": colocate,
        },
    )


def total(ops: Mapping[str, Any], name: str) -> int | dict[str, int]:
    """Duration of an op, of all its parts together."""
    found = [t for op, t in ops.items() if op.split(".")[0] == name]
    if found and isinstance(found[0], dict):
        (per_device,) = found
        return {str(device): int(ticks) for device, ticks in per_device.items()}
    return sum(map(int, found))


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in SMALL.glob("chain*.json"))
)
def test_a_chain_compiles_to_the_reference_graph(name: str) -> None:
    """The graphs of instances/small were made apart, by the same rules.

    Two things differ by design: gradients carry both layers in their ids here, and
    weights come in one slice per part of I (there in one).
    """
    raw = json.loads((SMALL / f"{name}.json").read_text())
    expected = graph_from_document(raw)
    graph = rebuilt(expected, raw, raw.get("colocate", []))
    assert durations(graph) == durations(expected)
    assert graph.delays == expected.delays
    assert graph.link == expected.link
    assert graph.colocate == expected.colocate
    assert [op.devices for op in graph.ops] == [op.devices for op in expected.ops]
    for tensor in graph.tensors:
        if tensor.id[0] == "w" and "." in tensor.id:
            continue
        old = str(tensor.id)
        if old[0] == "g":
            old = "g" + old.partition("->")[2]
        (same,) = [t for t in expected.tensors if t.id == old]
        assert tensor.consumers == same.consumers
        assert (tensor.size, tensor.producer) == (same.size, same.producer)
    for whole in expected.tensors:
        slices = [t for t in graph.tensors if t.id.split(".")[0] == whole.id]
        if whole.id[0] == "w" and len(slices) > 1:
            assert sum(t.size for t in slices) == whole.size
            joined = {c for t in slices for c in t.consumers}
            assert joined == set(whole.consumers)


def test_the_default_graph_of_a_chain() -> None:
    """Three layers: all of it, written out by hand."""
    graph = graph_of(
        {"name": "x", "forward": 1, "weight_grad": 1, "output": 9, "parameters": 5},
        timed("y", 2, 3, 4, output=7, parameters=11),
        timed("z", 2, 2, 2, output=3, parameters=4),
    )
    assert durations(graph) == {
        "Fx": 1, "Wx": 1,
        "Fy": 2, "Iy.0": 2, "Iy.1": 1, "Wy": 4,
        "Fz": 2, "Iz.0": 1, "Iz.1": 1, "Wz": 2,
    }  # fmt: skip
    assert sizes(graph) == {
        "ax": 9, "gy->x.0": 5, "gy->x.1": 4, "wx": 5,
        "ay": 7, "gz->y.0": 4, "gz->y.1": 3, "wy.0": 6, "wy.1": 5,
        "az": 3, "wz.0": 2, "wz.1": 2,
    }  # fmt: skip
    assert uses(graph, "ax") == ["Fy", "Wy", "Wx"]
    assert uses(graph, "gy->x.0") == ["Wx"]
    assert uses(graph, "wx") == ["Fx@dx", "Wx@1"]
    assert uses(graph, "ay") == ["Fz", "Wz", "Iy.0", "Iy.1", "Wy"]
    assert uses(graph, "gz->y.1") == ["Iy.0", "Iy.1", "Wy"]
    assert uses(graph, "wy.1") == ["Fy@dy", "Iy.1@dy", "Wy@1"]
    assert uses(graph, "az") == ["Iz.0", "Iz.1", "Wz"]
    assert graph.delays.keys() == {"dx", "dy", "dz"}
    assert [(op.layer, op.part) for op in graph.ops[2:5]] == [
        ("y", None),
        ("y", 0),
        ("y", 1),
    ]


@pytest.mark.parametrize(
    ("saves", "own", "before"),
    [
        ("output", ["Fz", "Wz", "Iy", "Wy"], ["Fy", "Wy", "Wx"]),
        ("input", ["Fz", "Wz"], ["Fy", "Wy", "Iy", "Wx"]),
        ("both", ["Fz", "Wz", "Iy", "Wy"], ["Fy", "Wy", "Iy", "Wx"]),
        ("none", ["Fz", "Wz"], ["Fy", "Wy", "Wx"]),
    ],
)
def test_saves_says_what_the_activation_gradient_needs_back(
    saves: str, own: list[str], before: list[str]
) -> None:
    graph = graph_of(
        {"name": "x", "forward": 1, "weight_grad": 1, "parameters": 1},
        timed("y", saves=saves),
        timed("z"),
        training={"split": {"I": 1}},
    )
    assert uses(graph, "ay") == own
    assert uses(graph, "ax") == before


def test_the_regime_says_what_is_saved_where_a_layer_does_not() -> None:
    graph = graph_of(
        timed("x"), timed("y", saves="output"), timed("z"), costs={"saves": "none"}
    )
    assert uses(graph, "ax") == ["Fy", "Wy"]
    assert "Iy.0" in uses(graph, "ay")


def test_the_loss_is_at_every_layer_without_successors() -> None:
    graph = graph_of(
        timed("x"),
        timed("left", inputs=["x"], saves="none"),
        timed("right", inputs=["x"], saves="none"),
        training={"split": {"I": 1}},
    )
    assert uses(graph, "aleft") == ["Ileft", "Wleft"]
    assert uses(graph, "aright") == ["Iright", "Wright"]


def test_gradients_of_all_successors_meet_in_their_predecessor() -> None:
    """A diamond: x feeds l and r, which are added up in s (without weights)."""
    graph = graph_of(
        {"name": "x", "forward": 1, "weight_grad": 1, "output": 3},
        timed("l", output=4),
        timed("r", output=4, inputs=["x"]),
        {"name": "s", "forward": 1, "input_grad": 1, "inputs": ["l", "r"], "output": 4},
        training={"split": {"I": 1}},
    )
    assert "Ws" not in durations(graph)
    assert uses(graph, "ax") == ["Fl", "Fr", "Wl", "Wr", "Wx"]
    assert uses(graph, "gl->x") == ["Wx"]
    assert uses(graph, "gr->x") == ["Wx"]
    assert uses(graph, "gs->l") == ["Il", "Wl"]
    assert uses(graph, "gs->r") == ["Ir", "Wr"]
    assert [t.producer for t in graph.tensors if t.id.startswith("gs")] == ["Is", "Is"]
    assert uses(graph, "al") == ["Fs", "Il", "Wl"]
    assert "ds" not in graph.delays


def test_no_gradient_is_made_for_what_does_not_learn() -> None:
    """Layers b and c below the first that learns have no I; e is frozen, yet passes."""
    graph = graph_of(
        {"name": "a", "type": "relu"},
        {"name": "b", "type": "linear", "out": 2, "trainable": False},
        {"name": "c", "type": "linear", "out": 2},
        {"name": "e", "type": "linear", "out": 2, "trainable": False},
        {"name": "f", "type": "linear", "out": 2},
        network={"input": [2]},
        training={"split": {"I": 1}},
    )
    assert list(durations(graph)) == [
        "Fa",
        "Fb",
        "Fc",
        "Wc",
        "Fe",
        "Ie",
        "Ff",
        "If",
        "Wf",
    ]
    assert [t.id for t in graph.tensors if t.id[0] in "gw"] == [
        "ge->c", "wc", "gf->e", "wf",
    ]  # fmt: skip
    assert uses(graph, "ae") == ["Ff", "Wf", "Ie"]


def test_a_given_time_makes_an_activation_gradient_that_nobody_asked_for() -> None:
    """As in published pipelines, whose first stage has an I like all others."""
    graph = graph_of(timed("a"), timed("b"), training={"split": {"I": 1}})
    assert list(durations(graph)) == ["Fa", "Ia", "Wa", "Fb", "Ib", "Wb"]
    assert uses(graph, "gb->a") == ["Ia", "Wa"]
    assert uses(graph, "wa") == ["Fa@da", "Ia@da", "Wa@1"]
    assert not [t for t in graph.tensors if t.id.startswith("ga")]


def test_an_op_without_work_is_still_an_op_unless_there_are_no_parameters() -> None:
    graph = graph_of(
        {"name": "norm", "type": "layernorm"},
        {"name": "act", "type": "relu"},
        network={"input": [4]},
    )
    assert durations(graph) == {
        "Fnorm": 0, "Wnorm": 0, "Fact": 0, "Iact.0": 0, "Iact.1": 0,
    }  # fmt: skip


def test_parts_of_f_and_w_split_the_output_channels() -> None:
    graph = graph_of(
        timed("x", 5, 1, 5, output=9, parameters=10),
        timed("y", 1, 3, 5, output=7, parameters=11),
        training={"split": {"F": 2, "I": 2, "W": 3}},
    )
    times = durations(graph)
    assert [times[f"Fx.{k}"] for k in range(2)] == [3, 2]
    assert [times[f"Wy.{k}"] for k in range(3)] == [2, 2, 1]
    size = sizes(graph)
    assert (size["ax.0"], size["ax.1"]) == (5, 4)
    # 11 parameters: 4, 4, 3 for the parts of W, each in two slices
    assert [size[f"wy.{k}.{i}"] for k in range(3) for i in range(2)] == [
        2, 2, 2, 2, 2, 1,
    ]  # fmt: skip
    assert uses(graph, "ax.1") == [
        "Fy.0", "Fy.1", "Wy.0", "Wy.1", "Wy.2",
        "Ix.0", "Ix.1", "Wx.0", "Wx.1", "Wx.2",
    ]  # fmt: skip
    assert uses(graph, "wy.1.0") == ["Fy.0@dy", "Fy.1@dy", "Iy.0@dy", "Wy.1@1"]


def test_an_update_stands_between_weight_gradient_and_weights() -> None:
    graph = graph_of(
        timed("x", parameters=5),
        timed("y", parameters=7, update=4),
        training={"split": {"I": 2, "W": 2}},
    )
    assert durations(graph)["Uy"] == 4
    assert "Ux" not in durations(graph)
    assert (sizes(graph)["dwy.0"], sizes(graph)["dwy.1"]) == (4, 3)
    assert uses(graph, "dwy.0") == ["Uy"]
    assert (sizes(graph)["wy.0"], sizes(graph)["wy.1"]) == (4, 3)
    assert uses(graph, "wy.1") == ["Fy@dy", "Iy.1@dy", "Uy@1"]
    (made,) = [t.producer for t in graph.tensors if t.id == "wy.0"]
    assert made == "Uy"


def test_a_fused_backward_is_one_op_in_place_of_i_and_w() -> None:
    graph = graph_of(
        {"name": "x", "forward": 1, "weight_grad": 2, "output": 3, "parameters": 5},
        timed("y", 1, 3, 4, output=6, parameters=7),
        {"name": "pool", "forward": 1, "input_grad": 2, "output": 1},
        timed("z", 1, 1, 1, parameters=2),
        training={"fuse_backward": True},
    )
    assert durations(graph) == {
        "Fx": 1, "Bx": 2, "Fy": 1, "By": 7, "Fpool": 1, "Bpool": 2, "Fz": 1, "Bz": 2,
    }  # fmt: skip
    assert uses(graph, "ax") == ["Fy", "By", "Bx"]
    assert uses(graph, "gy->x") == ["Bx"]
    assert sizes(graph)["gy->x"] == 3
    assert uses(graph, "ay") == ["Fpool", "By"]
    assert uses(graph, "wx") == ["Fx@dx", "Bx@1"]
    assert uses(graph, "wy") == ["Fy@dy", "By@dy", "By@1"]
    assert "dpool" not in graph.delays


def tied(**keys: Any) -> Graph:  # noqa: ANN401 - plain data
    """Embedding, body, and a head that uses the embedding's weights."""
    return graph_of(
        {"name": "emb", "type": "embedding", "vocabulary": 6, "out": 4},
        {"name": "body", "type": "linear", "out": 4},
        {"name": "head", "type": "linear", "out": 6, "bias": False, "shares": "emb"},
        network={"input": [3]},
        **keys,
    )


def test_tied_weights_have_one_owner_one_delay_and_two_gradients() -> None:
    graph = tied()
    assert graph.delays.keys() == {"demb", "dbody"}
    assert [t.id for t in graph.tensors if t.id.startswith("w")] == [
        "wemb", "wbody.0", "wbody.1",
    ]  # fmt: skip
    assert sizes(graph)["dwhead"] == sizes(graph)["wemb"] == 24
    assert uses(graph, "dwhead") == ["Wemb"]
    # emb has no I, so its weights come in one slice that both parts of head's I need
    assert uses(graph, "wemb") == [
        "Femb@demb", "Fhead@demb", "Ihead.0@demb", "Ihead.1@demb", "Wemb@1",
    ]  # fmt: skip


def test_tied_weights_with_slices_give_each_part_its_own() -> None:
    graph = graph_of(timed("a", parameters=6), timed("b", parameters=6, shares="a"))
    assert uses(graph, "wa.1") == ["Fa@da", "Fb@da", "Ia.1@da", "Ib.1@da", "Wa@1"]
    assert uses(graph, "dwb") == ["Wa"]


def test_the_update_of_tied_weights_takes_every_gradient() -> None:
    graph = graph_of(
        timed("a", parameters=6, update=1),
        timed("b", shares="a"),
        training={"split": {"W": 2}},
    )
    for gradient in ("dwa.0", "dwa.1", "dwb.0", "dwb.1"):
        assert uses(graph, gradient) == ["Ua"]


def test_fused_backwards_cannot_wait_for_each_other() -> None:
    """The head of a tied pair waits for no earlier layer; an update breaks the knot."""
    layers = [timed("a", shares="b"), timed("b", parameters=6)]
    instance = instance_of(*layers, training={"fuse_backward": True})
    with pytest.raises(InstanceError, match=r"network\.layers\[0\]\.shares: with"):
        compile_instance(instance)
    layers[1]["update"] = 1
    graph = graph_of(*layers, training={"fuse_backward": True})
    assert uses(graph, "dwa") == ["Ub"]
    assert tied(training={"fuse_backward": True})


def test_the_batch_multiplies_costs_and_activations_not_parameters() -> None:
    layers = {"name": "fc", "type": "linear", "out": 5}
    one = compile_network(network_of(layers, input=[4]), devices=1).graph
    many = compile_network(network_of(layers, input=[4], batch=8), devices=1).graph
    assert durations(one) == {"Ffc": 20, "Wfc": 20}
    assert durations(many) == {"Ffc": 160, "Wfc": 160}
    assert sizes(one) == {"afc": 5, "wfc": 25}
    assert sizes(many) == {"afc": 40, "wfc": 25}


def test_a_bare_network_is_asynchronous_with_free_delays_and_no_limits() -> None:
    network = network_of(
        {"name": "a", "type": "linear", "out": 4},
        {"name": "b", "type": "linear", "out": 4},
        input=[4],
    )
    graph = compile_network(network, devices=3).graph
    assert graph.name == "net"
    assert graph.device_ids == ("d0", "d1", "d2")
    assert all(device.memory is None for device in graph.devices)
    assert (graph.link.latency, graph.link.units_per_tick) == (0, None)
    assert {(d.min, d.max) for d in graph.delays.values()} == {(1, None)}
    assert (graph.flush, graph.unfolding) == (False, 1)
    assert (graph.time_unit, graph.size_unit) == ("MAC", "element")
    assert [op.id for op in graph.ops] == ["Fa", "Wa", "Fb", "Ib.0", "Ib.1", "Wb"]


def test_the_regime_and_platform_of_an_instance_reach_the_graph() -> None:
    graph = graph_of(
        timed("a"),
        name="inst",
        devices=[{"id": "x", "memory": 9}, {"id": "y"}],
        link={"latency": 2},
        links=[{"src": "x", "dst": "y", "units_per_tick": 3}],
        training={"flush": True},
    )
    assert graph.name == "inst"
    assert [device.memory for device in graph.devices] == [9, None]
    assert graph.link_between(*graph.device_ids).transfer_ticks(4) == 2 + 2
    assert graph.flush
