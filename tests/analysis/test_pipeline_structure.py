"""Pipelines read back from graphs: structure, least memory, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from factories import make_graph, training_chain
from pipelines import Times, pipeline

from lpsched.analysis.chain import (
    Chain,
    StageMemory,
    chain_of,
    device_room,
    stage_memory,
)
from lpsched.analysis.pipeline import Slot, pipeline_of
from lpsched.core.graph import Delay, DelayName, DeviceId, Graph, OpId
from lpsched.core.io import instance_from_document
from lpsched.errors import UnsupportedError
from lpsched.network import compile_instance

TIMES = Times([3, 4], [5, 6], [1, 2], 7)


def changed(graph: Graph, name: str, **fields: Any) -> Graph:  # noqa: ANN401
    """Return the graph with one op changed."""
    ops = tuple(replace(o, **fields) if o.id == name else o for o in graph.ops)
    return graph.replace(ops=ops)


def test_a_pipeline_is_read_back() -> None:
    found = pipeline_of(pipeline(2, 3, TIMES))
    assert found.devices == ("d0", "d1")
    assert (found.num_stages, found.microbatches) == (2, 3)
    assert found.op(Slot("I", 1, 2)) == "I1@2"
    assert found.duration(Slot("I", 1, 2)) == 6
    assert (found.down, found.up) == ((7,), (7,))
    assert found.updates == ("U0", "U1")
    assert found.source(Slot("F", 1, 0)) == Slot("F", 0, 0)
    assert found.source(Slot("I", 1, 0)) == Slot("F", 1, 0)
    assert found.source(Slot("I", 0, 0)) == Slot("I", 1, 0)
    assert found.source(Slot("W", 0, 0)) == Slot("I", 0, 0)
    assert found.source(Slot("F", 0, 0)) is None
    waits = [found.wait(Slot(kind, 0, 0)) for kind in "FIW"]
    assert waits == [0, 7, 0]


def test_stages_on_one_device_pass_on_without_transfer() -> None:
    found = pipeline_of(pipeline(2, 2, Times(1, 1, 1, 7), stages=4, arrangement="v"))
    assert found.stages_on == {"d0": (0, 3), "d1": (1, 2)}
    assert found.down == (7, 0, 7)


def test_a_fused_backward_stands_under_i() -> None:
    found = pipeline_of(pipeline(2, 2, TIMES, fuse_backward=True))
    assert found.op(Slot("I", 0, 1)) == "B0@1"
    assert found.op(Slot("W", 0, 1)) is None
    assert found.duration(Slot("W", 0, 1)) == 0


def test_a_stage_without_i_has_an_empty_slot() -> None:
    layers = [
        {"name": "a", "forward": 1, "weight_grad": 2},
        {"name": "b", "forward": 1, "input_grad": 3, "weight_grad": 2},
    ]
    document = {
        "schema": "lpsched/instance/1",
        "network": {"schema": "lpsched/network/1", "name": "n", "layers": layers},
        "devices": 2,
        "link": {"latency": 4},
        "training": {"mode": "synchronous", "microbatches": 2},
        "placement": {"stages": 2},
    }
    found = pipeline_of(compile_instance(instance_from_document(document)).graph)
    assert found.op(Slot("I", 0, 0)) is None
    assert found.up == (4,)
    assert chain_of(found).input_grad == (0, 3)


def test_deltas_are_read_back_as_memory() -> None:
    graph = pipeline(2, 2, TIMES, deltas=([7, 3], [-2, 4]), memory=20)
    found = stage_memory(pipeline_of(graph))
    assert found[0] == StageMemory(forward=7, input_grad=-2)
    assert found[1] == StageMemory(forward=3, input_grad=4, during_input_grad=4)
    assert found[1].weight_grad == 7
    assert found[0].level(3, 2, 1) == 7 * 3 - 2 * 2 - 5


def typed_graph() -> Graph:
    """Two linear layers of 4 features, one a stage, batch 1."""
    layers = [{"name": n, "type": "linear", "out": 4, "bias": False} for n in "ab"]
    document = {
        "schema": "lpsched/instance/1",
        "network": {
            "schema": "lpsched/network/1",
            "name": "n",
            "input": [4],
            "layers": layers,
        },
        "devices": {"count": 2, "memory": 100},
        "training": {"mode": "synchronous", "microbatches": 2},
        "placement": {"stages": 2},
    }
    return compile_instance(instance_from_document(document)).graph


def test_tensors_are_read_as_the_least_that_is_held() -> None:
    """Output of a, 4: kept for W of a (no I there) and, on d1, from F to W of b.

    b's own output of 4 is the loss's gradient: kept from F to W. The gradient that b
    sends back is needed on d1 while its I runs, on d0 while W does.
    """
    found = stage_memory(pipeline_of(typed_graph()))
    assert found[0] == StageMemory(forward=4, during_weight_grad=4)
    assert found[1] == StageMemory(forward=8, during_input_grad=4)


def test_weights_and_sums_take_room_at_every_moment() -> None:
    """16 weights and 16 summed gradients on each device leave 68 of 100."""
    found = pipeline_of(typed_graph())
    assert device_room(found, DeviceId("d1")) == 68
    free = pipeline_of(pipeline(2, 2, TIMES))
    assert device_room(free, DeviceId("d0")) is None


def test_a_chain_takes_the_least_of_microbatches_that_differ() -> None:
    graph = changed(pipeline(2, 2, TIMES), "F0@1", duration=1)
    found = chain_of(pipeline_of(graph))
    assert found.forward == (1, 4)
    assert found.load == (3 + 1 + 2 * 6, 2 * 12)


def test_with_flush_a_stage_starts_after_those_before() -> None:
    flushed: Chain = chain_of(pipeline_of(pipeline(2, 2, TIMES, flush=True)))
    assert [flushed.offset(s) for s in (0, 1)] == [0, 10]
    steady = chain_of(pipeline_of(pipeline(2, 2, TIMES)))
    assert [steady.offset(s) for s in (0, 1)] == [0, 0]


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (training_chain(2), "delays are not fixed"),
        (make_graph({"a": 1}), "is no F, I, W, B or U of a stage"),
        (changed(pipeline(2, 2, TIMES), "F0@1", devices=None), "choose its device"),
        (
            changed(pipeline(2, 2, TIMES), "W0@1", devices=(DeviceId("d1"),)),
            "stage 0 is on several devices",
        ),
        (changed(pipeline(2, 2, TIMES), "F0@1", microbatch=None), "no microbatch"),
        (changed(pipeline(2, 2, TIMES), "F0@1", microbatch=0), "are the same step"),
        (changed(pipeline(2, 2, TIMES), "F0@1", kind="I"), "are the same step"),
        (changed(pipeline(2, 2, TIMES), "F0@1", stage=None), "of a stage"),
    ],
)
def test_other_graphs_are_refused(graph: Graph, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        pipeline_of(graph)


def without(graph: Graph, *ops: str) -> Graph:
    """Leave out ops and every edge at them."""
    names = set(map(OpId, ops))
    return graph.replace(
        ops=tuple(op for op in graph.ops if op.id not in names),
        tensors=tuple(t for t in graph.tensors if t.producer not in names),
        dependences=tuple(
            d for d in graph.dependences if d.src not in names and d.dst not in names
        ),
        colocate=(),
    )


def test_holes_in_a_pipeline_are_refused() -> None:
    graph = pipeline(2, 2, TIMES)
    with pytest.raises(UnsupportedError, match="I of stage 1 lacks microbatch 1"):
        pipeline_of(without(graph, "I1@1"))
    with pytest.raises(UnsupportedError, match="no edge from 'F0@1' to 'F1@1'"):
        pipeline_of(
            graph.replace(tensors=[t for t in graph.tensors if t.id != "as0@1"])
        )
    with pytest.raises(UnsupportedError, match="stage 1 has no I for stage 0"):
        pipeline_of(without(graph, "I1@0", "I1@1"))
    with pytest.raises(UnsupportedError, match="stage 0 has no F"):
        pipeline_of(without(graph, "F0@0", "F0@1"))
    with pytest.raises(UnsupportedError, match="no ops of stages"):
        pipeline_of(graph.replace(ops=(), tensors=(), dependences=()))


def test_bounds_need_a_device_for_each_stage_in_order() -> None:
    loop = pipeline_of(pipeline(1, 2, Times(1, 1, 1), stages=2))
    with pytest.raises(UnsupportedError, match="a device for each stage"):
        chain_of(loop)
    graph = pipeline(2, 2, TIMES)
    free_w = [d for d in graph.dependences if d.src != "I0@1"]
    with pytest.raises(UnsupportedError, match="'W0@1' need not wait for 'I0@1'"):
        chain_of(pipeline_of(graph.replace(dependences=tuple(free_w))))
    overlapping = graph.replace(tensors=[t for t in graph.tensors if t.id != "ws0"])
    with pytest.raises(UnsupportedError, match="stage 0 need not wait"):
        chain_of(pipeline_of(overlapping))
    assert chain_of(pipeline_of(overlapping.replace(flush=True))).flush
    frozen = without(graph, "I0@0", "I0@1", "W0@0", "W0@1", "U0")
    with pytest.raises(UnsupportedError, match="an I or W on stage 0"):
        chain_of(pipeline_of(frozen))


def test_named_delays_are_refused_even_unused() -> None:
    graph = pipeline(1, 1, Times(1, 1, 1)).replace(delays={DelayName("k"): Delay()})
    with pytest.raises(UnsupportedError, match="delays are not fixed"):
        pipeline_of(graph)
