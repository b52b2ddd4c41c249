"""An ONNX file as plain nodes: every shape known, constants folded, weights traced."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lpsched.core.network import Shape
from lpsched.core.order import topological_order
from lpsched.errors import MissingExtraError
from lpsched.network.readers.source import MAX_NODES, FaultLog, seen

if TYPE_CHECKING:
    import onnx

__all__ = ["Attribute", "OnnxModel", "OnnxNode", "OnnxValue", "load_onnx"]

Attribute = int | str | tuple[int, ...]

#: Float data larger than this say nothing of shapes and are dropped before inference.
SMALL = 1024

#: These make numbers of a shape alone, so that they are constants once it is known.
_OF_SHAPE = frozenset({"Shape", "Size"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxValue:
    """A tensor.

    Attributes
    ----------
    shape : tuple of int or None
        None where inference does not tell.
    constant : bool
        Whether it depends on no input of the model.
    weights : mapping of str to int
        The learned initializers that a constant is made of, and their elements.
    """

    name: str
    shape: Shape | None
    constant: bool = False
    weights: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxNode:
    """A node that depends on an input of the model; an input left out is None."""

    name: str
    op: str
    inputs: tuple[OnnxValue | None, ...]
    outputs: tuple[OnnxValue, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxModel:
    """The nodes that an output depends on, in topological order.

    Attributes
    ----------
    name : str
        That of the model's graph.
    inputs : tuple of OnnxValue
        Inputs of the model that are no initializers.
    outputs : frozenset of str
        Names of the model's outputs.
    assumed : mapping of str to int
        Open dimensions that were taken as 1.
    """

    name: str
    nodes: tuple[OnnxNode, ...]
    inputs: tuple[OnnxValue, ...]
    outputs: frozenset[str]
    assumed: Mapping[str, int]


def load_onnx(data: bytes, dims: Mapping[str, int], log: FaultLog) -> OnnxModel:
    """Read a model, fix its open dimensions and infer every shape.

    Weights kept in other files are not looked for: only their shapes matter.

    Raises
    ------
    FormatError
        With every fault: no ONNX, tensors that nothing makes, a cycle.
    MissingExtraError
        The package onnx is not installed.
    """
    model = _parsed(data, log)
    if not model.graph.node:
        raise log.fail("", "the model has no nodes")
    if len(model.graph.node) > MAX_NODES:
        raise log.fail("", f"more than {MAX_NODES:,} nodes: taken for a mistake")
    if not all(isinstance(text, str) for text in _texts(model.graph)):
        raise log.fail("", "not an ONNX model: a name in it is not UTF-8 text")
    assumed = _fix_dimensions(model.graph, dims, log)
    log.check()
    _put_in_order(model.graph, log)
    log.check()
    _drop_data(model.graph)
    graph = _inferred(model, log).graph
    folder = _Folder(graph)
    nodes = [folder.fold(node) for node in graph.node]
    outputs = frozenset(value.name for value in graph.output)
    return OnnxModel(
        name=graph.name,
        nodes=_live([node for node in nodes if node is not None], outputs),
        inputs=tuple(folder.known[name] for name in _input_names(graph)),
        outputs=outputs,
        assumed=assumed,
    )


def _parsed(data: bytes, log: FaultLog) -> onnx.ModelProto:
    try:
        import onnx  # noqa: PLC0415 - optional
        from google.protobuf.message import DecodeError  # noqa: PLC0415 - its own
        from onnx.inliner import inline_local_functions  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError(package="onnx", extra="onnx") from error
    try:
        model = onnx.load_model_from_string(data)
    except DecodeError as error:
        raise log.fail("", "not an ONNX model: its protobuf is broken") from error
    return inline_local_functions(model) if model.functions else model


def _texts(graph: onnx.GraphProto) -> Iterator[object]:
    """Every name of the graph; protobuf leaves one that is no text as bytes."""
    yield graph.name
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    for value in (*graph.input, *graph.value_info, *graph.output):
        yield value.name
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (sparse.values.name for sparse in graph.sparse_initializer)


def _input_names(graph: onnx.GraphProto) -> list[str]:
    """Inputs that are no initializers (old files list those, too)."""
    given = {tensor.name for tensor in graph.initializer}
    return [value.name for value in graph.input if value.name not in given]


def _fix_dimensions(
    graph: onnx.GraphProto, dims: Mapping[str, int], log: FaultLog
) -> dict[str, int]:
    """Give open dimensions their numbers; return those taken as 1.

    A first dimension that nobody names is the batch: 1.
    """
    names = set(_input_names(graph))
    inputs = [value for value in graph.input if value.name in names]
    opened = _open_dimensions(inputs, log)
    assumed = {name: 1 for name, i in opened.items() if name not in dims and i == 0}
    for name in opened:
        if name not in dims and name not in assumed:
            log.add(f"dimension {seen(name)}", f"is open; give it with --dims {name}=N")
    for name in dims:
        if name not in opened:
            known = ", ".join(opened) or "none"
            log.add(f"dimension {seen(name)}", f"is not open here; open are: {known}")
    numbers = {**assumed, **dims}
    for value in (*inputs, *graph.value_info, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in numbers:
                dim.dim_value = numbers[dim.dim_param]
    return assumed


def _open_dimensions(
    inputs: Iterable[onnx.ValueInfoProto], log: FaultLog
) -> dict[str, int]:
    """Names of the open dimensions, and the least place of each; a name for all."""
    opened: dict[str, int] = {}
    for value in inputs:
        if not value.type.tensor_type.HasField("shape"):
            log.add(f"input {seen(value.name)}", "expected a tensor with a shape")
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_value <= 0:
                dim.dim_param = dim.dim_param or f"{value.name}.{i}"
                opened[dim.dim_param] = min(i, opened.get(dim.dim_param, i))
    return opened


def _drop_data(graph: onnx.GraphProto) -> None:
    for tensor in graph.initializer:
        if _is_float(tensor) and math.prod(tensor.dims) > SMALL:
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
            tensor.ClearField("double_data")


def _is_float(tensor: onnx.TensorProto) -> bool:
    kinds = (tensor.FLOAT, tensor.FLOAT16, tensor.BFLOAT16, tensor.DOUBLE)
    return tensor.data_type in kinds


def _inferred(model: onnx.ModelProto, log: FaultLog) -> onnx.ModelProto:
    from onnx import shape_inference  # noqa: PLC0415 - optional

    try:
        return shape_inference.infer_shapes(model, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise log.fail("", f"its shapes cannot be inferred: {first}") from error


def _put_in_order(graph: onnx.GraphProto, log: FaultLog) -> None:
    """Put the nodes in topological order; note what cannot be joined."""
    known = {value.name for value in (*graph.input, *graph.initializer)}
    known |= {sparse.values.name for sparse in graph.sparse_initializer}
    makers = _makers(graph, known, log)
    before: dict[str, list[str]] = {}
    for i, node in enumerate(graph.node):
        before[str(i)] = [str(makers[name]) for name in node.input if name in makers]
        for name in filter(None, node.input):
            if name not in makers and name not in known:
                log.add(_where(i, node), f"nothing makes its input {seen(name)}")
    for value in graph.output:
        if value.name not in makers and value.name not in known:
            log.add(f"output {seen(value.name)}", "nothing makes it")
    order, cycle = topological_order(before)
    if cycle:
        i = int(cycle[0])
        log.add(_where(i, graph.node[i]), f"is on a cycle of {len(cycle)} nodes")
    elif order != tuple(before):
        nodes = list(graph.node)
        del graph.node[:]
        graph.node.extend(nodes[int(i)] for i in order)


def _makers(graph: onnx.GraphProto, known: set[str], log: FaultLog) -> dict[str, int]:
    """Position of the node that makes each tensor."""
    makers: dict[str, int] = {}
    for i, node in enumerate(graph.node):
        for name in filter(None, node.output):
            if name in known or name in makers:
                log.add(_where(i, node), f"{seen(name)} is made more than once")
            makers[name] = i
    return makers


def _where(index: int, node: onnx.NodeProto) -> str:
    name = f" {seen(node.name)}" if node.name else ""
    return f"node {index}{name} ({node.op_type})"


class _Folder:
    """Follows values from node to node: shapes, constants, and the weights in them."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.known: dict[str, OnnxValue] = {}
        self._shapes = dict(_shapes(graph))
        self._count = 0
        for name in _input_names(graph):
            self.known[name] = OnnxValue(name=name, shape=self._shapes.get(name))
        for tensor in graph.initializer:
            learned = _is_float(tensor) and bool(tensor.dims)
            sizes = {tensor.name: math.prod(tensor.dims)} if learned else {}
            self._constant(tensor.name, tuple(tensor.dims), sizes)
        for sparse in graph.sparse_initializer:
            name, count = sparse.values.name, math.prod(sparse.values.dims)
            self._constant(name, tuple(sparse.dims), {name: count})

    def _constant(self, name: str, shape: Shape, weights: Mapping[str, int]) -> None:
        self.known[name] = OnnxValue(
            name=name, shape=shape, constant=True, weights=weights
        )

    def fold(self, node: onnx.NodeProto) -> OnnxNode | None:
        """Take in the node's outputs; return it unless they are constants."""
        self._count += 1
        inputs = tuple(self.known[name] if name else None for name in node.input)
        given = [value for value in inputs if value is not None]
        constant = node.op_type in _OF_SHAPE or all(v.constant for v in given)
        weights: dict[str, int] = {}
        for value in given if constant and node.op_type not in _OF_SHAPE else ():
            weights.update(value.weights)
        outputs = [
            OnnxValue(
                name=name,
                shape=self._shapes.get(name),
                constant=constant,
                weights=weights,
            )
            for name in filter(None, node.output)
        ]
        self.known.update({value.name: value for value in outputs})
        if constant:
            return None
        standard = node.domain in ("", "ai.onnx")
        return OnnxNode(
            name=node.name or f"{node.op_type}_{self._count}",
            op=node.op_type if standard else f"{node.domain}.{node.op_type}",
            inputs=inputs,
            outputs=tuple(outputs),
            attributes=dict(_attributes(node)),
        )


def _shapes(graph: onnx.GraphProto) -> Iterator[tuple[str, Shape]]:
    """Shapes of the tensors whose every dimension is known."""
    for value in (*graph.value_info, *graph.input, *graph.output):
        tensor = value.type.tensor_type
        if tensor.HasField("shape"):
            dims = tensor.shape.dim
            if all(dim.HasField("dim_value") for dim in dims):
                yield value.name, tuple(dim.dim_value for dim in dims)


def _attributes(node: onnx.NodeProto) -> Iterator[tuple[str, Attribute]]:
    """Integers, lists of them, and texts; nothing else changes what a node costs."""
    for attribute in node.attribute:
        if attribute.type == attribute.INT:
            yield attribute.name, attribute.i
        elif attribute.type == attribute.INTS:
            yield attribute.name, tuple(attribute.ints)
        elif attribute.type == attribute.STRING:
            yield attribute.name, attribute.s.decode("utf-8", "replace")


def _live(nodes: Iterable[OnnxNode], outputs: frozenset[str]) -> tuple[OnnxNode, ...]:
    """Leave out nodes that no output depends on."""
    wanted = set(outputs)
    live = []
    for node in reversed(list(nodes)):
        if wanted.intersection(value.name for value in node.outputs):
            live.append(node)
            wanted.update(v.name for v in node.inputs if v is not None)
    return tuple(reversed(live))
