"""What ONNX operators cost: their matrix products, and what their gradients keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from lpsched.core.network import Product, Saves, Shape
from lpsched.network.readers.onnx_model import OnnxNode, OnnxValue

__all__ = [
    "MisfitError",
    "is_known",
    "is_view",
    "learned_inputs",
    "products",
    "saved",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VIEWS = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})

#: Operators without a matrix product, by what their activation gradient keeps.
_FREE: Mapping[Saves, frozenset[str]] = {
    "none": _VIEWS
    | _words(
        """
        Add And ArgMax ArgMin AveragePool Bernoulli BitShift Cast CastLike Ceil
        Compress Concat CumSum DepthToSpace DequantizeLinear Dropout Equal Expand
        EyeLike Floor Gather GatherElements GatherND GlobalAveragePool Greater
        GreaterOrEqual IsInf IsNaN Less LessOrEqual Mean Neg NonZero Not OneHot Or Pad
        QuantizeLinear DynamicQuantizeLinear RandomNormalLike RandomUniformLike Range
        ReduceMean ReduceSum Resize ReverseSequence Round ScatterElements ScatterND
        Shrink Sign Slice SpaceToDepth Split Sub Sum Tile TopK Transpose Trilu Unique
        Upsample Where Xor CenterCropPad AffineGrid
        """
    ),
    "input": _words(
        """
        Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization Celu Clip Cos Cosh Div
        Elu Erf Gelu GridSample GroupNormalization HardSigmoid HardSwish
        InstanceNormalization LRN LayerNormalization Log LpNormalization
        MeanVarianceNormalization Mish Mod Mul PRelu Pow RMSNormalization ReduceL1
        ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ReduceSumSquare RoiAlign
        RotaryEmbedding Selu Sin Sinh Softplus Softsign Swish Tan ThresholdedRelu
        """
    ),
    "output": _words(
        """
        Exp Hardmax LeakyRelu LogSoftmax Reciprocal Relu Sigmoid Softmax Sqrt Tanh
        """
    ),
    "both": _words(
        """
        GlobalLpPool GlobalMaxPool LpPool Max MaxPool Min ReduceMax ReduceMin
        """
    ),
}

#: Statistics that are gathered, not learned: their places among the inputs.
_GATHERED: Mapping[str, tuple[int, ...]] = {"BatchNormalization": (3, 4)}

_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})


_MISFIT = "its inputs do not fit the operator"


class MisfitError(ValueError):
    """A node whose inputs do not fit its operator, or have no known shape."""


def is_known(node: OnnxNode) -> bool:
    """Tell whether a node's cost is known."""
    if node.op == "Einsum":
        return _terms(node) is not None
    return node.op in _PRODUCTS or any(node.op in names for names in _FREE.values())


def is_view(node: OnnxNode) -> bool:
    """Tell whether a node only names elements anew."""
    return node.op in _VIEWS


def saved(node: OnnxNode) -> Saves | None:
    """What the activation gradient of a node needs back; None if it is not known.

    A product of activations needs both of them, one with weights nothing.
    """
    if node.op in _RECURRENT:
        return "both"
    if node.op in _PRODUCTS:
        learned = any(value is not None and value.constant for value in node.inputs)
        return "none" if learned else "input"
    return next((kind for kind, ops in _FREE.items() if node.op in ops), None)


def learned_inputs(node: OnnxNode) -> dict[str, int]:
    """Return what a node learns, by name, with its elements.

    Those are the initializers in its inputs. Other constants with a dimension (files
    may keep weights in nodes) count where an operator multiplies or normalises by them.
    """
    skipped = _GATHERED.get(node.op, ())
    by_operator = node.op in _PRODUCTS or node.op.endswith("Normalization")
    found: dict[str, int] = {}
    for i, value in enumerate(node.inputs):
        if value is None or not value.constant or i in skipped:
            continue
        found.update(value.weights)
        if by_operator and value.shape and not value.weights:
            found[value.name] = math.prod(value.shape)
    return found


def products(node: OnnxNode) -> tuple[Product, ...]:
    """Matrix products of a node, the batch among their rows.

    Raises
    ------
    MisfitError
        The node's shapes are not known or do not fit its operator.
    """
    rule = _PRODUCTS.get(node.op)
    if rule is None:
        return ()
    try:
        found = rule(node)
    except MisfitError:
        raise
    except (IndexError, KeyError, ValueError, ZeroDivisionError) as error:
        raise MisfitError(_MISFIT) from error
    if any(min(p.rows, p.inner, p.columns, p.count) < 1 for p in found):
        raise MisfitError("its inputs have no elements")
    return found


def _value(node: OnnxNode, index: int) -> OnnxValue:
    value = node.inputs[index]
    if value is None:
        raise MisfitError(f"its input {index} is left out")
    return value


def _shape(node: OnnxNode, index: int) -> Shape:
    value = _value(node, index)
    if value.shape is None:
        raise MisfitError(f"the shape of its input {value.name!r} is not known")
    return value.shape


def _result(node: OnnxNode) -> Shape:
    shape = node.outputs[0].shape
    if shape is None:
        raise MisfitError(
            f"the shape of its output {node.outputs[0].name!r} is unknown"
        )
    return shape


def _number(node: OnnxNode, key: str, default: int) -> int:
    value = node.attributes.get(key, default)
    return value if isinstance(value, int) else default


def _fit(*pairs: tuple[int, int]) -> None:
    if any(a != b for a, b in pairs):
        raise MisfitError(_MISFIT)


def _conv(node: OnnxNode) -> tuple[Product, ...]:
    """By im2col: a row for each place of each sample, a product for each group."""
    samples, channels, *extents = _shape(node, 0)
    filters, window, *kernel = _shape(node, 1)
    _, _, *places = _result(node)
    groups = _number(node, "group", 1)
    _fit(
        (channels, window * groups), *((len(x), len(extents)) for x in (kernel, places))
    )
    return (
        Product(
            rows=samples * math.prod(places),
            inner=window * math.prod(kernel),
            columns=filters // groups,
            count=groups,
            weights=_value(node, 1).constant,
        ),
    )


def _conv_transpose(node: OnnxNode) -> tuple[Product, ...]:
    """The activation gradient of a convolution: each place makes a window."""
    samples, channels, *places = _shape(node, 0)
    window, filters, *kernel = _shape(node, 1)
    groups = _number(node, "group", 1)
    _fit((channels, window), (len(kernel), len(places)))
    return (
        Product(
            rows=samples * math.prod(places),
            inner=channels // groups,
            columns=filters * math.prod(kernel),
            count=groups,
            weights=_value(node, 1).constant,
        ),
    )


def _gemm(node: OnnxNode) -> tuple[Product, ...]:
    first, second = _shape(node, 0), _shape(node, 1)
    rows, inner = first[::-1] if _number(node, "transA", 0) else first
    depth, columns = second[::-1] if _number(node, "transB", 0) else second
    _fit((inner, depth))
    weights = _value(node, 0).constant or _value(node, 1).constant
    return (Product(rows=rows, inner=inner, columns=columns, weights=weights),)


def _matmul(node: OnnxNode) -> tuple[Product, ...]:
    """Weights of two dimensions take in all rows at once; else there is one a sample.

    Weights on the left are those on the right of the transposed product.
    """
    first, second = _shape(node, 0), _shape(node, 1)
    *batch, rows, inner = first if len(first) > 1 else (1, *first)
    *others, depth, columns = second if len(second) > 1 else (*second, 1)
    _fit((inner, depth))
    count = math.prod(_broadcast(batch, others))
    learned = [_value(node, i).constant for i in range(2)]
    if learned[0]:
        rows, columns, others = columns, rows, batch
    if not others:
        rows, count = rows * count, 1
    return (
        Product(
            rows=rows, inner=inner, columns=columns, count=count, weights=any(learned)
        ),
    )


def _broadcast(first: list[int], second: list[int]) -> list[int]:
    length = max(len(first), len(second))
    padded = [[1] * (length - len(x)) + x for x in (first, second)]
    return [max(a, b) for a, b in zip(*padded, strict=True)]


def _recurrent(node: OnnxNode) -> tuple[Product, ...]:
    """Inputs of all steps at once; the state step by step."""
    first = _shape(node, 0)
    steps, samples = first[1::-1] if _number(node, "layout", 0) else first[:2]
    directions, gates, width = _shape(node, 1)
    hidden = _shape(node, 2)[2]
    _fit((width, first[2]))
    return (
        Product(rows=steps * samples, inner=width, columns=gates, count=directions),
        Product(rows=samples, inner=hidden, columns=gates, count=directions * steps),
    )


def _terms(node: OnnxNode) -> tuple[list[str], str] | None:
    """Letters of the factors and of the result; None if an equation is not counted."""
    equation = str(node.attributes.get("equation", "")).replace(" ", "")
    factors, arrow, result = equation.partition("->")
    terms = factors.split(",")
    return None if "." in equation or not arrow or len(terms) > 2 else (terms, result)


def _einsum(node: OnnxNode) -> tuple[Product, ...]:
    """Of two factors: shared letters that remain count, those that go are inner."""
    terms, result = _terms(node) or ([], "")
    if len(terms) < 2:
        return ()
    extents: dict[str, int] = {}
    for i, term in enumerate(terms):
        extents.update(zip(term, _shape(node, i), strict=True))
    learned = [_value(node, i).constant for i in range(2)]
    left, right = map(set, reversed(terms) if learned[0] else terms)
    kept = set(result)

    def size(letters: set[str]) -> int:
        return math.prod(extents[letter] for letter in letters)

    return (
        Product(
            rows=size((left - right) & kept),
            inner=size((left & right) - kept),
            columns=size((right - left) & kept),
            count=size(left & right & kept),
            weights=any(learned),
        ),
    )


def _attention(node: OnnxNode) -> tuple[Product, ...]:
    """Scores and their use, a pair for each head of each sample."""
    query, key, value = (_shape(node, i) for i in range(3))
    if len(query) == 3:
        heads, kv_heads = (
            _number(node, name, 0) for name in ("q_num_heads", "kv_num_heads")
        )
        samples, rows, width = query[0], query[1], query[2] // heads
        columns, value_width = key[1], value[2] // kv_heads
    else:
        samples, heads, rows, width = query
        columns, value_width = key[2], value[3]
    return (
        Product(
            rows=rows,
            inner=width,
            columns=columns,
            count=samples * heads,
            weights=False,
        ),
        Product(
            rows=rows,
            inner=columns,
            columns=value_width,
            count=samples * heads,
            weights=False,
        ),
    )


_PRODUCTS: Mapping[str, Callable[[OnnxNode], tuple[Product, ...]]] = {
    "Attention": _attention,
    "Conv": _conv,
    "ConvInteger": _conv,
    "ConvTranspose": _conv_transpose,
    "Einsum": _einsum,
    "GRU": _recurrent,
    "Gemm": _gemm,
    "LSTM": _recurrent,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "RNN": _recurrent,
}
