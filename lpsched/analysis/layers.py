"""The layers of a training graph, read back from its labels and edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from lpsched.core.graph import Graph, Op, OpId
from lpsched.core.order import topological_order
from lpsched.errors import UnsupportedError

__all__ = ["Layer", "layers_of"]

_KINDS = ("F", "I", "W", "B", "U")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The ops of one layer, the parts of each kind in order.

    Attributes
    ----------
    name : str
        The label shared by the ops.
    predecessors : tuple of int
        Positions of the layers whose forwards this one reads, ascending.
    forward, activation, weight, fused, update : tuple of OpId
        Ops of kind F, I, W, B and U.
    """

    name: str
    predecessors: tuple[int, ...]
    forward: tuple[OpId, ...]
    activation: tuple[OpId, ...]
    weight: tuple[OpId, ...]
    fused: tuple[OpId, ...]
    update: tuple[OpId, ...]

    @property
    def backward(self) -> tuple[OpId, ...]:
        """All that follows the forward pass: I, then W or B, then U."""
        return (*self.activation, *self.weight, *self.fused, *self.update)

    @property
    def ops(self) -> tuple[OpId, ...]:
        """Every op of the layer."""
        return (*self.forward, *self.backward)


def layers_of(graph: Graph) -> tuple[Layer, ...]:
    """Read the layers of an asynchronous training graph, in topological order.

    Ops of one `layer` label make a layer; layer l precedes l' if a forward of l' reads
    a forward of l in the same iteration. Where that leaves room the order is that of
    the graph.

    Raises
    ------
    UnsupportedError
        If the graph is no training graph of layers: an op without a layer or of a
        kind other than F, I, W, B, U, a layer without F, microbatches, unfolded
        iterations, or forwards that form a cycle.
    """
    if graph.unfolding != 1:
        raise UnsupportedError(f"the graph is unfolded {graph.unfolding} times")
    if not graph.ops:
        raise UnsupportedError("the graph has no ops")
    members: defaultdict[str, list[Op]] = defaultdict(list)
    for op in graph.ops:
        members[_layer(op)].append(op)
    before = _predecessors(graph, members)
    order, cycle = topological_order(before)
    if cycle:
        text = " -> ".join((*cycle, cycle[0]))
        raise UnsupportedError(f"the layers' forwards form a cycle: {text}")
    place = {name: i for i, name in enumerate(order)}
    return tuple(
        _made(name, members[name], tuple(sorted(place[j] for j in before[name])))
        for name in order
    )


def _layer(op: Op) -> str:
    if op.microbatch is not None:
        text = f"op {op.id!r} belongs to a microbatch: the training is synchronous"
        raise UnsupportedError(f"{text}; this is for asynchronous training")
    if op.layer is None:
        raise UnsupportedError(f"op {op.id!r} has no layer")
    if op.kind not in _KINDS:
        text = f"op {op.id!r} is of kind {op.kind!r}, none of {', '.join(_KINDS)}"
        raise UnsupportedError(text)
    return op.layer


def _predecessors(
    graph: Graph, members: Mapping[str, list[Op]]
) -> Mapping[str, tuple[str, ...]]:
    forward = {op.id: op.layer for op in graph.ops if op.kind == "F" and op.layer}
    before: dict[str, dict[str, None]] = {name: {} for name in members}
    for edge in graph.edges:
        src, dst = forward.get(edge.src), forward.get(edge.dst)
        if src is not None and dst is not None and src != dst and edge.delay == 0:
            before[dst][src] = None
    return {name: tuple(names) for name, names in before.items()}


def _made(name: str, ops: list[Op], predecessors: tuple[int, ...]) -> Layer:
    def kind(letter: str) -> tuple[OpId, ...]:
        parts = [op for op in ops if op.kind == letter]
        return tuple(op.id for op in sorted(parts, key=lambda op: op.part or 0))

    if not kind("F"):
        raise UnsupportedError(f"layer {name!r} has no forward op")
    return Layer(
        name=name,
        predecessors=predecessors,
        forward=kind("F"),
        activation=kind("I"),
        weight=kind("W"),
        fused=kind("B"),
        update=kind("U"),
    )
