"""Small networks and instances for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lpsched.core.graph import Graph
from lpsched.core.instance import Instance
from lpsched.core.io import checked, instance_from_document, network_from_document
from lpsched.core.network import Network
from lpsched.network import compile_instance

Plain = Mapping[str, Any]


def network_of(*layers: Plain, **keys: Any) -> Network:  # noqa: ANN401 - plain data
    """Build a network from its layers as a file has them."""
    return network_from_document(network_document(*layers, **keys))


def network_document(*layers: Plain, **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    """Document of a network."""
    head = {"schema": "lpsched/network/1", "name": "net", **keys}
    return {**head, "layers": [dict(layer) for layer in layers]}


def timed(name: str, *times: int, **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a layer with the times of F, I and W given (1 each by default)."""
    forward, input_grad, weight_grad = times or (1, 1, 1)
    return {
        "name": name,
        "forward": forward,
        "input_grad": input_grad,
        "weight_grad": weight_grad,
        **keys,
    }


def instance_of(*layers: Plain, **keys: Any) -> Instance:  # noqa: ANN401 - plain data
    """Build an instance of these layers; two devices unless told otherwise."""
    document = {
        "schema": "lpsched/instance/1",
        "network": network_document(*layers, **keys.pop("network", {})),
        "devices": 2,
        **keys,
    }
    return instance_from_document(document)


def graph_of(*layers: Plain, **keys: Any) -> Graph:  # noqa: ANN401 - plain data
    """Compile an instance of these layers; a file of the graph would be accepted."""
    return checked(compile_instance(instance_of(*layers, **keys)).graph)


def uses(graph: Graph, tensor: str) -> list[str]:
    """Consumers of a tensor as text: ``F2``, ``I2.0@d2``, ``W2@1``."""
    (found,) = [t for t in graph.tensors if t.id == tensor]
    return [c.op if c.delay == 0 else f"{c.op}@{c.delay}" for c in found.consumers]


def sizes(graph: Graph) -> dict[str, int]:
    """Sizes of all tensors, in the graph's order."""
    return {tensor.id: tensor.size for tensor in graph.tensors}


def durations(graph: Graph) -> dict[str, Any]:
    """Durations of all ops, in the graph's order."""
    return {
        op.id: op.duration if isinstance(op.duration, int) else dict(op.duration)
        for op in graph.ops
    }
