"""Staleness, speeds, stages, pins and groups of an instance."""

from __future__ import annotations

from typing import Any

import pytest
from small_networks import durations, graph_of, instance_of, timed

from lpsched.core.graph import Delay, Graph
from lpsched.core.io import instance_from_document
from lpsched.errors import InstanceError
from lpsched.network import compile_instance

ABC = [timed("a"), timed("b"), timed("c")]


def delays(staleness: dict[str, Any], **keys: Any) -> dict[str, Delay]:  # noqa: ANN401
    """Ranges of the named delays of three layers under a rule."""
    graph = graph_of(*ABC, training={"staleness": staleness}, **keys)
    return {str(name): delay for name, delay in graph.delays.items()}


def devices(graph: Graph) -> dict[str, Any]:
    """Return the devices that each op may use."""
    return {op.id: op.devices for op in graph.ops}


def faults(*layers: Any, **keys: Any) -> dict[str, str]:  # noqa: ANN401 - plain data
    """Faults that compiling finds, by path."""
    with pytest.raises(InstanceError) as caught:
        compile_instance(instance_of(*layers, **keys))
    return {fault.path: fault.message for fault in caught.value.faults}


def test_a_delay_is_one_more_than_the_staleness() -> None:
    assert set(delays({"max": 2}).values()) == {Delay(min=1, max=3)}
    assert set(delays({"fixed": 2}).values()) == {Delay(min=3, max=3)}
    assert set(delays({"max": 0}).values()) == {Delay(min=1, max=1)}


def test_layerpipe2_gives_two_delays_for_each_later_group() -> None:
    found = delays({"rule": "layerpipe2", "groups": [["a"], ["b", "c"]]})
    assert found == {
        "da": Delay(min=3, max=3),
        "db": Delay(min=1, max=1),
        "dc": Delay(min=1, max=1),
    }


def test_the_groups_of_layerpipe2_default_to_the_stages() -> None:
    stages = {"rule": "free", "stages": [["a"], ["b"], ["c"]]}
    found = delays({"rule": "layerpipe2"}, placement=stages)
    assert [delay.min for delay in found.values()] == [5, 3, 1]


@pytest.mark.parametrize(
    ("groups", "path", "message"),
    [
        (None, "training.staleness.groups", "where the placement lists no stages"),
        ([["a"], ["b"]], "training.staleness.groups", "'c' is in no group"),
        ([["a", "b"], ["c", "a"]], "training.staleness.groups[1][1]", "already"),
        ([["a", "b", "c", "z"]], "training.staleness.groups[0][3]", "unknown layer"),
    ],
)
def test_groups_hold_every_learning_layer_once(
    groups: list[list[str]] | None, path: str, message: str
) -> None:
    staleness = {"rule": "layerpipe2"} | ({"groups": groups} if groups else {})
    found = faults(*ABC, training={"staleness": staleness})
    assert message in found[path]


def test_speed_divides_durations_rounded_up_after_sharing() -> None:
    """5 ticks of I are 3 and 2; at speed 3/2 these take 2 and 4/3, rounded up to 2."""
    graph = graph_of(
        timed("a", 3, 5, 4),
        devices=[{"id": "x"}, {"id": "y", "speed": "3/2"}],
    )
    assert durations(graph) == {
        "Fa": {"x": 3, "y": 2},
        "Ia.0": {"x": 3, "y": 2},
        "Ia.1": 2,
        "Wa": {"x": 4, "y": 3},
    }


def test_devices_of_one_speed_need_no_map() -> None:
    graph = graph_of(timed("a", 3, 5, 4), devices={"count": 2, "speed": 2})
    assert durations(graph) == {"Fa": 2, "Ia.0": 2, "Ia.1": 1, "Wa": 2}


def test_a_time_per_device_is_taken_as_measured_there() -> None:
    layer = timed("a") | {"input_grad": {"x": 5, "y": 2.5}}
    graph = graph_of(
        layer,
        devices=[{"id": "x"}, {"id": "y", "speed": 2}],
        training={"fuse_backward": True},
        costs={"tick": 0.5},
    )
    assert durations(graph) == {"Fa": {"x": 2, "y": 1}, "Ba": {"x": 12, "y": 7}}


def test_a_time_per_device_names_every_device_and_no_other() -> None:
    layer = timed("a") | {"forward": {"d0": 1, "d7": 1}}
    found = faults(layer)
    assert found["network.layers[0].forward"] in (
        "unknown device 'd7'",
        "no entry for the device 'd1'",
    )


def test_stages_follow_the_devices_in_a_loop_or_a_v() -> None:
    layers = [timed(name) for name in "abcd"]
    stages = [["a"], ["b"], ["c"], ["d"]]
    loop = graph_of(*layers, placement={"stages": stages})
    v = graph_of(*layers, placement={"stages": stages, "arrangement": "v"})
    fs = [f"F{name}" for name in "abcd"]
    assert [devices(loop)[f] for f in fs] == [("d0",), ("d1",), ("d0",), ("d1",)]
    assert [devices(v)[f] for f in fs] == [("d0",), ("d1",), ("d1",), ("d0",)]
    assert {(op.layer, op.stage) for op in v.ops} == {
        ("a", 0), ("b", 1), ("c", 2), ("d", 3),
    }  # fmt: skip
    assert devices(loop)["Wd"] == devices(loop)["Id.1"] == ("d1",)


def test_a_stage_may_be_pinned_by_its_number() -> None:
    graph = graph_of(
        *ABC, placement={"stages": [["a", "b"], ["c"]], "pins": {"0": "d1"}}
    )
    assert set(devices(graph).values()) == {("d1",)}


def test_layers_and_ops_are_pinned_and_grouped_by_name() -> None:
    graph = graph_of(
        *ABC,
        placement={
            "pins": {"a": "d0", "Wb": "d1"},
            "colocate": [["b", "Fc"], ["Fa", "Fa"]],
        },
    )
    found = devices(graph)
    assert found["Fa"] == found["Ia.0"] == found["Wa"] == ("d0",)
    assert found["Wb"] == ("d1",)
    assert found["Fb"] is None
    assert graph.colocate == (("Fb", "Ib.0", "Ib.1", "Wb", "Fc"),)


@pytest.mark.parametrize(
    ("placement", "path", "message"),
    [
        ({"pins": {"z": "d0"}}, "placement.pins.z", "no layer, op or stage"),
        ({"pins": {"a": "d9"}}, "placement.pins.a", "unknown device 'd9'; known: d0"),
        ({"pins": {"a": "d0", "Fa": "d1"}}, "placement.pins.Fa", "is on 'd0'"),
        ({"pins": {"0": "d0"}}, "placement.pins.0", "no layer, op or stage"),
        ({"colocate": [["a", "z"]]}, "placement.colocate[0][1]", "no layer, op"),
        ({"stages": [["a"], ["b"]]}, "placement.stages", "'c' is in no stage"),
        ({"stages": [["a", "b", "c", "a"]]}, "placement.stages[0][3]", "already"),
        ({"stages": [["a", "b", "c", "z"]]}, "placement.stages[0][3]", "unknown"),
        (
            {"stages": [["a", "b", "c"]], "pins": {"b": "d1"}},
            "placement.pins.b",
            "is on 'd0' by its stage",
        ),
    ],
)
def test_placements_that_cannot_be_meant_are_refused(
    placement: dict[str, Any], path: str, message: str
) -> None:
    assert message in faults(*ABC, placement=placement)[path]


def test_a_graph_is_placed_by_its_layers_and_ops() -> None:
    document = {
        "schema": "lpsched/graph/1",
        "name": "g",
        "devices": [{"id": "d0"}, {"id": "d1"}],
        "ops": [
            {"id": "F1", "kind": "F", "layer": "x", "duration": 1},
            {"id": "W1", "kind": "W", "layer": "x", "duration": 1, "devices": ["d0"]},
            {"id": "n", "kind": "note", "layer": "x", "duration": 1, "devices": []},
        ],
    }
    head = {"schema": "lpsched/instance/1", "graph": document}
    plain = compile_instance(instance_from_document(head))
    assert plain.rounding is None
    assert plain.graph.source == document

    pinned = instance_from_document({**head, "placement": {"pins": {"x": "d0"}}})
    assert devices(compile_instance(pinned).graph) == {
        "F1": ("d0",), "W1": ("d0",), "n": (),
    }  # fmt: skip

    wrong = instance_from_document({**head, "placement": {"pins": {"W1": "d1"}}})
    with pytest.raises(InstanceError, match="'W1' may not run on 'd1'"):
        compile_instance(wrong)


def test_memory_deltas_belong_to_synchronous_pipelines() -> None:
    found = faults(timed("a", memory={"F": 1, "I": -1}))
    text = "deltas go with `training.mode: synchronous`"
    assert found["network.layers[0].memory"] == text
