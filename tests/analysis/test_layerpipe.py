"""LayerPipe's derivation: each step is what it says, and the rule's delays suffice."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from factories import make_graph, training_chain

from lpsched.analysis.equivalence import retiming_between
from lpsched.analysis.iteration_bound import iteration_bound
from lpsched.analysis.layerpipe import (
    Derivation,
    derive_layerpipe,
    layerpipe_delays,
    stages_of_groups,
    stages_of_schedule,
)
from lpsched.analysis.retiming import apply_retiming
from lpsched.analysis.timing import retime
from lpsched.core.graph import Delay, Graph, OpId
from lpsched.core.io import instance_from_document
from lpsched.core.schedule import Schedule
from lpsched.errors import InstanceError, UnsupportedError
from lpsched.heuristics import layerpipe_inter, layerpipe_intra, sequential
from lpsched.network import compile_instance, compile_network, load_shipped
from lpsched.verify import verify

GROUPS = (["1"], ["2", "3"], ["4"])


def four_layers() -> Derivation:
    """Derive four layers in three stages, the middle one of two layers."""
    graph = training_chain(4)
    return derive_layerpipe(graph, stages_of_groups(graph, GROUPS))


def edges_of(graph: Graph) -> dict[str, int | str]:
    return {f"{edge.src} {edge.dst}": edge.delay for edge in graph.edges}


def test_the_delays_are_1_plus_twice_the_stages_behind_shared_in_a_group() -> None:
    assert four_layers().delays == {"d1": 5, "d2": 3, "d3": 3, "d4": 1}


def test_forwards_run_in_lap_s_and_backwards_in_2_p_minus_2_minus_s() -> None:
    """With P = 3 stages: s = 0, 1, 1, 2."""
    laps = four_layers().laps
    assert [laps[OpId(f"F{n}")] for n in (1, 2, 3, 4)] == [0, 1, 1, 2]
    assert [laps[OpId(f"W{n}")] for n in (1, 2, 3, 4)] == [4, 3, 3, 2]
    assert [laps[OpId(f"I{n}")] for n in (2, 3, 4)] == [3, 3, 2]


def test_the_cuts_leave_one_delay_at_each_crossing_and_at_the_weights() -> None:
    """By hand: k + lap(v) - lap(u), with the laps of the test above.

    Activations wait for their backward: F1 -> W1 for 4 iterations, F2 -> I2 for 2.
    """
    edges = edges_of(four_layers().pipelined)
    assert edges["F1 F2"] == edges["F3 F4"] == edges["I4 I3"] == edges["I2 W1"] == 1
    assert edges["F2 F3"] == edges["I3 I2"] == edges["F4 I4"] == edges["F4 W4"] == 0
    assert {edges[f"W{n} F{n}"] for n in (1, 2, 3, 4)} == {1}
    assert edges["W2 I2"] == edges["W3 I3"] == 3
    assert edges["F1 W1"] == 4
    assert edges["F2 I2"] == edges["F2 W2"] == edges["F3 W3"] == 2
    assert edges["F1 W2"] == 3


def test_each_cut_is_a_retiming_and_the_delayed_gradients_are_not() -> None:
    derivation = four_layers()
    steps = derivation.steps
    assert [step.title for step in steps] == [
        "plain training loop",
        "delayed gradients",
        "forward cut 1 of 2",
        "backward cut 1 of 2",
        "forward cut 2 of 2",
        "backward cut 2 of 2",
    ]
    assert retiming_between(steps[0].graph, steps[1].graph) is None
    for before, after in pairwise(steps[1:]):
        assert apply_retiming(before.graph, after.moved) == after.graph
        assert retiming_between(before.graph, after.graph) is not None
    assert apply_retiming(steps[1].graph, derivation.laps) == derivation.pipelined


def test_delay_lowers_the_iteration_bound_and_retiming_keeps_it() -> None:
    """The plain loop F1 F2 F3 F4 I4 I3 I2 W1 takes 8 · 2 ticks with one delay.

    With the rule the loops of layers 1 to 4 take 16 / 5, 12 / 3, 8 / 3 and 4 / 1.
    """
    bounds = [iteration_bound(step.graph).value for step in four_layers().steps]
    assert bounds == [16, 4, 4, 4, 4, 4]


def test_the_figures_of_a_step_are_plain_data() -> None:
    """At the end F2 F3, I3 I2 and F4 I4 are the longest ways without delay."""
    steps = [step.document() for step in four_layers().steps]
    assert steps[0]["iteration_bound"] == "16"
    assert steps[0]["clock_period"] == 16
    assert steps[-1]["clock_period"] == 4
    assert steps[2]["moved"] == sorted(
        ["F2", "F3", "F4", "I2", "I3", "I4", "W1", "W2", "W3", "W4"]
    )


def test_a_single_stage_is_the_plain_loop() -> None:
    graph = training_chain(3)
    derivation = derive_layerpipe(graph, stages_of_groups(graph, [["1", "2", "3"]]))
    assert len(derivation.steps) == 2
    assert set(derivation.delays.values()) == {1}
    assert derivation.pipelined == derivation.steps[0].graph


@pytest.mark.parametrize("method", [layerpipe_intra, layerpipe_inter])
@pytest.mark.parametrize("devices", [2, 3, 5, 8, 13])
@pytest.mark.parametrize("name", ["alexnet", "vgg16"])
def test_the_rule_suffices_for_layerpipes_own_schedule(
    name: str,
    devices: int,
    method: Callable[[Graph], Schedule],
) -> None:
    """Without transfers d = 1 + 2·S(l) is always valid (design: checked 1 to 16)."""
    graph = compile_network(load_shipped(name), devices=devices).graph
    schedule = method(graph)
    delays = layerpipe_delays(graph, stages_of_schedule(graph, schedule))
    ruled = graph.replace(
        delays={name: Delay(min=d, max=d) for name, d in delays.items()}
    )
    placement = {op: placed.device for op, placed in schedule.ops.items()}
    phases = {op.id: schedule.phase(op.id) for op in graph.ops if op.duration != 0}
    timed = retime(ruled, schedule.period, placement, phases)
    assert timed is not None
    assert verify(ruled, timed) == ()
    derivation = derive_layerpipe(graph, stages_of_schedule(graph, schedule))
    first = min(derivation.laps.values())
    for op in phases:
        assert timed.lap(op) <= derivation.laps[op] - first


def test_the_rule_of_an_instance_is_the_same() -> None:
    """`staleness: {rule: layerpipe2}` compiles to delays of one value each."""
    groups = [["a"], ["b", "c"], ["d"]]
    times = {"forward": 1, "input_grad": 1, "weight_grad": 1}
    layers = [{"name": name, **times} for name in "abcd"]
    document = {
        "schema": "lpsched/instance/1",
        "network": {"schema": "lpsched/network/1", "name": "four", "layers": layers},
        "devices": 3,
        "training": {"staleness": {"rule": "layerpipe2", "groups": groups}},
    }
    graph = compile_instance(instance_from_document(document)).graph
    rule = layerpipe_delays(graph, stages_of_groups(graph, groups))
    assert rule == {"da": 5, "db": 3, "dc": 3, "dd": 1}
    assert {name: delay.max for name, delay in graph.delays.items()} == rule


def test_layers_must_be_in_exactly_one_group() -> None:
    graph = training_chain(3)
    with pytest.raises(InstanceError) as error:
        stages_of_groups(graph, [["1", "2"], ["2", "9"]])
    assert [fault.message for fault in error.value.faults] == [
        "the graph has no layer '9'",
        "layer '2' is in 2 groups",
        "layer '3' is in 0 groups",
    ]


def test_stages_against_the_flow_are_refused_with_every_edge() -> None:
    graph = training_chain(3)
    with pytest.raises(InstanceError) as error:
        derive_layerpipe(graph, stages_of_groups(graph, [["2"], ["1"], ["3"]]))
    paths = {fault.path for fault in error.value.faults}
    assert paths == {"edge F1 -> F2", "edge I2 -> W1"}
    with pytest.raises(InstanceError, match="op 'F1' has none"):
        derive_layerpipe(graph, {})


def test_a_graph_without_layers_or_named_delays_has_no_derivation() -> None:
    with pytest.raises(UnsupportedError, match="has no layer"):
        derive_layerpipe(make_graph({"a": 1}), {OpId("a"): 0})
    chain = training_chain(2)
    stages = stages_of_groups(chain, [["1"], ["2"]])
    fixed = four_layers().pipelined
    with pytest.raises(UnsupportedError, match="no named delays"):
        derive_layerpipe(fixed, stages_of_groups(fixed, GROUPS))
    with pytest.raises(UnsupportedError, match="no named delays"):
        layerpipe_delays(chain.replace(delays={}), stages)


def test_devices_that_run_nothing_are_no_stages() -> None:
    graph = training_chain(2, devices=3)
    assert set(stages_of_schedule(graph, sequential(graph)).values()) == {0}
