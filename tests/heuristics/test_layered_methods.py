"""PipeDream and LayerPipe on shipped and small networks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import make_graph

from lpsched.analysis.layers import layers_of
from lpsched.core.graph import Device, DeviceId, Graph, Link, OpId
from lpsched.core.instance import Instance, Processor, Split, Training
from lpsched.core.io import instance_from_document
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import NoScheduleError, UnsupportedError
from lpsched.heuristics import (
    METHODS,
    layerpipe,
    layerpipe_inter,
    layerpipe_intra,
    pipedream,
)
from lpsched.network import compile_instance, compile_network, load_shipped
from lpsched.verify import verify

TABLE = json.loads(
    (Path(__file__).resolve().parents[1] / "data" / "layerpipe_macs.json").read_text()
)["networks"]

LAYERED = ["pipedream", "layerpipe-intra", "layerpipe-inter"]


def shipped(name: str, devices: int) -> Graph:
    """Compile a shipped network as it comes: I in two parts, all delays free."""
    return compile_network(load_shipped(name), devices=devices).graph


def shipped_whole(name: str, devices: int) -> Graph:
    """Compile a shipped network with I whole."""
    instance = Instance(
        name=name,
        network=load_shipped(name),
        devices=tuple(Processor(id=DeviceId(f"d{i}")) for i in range(devices)),
        training=Training(split=Split(input_grad=1)),
    )
    return compile_instance(instance).graph


def chain(*costs: int, **keys: Any) -> Graph:  # noqa: ANN401 - an instance's keys
    """Layers n1, n2, ... whose F, I and W take `costs` each; n1 has no I."""
    return network(*({"cost": cost} for cost in costs), **keys)


def network(
    *layers: Mapping[str, Any],
    split: Mapping[str, int] | None = None,
    **keys: Any,  # noqa: ANN401 - an instance's keys
) -> Graph:
    """Like `chain`, with any key of a layer; two devices and I whole by default."""
    document: dict[str, Any] = {
        "schema": "lpsched/instance/1",
        "network": {
            "schema": "lpsched/network/1",
            "name": "made",
            "layers": [_layer(i, **layer) for i, layer in enumerate(layers, start=1)],
        },
        "devices": 2,
        "training": {"split": split or {"I": 1}},
        **keys,
    }
    return compile_instance(instance_from_document(document)).graph


def _layer(index: int, *, cost: int, **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    times = {"forward": cost, "weight_grad": cost}
    if index > 1:
        times["input_grad"] = cost
    return {"name": f"n{index}", "output": 4, "parameters": 4, **times, **keys}


def device_numbers(graph: Graph, schedule: Schedule) -> dict[OpId, int]:
    """Number of each op's device among those in use, in the graph's order."""
    used = {placed.device for placed in schedule.ops.values()}
    place = {d: i for i, d in enumerate(d for d in graph.device_ids if d in used)}
    return {
        op: place[placed.device]
        for op, placed in schedule.ops.items()
        if placed.device is not None
    }


def devices(schedule: Schedule) -> dict[str, str | None]:
    return {op: placed.device for op, placed in schedule.ops.items()}


@pytest.mark.parametrize("name", ["vgg16", "alexnet"])
@pytest.mark.parametrize("method", LAYERED)
def test_periods_are_those_of_the_reference(name: str, method: str) -> None:
    """tests/data/layerpipe_macs.json: MACs as cost, 1 to 16 devices."""
    for row in TABLE[name]:
        graph = shipped(name, row["devices"])
        assert METHODS[method].function(graph).period == row[method]


@pytest.mark.parametrize("name", ["vgg16", "alexnet"])
def test_the_better_layerpipe_has_the_lesser_period(name: str) -> None:
    for row in TABLE[name]:
        better = min(row["layerpipe-intra"], row["layerpipe-inter"])
        assert layerpipe(shipped(name, row["devices"])).period == better


@pytest.mark.parametrize("name", ["vgg16", "alexnet"])
def test_a_whole_i_gives_the_same_periods(name: str) -> None:
    """PipeDream and intra-layer run the parts of a divided I back to back anyhow."""
    for row in TABLE[name][1:9]:
        graph = shipped_whole(name, row["devices"])
        assert pipedream(graph).period == row["pipedream"]
        assert layerpipe_intra(graph).period == row["layerpipe-intra"]
        assert layerpipe(graph).period == row["layerpipe-intra"]


@pytest.mark.parametrize("name", ["vgg16", "alexnet"])
@pytest.mark.parametrize("method", ["layerpipe-intra", "layerpipe-inter"])
def test_layerpipe_needs_no_more_than_its_published_delays(
    name: str, method: str
) -> None:
    """D = 1 + 2·S(l) with one lap a boundary is valid, and ours are no greater."""
    for num_devices in range(1, 17):
        graph = shipped(name, num_devices)
        schedule = METHODS[method].function(graph)
        known = published(graph, schedule)
        assert verify(graph, known) == ()
        assert all(schedule.delays[d] <= known.delays[d] for d in graph.delays)


def published(graph: Graph, schedule: Schedule) -> Schedule:
    """LayerPipe2's laps and delays for a placement.

    Device p of P packs its F in layer order, then I and W in reverse. F runs at lap p,
    the rest at 2(P - 1) - p; d = 1 + 2·S(l), S(l) the devices after that of F(l).
    """
    place = device_numbers(graph, schedule)
    last = max(place.values())
    layers = layers_of(graph)
    forward = [op for layer in layers for op in layer.forward]
    backward = [op for layer in reversed(layers) for op in layer.backward]
    cursor = [0] * (last + 1)
    ops = {}
    for op in (*forward, *backward):
        p = place[op]
        lap = p if op in forward else 2 * last - p
        device = schedule.ops[op].device
        ops[op] = Placed(device, lap * schedule.period + cursor[p])
        cursor[p] += graph.duration(op, device)
    delays = {
        edge.delay: 1 + 2 * (last - place[edge.dst])
        for edge in graph.edges
        if isinstance(edge.delay, str) and edge.dst in forward
    }
    return Schedule(
        graph=schedule.graph,
        graph_digest=schedule.graph_digest,
        period=schedule.period,
        ops=ops,
        delays=delays,
    )


@pytest.mark.parametrize("name", ["vgg16", "alexnet"])
def test_pipedream_needs_no_more_than_one_delay_and_one_a_stage_after(
    name: str,
) -> None:
    for num_devices in range(1, 17):
        graph = shipped(name, num_devices)
        schedule = pipedream(graph)
        place = device_numbers(graph, schedule)
        for edge in graph.edges:
            if isinstance(edge.delay, str):
                after = max(place.values()) - place[edge.dst]
                assert schedule.delays[edge.delay] <= 1 + after


@pytest.mark.parametrize("latency", [1, 5, 8, 9, 12, 40])
def test_pipedream_with_transfers_needs_no_more_than_its_published_delays(
    latency: int,
) -> None:
    """d_s = d_{s+1} + ceil((load_s + c_fwd + c_bwd) / T), layers of load 12, 9, 9.

    Three stages while twice the latency is below 18, the load of the last two layers;
    then two while it is below 30, the load of all.
    """
    graph = chain(6, 3, 3, devices=3, link={"latency": latency})
    schedule = pipedream(graph)
    place = device_numbers(graph, schedule)
    stages = max(place.values()) + 1
    assert stages == (3 if latency < 9 else 2 if latency < 15 else 1)
    expected = 1
    for stage in reversed(range(stages)):
        ops = [op for op, p in place.items() if p == stage]
        load = sum(graph.duration(op, schedule.ops[op].device) for op in ops)
        if stage < stages - 1:
            expected += -(-(load + 2 * latency) // schedule.period)
        delays = {e.delay for e in graph.edges if e.dst in ops and e.src in ops}
        named = [d for d in delays if isinstance(d, str)]
        assert all(schedule.delays[d] <= expected for d in named)


def test_the_backward_of_a_layer_runs_in_one_piece_in_pipedream() -> None:
    graph = shipped("alexnet", 4)
    schedule = pipedream(graph)
    for layer in layers_of(graph):
        tick = None
        for op in layer.backward:
            assert tick in (None, schedule.ops[op].start)
            tick = schedule.ops[op].start
            tick += graph.duration(op, schedule.ops[op].device)


def test_the_parts_of_a_divided_i_run_back_to_back_in_intra_layer() -> None:
    graph = shipped("alexnet", 4)
    schedule = layerpipe_intra(graph)
    for layer in layers_of(graph):
        for first, second in [layer.activation] if layer.activation else []:
            placed = schedule.ops[first]
            end = placed.start + graph.duration(first, placed.device)
            assert schedule.ops[second] == Placed(placed.device, end)


def test_pipedream_cuts_between_layers_and_intra_layer_between_ops() -> None:
    """F, W of n1 take 1, F, I, W of n2 take 4.

    Layers: 2 | 12. Ops: F1 W1 F2 | I2 W2 with loads 6 | 8.
    """
    graph = chain(1, 4)
    assert pipedream(graph).period == 12
    schedule = layerpipe_intra(graph)
    assert schedule.period == 8
    assert devices(schedule) == {
        "Fn1": "d0",
        "Wn1": "d0",
        "Fn2": "d0",
        "In2": "d1",
        "Wn2": "d1",
    }


def test_inter_layer_moves_half_of_i_to_the_layer_before() -> None:
    """All ops take 4, I in halves: F1 W1 I2.1 | F2 W2 I2.0 with loads 10 | 10.

    Without division 12 | 8 is best.
    """
    graph = chain(4, 4, split={"I": 2})
    assert layerpipe_intra(graph).period == 12
    schedule = layerpipe_inter(graph)
    assert schedule.period == 10
    assert devices(schedule)["In2.1"] == "d0"
    assert devices(schedule)["In2.0"] == "d1"
    assert layerpipe(graph).ops == schedule.ops


def test_on_a_dag_the_second_part_of_i_goes_with_the_latest_predecessor() -> None:
    """n2 and n3 read n1, n4 reads both; F, I, W take 2, those of n4 take 6.

    F1 W1 I2.1 I3.1 F2 W2 I2.0 F3 | W3 I3.0 I4.1 F4 | W4 I4.0: loads 13, 12, 9, which
    no other cut beats; with I4.1 after n2 the least would be 14.
    """
    graph = network(
        {"cost": 2},
        {"cost": 2},
        {"cost": 2, "inputs": ["n1"]},
        {"cost": 6, "inputs": ["n2", "n3"]},
        split={"I": 2},
        devices=3,
    )
    schedule = layerpipe_inter(graph)
    assert schedule.period == 13
    found = devices(schedule)
    assert found["In2.1"] == found["In3.1"] == found["Fn1"] == "d0"
    assert found["In4.1"] == found["Wn3"] == "d1"
    assert found["In4.0"] == "d2"


def test_pipedream_cuts_across_the_branches_of_a_dag() -> None:
    """n2 and n3 read n1; loads 2, 6, 3. {n1, n3} | {n2} has 5 | 6, no prefix has.

    In topological order 8 | 3 is best.
    """
    graph = network({"cost": 1}, {"cost": 2}, {"cost": 1, "inputs": ["n1"]})
    schedule = pipedream(graph)
    assert schedule.period == 6
    assert devices(schedule)["Fn3"] == devices(schedule)["Fn1"] == "d0"
    assert devices(schedule)["Fn2"] == "d1"


def test_pipedream_keeps_to_one_topological_order_where_a_dag_is_too_wide() -> None:
    """Fourteen branches have over 16,000 down-sets. Loads 2 and 14 times 3: 23 | 21."""
    branches = [{"cost": 1, "inputs": ["n1"]} for _ in range(14)]
    graph = network({"cost": 1}, *branches)
    schedule = pipedream(graph)
    assert schedule.period == 23
    assert devices(schedule)["Fn8"] == "d0"
    assert devices(schedule)["Fn9"] == "d1"


def test_pipedream_uses_no_more_stages_than_it_needs() -> None:
    """Loads 2, 3 and 30 on four devices: the long layer alone makes the period."""
    schedule = pipedream(chain(1, 1, 10, devices=4))
    assert schedule.period == 30
    assert set(devices(schedule).values()) == {"d0", "d1"}


def test_pipedream_charges_a_cut_twice_the_transfer() -> None:
    """Loads 4, 6, 6: cut after n2 (10 | 6), unless its output takes too long to send.

    Sent in 6 ticks it would cost 12, no less than the loads 4 | 12 of the other cut,
    which is earlier.
    """
    for size, period in ((4, 10), (5, 10), (6, 12), (100, 12)):
        layers = [{"cost": 2}, {"cost": 2, "output": size}, {"cost": 2}]
        graph = network(*layers, link={"units_per_tick": 1})
        assert pipedream(graph).period == period


def test_unequal_devices_get_pieces_in_their_order() -> None:
    """F1 W1 take 6 ticks of d0; the rest, 18, takes 6 of d1, three times as fast."""
    graph = chain(3, 6, devices=[{"id": "d0"}, {"id": "d1", "speed": 3}])
    for method in (pipedream, layerpipe_intra):
        schedule = method(graph)
        assert schedule.period == 6
        assert devices(schedule)["Fn2"] == "d1"


def test_a_limit_of_staleness_raises_the_period_to_what_it_allows() -> None:
    """No staleness: F1, F2, I2, then W1 and W2 at once, 4 ticks an iteration."""
    graph = chain(1, 1).with_delay_max(1)
    schedule = pipedream(graph)
    assert verify(graph, schedule) == ()
    assert schedule.period == 4
    assert pipedream(chain(1, 1)).period == 3


def test_pieces_keep_colocated_ops_together() -> None:
    graph = chain(2, 2, 2, devices=3)
    pair = (OpId("Fn1"), OpId("Wn2"))
    for method in (pipedream, layerpipe_intra):
        free = devices(method(graph))
        assert free["Fn1"] != free["Wn2"]
        schedule = method(graph.replace(colocate=(pair,)))
        assert devices(schedule)["Fn1"] == devices(schedule)["Wn2"]


def test_fused_backwards_and_updates_follow_their_layer() -> None:
    layers = [{"cost": 2, "update": 1}, {"cost": 2, "update": 1}]
    training = {"fuse_backward": True}
    graph = network(*layers, training=training)
    for method in (pipedream, layerpipe_intra):
        schedule = method(graph)
        assert verify(graph, schedule) == ()
        found = devices(schedule)
        assert found["Bn2"] == found["Un2"]
    assert layerpipe_intra(graph).period == 7
    assert pipedream(graph).period == 7


def test_a_method_of_layers_refuses_what_has_none() -> None:
    for method in LAYERED:
        with pytest.raises(UnsupportedError, match="has no layer"):
            METHODS[method].function(make_graph({"A": 1}))
        with pytest.raises(UnsupportedError, match="unfolded 2 times"):
            METHODS[method].function(chain(1, 1).replace(unfolding=2))


def test_a_method_of_layers_refuses_microbatches() -> None:
    graph = chain(1, 1)
    ops = tuple(replace(op, microbatch=0) for op in graph.ops)
    with pytest.raises(UnsupportedError, match="microbatch"):
        pipedream(graph.replace(ops=ops))


def test_inter_layer_refuses_an_i_that_is_not_in_two_parts() -> None:
    with pytest.raises(UnsupportedError, match="'n2' has I in 1 parts"):
        layerpipe_inter(chain(1, 1))
    with pytest.raises(UnsupportedError, match="fused backward"):
        layerpipe_inter(chain(1, 1, training={"fuse_backward": True}))


def test_devices_allowed_against_the_order_of_layers_are_refused() -> None:
    graph = chain(1, 1)
    crossed = {"n1": (DeviceId("d1"),), "n2": (DeviceId("d0"),)}
    ops = tuple(replace(op, devices=crossed[op.layer or ""]) for op in graph.ops)
    for method in (pipedream, layerpipe_intra, layerpipe):
        with pytest.raises(UnsupportedError, match="no cut into pieces"):
            method(graph.replace(ops=ops))


def test_a_schedule_that_memory_forbids_is_not_returned() -> None:
    graph = chain(1, 1)
    limited = tuple(Device(id=d.id, memory=1) for d in graph.devices)
    for method in (pipedream, layerpipe_intra, layerpipe):
        with pytest.raises(NoScheduleError, match="memory"):
            method(graph.replace(devices=limited))


def test_transfers_leave_layerpipe_its_period_and_lengthen_delays() -> None:
    graph = chain(1, 4)
    near = layerpipe_intra(graph)
    far = layerpipe_intra(graph.replace(link=Link(latency=20)))
    assert near.period == far.period == 8
    assert sum(near.delays.values()) < sum(far.delays.values())
