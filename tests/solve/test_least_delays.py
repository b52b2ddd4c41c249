"""LayerPipe's delays beside those that the best period needs."""

from __future__ import annotations

import pytest
from factories import make_graph, training_chain

from lpsched.errors import UnsupportedError
from lpsched.network import compile_network, load_shipped
from lpsched.solve import SolveParams
from lpsched.solve.least_delays import compare_delays, staleness
from lpsched.verify import verify


def test_tiny_mlp_needs_half_the_staleness_of_the_rule() -> None:
    """Three stages, the first layer two stages before the last: 1 + 2·2 and 1.

    The optimum on 4 devices takes as long as the longest op, 200,704 MAC, and is
    proved to need staleness 2.
    """
    graph = compile_network(load_shipped("tiny-mlp"), devices=4).graph
    table = compare_delays(graph)
    assert table.best is not None
    assert verify(graph, table.best) == verify(graph, table.layerpipe) == ()
    document = table.document()
    assert document["period"] == 200704
    assert document["period_proved"]
    assert document["staleness"]["rule"] == staleness(table.rule) == 4
    assert document["staleness"]["optimum"] == document["staleness"]["bound"] == 2


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_figures_are_ordered_as_they_must_be(devices: int) -> None:
    """No schedule has less than its loops need; LayerPipe's own never tops the rule."""
    graph = training_chain(4, devices=devices)
    table = compare_delays(graph, SolveParams(time_limit=10))
    document = table.document()
    totals = document["staleness"]
    assert totals["bound"] <= totals["optimum"]
    assert totals["same_period"] <= totals["layerpipe"] <= totals["rule"]
    assert verify(graph, table.same_period) == ()
    assert document["period"] <= document["layerpipe_period"]
    assert document["stages"] <= devices
    for entry in document["delays"].values():
        assert entry["loops"] <= entry["optimum"]
        assert entry["rule"] == 1 + 2 * (document["stages"] - 1 - entry["stage"])


def test_a_graph_without_layers_has_no_rule() -> None:
    with pytest.raises(UnsupportedError):
        compare_delays(make_graph({"a": 1}))


def test_what_loops_alone_do_not_show_is_proved_by_the_solver() -> None:
    """Lenet5 on 4 devices: its loops need 3 at 285,600 MAC, and 5 is the least."""
    graph = compile_network(load_shipped("lenet5"), devices=4).graph
    table = compare_delays(graph, SolveParams(time_limit=20))
    assert table.document()["period"] == 285_600
    assert staleness(table.loops) == 3
    assert staleness(table.optimum) == table.staleness_bound == 5


def test_the_best_period_found_is_never_longer_than_layerpipes_own() -> None:
    """However short the time: the search for it starts from LayerPipe's schedule."""
    graph = compile_network(load_shipped("alexnet"), devices=8).graph
    document = compare_delays(graph, SolveParams(time_limit=1e-3)).document()
    assert document["period"] is not None
    assert document["period"] <= document["layerpipe_period"]
