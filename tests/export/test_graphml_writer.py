"""GraphML: our own comes back as it was; networkx reads and rewrites it."""

from __future__ import annotations

import io

import networkx as nx
import pytest
from factories import devices_of, make_graph, make_op, make_tensor, training_chain
from random_cases import random_case

from lpsched.analysis.dataflow import MultiDiGraph
from lpsched.analysis.delays import fix_delays
from lpsched.analysis.iteration_bound import iteration_bound
from lpsched.core.graph import Graph, OpId
from lpsched.core.io import graph_digest
from lpsched.errors import UnsupportedError
from lpsched.export import graphml_text
from lpsched.network import compile_network, load_shipped
from lpsched.network.readers import read_graphml


def back(text: str) -> Graph:
    """Read GraphML that needs no remark."""
    imported = read_graphml(text, source="graph.graphml")
    assert imported.remarks == ()
    return imported.document


def by_networkx(text: str) -> MultiDiGraph:
    """Read GraphML as networkx does."""
    graph = nx.read_graphml(io.BytesIO(text.encode()), force_multigraph=True)
    assert isinstance(graph, nx.MultiDiGraph)
    return graph


def edges_of(graph: Graph) -> set[tuple[object, ...]]:
    """Every edge without its place in the order, which networkx does not keep."""
    return {
        (e.src, e.dst, e.delay, e.lag, e.tensor.id if e.tensor else None)
        for e in graph.edges
    }


@pytest.mark.parametrize("seed", range(200))
def test_a_graph_comes_back_as_it_was(seed: int) -> None:
    graph, _ = random_case(seed)
    found = back(graphml_text(graph))
    assert found == graph
    assert graph_digest(found) == graph_digest(graph)


@pytest.mark.parametrize("name", ["alexnet", "resnet18"])
def test_a_shipped_network_comes_back_as_it_was(name: str) -> None:
    graph = compile_network(load_shipped(name), devices=3).graph
    assert back(graphml_text(graph)) == graph


def test_laps_are_written_and_passed_over() -> None:
    graph = training_chain(2)
    laps = {op.id: i for i, op in enumerate(graph.ops)}
    text = graphml_text(graph, laps=laps)
    assert by_networkx(text).nodes["W2"]["lap"] == laps[OpId("W2")]
    assert back(text) == graph


def test_names_of_any_kind_survive() -> None:
    """Line breaks, ampersands, quotes, what other alphabets have, blanks at the end."""
    name = 'a<b>&"c"\n\td\re é 好 '
    graph = make_graph([make_op(name, 1)], [make_tensor(name, 2, name, name)])
    assert back(graphml_text(graph.replace(name=name))) == graph.replace(name=name)


def test_a_character_that_xml_has_not_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"'\\x01'"):
        graphml_text(make_graph({"a\x01": 1}))


@pytest.mark.parametrize("seed", range(20))
def test_networkx_reads_durations_and_delays_that_the_bound_takes(seed: int) -> None:
    """Without devices nothing but durations, delays and lags enters the bound."""
    graph = fix_delays(random_case(seed)[0])
    bare = graph.replace(
        ops=tuple(make_op(op.id, 3, devices=[]) for op in graph.ops),
        residents=(),
        colocate=(),
    )
    found = by_networkx(graphml_text(bare))
    for _, _, data in found.edges(data=True):
        data.setdefault("lag", 0)
    assert iteration_bound(found).value == iteration_bound(bare).value


def test_what_networkx_writes_again_is_still_the_graph() -> None:
    graph = training_chain(3, devices=2, delay_max=4)
    stream = io.BytesIO()
    nx.write_graphml(by_networkx(graphml_text(graph)), stream)
    found = read_graphml(stream.getvalue().decode(), source="again.graphml").document
    assert found.ops == graph.ops
    assert found.delays == graph.delays
    assert edges_of(found) == edges_of(graph)


def test_an_edited_file_is_read_with_its_changes() -> None:
    graph = make_graph({"a": 1, "b": 2}, [make_tensor("x", 5, "a", ("b", 2))])
    text = graphml_text(graph)
    longer = text.replace('<data key="duration">2<', '<data key="duration">9<')
    found = back(longer.replace('<data key="delay">2<', '<data key="delay">1<'))
    assert found.op_by_id[OpId("b")].duration == 9
    assert found.edges[0].delay == 1
    assert found.devices == devices_of(1)
