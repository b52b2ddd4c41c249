"""ONNX models as networks: shapes by inference, costs by the cost model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import PurePath

from lpsched.core.network import Custom, Layer, Network, Product, Shape
from lpsched.errors import UnsupportedError
from lpsched.network.readers.onnx_model import (
    OnnxModel,
    OnnxNode,
    OnnxValue,
    load_onnx,
)
from lpsched.network.readers.onnx_operators import (
    MisfitError,
    is_known,
    is_view,
    learned_inputs,
    products,
    saved,
)
from lpsched.network.readers.source import (
    FaultLog,
    Imported,
    network_name,
    seen,
    unique_names,
)

__all__ = ["read_onnx"]


def read_onnx(
    data: bytes,
    *,
    source: str,
    dims: Mapping[str, int] | None = None,
    unknown_zero: bool = False,
) -> Imported[Network]:
    """Read an ONNX model as a network.

    - Every node that depends on an input of the model, and on which an output depends,
      is a layer: its output's shape by shape inference, its matrix products by its
      operator, so that any cost model can price it. The batch is part of the shapes, so
      the network's own batch is 1.
    - What depends on no input is a constant. Learned are the initializers of floating
      point with at least one dimension, and other constants that an operator multiplies
      or normalises by; the statistics that a normalisation gathers are not. They belong
      to the layers that read them.
    - An initializer that several layers read counts once: the first owns it, the others
      share it. A layer that reads shared and other weights is told in two: the second
      part has the weights of less size and no work.
    - An open dimension is given by `dims`; a first one that is not is the batch, 1.

    Parameters
    ----------
    data : bytes
        The file's contents; weights kept in other files are not needed.
    source : str
        Its name, for messages and for the network's name.
    dims : mapping of str to int, optional
        Open dimensions by their names (``input.0`` where the file gives none).
    unknown_zero : bool
        Take the cost of operators that are not known as zero.

    Raises
    ------
    FormatError
        With every fault of the file.
    UnsupportedError
        Operators whose cost is not known, all of them.
    MissingExtraError
        The package onnx is not installed.
    """
    log = FaultLog(source)
    model = load_onnx(data, dims or {}, log)
    if not model.nodes:
        raise log.fail("", "no output depends on an input")
    unknown = Counter(node.op for node in model.nodes if not is_known(node))
    listed = ", ".join(f"{op} ({count})" for op, count in unknown.items())
    if unknown and not unknown_zero:
        text = f"{source}: operators whose cost is not known: {listed}"
        raise UnsupportedError(f"{text}; --unknown-zero takes it as zero")
    imported = _imported(model, log)
    zero = [f"operators whose cost is taken as zero: {listed}"] if unknown else []
    return replace(imported, remarks=(*imported.remarks, *zero))


def _imported(model: OnnxModel, log: FaultLog) -> Imported[Network]:
    writer = _Writer(model, log)
    layers = tuple(writer.layers())
    log.check()
    shapes = [value.shape for value in model.inputs]
    name = PurePath(log.source).name
    network = Network(
        name=network_name(log.source),
        layers=layers,
        input=shapes[0] if len(shapes) == 1 and shapes[0] else None,
        origin=f"ONNX model {name}; the batch is part of its shapes",
    )
    remarks = [
        f"{len(model.nodes)} nodes, {writer.num_parameters} parameters",
        *(f"the open dimension {seen(n)} is taken as 1" for n in model.assumed),
    ]
    return Imported(document=network, remarks=tuple(remarks))


@dataclass(frozen=True, slots=True)
class _Part:
    """A node as a layer: all of it, or its lesser weights only."""

    node: OnnxNode
    weights: tuple[str, ...]
    is_first: bool


class _Writer:
    """Writes node after node as layers."""

    def __init__(self, model: OnnxModel, log: FaultLog) -> None:
        self._sizes: dict[str, int] = {}
        self._log = log
        self._makers: dict[str, str] = {}
        self._owners: dict[tuple[str, ...], str] = {}
        self._read = set(model.outputs)
        readers: dict[str, list[int]] = {}
        for i, node in enumerate(model.nodes):
            self._read.update(value.name for value in _given(node))
            learned = learned_inputs(node)
            self._sizes.update(learned)
            for weight in learned:
                readers.setdefault(weight, []).append(i)
        self._parts = [p for node in model.nodes for p in self._split(node, readers)]
        self.num_parameters = sum(self._sizes.values())

    def _split(
        self, node: OnnxNode, readers: Mapping[str, list[int]]
    ) -> Iterator[_Part]:
        """Part a node's weights by who else reads them, those of most size first."""
        groups: dict[tuple[int, ...], list[str]] = {}
        for weight in sorted(learned_inputs(node)):
            groups.setdefault(tuple(readers[weight]), []).append(weight)
        found = sorted(map(tuple, groups.values()), key=self._size, reverse=True)
        for i, weights in enumerate(found or [()]):
            yield _Part(node, weights, is_first=i == 0)

    def _size(self, weights: Iterable[str]) -> int:
        return sum(self._sizes[weight] for weight in weights)

    def layers(self) -> Iterator[Layer]:
        """Yield the layers of every node, in topological order; note faults."""
        names = unique_names(
            part.node.name if part.is_first else f"{part.node.name}_weights"
            for part in self._parts
        )
        above = ""
        for part, name in zip(self._parts, names, strict=True):
            makers = [self._makers.get(value.name) for value in _given(part.node)]
            inputs = [maker for maker in makers if maker] if part.is_first else [above]
            owner = self._owners.setdefault(part.weights, name)
            yield Layer(
                name=name,
                inputs=tuple(dict.fromkeys(inputs)),
                type=self._type(part),
                parameters=Fraction(self._size(part.weights)),
                saves=saved(part.node) if part.is_first else "none",
                shares=owner if part.weights and owner != name else None,
            )
            above = name
            self._makers.update({value.name: name for value in part.node.outputs})

    def _type(self, part: _Part) -> Custom:
        found: tuple[Product, ...] = ()
        if part.is_first:
            try:
                found = products(part.node)
            except MisfitError as error:
                self._log.add(_where(part.node), str(error))
        return Custom(
            shape=self._shape(part),
            parameters=self._size(part.weights),
            products=found,
            view=is_view(part.node) or not part.is_first,
        )

    def _shape(self, part: _Part) -> Shape:
        """Shape of the output; of several that are read, their elements in a row."""
        shapes = []
        for value in part.node.outputs:
            if value.name not in self._read:
                continue
            if value.shape is None:
                text = f"the shape of its output {seen(value.name)} is not known"
            elif 0 in value.shape:
                text = f"its output {seen(value.name)} has no elements"
            else:
                shapes.append(value.shape or (1,))
                continue
            if part.is_first:
                self._log.add(_where(part.node), text)
        return shapes[0] if len(shapes) == 1 else (sum(map(math.prod, shapes)),)


def _given(node: OnnxNode) -> list[OnnxValue]:
    return [value for value in node.inputs if value is not None]


def _where(node: OnnxNode) -> str:
    return f"node {seen(node.name)} ({node.op})"
