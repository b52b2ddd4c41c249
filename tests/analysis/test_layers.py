"""Layers are read back from labels and edges, or refused with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import make_graph, make_op, make_tensor, training_chain

from lpsched.analysis.layers import layers_of
from lpsched.core.graph import Graph, Op
from lpsched.errors import UnsupportedError


def labelled(name: str, layer: str, part: int | None = None) -> Op:
    return replace(make_op(name, 1, kind=name[0]), layer=layer, part=part)


def test_a_chain_has_its_layers_in_order_with_their_ops_by_kind() -> None:
    first, second = layers_of(training_chain(2))
    assert (first.name, first.predecessors) == ("1", ())
    assert (second.name, second.predecessors) == ("2", (0,))
    assert first.ops == ("F1", "W1")
    assert (second.forward, second.activation, second.weight) == (
        ("F2",),
        ("I2",),
        ("W2",),
    )


def test_backward_is_i_then_w_or_b_then_u_with_parts_in_order() -> None:
    ops = [labelled(name, "n") for name in ("U", "W", "F")]
    ops += [labelled("I1", "n", part=1), labelled("I0", "n", part=0)]
    (layer,) = layers_of(make_graph(ops))
    assert layer.backward == ("I0", "I1", "W", "U")
    (fused,) = layers_of(make_graph([labelled(name, "n") for name in "FBU"]))
    assert fused.backward == ("B", "U")


def test_layers_follow_what_their_forwards_read_not_how_they_are_listed() -> None:
    """Listed as c, b, a; c reads a and b, a after an iteration reads c."""
    ops = [labelled(f"F{name}", name) for name in "cba"]
    tensors = [
        make_tensor("a", 1, "Fa", "Fc"),
        make_tensor("b", 1, "Fb", "Fc"),
        make_tensor("c", 1, "Fc", ("Fa", 1)),
    ]
    found = layers_of(make_graph(ops, tensors))
    assert [layer.name for layer in found] == ["b", "a", "c"]
    assert found[2].predecessors == (0, 1)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (make_graph({}), "has no ops"),
        (make_graph({"A": 1}), "'A' has no layer"),
        (make_graph([labelled("X1", "n")]), "of kind 'X'"),
        (make_graph([labelled("W1", "n")]), "'n' has no forward"),
        (make_graph([labelled("F1", "n")], unfolding=2), "unfolded 2 times"),
        (
            make_graph(
                [labelled("F1", "m"), labelled("F2", "n")],
                [make_tensor("x", 1, "F1", "F2"), make_tensor("y", 1, "F2", "F1")],
            ),
            "cycle: ",
        ),
    ],
)
def test_a_graph_without_layers_is_refused(graph: Graph, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        layers_of(graph)
