"""Synchronous pipelines: ops, tensors, deltas of memory and updates by hand."""

from __future__ import annotations

from typing import Any

import pytest
from small_networks import durations, graph_of, instance_of, sizes, timed, uses

from lpsched.core.graph import Graph, OpId
from lpsched.errors import InstanceError
from lpsched.network import compile_instance

SYNC = {"mode": "synchronous", "microbatches": 2}


def pipeline(*layers: Any, **keys: Any) -> Graph:  # noqa: ANN401 - plain data
    """Graph of these layers, each a stage unless stages are given."""
    keys.setdefault("training", SYNC)
    keys.setdefault("placement", {"stages": len(layers)})
    return graph_of(*layers, **keys)


def faults(*layers: Any, **keys: Any) -> dict[str, str]:  # noqa: ANN401 - plain data
    """Faults that compiling finds, by path."""
    with pytest.raises(InstanceError) as caught:
        compile_instance(instance_of(*layers, **{"training": SYNC, **keys}))
    return {fault.path: fault.message for fault in caught.value.faults}


def orders(graph: Graph) -> list[str]:
    """Dependences as text."""
    return [f"{d.src}->{d.dst}" for d in graph.dependences]


def test_stages_have_an_op_of_each_kind_for_each_microbatch() -> None:
    graph = pipeline(timed("a"), timed("b"))
    assert [op.id for op in graph.ops] == [
        "F0@0", "F0@1", "I0@0", "I0@1", "W0@0", "W0@1", "U0",
        "F1@0", "F1@1", "I1@0", "I1@1", "W1@0", "W1@1", "U1",
    ]  # fmt: skip
    first, last = graph.ops[0], graph.ops[-1]
    assert (first.layer, first.stage, first.microbatch) == (None, 0, 0)
    assert (last.stage, last.microbatch, last.duration) == (1, None, 0)
    assert {op.devices for op in graph.ops if op.stage == 1} == {("d1",)}
    assert graph.colocate[1] == tuple(op.id for op in graph.ops if op.stage == 1)


def test_without_stages_layers_have_them_and_each_op_stays_on_one_device() -> None:
    graph = graph_of(timed("a"), timed("b"), training=SYNC)
    assert graph.op_by_id[OpId("Fa@1")].layer == "a"
    assert {op.stage for op in graph.ops} == {None}
    assert {op.devices for op in graph.ops} == {None}
    assert graph.colocate == (
        ("Fa@0", "Fa@1"), ("Ia@0", "Ia@1"), ("Wa@0", "Wa@1", "Ua"),
        ("Fb@0", "Fb@1"), ("Ib@0", "Ib@1"), ("Wb@0", "Wb@1", "Ub"),
    )  # fmt: skip
    assert uses(graph, "aa@1") == ["Fb@1", "Wb@1", "Ia@1", "Wa@1"]
    assert uses(graph, "gb->a@0") == ["Ia@0", "Wa@0"]


def test_the_first_layer_has_an_activation_gradient_if_its_time_is_given() -> None:
    without = {"name": "a", "forward": 1, "weight_grad": 1}
    assert "I0@0" not in durations(pipeline(without, timed("b")))
    assert "I0@0" in durations(pipeline(timed("a"), timed("b")))


def test_a_stage_takes_the_time_of_its_layers() -> None:
    graph = pipeline(
        timed("a", 3, 4, 5),
        timed("b", 10, 20, 30, update=7),
        timed("c"),
        placement={"stages": [["a", "b"], ["c"]]},
    )
    found = durations(graph)
    assert [found[op] for op in ("F0@0", "I0@1", "W0@0", "U0")] == [13, 24, 35, 7]


def test_a_speed_divides_the_sum_once_and_no_measured_time() -> None:
    """3 + 10 at speed 2 is 6.5, rounded up; the 4 measured on d1 stays as it is."""
    measured = timed("c") | {"forward": {"d0": 9, "d1": 4}}
    graph = pipeline(
        timed("a", 3, 1, 1),
        timed("b", 10, 1, 1),
        measured,
        devices=[{"id": "d0"}, {"id": "d1", "speed": 2}],
        placement={"stages": [["a", "b", "c"]], "pins": {"0": "d1"}},
    )
    assert durations(graph)["F0@0"] == {"d0": 22, "d1": 11}


def test_inside_a_stage_only_what_outlives_an_op_is_a_tensor() -> None:
    """Of a -> b | c, b's output is sent; a's is kept for W of b, as is b's gradient.

    The output of a goes from F0 to I0 (saved output) and W0 (input of b); the one
    gradient inside stage 0, of b's input, is made by I0 and used by W0.
    """
    layers = [timed(name, output=8, parameters=4) for name in "abc"]
    graph = pipeline(*layers, placement={"stages": [["a", "b"], ["c"]]})
    assert uses(graph, "aa@0") == ["W0@0", "I0@0"]
    assert uses(graph, "ab@0") == ["F1@0", "W1@0", "I0@0", "W0@0"]
    assert uses(graph, "gb->a@0") == ["W0@0"]
    assert uses(graph, "gc->b@0") == ["I0@0", "W0@0"]
    assert uses(graph, "ac@0") == ["I1@0", "W1@0"]


def test_a_stage_runs_f_i_and_w_in_this_order() -> None:
    """The saved outputs say F before I; nothing else says I before W."""
    told = [o for o in orders(pipeline(timed("a"), timed("b"))) if "U" not in o]
    assert told == ["I0@0->W0@0", "I0@1->W0@1", "I1@0->W1@0", "I1@1->W1@1"]


def test_one_update_follows_every_weight_gradient() -> None:
    graph = pipeline(timed("a", parameters=5), timed("b"))
    assert [o for o in orders(graph) if o.endswith("U0")] == ["W0@0->U0", "W0@1->U0"]
    assert uses(graph, "wa") == ["F0@0@1", "F0@1@1", "I0@0@1", "I0@1@1", "U0@1"]
    assert sizes(graph)["wa"] == 5
    assert [(r.size, r.ops) for r in graph.residents] == [(5, ("W0@0", "W0@1"))]


def test_what_does_not_learn_has_no_update() -> None:
    graph = pipeline(timed("a") | {"trainable": False}, timed("b"))
    assert [op.id for op in graph.ops if op.kind == "U"] == ["U1"]


def test_deltas_that_shrink_at_i_are_held_until_i_and_until_w() -> None:
    """F +7, I -2, W -5."""
    graph = pipeline(timed("a", memory={"F": 7, "I": -2}), timed("b"))
    assert {k: v for k, v in sizes(graph).items() if k.endswith("@1")} == {
        "aa@1": 0, "gb->a@1": 0, "ab@1": 0, "ha.I@1": 2, "ha.W@1": 5,
    }  # fmt: skip
    assert uses(graph, "ha.I@1") == ["I0@1"]
    assert uses(graph, "ha.W@1") == ["W0@1"]


def test_deltas_that_grow_at_i_are_made_by_i() -> None:
    """F +7, I +2, W -9."""
    graph = pipeline(timed("a"), timed("b", memory={"F": 7, "I": 2}))
    assert sizes(graph)["hb.W@0"] == 7
    assert sizes(graph)["hb.IW@0"] == 2
    assert uses(graph, "hb.W@0") == ["W1@0"]
    assert uses(graph, "hb.IW@0") == ["W1@0"]
    assert "F1@0->I1@0" in orders(graph)


def test_deltas_stand_for_what_is_saved_and_not_for_what_is_sent() -> None:
    layers = [timed(n, output=8, memory={"F": 3, "I": -1}) for n in "ab"]
    graph = pipeline(*layers)
    assert uses(graph, "aa@0") == ["F1@0"]
    assert uses(graph, "gb->a@0") == ["I0@0"]
    assert sizes(graph)["aa@0"] == 8
    assert "ab@0" not in sizes(graph)


def test_without_i_everything_is_given_back_at_w() -> None:
    first = {"name": "a", "forward": 1, "weight_grad": 1, "memory": {"F": 7, "I": -2}}
    graph = pipeline(first, timed("b"))
    assert sizes(graph)["ha.W@0"] == 7
    assert "ha.I@0" not in sizes(graph)


def test_a_fused_backward_gives_all_of_it_back() -> None:
    layers = [timed("a", 1, 2, 4, memory={"F": 7, "I": -2}), timed("b")]
    graph = pipeline(*layers, training={**SYNC, "fuse_backward": True})
    assert durations(graph)["B0@1"] == 6
    assert sizes(graph)["ha.I@0"] + sizes(graph)["ha.W@0"] == 7
    assert uses(graph, "ha.I@0") == uses(graph, "ha.W@0") == ["B0@0"]
    assert uses(graph, "gb->a@0") == ["B0@0"]


def test_a_weight_gradient_of_no_time_gives_memory_back() -> None:
    graph = pipeline(timed("a", 1, 1, 0, memory={"F": 3, "I": -1}), timed("b"))
    assert durations(graph)["W0@0"] == 0
    assert uses(graph, "ha.W@0") == ["W0@0"]


def test_tied_gradients_are_summed_at_home_and_sent_once() -> None:
    graph = pipeline(
        timed("a", parameters=5),
        timed("b", parameters=1),
        timed("c", shares="a"),
        placement={"stages": [["a"], ["b"], ["c"]]},
    )
    assert uses(graph, "dwc") == ["U0"]
    assert next(t.producer for t in graph.tensors if t.id == "dwc") == "W2@1"
    assert "W2@0->U0" in orders(graph)
    assert "W2@1->U0" not in orders(graph)
    assert "U2" not in durations(graph)
    assert uses(graph, "wa")[4:8] == ["F2@0@1", "F2@1@1", "I2@0@1", "I2@1@1"]
    assert [r.size for r in graph.residents] == [5, 1, 5]


def test_tied_weights_in_one_stage_have_one_sum() -> None:
    graph = pipeline(
        timed("a", parameters=5), timed("b", shares="a"), placement={"stages": 1}
    )
    assert [r.size for r in graph.residents] == [5]
    assert not [t.id for t in graph.tensors if t.id.startswith("dw")]


def test_times_may_differ_between_microbatches() -> None:
    layer = timed("a") | {"forward": [3, 5], "weight_grad": [2, 0]}
    graph = pipeline(layer, timed("b", 7, 1, 1), placement={"stages": 1})
    found = durations(graph)
    assert (found["F0@0"], found["F0@1"]) == (10, 12)
    assert (found["W0@0"], found["W0@1"]) == (3, 1)


def test_a_list_has_a_time_for_every_microbatch() -> None:
    found = faults(timed("a") | {"input_grad": [1, 2, 3]})
    text = "expected a time for each of 2 microbatches, got 3"
    assert found["network.layers[0].input_grad"] == text


@pytest.mark.parametrize(
    ("training", "path", "message"),
    [
        ({"mode": "synchronous"}, "training.microbatches", "required by"),
        (SYNC | {"split": {"F": 2}}, "training.split", "whole"),
        (SYNC | {"staleness": {"max": 3}}, "training.staleness", "asynchronous"),
        (SYNC | {"microbatches": 10**6}, "training.microbatches", "at most 166666"),
    ],
)
def test_regimes_that_cannot_be_meant_are_refused(
    training: dict[str, Any], path: str, message: str
) -> None:
    assert message in faults(timed("a"), timed("b"), training=training)[path]


def test_an_explicit_split_of_one_part_each_is_no_split() -> None:
    training = SYNC | {"split": {"F": 1, "I": 1, "W": 1}}
    assert "I0@0" in durations(pipeline(timed("a"), training=training))


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ({"F": 1, "I": -2}, "I gives back 2, F takes 1"),
        ({"F": 2, "I": -1}, "W would give back 1, but the layer has no W"),
    ],
)
def test_deltas_must_add_up(memory: dict[str, int], message: str) -> None:
    layer = timed("a", memory=memory) | {"trainable": False}
    assert faults(layer, timed("b"))["network.layers[0].memory"] == message


def test_stages_that_wait_for_each_other_are_refused() -> None:
    found = faults(
        *[timed(name) for name in "abc"], placement={"stages": [["a", "c"], ["b"]]}
    )
    text = "the stages wait for each other: F1 -> F0 -> F1"
    assert found["placement.stages"] == text


def test_every_layer_is_in_a_stage() -> None:
    found = faults(timed("a"), timed("b"), placement={"stages": [["a"]]})
    assert found["placement.stages"] == "the layer 'b' is in no stage"


def test_a_pinned_layer_takes_its_stage_along_and_groups_join_stages() -> None:
    layers = [timed(name) for name in "abcd"]
    stages = {"rule": "free", "stages": [["a", "b"], ["c"], ["d"]]}
    graph = pipeline(
        *layers, placement={**stages, "pins": {"b": "d1"}, "colocate": [["c", "d"]]}
    )
    assert {op.devices for op in graph.ops if op.stage == 0} == {("d1",)}
    assert {op.devices for op in graph.ops if op.stage == 2} == {None}
    assert set(graph.colocate[-1]) == {op.id for op in graph.ops if op.stage}


def test_a_skip_over_a_stage_is_sent_past_it() -> None:
    layers = [timed("a", output=3), timed("b"), timed("c", inputs=["a", "b"])]
    graph = pipeline(*layers)
    assert uses(graph, "aa@0")[:2] == ["F1@0", "F2@0"]
    assert uses(graph, "gc->a@0") == ["I0@0", "W0@0"]


def test_flush_reaches_the_graph() -> None:
    assert pipeline(timed("a"), training={**SYNC, "flush": True}).flush
    assert not pipeline(timed("a")).flush
