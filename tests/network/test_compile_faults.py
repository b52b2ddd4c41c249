"""What the shapes and costs of a network may not be, told all at once."""

from __future__ import annotations

from typing import Any

import pytest
from small_networks import durations, graph_of, instance_of, network_of, sizes, timed

from lpsched.core.instance import Instance
from lpsched.errors import InstanceError
from lpsched.network import compile_instance, compile_network


def faults(*layers: Any, **keys: Any) -> dict[str, str]:  # noqa: ANN401 - plain data
    """Faults of a bare network, by path."""
    with pytest.raises(InstanceError) as caught:
        compile_network(network_of(*layers, **keys), devices=2)
    return {fault.path: fault.message for fault in caught.value.faults}


def linear(name: str, out: int = 4, **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a linear layer."""
    return {"name": name, "type": "linear", "out": out, **keys}


CONV = {"name": "conv", "type": "conv2d", "out": 8, "kernel": 3}


def test_a_linear_layer_after_a_convolution_asks_for_a_flatten() -> None:
    found = faults(CONV, linear("fc"), input=[3, 8, 8])
    assert found == {
        "layers[1]": "linear takes [features] or [tokens, features], got [8, 6, 6] "
        "from 'conv'; put a layer of type flatten between them"
    }
    flatten = {"name": "flat", "type": "flatten"}
    network = network_of(CONV, flatten, linear("fc"), input=[3, 8, 8])
    assert sizes(compile_network(network, devices=1).graph)["aflat"] == 288


def test_each_misfit_is_told_and_what_follows_from_it_is_not() -> None:
    found = faults(
        {**CONV, "kernel": 9},
        linear("after"),
        linear("more"),
        {"name": "att", "type": "attention", "heads": 3, "inputs": []},
        linear("last"),
        input=[3, 8, 8],
    )
    assert list(found) == ["layers[0].kernel", "layers[3]"]


def test_a_typed_network_needs_the_shape_of_a_sample() -> None:
    found = faults(linear("a"), linear("b"))
    (message,) = found.values()
    assert list(found) == ["layers[0]"]
    assert "the file gives no `input`" in message


def test_a_computed_layer_needs_the_shape_of_what_it_reads() -> None:
    found = faults(timed("a"), linear("b"), linear("c"))
    (message,) = found.values()
    assert list(found) == ["layers[1]"]
    assert message.endswith("but that of 'a' is unknown, for it has no `type`")


def test_tied_layers_have_equally_many_parameters() -> None:
    found = faults(linear("a", 4), linear("b", 5, shares="a"), input=[4])
    assert found == {"layers[1].shares": "'b' needs 25 parameters, 'a' has 20"}
    found = faults(timed("a", parameters=3), timed("b", parameters=4, shares="a"))
    assert found == {"layers[1].parameters": "'a' owns the weights and has 3"}


def test_given_costs_must_be_given_where_there_is_an_op() -> None:
    found = faults(
        {"name": "a", "forward": 1, "parameters": 3},
        {"name": "b", "forward": 1},
    )
    required = "required, but missing (0 if it takes no time)"
    assert found == {
        "layers[0].weight_grad": required,
        "layers[1].input_grad": required,
    }


def test_a_layer_without_parameters_has_no_time_for_their_gradient() -> None:
    found = faults(timed("a", parameters=0))
    assert found["layers[0].weight_grad"].startswith("a layer without parameters")


def test_one_microbatch_has_one_time() -> None:
    found = faults(timed("a") | {"forward": [1, 2]})
    assert "training.mode: synchronous" in found["layers[0].forward"]


def test_a_frozen_layer_drops_its_weight_gradient_and_update() -> None:
    graph = graph_of(timed("a", update=1, trainable=False))
    assert list(durations(graph)) == ["Fa", "Ia.0", "Ia.1"]


def test_a_file_with_shapes_and_times_is_costed_by_either() -> None:
    layer = linear("a", 5, forward=7, weight_grad=8, update=2)
    keys: dict[str, Any] = {"network": {"input": [4], "time_unit": "ms"}}
    given = graph_of(layer, **keys)
    assert (given.time_unit, durations(given)) == ("ms", {"Fa": 7, "Wa": 8, "Ua": 2})
    counted = graph_of(layer, costs={"model": "macs"}, **keys)
    assert (counted.time_unit, durations(counted)) == (
        "MAC",
        {"Fa": 20, "Wa": 20, "Ua": 0},
    )
    assert sizes(given) == sizes(counted) == {"aa": 5, "dwa": 25, "wa": 25}


def test_times_in_macs_stand_for_what_would_be_counted() -> None:
    graph = graph_of(
        linear("a", 5),
        timed("own", 3, 4, 5, output=6),
        network={"input": [4]},
        training={"split": {"I": 1}},
    )
    assert graph.time_unit == "MAC"
    assert durations(graph) == {"Fa": 20, "Wa": 20, "Fown": 3, "Iown": 4, "Wown": 5}


def test_times_in_another_unit_are_no_macs() -> None:
    instance = instance_of(
        timed("a"), network={"time_unit": "ms"}, costs={"model": "macs"}
    )
    with pytest.raises(InstanceError) as caught:
        compile_instance(instance)
    (fault,) = caught.value.faults
    assert fault.path == "network.layers[0]"
    assert fault.message == "the layer has no `type`, and times in ms are no MACs"


def test_shapes_count_elements_and_no_bytes() -> None:
    found = faults(linear("a", output=3), input=[4], size_unit="byte")
    assert found == {
        "layers[0].parameters": "required: shapes count elements, and the file's "
        "sizes are in byte"
    }


def test_huge_numbers_are_refused_or_made_coarser() -> None:
    big = 2**52
    layer = linear("a", big, bias=False)
    network = network_of(layer, input=[big], batch=big)
    graph = compile_network(network, devices=1).graph
    assert sum(durations(graph).values()) <= 2**53
    found_path = "costs.tick"
    instance = instance_of(timed("a", big, big, big), costs={"tick": 1})
    with pytest.raises(InstanceError) as caught:
        compile_instance(instance)
    assert [fault.path for fault in caught.value.faults] == [found_path]
    instance = instance_of(layer, network={"input": [big]}, costs={"size_tick": 1})
    with pytest.raises(InstanceError, match=r"costs\.size_tick"):
        compile_instance(instance)


def test_at_least_one_device_and_one_thing_to_run() -> None:
    for count in (0, 10**9):
        with pytest.raises(InstanceError, match="from 1 to 10000, got"):
            compile_network(network_of(timed("a")), devices=count)
    with pytest.raises(InstanceError, match="either `network` or `graph`"):
        compile_instance(Instance(name="none"))


def test_all_faults_of_an_instance_come_at_once() -> None:
    instance = instance_of(
        {**CONV, "kernel": 9},
        network={"input": [3, 8, 8]},
        training={"staleness": {"rule": "layerpipe2"}},
        placement={"pins": {"z": "d0"}},
    )
    with pytest.raises(InstanceError) as caught:
        compile_instance(instance)
    assert [fault.path for fault in caught.value.faults] == [
        "network.layers[0].kernel",
        "training.staleness.groups",
        "placement.pins.z",
    ]
