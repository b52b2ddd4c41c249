"""Costs to integers: the tick, the rule, the least, and the account of the error."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import durations, graph_of, instance_of, sizes, timed

from lpsched.core.graph import DeviceId, OpId
from lpsched.core.instance import CostModel, Instance, Processor
from lpsched.network import compile_instance, compile_network, load_shipped
from lpsched.network.ticks import Rounding, shares


def rounding_of(*layers: dict[str, Any], **keys: Any) -> Rounding:  # noqa: ANN401
    """Account of the rounding of an instance's costs."""
    rounding = compile_instance(instance_of(*layers, **keys)).rounding
    assert rounding is not None
    return rounding


def test_the_first_parts_of_a_share_get_one_more() -> None:
    assert shares(7, 3) == (3, 2, 2)
    assert shares(1, 2) == (1, 0)
    assert shares(0, 2) == (0, 0)


@given(total=st.integers(0, 10**12), parts=st.integers(1, 50))
@settings(deadline=None)
def test_shares_add_up_and_differ_by_at_most_one(total: int, parts: int) -> None:
    found = shares(total, parts)
    assert sum(found) == total
    assert found == tuple(sorted(found, reverse=True))
    assert found[0] - found[-1] <= 1


def test_whole_costs_are_exact() -> None:
    rounding = compile_network(load_shipped("vgg16"), devices=2).rounding
    assert rounding is not None
    assert rounding.time.tick == 1
    assert rounding.time.total_error == rounding.size.total_error == 0


def test_a_total_is_rounded_first_and_then_shared() -> None:
    """25 in ticks of 10 is 2.5, rounded up to 3: parts of 2 and 1, not 1 and 1."""
    graph = graph_of(timed("a", 24, 25, 26), costs={"tick": 10})
    assert durations(graph) == {"Fa": 2, "Ia.0": 2, "Ia.1": 1, "Wa": 3}
    assert graph.time_unit == "10 tick"


def test_rounding_up_rounds_up() -> None:
    graph = graph_of(timed("a", 21, 20, 29), costs={"tick": 10, "rounding": "up"})
    assert durations(graph) == {"Fa": 3, "Ia.0": 1, "Ia.1": 1, "Wa": 3}


@pytest.mark.parametrize(("least", "expected"), [(0, 0), (1, 1), (3, 3)])
def test_any_work_at_all_gets_the_least_and_no_work_none(
    least: int, expected: int
) -> None:
    layer = timed("a", 4, 0, 40, parameters=1)
    graph = graph_of(layer, costs={"tick": 10, "least": least})
    assert durations(graph) == {"Fa": expected, "Ia.0": 0, "Ia.1": 0, "Wa": 4}


def test_vgg_in_ticks_of_ten_million_keeps_its_small_layers() -> None:
    """Each of F, I, W as max(1, round(MAC / 10^7)); the pools have no work.

    By hand, in ticks: the first convolution 9 (no I), the second 185; 92, 185; 92, 185
    twice; 92, 185 twice; 46 thrice; the linear layers 10, 2 and, for 0.4, 1.
    """
    macs = [9, 185, 92, 185, 92, 185, 185, 92, 185, 185, 46, 46, 46, 10, 2, 1]
    instance = Instance(
        name="coarse",
        network=load_shipped("vgg16"),
        devices=(Processor(id=DeviceId("d0")),),
        costs=CostModel(tick=Fraction(10**7)),
    )
    graph = compile_instance(instance).graph
    assert graph.time_unit == "10000000 MAC"
    assert [graph.duration(op.id, None) for op in graph.ops if op.kind == "W"] == macs
    assert sum(graph.duration(op.id, None) for op in graph.ops) == 3 * sum(macs) - 9
    halves = [graph.duration(OpId(f"Ifc8.{i}"), None) for i in range(2)]
    assert halves == [1, 0]


def test_sizes_have_a_tick_of_their_own_and_no_least() -> None:
    graph = graph_of(timed("a", output=1499, parameters=3), costs={"size_tick": 1000})
    assert graph.size_unit == "1000 element"
    assert sizes(graph) == {"aa": 1, "wa.0": 0, "wa.1": 0}


def test_the_error_is_kept_exactly() -> None:
    """24, 25 and 26 in ticks of 10: 20, 30 and 30, so 4, 5 and 4 off."""
    rounding = rounding_of(
        timed("a", 24, 25, 26, output=1501), costs={"tick": 10, "size_tick": 1000}
    )
    assert rounding.time.greatest_error == 5
    assert rounding.time.total_error == 13
    assert rounding.size.greatest_error == rounding.size.total_error == 499
    assert rounding.as_document() == {
        "rule": "nearest",
        "least": 1,
        "time": {
            "unit": "tick",
            "tick": "10",
            "greatest_error": "5",
            "total_error": "13",
        },
        "size": {
            "unit": "element",
            "tick": "1000",
            "greatest_error": "499",
            "total_error": "499",
        },
    }


def test_decimals_get_a_tick_that_writes_them_all_exactly() -> None:
    layer = timed("a") | {"forward": 1.25, "input_grad": 0.5, "weight_grad": 3}
    graph = graph_of(layer, network={"time_unit": "ms"})
    assert graph.time_unit == "0.01 ms"
    assert durations(graph) == {"Fa": 125, "Ia.0": 25, "Ia.1": 25, "Wa": 300}


def test_decimals_without_end_get_at_most_a_billion_ticks() -> None:
    layer = timed("a") | {"forward": 0.1234567890123}
    rounding = rounding_of(layer, network={"time_unit": "ms"})
    assert rounding.time.tick == Fraction(1, 10**8)
    assert 0 < rounding.time.greatest_error <= rounding.time.tick / 2


def test_huge_costs_get_a_coarser_tick() -> None:
    """4 * 10^15 three times is more than 2^53, in tens it is not."""
    graph = graph_of(timed("a", *[4 * 10**15] * 3))
    assert graph.time_unit == "10 tick"
    assert durations(graph)["Fa"] == 4 * 10**14


@pytest.mark.parametrize(
    ("tick", "text"),
    [(0.001, "0.001 ms"), (1, "ms"), (2.5, "2.5 ms"), (1000, "1000 ms")],
)
def test_the_time_unit_of_the_graph_names_the_tick(tick: float, text: str) -> None:
    layer = timed("a", 100, 100, 100)
    graph = graph_of(layer, network={"time_unit": "ms"}, costs={"tick": tick})
    assert graph.time_unit == text


@settings(deadline=None, max_examples=100)
@given(
    costs=st.lists(st.floats(0, 1e6), min_size=3, max_size=3),
    tick=st.floats(1e-3, 1e4),
    rule=st.sampled_from(["nearest", "up"]),
)
def test_no_rounding_is_off_by_more_than_its_rule_allows(
    costs: list[float], tick: float, rule: str
) -> None:
    layer = timed("a") | dict(
        zip(("forward", "input_grad", "weight_grad"), costs, strict=True)
    )
    rounding = rounding_of(layer, costs={"tick": tick, "rounding": rule, "least": 0})
    allowed = rounding.time.tick / (2 if rule == "nearest" else 1)
    assert rounding.time.greatest_error <= allowed
    assert rounding.time.total_error <= 3 * rounding.time.greatest_error
