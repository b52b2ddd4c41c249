"""Instance documents and the reader of any document."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lpsched.core.graph import Graph, Link
from lpsched.core.instance import (
    CostModel,
    Instance,
    Placement,
    Processor,
    Split,
    Staleness,
    Training,
)
from lpsched.core.io import instance_from_document, load_any, load_instance, parse_text
from lpsched.core.network import Network
from lpsched.errors import FormatError

NETWORK: dict[str, Any] = {
    "schema": "lpsched/network/1",
    "name": "net",
    "layers": [{"name": "a", "forward": 1}],
}
GRAPH: dict[str, Any] = {
    "schema": "lpsched/graph/1",
    "name": "graph",
    "devices": [{"id": "d0"}],
    "ops": [{"id": "x", "kind": "F", "duration": 1}],
}


def read(text: str, **more: Any) -> Instance:  # noqa: ANN401 - plain data
    """Read an instance from YAML, of a small network on two devices."""
    document = {"schema": "lpsched/instance/1", "network": NETWORK, "devices": 2}
    document |= parse_text(f"schema: lpsched/instance/1\n{text}", source="i.yaml")
    document |= more
    return instance_from_document({k: v for k, v in document.items() if v is not None})


def faults(text: str, **more: Any) -> dict[str, str]:  # noqa: ANN401 - plain data
    """Faults of an instance by path."""
    with pytest.raises(FormatError) as caught:
        read(text, **more)
    return {fault.path: fault.message for fault in caught.value.faults}


def test_an_instance_needs_little_and_has_the_defaults_of_the_format() -> None:
    instance = read("")
    assert instance.name == "net"
    assert [device.id for device in instance.devices] == ["d0", "d1"]
    assert instance.costs == CostModel()
    assert instance.training == Training()
    assert instance.placement == Placement()
    assert instance.objective == ("period", "communication", "staleness")
    assert instance.period_slack == 0
    assert instance.max_period is None


def test_every_key_is_read() -> None:
    instance = read("""
name: inst
origin: here
devices:
  - {id: fast, speed: "3/2", memory: 100}
  - {id: slow}
link: {latency: 1, units_per_tick: 4}
links: [{src: fast, dst: slow, latency: 3}]
costs: {model: given, tick: 0.001, size_tick: 1000, rounding: up, least: 2, saves: none}
training: {split: {F: 2, I: 3}, staleness: {max: 4}, flush: true}
placement: {rule: free, pins: {a: slow}, colocate: [[a, a]]}
objective: [communication, period]
period_slack: 0.02
max_period: 99
known: {period: {value: 8, bound: 7, proof: resource, method: list, seconds: 0.5}}
""")
    assert (instance.name, instance.origin) == ("inst", "here")
    assert instance.devices[0] == Processor(
        id=instance.devices[0].id, speed=Fraction(3, 2), memory=100
    )
    assert [d.id for d in instance.devices] == ["fast", "slow"]
    assert instance.link == Link(latency=1, units_per_tick=4)
    assert list(instance.links.values()) == [Link(latency=3, units_per_tick=4)]
    assert instance.costs == CostModel(
        model="given",
        tick=Fraction(1, 1000),
        size_tick=Fraction(1000),
        rounding="up",
        least=2,
        saves="none",
    )
    assert instance.training == Training(
        split=Split(forward=2, input_grad=3, weight_grad=1),
        staleness=Staleness(most=4),
        flush=True,
    )
    assert instance.placement.pins == {"a": "slow"}
    assert instance.placement.colocate == (("a", "a"),)
    assert instance.objective == ("communication", "period")
    assert instance.period_slack == Fraction(1, 50)
    assert instance.max_period == 99
    known = instance.known["period"]
    assert (known.value, known.bound, known.proof) == (8, 7, "resource")
    assert (known.method, known.seconds) == ("list", 0.5)


@pytest.mark.parametrize(
    ("text", "staleness"),
    [
        ("{max: 2}", Staleness(most=2)),
        ("{max: null}", Staleness()),
        ("{fixed: 3}", Staleness(least=3, most=3)),
        ("{rule: layerpipe2}", Staleness(layerpipe2=True)),
        (
            "{rule: layerpipe2, groups: [[a]]}",
            Staleness(layerpipe2=True, groups=(("a",),)),
        ),
    ],
)
def test_staleness_has_three_forms(text: str, staleness: Staleness) -> None:
    instance = read(f"training: {{staleness: {text}}}")
    assert instance.training.staleness == staleness


def test_devices_may_be_counted_with_their_speed_and_memory() -> None:
    instance = read("devices: {count: 3, speed: 2, memory: 7}")
    assert [device.id for device in instance.devices] == ["d0", "d1", "d2"]
    assert {(device.speed, device.memory) for device in instance.devices} == {
        (Fraction(2), 7)
    }


def test_later_cost_models_and_synchronous_training_are_read_in_full() -> None:
    systolic = read("""
costs: {model: systolic, rows: 16, cols: 8, dataflow: {F: output, I: weight, W: input}}
training: {mode: synchronous, microbatches: 4}
placement: {rule: contiguous, stages: 2, arrangement: v}
""")
    assert systolic.costs.parameters == {
        "rows": 16,
        "cols": 8,
        "dataflow": {"F": "output", "I": "weight", "W": "input"},
    }
    assert systolic.training.mode == "synchronous"
    assert systolic.training.microbatches == 4
    assert systolic.placement.stages == 2
    roofline = read("costs: {model: roofline, peak: 1.5e3, bandwidth: 2}")
    assert roofline.costs.parameters["peak"] == 1500


def test_stages_make_the_rule_stages_unless_another_is_named() -> None:
    assert read("placement: {stages: [[a]]}").placement.rule == "stages"
    assert read("placement: {rule: free, stages: [[a]]}").placement.rule == "free"


def test_all_faults_of_an_instance_and_its_network_come_at_once() -> None:
    found = faults(
        """
devices: [{id: d0, speed: 1.5}, {id: d0}]
links: [{src: d0, dst: d9}]
costs: {model: mac, tick: 0}
training: {mode: async, split: {I: 3}, fuse_backward: true, microbatches: 3}
placement: {rule: stages, arrangement: loop}
objective: [period, perid]
known: {perid: {value: 3}}
perod_slack: 1
""",
        network={**NETWORK, "layers": [{"name": "a", "type": "linear", "ou": 3}]},
    )
    assert '"3/2"' in found["devices[0].speed"]
    assert found["devices[1].id"] == "'d0' is taken by an earlier entry"
    assert found["links[0].dst"].startswith("unknown device 'd9'")
    assert "'systolic'" in found["costs.model"]
    assert found["costs.tick"] == "expected a number > 0, got 0"
    assert "'synchronous'" in found["training.mode"]
    assert found["training.microbatches"] == "goes with `mode: synchronous`"
    assert found["training.split.I"].startswith("with `fuse_backward`")
    assert found["placement.stages"].startswith("required by `rule: stages`")
    assert "objective[1]" in found
    assert "did you mean 'period_slack'?" in found["perod_slack"]
    assert found["network.layers[0].out"] == "required, but missing"


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("devices: 0", "devices", ">= 1"),
        ("devices: []", "devices", "at least one"),
        ("devices: 1000000000", "devices", "<= 10000"),
        ("devices: [{id: a, speed: '1e99999999'}]", "devices[0].speed", "3/2"),
        ("devices: [{id: a, speed: '3/0'}]", "devices[0].speed", "3/2"),
        ("training: {split: {I: 100000}}", "training.split.I", "<= 1000"),
        ("training: {staleness: {max: 1, fixed: 1}}", "training.staleness", "exactly"),
        ("training: {staleness: {}}", "training.staleness", "exactly one"),
        (
            "training: {staleness: {max: 1, groups: [[a]]}}",
            "training.staleness",
            "`groups` goes with",
        ),
        ("costs: {model: systolic, cols: 2}", "costs.rows", "required"),
        ("costs: {model: macs, rows: 2}", "costs.rows", "unknown key"),
        ("placement: {arrangement: v}", "placement.arrangement", "goes with"),
        ("placement: {stages: []}", "placement.stages", "at least one"),
        ("objective: []", "objective", "at least one"),
        ("objective: [period, period]", "objective", "listed twice"),
        ("period_slack: -0.1", "period_slack", ">= 0"),
        ("period_slack: -1", "period_slack", "expected a number >= 0, got -1"),
        ("period_slack: '1/0'", "period_slack", 'such as "1/50"'),
        ("period_slack: '-1/2'", "period_slack", 'such as "1/50"'),
        ("costs: {tick: -3}", "costs.tick", "expected a number > 0, got -3"),
        ("costs: {tick: -0.5}", "costs.tick", "expected a number > 0, got -0.5"),
        ("max_period: 0", "max_period", ">= 1"),
        ("name: ''", "name", 'expected a string that is not empty, got ""'),
        ("costs: {tick: x}", "costs.tick", 'expected a number, got "x"'),
    ],
)
def test_bad_instances_are_refused(text: str, path: str, message: str) -> None:
    assert message in faults(text)[path]


def test_devices_that_are_null_are_missing() -> None:
    document = {"schema": "lpsched/instance/1", "network": NETWORK, "devices": None}
    with pytest.raises(FormatError, match="devices: required, but missing"):
        instance_from_document(document)


def test_a_period_slack_may_be_a_fraction() -> None:
    assert read("period_slack: '1/10'").period_slack == Fraction(1, 10)
    assert read("period_slack: '0/1'").period_slack == 0


def test_an_instance_has_a_network_or_a_graph_not_both() -> None:
    message = "expected either `network` or `graph`"
    assert faults("", graph=GRAPH)[""] == message
    assert faults("", network=None)[""] == message
    assert "devices" in faults("", devices=None)


def test_an_instance_of_a_graph_leaves_platform_and_regime_to_it() -> None:
    instance = read("", network=None, devices=None, graph=GRAPH)
    assert instance.name == "graph"
    assert isinstance(instance.graph, Graph)
    found = faults("training: {flush: true}", network=None, graph=GRAPH)
    assert found["devices"].startswith("goes with a network")
    assert found["training"].startswith("goes with a network")


def test_a_graph_where_a_network_is_wanted_is_one_fault() -> None:
    assert faults("", network=GRAPH) == {
        "network.schema": "this is a graph (lpsched/graph/1); a network is wanted"
    }


def test_paths_inside_an_instance_begin_at_its_file(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "instances").mkdir()
    network = tmp_path / "models" / "net.yaml"
    network.write_text(
        "schema: lpsched/network/1\nname: net\nlayers: [{name: a, forward: 1}]\n"
    )
    path = tmp_path / "instances" / "one.yaml"
    text = "schema: lpsched/instance/1\nnetwork: ../models/{}\ndevices: 1\n"
    path.write_text(text.format("net.yaml"))
    assert load_instance(path).network is not None

    path.write_text(text.format("gone.yaml"))
    with pytest.raises(FormatError, match=r"network \(.*gone\.yaml\): cannot be read"):
        load_instance(path)

    network.write_text("schema: lpsched/network/1\nname: net\nlayers: [{name: a}]\n")
    path.write_text(text.format("net.yaml"))
    with pytest.raises(FormatError, match=r"net\.yaml\): layers\[0\]: give the layer"):
        load_instance(path)


def test_any_document_is_read_by_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(
        "schema: lpsched/network/1\nname: net\nlayers: [{name: a, forward: 1}]\n"
    )
    assert isinstance(load_any(path), Network)
    path.write_text(
        "schema: lpsched/graph/1\nname: g\ndevices: [{id: d}]\n"
        "ops: [{id: x, kind: F, duration: 1}]\n"
    )
    assert isinstance(load_any(path), Graph)
    path.write_text(
        "schema: lpsched/instance/1\ndevices: 1\n"
        "network: {schema: lpsched/network/1, name: n, layers: [{name: a, forward: 1}]}"
    )
    assert isinstance(load_any(path), Instance)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("schema: lpsched/network/2", "did you mean 'lpsched/network/1'?"),
        ("schema: 1", "expected one of lpsched/network/1"),
        ("schema: null", "expected one of lpsched/network/1"),
        ("schema: null", "got null"),
        ("name: n", "required, but missing (one of lpsched/network/1"),
    ],
)
def test_an_unknown_schema_is_refused_with_those_known(
    tmp_path: Path, line: str, message: str
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(f"{line}\n")
    with pytest.raises(FormatError) as caught:
        load_any(path)
    (fault,) = caught.value.faults
    assert fault.path == "schema"
    assert message in fault.message
