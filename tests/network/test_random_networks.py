"""Random DAGs compile to exactly the edges that formats.md lists, one rule a loop."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import graph_of

from lpsched.core.graph import Graph
from lpsched.core.order import topological_order


@dataclass(frozen=True)
class Case:
    """Layers as a file has them, and the regime."""

    layers: list[dict[str, Any]]
    split: dict[str, int]
    fused: bool


def random_case(seed: int) -> Case:
    """Up to seven layers of any kind, each reading any earlier ones."""
    rng = Random(seed)
    layers: list[dict[str, Any]] = []
    for i in range(rng.randint(1, 7)):
        names = [layer["name"] for layer in layers]
        layer: dict[str, Any] = {
            "name": f"n{i}",
            "inputs": rng.sample(names, rng.randint(0, min(2, i))),
            "forward": rng.randint(0, 9),
            "output": rng.randint(0, 9),
            "saves": rng.choice(["input", "output", "both", "none"]),
            "trainable": rng.random() < 0.8,
            "parameters": rng.choice([0, 3, 8]),
        }
        owners = [x["name"] for x in layers if "shares" not in x and x["trainable"]]
        if owners and layer["trainable"] and rng.random() < 0.2:
            layer["shares"] = rng.choice(owners)
            del layer["parameters"]
        elif rng.random() < 0.3:
            layer["update"] = rng.randint(0, 3)
        layers.append(layer)
    split = {kind: rng.randint(1, 3) for kind in "FIW"}
    fused = rng.random() < 0.3
    if fused:
        split |= {"I": 1, "W": 1}
    return Case(with_times(layers, rng), split, fused)


def with_times(layers: list[dict[str, Any]], rng: Random) -> list[dict[str, Any]]:
    """Give I and W a time where they must exist, some I where it need not."""
    needed: set[str] = set()
    for layer in layers:
        learns = layer["trainable"] and parameters(layers, layer) > 0
        below = not needed.isdisjoint(layer["inputs"])
        if below or rng.random() < 0.1:
            layer["input_grad"] = rng.randint(0, 9)
        if learns:
            layer["weight_grad"] = rng.randint(0, 9)
        if below or learns:
            needed.add(layer["name"])
    return layers


def parameters(layers: list[dict[str, Any]], layer: dict[str, Any]) -> int:
    """Count the parameters of a layer, or of the one whose weights it uses."""
    by_name = {x["name"]: x for x in layers}
    return int(by_name[layer.get("shares", layer["name"])]["parameters"])


Edges = set[tuple[str, str, int | str]]


def ops(case: Case, kind: str, name: str) -> list[str]:
    """Ids of the ops of one kind of a layer."""
    (layer,) = [layer for layer in case.layers if layer["name"] == name]
    if kind != "F" and {"I": "input_grad", "W": "weight_grad"}[kind] not in layer:
        return []
    if case.fused and kind != "F":
        return [f"B{name}"]
    parts, plain = case.split[kind], f"{kind}{name}"
    return [plain] if parts == 1 else [f"{plain}.{i}" for i in range(parts)]


def product(sources: list[str], targets: list[str], delay: int | str = 0) -> Edges:
    """Every source to every target."""
    return {(u, v, delay) for u in sources for v in targets}


def data_edges(case: Case) -> Edges:
    """Uses of activations and of their gradients, from the sentences of the format."""
    edges: Edges = set()
    for layer in case.layers:
        n = layer["name"]
        after = [k for k in case.layers if n in k["inputs"]]
        backward = ops(case, "I", n) + ops(case, "W", n)
        if not after or layer["saves"] in ("output", "both"):
            edges |= product(ops(case, "F", n), backward)
        for k in after:
            name = k["name"]
            users = ops(case, "F", name) + ops(case, "W", name)
            if k["saves"] in ("input", "both"):
                users += ops(case, "I", name)
            edges |= product(ops(case, "F", n), users)
            edges |= product(ops(case, "I", name), backward)
    return edges


def weight_edges(case: Case) -> Edges:
    """Uses of weights and of their gradients."""
    edges: Edges = set()
    for layer in case.layers:
        if "weight_grad" not in layer:
            continue
        n = layer["name"]
        owner = layer.get("shares", n)
        (owning,) = [x for x in case.layers if x["name"] == owner]
        updated = "update" in owning
        makers = [f"U{owner}"] if updated else ops(case, "W", owner)
        if updated or owner != n:
            edges |= product(ops(case, "W", n), makers)
        users = ops(case, "F", n) + ops(case, "I", n)
        edges |= product(makers, users, f"d{owner}")
        edges |= {(maker, maker, 1) for maker in makers}
    return edges


def found_edges(graph: Graph) -> Edges:
    """Producer, consumer and delay of every use."""
    return {(e.src, e.dst, e.delay) for e in graph.edges}


@settings(deadline=None, max_examples=300)
@given(seed=st.integers(0, 10**9))
def test_a_random_network_has_exactly_the_edges_of_the_format(seed: int) -> None:
    case = random_case(seed)
    graph = graph_of(
        *case.layers,
        training={"split": case.split, "fuse_backward": case.fused},
    )
    assert found_edges(graph) == data_edges(case) | weight_edges(case)
    assert order_exists(graph)
    assert sums_are_kept(case, graph)


def order_exists(graph: Graph) -> bool:
    """Tell whether the edges without delay leave an order to run in."""
    before: dict[str, list[str]] = {op.id: [] for op in graph.ops}
    for edge in graph.edges:
        if edge.delay == 0:
            before[edge.dst].append(edge.src)
    return not topological_order(before)[1]


def sums_are_kept(case: Case, graph: Graph) -> bool:
    """Tell whether parts add up: times per kind, sizes of activations and weights."""
    keys = {"F": "forward", "I": "input_grad", "W": "weight_grad"}
    times = 0
    for layer in case.layers:
        times += sum(layer.get(key, 0) for key in keys.values())
        if "weight_grad" in layer:
            times += layer.get("update", 0)
    weights = sum(
        layer.get("parameters", 0) for layer in case.layers if "weight_grad" in layer
    )
    activations = sum(layer["output"] for layer in case.layers)
    return (
        sum(graph.duration(op.id, None) for op in graph.ops) == times
        and sum(t.size for t in graph.tensors if t.id[0] == "w") == weights
        and sum(t.size for t in graph.tensors if t.id[0] == "a") == activations
    )
