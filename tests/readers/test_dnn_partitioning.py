"""Workloads of dnn-partitioning: every field, and optima by brute force."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpsched.core.graph import Consumer, DeviceId, Graph, Link, OpId
from lpsched.core.io import checked
from lpsched.errors import FormatError
from lpsched.network.coarsen_graph import coarsened_graph
from lpsched.network.readers import Imported, read_dnn_partitioning
from lpsched.solve import SolveParams, solve

Plain = dict[str, Any]


def node(number: int, **keys: Any) -> Plain:  # noqa: ANN401 - plain data
    """Return a node of latency 3 on an accelerator and 30 on a CPU."""
    return {
        "id": number,
        "supportedOnFpga": 1,
        "cpuLatency": 30.0,
        "fpgaLatency": 3.0,
        "isBackwardNode": 0,
        "size": 0.0,
        **keys,
    }


def edge(source: int, target: int, cost: float = 0.0) -> Plain:
    """Return an edge."""
    return {"sourceId": source, "destId": target, "cost": cost}


def document(*nodes: Plain, edges: tuple[Plain, ...] = (), **keys: Any) -> Plain:  # noqa: ANN401
    """Return a workload; two accelerators unless told otherwise."""
    head = {"maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 0, **keys}
    return {**head, "nodes": list(nodes), "edges": list(edges)}


def read(raw: Plain) -> Imported[Graph]:
    """Read a workload; a file of the graph would be accepted."""
    imported = read_dnn_partitioning(json.dumps(raw, indent=1), source="w.json")
    checked(imported.document)
    return imported


def test_a_workload_becomes_a_graph() -> None:
    """The example of the format: a forward and its backward, of one class."""
    graph = read(
        document(
            node(0, size=100.0, colorClass=0),
            node(1, fpgaLatency=5.0, isBackwardNode=True, colorClass=0),
            node(2, name="a/b"),
            edges=(edge(0, 1, 0.5), edge(1, 2, 2)),
        )
    ).document
    assert [(op.id, op.kind, op.layer) for op in graph.ops] == [
        ("node0", "F", "class0"), ("node1", "B", "class0"), ("a_b", "F", "a_b"),
    ]  # fmt: skip
    assert graph.colocate == (("node0", "node1"),)
    assert [op.duration for op in graph.ops] == [3, 5, 3]
    assert [(t.producer, t.size) for t in graph.tensors] == [("node0", 1), ("node1", 4)]
    assert graph.device_ids == ("fpga0", "fpga1")
    assert graph.devices[0].memory is None


def test_a_transfer_is_paid_at_both_ends() -> None:
    """Cost 7: 14 ticks from accelerator to accelerator, 7 to a CPU, none among CPUs."""
    raw = document(node(0), node(1), edges=(edge(0, 1, 7),), maxCPUs=2)
    graph = read(raw).document
    (tensor,) = graph.tensors
    fpga0, fpga1, cpu0, cpu1 = graph.device_ids
    assert graph.transfer_ticks(tensor, fpga0, fpga1) == 14
    assert graph.transfer_ticks(tensor, fpga0, cpu1) == 7
    assert graph.transfer_ticks(tensor, cpu0, fpga1) == 7
    assert graph.transfer_ticks(tensor, cpu0, cpu1) == 0
    assert graph.link_between(cpu1, cpu0) == Link()


def test_latencies_differ_by_kind_of_device() -> None:
    nodes = (node(0), node(1, supportedOnFpga=False))
    graph = read(document(*nodes, maxCPUs=1)).document
    assert graph.ops[0].duration == {"fpga0": 3, "fpga1": 3, "cpu0": 30}
    assert graph.ops[0].devices is None
    assert graph.ops[1].duration == 30
    assert graph.ops[1].devices == ("cpu0",)
    alone = read(document(*nodes, maxFPGAs=0, maxCPUs=2)).document
    assert [op.duration for op in alone.ops] == [30, 30]
    assert alone.ops[1].devices is None


def test_latencies_are_scaled_to_ticks_by_a_power_of_ten() -> None:
    """Thousandths write 0.125 and 1.5 exactly; a third is cut where 10^9 end."""
    imported = read(document(node(0, fpgaLatency=0.125), node(1, fpgaLatency=1.5)))
    assert [op.duration for op in imported.document.ops] == [125, 1500]
    assert imported.document.time_unit == "0.001 unit"
    assert not any("rounding" in remark for remark in imported.remarks)
    third = read(document(node(0, fpgaLatency=1 / 3), node(1, fpgaLatency=2)))
    assert third.document.ops[0].duration == 33_333_333
    assert "rounding of latencies: at most 3.33333e-09" in third.remarks[1]


def test_memory_is_limited_only_where_it_can_run_out() -> None:
    """60 and 40 fill an accelerator of 100 to the byte; 60 and 40.5 do not fit."""
    small = read(document(node(0, size=60), node(1, size=40)))
    assert small.document.devices[0].memory is None
    assert "memory is not limited" in small.remarks[-1]
    assert period(document(*sized(60, 60, 40), edges=(edge(0, 2, 1000),))) == 6
    assert period(document(*sized(60, 60, 40.5))) is None
    assert period(document(*sized(60, 60, 40.5), maxFPGAs=3)) == 3


def test_a_node_larger_than_an_accelerator_goes_to_a_cpu() -> None:
    assert period(document(*sized(1e14), maxSizePerFPGA=7.5)) is None
    assert period(document(*sized(1e14), maxSizePerFPGA=0.0, maxCPUs=1)) == 30


def sized(*sizes: float) -> list[Plain]:
    """Nodes of these sizes."""
    return [node(i, size=size) for i, size in enumerate(sizes)]


def period(raw: Plain) -> Fraction | None:
    """Least period in the file's unit; None if there is no schedule."""
    return least(read(raw).document)


def least(graph: Graph) -> Fraction | None:
    """Least period of a graph in the unit of its file; None if there is none."""
    answer = solve(graph, SolveParams(objective=("period",)))
    if answer.schedule is None:
        assert answer.result.status == "infeasible"
        return None
    assert answer.result.status == "optimal"
    return answer.schedule.period * tick(graph)


def tick(graph: Graph) -> Fraction:
    """Return what one tick stands for: ``0.001 unit``."""
    number, _, _ = graph.time_unit.rpartition(" ")
    return Fraction(number or 1)


def random_workload(rng: Random) -> Plain:
    """Up to 5 nodes on up to 2 accelerators and one CPU, some tied, some too large."""
    count = rng.randint(1, 5)
    nodes = [
        node(
            i,
            fpgaLatency=rng.choice([0, 0, 1, 2.5, 4]),
            cpuLatency=rng.choice([0, 3, 8]),
            supportedOnFpga=rng.choice([1, 1, 1, 0]),
            isBackwardNode=rng.choice([0, 0, 1]),
            size=rng.choice([0, 0, 30, 60]),
            **({"colorClass": rng.randint(0, 1)} if rng.random() < 0.4 else {}),
        )
        for i in range(count)
    ]
    edges = [
        edge(i, j, rng.choice([0, 1, 0.5]))
        for j in range(count)
        for i in range(j)
        if rng.random() < 0.4
    ]
    return document(*nodes, edges=tuple(edges), maxFPGAs=rng.randint(1, 2), maxCPUs=1)


def least_by_hand(raw: Plain) -> Fraction:
    """Least largest load over every placement that the file allows."""
    devices = ["f"] * raw["maxFPGAs"] + ["c"] * raw["maxCPUs"]
    best = Fraction(10**9)
    for spots in itertools.product(range(len(devices)), repeat=len(raw["nodes"])):
        loads, sizes = [Fraction(0)] * len(devices), [0.0] * len(devices)
        classes: dict[int, set[int]] = {}
        good = True
        for found, spot in zip(raw["nodes"], spots, strict=True):
            on_fpga = devices[spot] == "f"
            good &= bool(found["supportedOnFpga"]) or not on_fpga
            loads[spot] += Fraction(found["fpgaLatency" if on_fpga else "cpuLatency"])
            sizes[spot] += found["size"] if on_fpga else 0
            if "colorClass" in found:
                classes.setdefault(found["colorClass"], set()).add(spot)
        good &= all(len(used) == 1 for used in classes.values())
        if good and max(sizes) <= raw["maxSizePerFPGA"]:
            best = min(best, max(loads))
    return best


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_the_least_period_is_the_least_max_load_without_costs(seed: int) -> None:
    """By brute force; a period is at least one tick. Coarsening changes nothing."""
    raw = random_workload(Random(seed))
    graph = read(raw).document
    expected = max(least_by_hand(raw), tick(graph))
    assert least(graph) == expected
    coarse = coarsened_graph(graph)
    assert coarse.loss == 0
    checked(coarse.graph)
    assert least(coarse.graph) == expected


def faults(raw: Plain | str) -> list[str]:
    """Faults of a workload, each with its line."""
    text = raw if isinstance(raw, str) else json.dumps(raw, indent=1)
    with pytest.raises(FormatError) as caught:
        read_dnn_partitioning(text, source="w.json")
    assert str(caught.value).startswith("w.json: ")
    return [str(fault) for fault in caught.value.faults]


TWO = (node(0), node(1))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", "line 1: not JSON"),
        ("[]", "expected a mapping"),
        ('{"nodes": [', "line 1: not JSON"),
        ('{"nodes": [],\n "maxFPGAs": NaN}', "line 2: not JSON: NaN is no number"),
        ({}, "nodes: required, but missing"),
        (document(), "nodes: expected at least one node"),
        (document(*TWO, maxFPGAs=0), "maxFPGAs: there is no device"),
        (document(*TWO, maxFPGAs=10**6), "maxFPGAs: expected an integer <= 1000"),
        (document(*TWO, maxFPGAs=1.5), "maxFPGAs: expected an integer"),
        (document(*TWO, maxSizePerFPGA=-1), "maxSizePerFPGA: expected a number >= 0"),
        (document(node(0, fpgaLatency=-1.0)), "nodes[0].fpgaLatency: expected a"),
        (document(node(0, fpgaLatency="3")), "nodes[0].fpgaLatency: expected a number"),
        (document(node(0, cpuLatency=1e300)), "nodes[0].cpuLatency: expected a"),
        (document(node(0, id="x")), "nodes[0].id: expected an integer"),
        (document(node(0, supportedOnFpga=2)), "nodes[0].supportedOnFpga"),
        (document({"id": 0}), "nodes[0].size: required, but missing"),
        ({**document(), "nodes": [node(0), 7]}, "nodes[1]: expected a mapping"),
        (document(node(0), node(0)), "nodes[1].id: 0 is the id of nodes[0] already"),
        (document(node(0, supportedOnFpga=0)), "nodes[0]: runs on CPUs only"),
        (document(*TWO, edges=(edge(0, 5),)), "edges[0].destId: no node has the id 5"),
        (document(*TWO, edges=(edge(7, 1),)), "edges[0].sourceId: no node has the id"),
        (document(*TWO, edges=(edge(1, 1),)), "edges[0]: the edges form a cycle: 1 ->"),
        (
            document(*TWO, edges=(edge(0, 1), edge(1, 0))),
            "edges[1]: the edges form a cycle: 1 -> 0 -> 1",
        ),
    ],
)
def test_a_bad_file_is_refused_with_its_place(raw: Plain | str, expected: str) -> None:
    found = faults(raw)
    assert any(expected in fault for fault in found), found


def test_a_fault_of_an_entry_names_its_line() -> None:
    """In a file of a line an entry, the second node stands in line 3."""
    good, bad = json.dumps(node(0)), json.dumps(node(1, size=-1))
    text = (
        '{"maxFPGAs": 1, "maxCPUs": 0, "maxSizePerFPGA": 1, "nodes": [\n'
        f'{good},\n{bad}],\n"edges": [\n{json.dumps(edge(0, 9))}]}}'
    )
    assert faults(text) == ["line 3, nodes[1].size: expected a number >= 0, got -1"]
    dangling = text.replace('"size": -1', '"size": 1')
    assert faults(dangling) == ["line 5, edges[0].destId: no node has the id 9"]


def test_far_too_many_nodes_or_edges_are_refused() -> None:
    (fault,) = faults(document(*[{}] * 100_001))
    assert fault == "nodes: more than 100,000: taken for a mistake"
    many = faults(document(*TWO, edges=(edge(0, 9),) * 60))
    assert len(many) == 51
    assert many[-1] == "and 10 faults more"


def test_far_too_many_pairs_of_nodes_and_devices_are_refused() -> None:
    nodes = [{**node(0), "id": i} for i in range(10_001)]
    found = faults(document(*nodes, maxFPGAs=1000))
    assert found == [
        "nodes: more than 10,000,000 pairs of a node and a device: taken for a mistake"
    ]


def test_a_graph_that_flushes_or_waits_for_other_iterations_is_left_alone() -> None:
    """Merging is proved for loads only: no flush, no delay, no lag."""
    nodes = (node(0), node(1, fpgaLatency=0))
    graph = read(document(*nodes, edges=(edge(0, 1),))).document
    assert len(coarsened_graph(graph).groups) == 1
    assert coarsened_graph(graph.replace(flush=True)).groups == ()
    (tensor,) = graph.tensors
    for use in (
        Consumer(op=OpId("node1"), delay=1),
        Consumer(op=OpId("node1"), lag=2),
    ):
        late = graph.replace(tensors=(replace(tensor, consumers=(use,)),))
        assert coarsened_graph(late).groups == ()


def test_edges_of_one_node_that_differ_count_as_the_greatest() -> None:
    nodes = (node(0), node(1), node(2))
    imported = read(document(*nodes, edges=(edge(0, 1, 1), edge(0, 2, 3))))
    assert imported.document.tensors[0].size == 6
    assert "1 nodes have edges of different cost: the greatest counts" in (
        imported.remarks
    )


def test_what_must_sit_together_merges_and_what_may_not_stays() -> None:
    """Chain 0 -> 1 -> 2 -> 3: 0 and 1 tied, 2 costs nothing, 3 is a backward."""
    raw = document(
        node(0, colorClass=5),
        node(1, colorClass=5),
        node(2, fpgaLatency=0, cpuLatency=0),
        node(3, isBackwardNode=1, fpgaLatency=0, cpuLatency=0),
        node(4, size=7, fpgaLatency=0, cpuLatency=0),
        edges=(edge(0, 1, 2), edge(1, 2, 3), edge(2, 3, 4), edge(2, 4, 4)),
        maxCPUs=1,
    )
    graph = read({**raw, "maxSizePerFPGA": 5}).document
    found = coarsened_graph(graph)
    assert [set(group.members) for group in found.groups] == [
        {"node0", "node1", "node2"}
    ]
    merged, backward, sized_one = found.graph.ops
    assert merged.duration == {
        DeviceId(d): 60 if d == "cpu0" else 6 for d in ids(graph)
    }
    assert (backward.id, sized_one.id) == ("node3", "node4")
    assert [(t.producer, t.size) for t in found.graph.tensors] == [(merged.id, 8)]
    assert found.graph.colocate == ()


def ids(graph: Graph) -> tuple[str, ...]:
    """Ids of the devices."""
    return tuple(graph.device_ids)
