"""Random training graphs with every feature that the layered methods may meet."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from lpsched.core.graph import Delay, Dependence, Device, Graph, Link, Op
from lpsched.core.io import checked, instance_from_document
from lpsched.network import compile_instance

__all__ = ["random_training_graph"]


def random_training_graph(seed: int) -> Graph:
    """Compile a random DAG of up to six layers under a random regime.

    Parts, fused backwards, updates, layers that cost or learn nothing, tied weights;
    devices of unequal speed and memory, links, limits of delays, pinned and
    colocated ops, ops without a device, lags, flush.
    """
    rng = Random(seed)
    fuse = rng.random() < 0.2
    split = {"F": rng.choice([1, 1, 2]), "I": rng.choice([1, 2, 2, 3])}
    split["W"] = rng.choice([1, 1, 2])
    training: dict[str, Any] = {"fuse_backward": fuse}
    if not fuse:
        training["split"] = split
    if rng.random() < 0.4:
        training["staleness"] = {"max": rng.randint(0, 6)}
    document = {
        "schema": "lpsched/instance/1",
        "network": {
            "schema": "lpsched/network/1",
            "name": f"random{seed}",
            "layers": _layers(rng),
        },
        "devices": [
            {"id": f"d{i}", "speed": rng.choice([1, 1, 1, 2, "3/2"])}
            for i in range(rng.randint(1, 4))
        ],
        "training": training,
    }
    graph = compile_instance(instance_from_document(document)).graph
    return checked(_varied(graph, rng))


def _layers(rng: Random) -> list[dict[str, Any]]:
    """A chain, or a DAG of which each layer reads up to two earlier ones."""
    chain = rng.random() < 0.5
    layers: list[dict[str, Any]] = []
    learning: set[str] = set()  # trainable, or with such a layer before
    for i in range(rng.randint(1, 6)):
        before = [f"n{j}" for j in range(i)]
        inputs = before[-1:] if chain else rng.sample(before, min(i, 2))
        layer: dict[str, Any] = {
            "name": f"n{i}",
            "inputs": inputs,
            "forward": rng.choice([0, 1, 2, 5, 9]),
            "output": rng.randint(0, 9),
            "parameters": rng.choice([0, 3, 8]),
        }
        if layer["parameters"]:
            layer["weight_grad"] = rng.randint(0, 9)
            layer |= {"update": rng.randint(0, 3)} if rng.random() < 0.3 else {}
        if learning & set(inputs):
            layer["input_grad"] = rng.randint(0, 9)
        if layer["parameters"] or "input_grad" in layer:
            learning.add(layer["name"])
        layers.append(layer)
    return layers


def _varied(graph: Graph, rng: Random) -> Graph:
    """Add what an instance of a network does not state."""
    changes: dict[str, Any] = {}
    if rng.random() < 0.5:
        latency, rate = rng.randint(0, 3), rng.choice([None, 1, 4])
        changes["link"] = Link(latency=latency, units_per_tick=rate)
    if rng.random() < 0.2:
        ids = [(p, q) for p in graph.device_ids for q in graph.device_ids if p != q]
        changes["links"] = {pair: Link(latency=rng.randint(0, 5)) for pair in ids[:2]}
    if rng.random() < 0.2:
        pair = tuple(op.id for op in rng.sample(graph.ops, min(2, len(graph.ops))))
        changes["colocate"] = (pair,)
    if rng.random() < 0.2:
        changes["ops"] = tuple(_restricted(op, graph, rng) for op in graph.ops)
        changes["colocate"] = ()
    if rng.random() < 0.2:
        forward, backward = graph.ops[0].id, graph.ops[-1].id
        changes["dependences"] = (
            Dependence(src=forward, dst=backward, delay=1, lag=4),
        )
    if rng.random() < 0.3:
        changes["delays"] = {
            name: Delay(min=min(2, delay.max or 2), max=delay.max)
            for name, delay in graph.delays.items()
        }
    if rng.random() < 0.3:
        changes["devices"] = tuple(
            Device(id=d.id, memory=rng.randint(20, 90)) for d in graph.devices
        )
    return graph.replace(**changes, flush=rng.random() < 0.1)


def _restricted(op: Op, graph: Graph, rng: Random) -> Op:
    """Allow some devices only, or none to an update."""
    if op.kind == "U" and isinstance(op.duration, int):
        return replace(op, devices=())
    if rng.random() < 0.2:
        return replace(op, devices=graph.device_ids[: rng.randint(1, 2)])
    return op
