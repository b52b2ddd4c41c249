"""Merged layers: which, and that the least period keeps to the proved bound."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import network_of, timed

from lpsched.core.instance import CostModel
from lpsched.core.network import Layer, Network
from lpsched.core.order import topological_order
from lpsched.errors import InstanceError
from lpsched.network import compile_network, load_shipped
from lpsched.network.chains import Piece, merged
from lpsched.network.coarsen import coarsened, with_costs

SEEDS = st.integers(0, 10**6)


def groups_of(network: Network, epsilon: Fraction = Fraction(0)) -> list[set[str]]:
    """Members of the merged layers."""
    return [set(g.members) for g in coarsened(network, epsilon=epsilon).groups]


def test_what_costs_nothing_goes_to_its_only_reader_or_its_only_input() -> None:
    """A view after a, a dropout after b; c has work of its own."""
    network = network_of(
        timed("a", 5, 5, 5, parameters=3, output=7),
        timed("view", 0, 0, 0, parameters=0, output=7),
        timed("b", 4, 4, 4, parameters=3, output=9),
        timed("drop", 0, 0, 0, parameters=0, output=8),
        timed("c", 3, 3, 3, parameters=3, output=6),
    )
    found = coarsened(network)
    assert found.loss == 0
    assert [g.members for g in found.groups] == [("a", "view"), ("b", "drop")]
    assert [layer.name for layer in found.network.layers] == ["a", "b", "c"]
    middle = found.network.layer_by_name["b"]
    assert middle.inputs == ("a",)
    assert middle.output == 8
    assert middle.parameters == 3
    assert found.hidden == 7 + 9


def test_nothing_merges_that_two_layers_read_or_that_would_close_a_cycle() -> None:
    """The zero layer z is read by two; the skip s leads round b."""
    network = network_of(
        timed("a", inputs=[]),
        timed("z", 0, 0, 0, parameters=0, inputs=["a"]),
        timed("b", inputs=["z"]),
        timed("c", inputs=["z", "b"]),
    )
    assert groups_of(network) == [{"a", "z"}]


def test_a_join_that_costs_nothing_goes_to_its_reader_not_to_one_of_its_inputs() -> (
    None
):
    """An add moved to one input might come before the other in a chain of stages."""
    network = network_of(
        timed("a", inputs=[]),
        timed("b", inputs=[]),
        timed("add", 0, 0, 0, parameters=0, inputs=["a", "b"]),
        timed("c", inputs=["add"]),
    )
    assert groups_of(network) == [{"add", "c"}]
    assert groups_of(network_of(*map(plain, network.layers[:3]))) == []


def plain(layer: Layer) -> dict[str, object]:
    """A layer as its file has it."""
    zero = layer.forward == 0
    return timed(
        layer.name, *([0, 0, 0] if zero else [1, 1, 1]), inputs=list(layer.inputs),
        **({"parameters": 0} if zero else {}),
    )  # fmt: skip


def test_light_layers_merge_where_a_loss_is_allowed() -> None:
    """A relu of 1/20 of its convolution: allowed at 5 %, not at 4 %."""
    network = network_of(
        timed("conv", 100, 100, 100, parameters=9),
        timed("relu", 5, 4, 0, parameters=0, saves="output"),
    )
    assert groups_of(network, Fraction(4, 100)) == []
    found = coarsened(network, epsilon=Fraction(5, 100))
    assert found.loss == Fraction(5, 100)
    (layer,) = found.network.layers
    assert (layer.name, layer.saves) == ("conv", "output")
    assert [layer.forward, layer.input_grad, layer.weight_grad] == [105, 104, 100]


def test_what_cannot_be_added_up_stays_as_it_is() -> None:
    """Times per device, deltas of memory, shared weights, types."""
    zero = {"forward": 0, "input_grad": 0, "weight_grad": 0, "parameters": 0}
    network = network_of(
        timed("a"),
        {**zero, "name": "b", "forward": {"d0": 0}},
        {**zero, "name": "c", "memory": {"F": 1, "I": -1}},
        timed("d"),
        timed("e", 0, 0, 0, shares="d"),
        {"name": "f", "type": "relu"},
    )
    assert groups_of(network) == []
    assert coarsened(network).network.layers == network.layers


def test_saved_inputs_inside_are_stood_for_by_the_output() -> None:
    """Inside, the norm's input is gone; outside, the first layer's input is not."""
    zero = {"forward": 0, "input_grad": 0, "weight_grad": 0, "parameters": 0}
    network = network_of(
        timed("a", parameters=1),
        {**zero, "name": "b", "saves": "input"},
        {**zero, "name": "c", "saves": "none"},
        timed("d", parameters=1, saves="none"),
    )
    saved = {x.name: x.saves for x in coarsened(network).network.layers}
    assert saved == {"a": "output", "d": "none"}
    joined = network_of(
        timed("a", inputs=[]),
        timed("b", inputs=[]),
        {**zero, "name": "c", "saves": "input", "inputs": ["a", "b"]},
        timed("d", parameters=1, saves="none"),
    )
    saved = {x.name: x.saves for x in coarsened(joined).network.layers}
    assert saved == {"a": None, "b": None, "d": "input"}


def random_dag(rng: Random) -> tuple[dict[str, Piece], dict[str, list[str]]]:
    """Up to 7 pieces, many of them light, some tied, in a random DAG."""
    names = [f"v{i}" for i in range(rng.randint(2, 7))]
    before = {
        name: [other for other in names[:i] if rng.random() < 0.4]
        for i, name in enumerate(names)
    }
    pieces = {}
    for name in names:
        tie = rng.choice([None, None, None, "t"])
        light = rng.random() < 0.5
        weights = tuple(
            Fraction(rng.randint(0, 2) if light else rng.randint(5, 20))
            for _ in range(2)
        )
        pieces[name] = Piece(weights=weights, tie=tie, free=tie is None)
    return pieces, before


def least_period(
    pieces: Mapping[str, Piece], groups: Sequence[Sequence[str]], devices: int
) -> Fraction:
    """Least largest load, each kind placed by itself, ties and groups together."""
    best = Fraction(10**9)
    for places in itertools.product(range(devices), repeat=2 * len(groups)):
        spots = [places[: len(groups)], places[len(groups) :]]
        tied = {
            spots[k][i]
            for i, group in enumerate(groups)
            for k in range(2)
            if any(pieces[name].tie for name in group)
        }
        if len(tied) > 1:
            continue
        loads = [Fraction(0)] * devices
        for k in range(2):
            for i, group in enumerate(groups):
                loads[spots[k][i]] += sum(pieces[name].weights[k] for name in group)
        best = min(best, max(loads))
    return best


@given(SEEDS, st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 2)]))
@settings(deadline=None, max_examples=60)
def test_the_least_period_of_free_placements_keeps_to_the_bound(
    seed: int, epsilon: Fraction
) -> None:
    rng = Random(seed)
    pieces, before = random_dag(rng)
    pieces = dict(itertools.islice(pieces.items(), 5))
    groups = merged(pieces, {n: before[n] for n in pieces}, epsilon=epsilon)
    fine = least_period(pieces, [[name] for name in pieces], 2)
    coarse = least_period(pieces, [g.members for g in groups], 2)
    loss = max(g.loss for g in groups)
    assert loss <= epsilon
    assert fine <= coarse <= (1 + loss) * fine


def least_chain(
    pieces: Mapping[str, Piece],
    before: Mapping[str, Sequence[str]],
    groups: Sequence[Sequence[str]],
    stages: int,
) -> Fraction:
    """Least largest stage over chains of down-sets, groups and ties together."""
    best = Fraction(10**9)
    for places in itertools.product(range(stages), repeat=len(groups)):
        at = {n: places[i] for i, group in enumerate(groups) for n in group}
        ordered = all(at[u] <= at[v] for v in at for u in before[v])
        tied = {at[n] for n in at if pieces[n].tie}
        if ordered and len(tied) <= 1:
            loads = [Fraction(0)] * stages
            for name, stage in at.items():
                loads[stage] += sum(pieces[name].weights)
            best = min(best, max(loads))
    return best


@given(SEEDS, st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 2)]))
@settings(deadline=None, max_examples=100)
def test_the_least_period_of_stages_keeps_to_the_bound(
    seed: int, epsilon: Fraction
) -> None:
    pieces, before = random_dag(Random(seed))
    groups = merged(pieces, before, epsilon=epsilon)
    fine = least_chain(pieces, before, [[name] for name in pieces], 3)
    coarse = least_chain(pieces, before, [g.members for g in groups], 3)
    assert fine <= coarse <= (1 + max(g.loss for g in groups)) * fine


@given(SEEDS)
@settings(deadline=None, max_examples=200)
def test_merging_leaves_a_dag_and_nothing_that_could_still_merge(seed: int) -> None:
    pieces, before = random_dag(Random(seed))
    groups = merged(pieces, before)
    heart_of = {n: g.heart for g in groups for n in g.members}
    assert sorted(heart_of) == sorted(pieces)
    inputs = {
        g.heart: [
            heart_of[u] for v in g.members for u in before[v] if heart_of[u] != g.heart
        ]
        for g in groups
    }
    order, cycle = topological_order(inputs)
    assert not cycle
    assert order == tuple(g.heart for g in groups)
    again = {
        g.heart: Piece(
            weights=tuple(
                sum((pieces[n].weights[k] for n in g.members), Fraction(0))
                for k in range(2)
            ),
            tie=next((pieces[n].tie for n in g.members if pieces[n].tie), None),
            free=all(pieces[n].free for n in g.members),
        )
        for g in groups
    }
    assert len(merged(again, inputs)) == len(groups)


def test_merging_is_quick_for_stars_and_long_chains() -> None:
    """Twenty thousand nodes each; a quadratic way would not come back."""
    count = 20_000
    zero = Piece(weights=(Fraction(0),))
    names = [f"v{i}" for i in range(count)]
    chain = {name: [names[i - 1]] if i else [] for i, name in enumerate(names)}
    star = {name: [] if i < count - 1 else names[:-1] for i, name in enumerate(names)}
    for before in (chain, star):
        assert len(merged(dict.fromkeys(names, zero), before)) == 1
    one = Piece(weights=(Fraction(1),))
    assert len(merged(dict.fromkeys(names, one), star)) == count


def test_a_typed_network_can_be_given_its_costs() -> None:
    """Same graph in every duration and size, but for what only shapes tell."""
    network = load_shipped("resnet18")
    priced = with_costs(network, CostModel(model="macs"))
    assert all(layer.type is None for layer in priced.layers)
    before = compile_network(network, devices=2).graph
    after = compile_network(priced, devices=2).graph
    assert before == after


def test_a_coarse_network_compiles_to_the_same_work() -> None:
    network = with_costs(load_shipped("resnet18"), CostModel(model="macs"))
    coarse = coarsened(network).network
    assert (len(network.layers), len(coarse.layers)) == (51, 28)
    assert coarse.layers[0].input_grad is None
    totals = [
        sum(op.duration for op in compile_network(net, devices=1).graph.ops
            if isinstance(op.duration, int))
        for net in (network, coarse)
    ]  # fmt: skip
    assert totals[0] == totals[1]


def test_faults_of_shapes_come_before_costs() -> None:
    network = network_of({"name": "a", "type": "linear", "out": 3})
    with pytest.raises(InstanceError, match=r"layers\[0\]"):
        with_costs(network, CostModel(model="macs"))
