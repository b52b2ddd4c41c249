"""GraphML in: HatScheT's problems, bare graphs, and every fault with its line."""

from __future__ import annotations

import io
from random import Random

import networkx as nx
import pytest

from lpsched.analysis.iteration_bound import iteration_bound
from lpsched.core.graph import Consumer, Dependence, Graph, OpId
from lpsched.errors import FormatError
from lpsched.network.readers import read_graphml
from lpsched.solve import SolveParams, solve

#: The example of HatScheT's documentation, in its grammar: two loads, a sum, a store.
GRAPH = """<?xml version="1.0" encoding="UTF-8"?>
<graphml><graph>
<node id="1"><data key="name">load</data><data key="uses_resource">mem</data></node>
<node id="2"><data key="name">load</data><data key="uses_resource">mem</data></node>
<node id="3"><data key="name">add</data><data key="uses_resource">adder</data></node>
<node id="4"><data key="name">store</data><data key="uses_resource">m em</data></node>
<node id="modsched_info"><data key="minII">3</data></node>
<edge id="a" source="1" target="3"><data key="delay">0</data>
  <data key="distance">0</data><data key="deptype">Data</data></edge>
<edge id="b" source="2" target="3"><data key="distance">0</data></edge>
<edge id="c" source="3" target="4"><data key="latency">1</data></edge>
<edge id="d" source="4" target="1"><data key="delay">0</data>
  <data key="distance">1</data><data key="deptype">Precedence</data></edge>
<edge id="e" source="4" target="2"><data key="distance">2</data>
  <data key="deptype">Precedence</data></edge>
</graph></graphml>
"""
RESOURCES = """<ModelInformation Version="1.0"><Resources>
<resource blockingTime="1" latency="2" limit="{limit}" name="mem"/>
<Resource blockingTime="0" latency="1" limit="inf" name="adder" physicalDelay="2.5"/>
</Resources></ModelInformation>
"""


def read(text: str, *, resources: str | None = None) -> Graph:
    imported = read_graphml(text, source="folder/ring.graphml", resources=resources)
    return imported.document


def faults(text: str, *, resources: str | None = None) -> list[str]:
    with pytest.raises(FormatError) as error:
        read(text, resources=resources)
    return [str(fault) for fault in error.value.faults]


# -- HatScheT ----------------------------------------------------------------------


def test_hatschets_example_becomes_devices_lags_and_delays() -> None:
    """A load takes 2 cycles and keeps mem for 1: duration 1, its edges lag 1 more."""
    graph = read(GRAPH, resources=RESOURCES.format(limit=1))
    assert graph.name == "ring"
    assert graph.device_ids == ("mem",)
    assert [(op.id, op.kind, op.duration, op.devices) for op in graph.ops] == [
        ("1", "mem", 1, ("mem",)),
        ("2", "mem", 1, ("mem",)),
        ("add", "adder", 1, ()),
        ("store", "mem", 1, ("mem",)),
    ]
    assert {t.producer: t.consumers for t in graph.tensors} == {
        "1": (Consumer(op=OpId("add"), lag=1),),
        "2": (Consumer(op=OpId("add"), lag=1),),
        "add": (Consumer(op=OpId("store"), lag=1),),
    }
    assert graph.dependences == (
        Dependence(src=OpId("store"), dst=OpId("1"), delay=1, lag=1),
        Dependence(src=OpId("store"), dst=OpId("2"), delay=2, lag=1),
    )


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_its_least_period_is_the_least_initiation_interval(limit: int) -> None:
    """The loop load, add, store takes 2 + 1 + 1 + 2 = 6 cycles with distance 1."""
    graph = read(GRAPH, resources=RESOURCES.format(limit=limit))
    assert len(graph.devices) == limit
    assert (
        solve(graph, SolveParams(objective=("period",))).require_schedule().period == 6
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_least_period_is_hatschets_by_brute_force(seed: int) -> None:
    """All slots of all ops at each II, by HatScheT's own inequalities."""
    text, resources, least = random_problem(Random(seed))
    graph = read(text, resources=resources)
    found = solve(graph, SolveParams(objective=("period",))).require_schedule()
    assert found.period == least


def random_problem(rng: Random) -> tuple[str, str, int]:
    """Three or four ops on a unit of limit 1 or 2; the least II by brute force."""
    count, limit = rng.randint(3, 4), rng.randint(1, 2)
    latency = rng.randint(1, 3)
    edges = [
        (u, v, rng.randint(0, 2), rng.randint(0, 1) if u < v else rng.randint(1, 2))
        for u, v in [
            (rng.randrange(count), rng.randrange(count)) for _ in range(count + 1)
        ]
    ]
    nodes = "".join(
        f'<node id="{i}"><data key="uses_resource">fu</data></node>'
        for i in range(count)
    )
    wires = "".join(
        f'<edge source="{u}" target="{v}"><data key="delay">{extra}</data>'
        f'<data key="distance">{distance}</data></edge>'
        for u, v, extra, distance in edges
    )
    resource = f'<resource name="fu" limit="{limit}" latency="{latency}"/>'
    arcs = [(u, v, latency + extra, distance) for u, v, extra, distance in edges]
    least = next(
        period
        for period in range(1, 40)
        if any(fits(slots, arcs, period) for slots in assignments(count, limit, period))
    )
    return f"<graphml><graph>{nodes}{wires}</graph></graphml>", resource, least


def assignments(count: int, limit: int, period: int) -> list[list[int]]:
    """Slots of ops modulo the period, at most `limit` of them alike."""
    found: list[list[int]] = [[]]
    for _ in range(count):
        found = [
            [*slots, slot]
            for slots in found
            for slot in range(period)
            if slots.count(slot) < limit
        ]
    return found


def fits(slots: list[int], arcs: list[tuple[int, int, int, int]], period: int) -> bool:
    """Longest paths in laps: a positive cycle of needs has no solution."""
    laps = [0] * len(slots)
    for _ in range(len(slots) + 1):
        moved = False
        for u, v, ticks, distance in arcs:
            need = -(-(slots[u] + ticks - slots[v]) // period) - distance
            if laps[v] < laps[u] + need:
                laps[v], moved = laps[u] + need, True
        if not moved:
            return True
    return False


def test_without_its_resource_model_hatschets_graph_cannot_be_read() -> None:
    assert "--resources" in faults(GRAPH)[0]


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ("<a>", "line 1: not XML"),
        ("<a/>", "no resource"),
        ('<resource name="mem" limit="0" latency="1"/>', "a number out of range"),
        ('<resource name="mem" limit="1" latency="-1"/>', "a number out of range"),
        ('<resource name="mem" limit="x" latency="1"/>', "name, limit, latency"),
        ('<resource name="mem" limit="1"/>', "name, limit, latency"),
        ('<a><resource name="m" limit="1" latency="1"/><rt/></a>', "reservation"),
        ('<resource name="mem" limit="1" latency="1"/>', "uses the unknown 'adder'"),
        (RESOURCES.format(limit=99_999), "are more than 10000"),
        (
            RESOURCES.format(limit=1).replace('blockingTime="1"', 'blockingTime="7"'),
            "busy 5 longer than its result takes",
        ),
        (RESOURCES.format(limit=1).replace("adder", "mem"), "a second resource 'mem'"),
    ],
)
def test_a_faulty_resource_model_is_refused(resources: str, message: str) -> None:
    assert any(message in fault for fault in faults(GRAPH, resources=resources))


def test_distances_must_be_natural_numbers() -> None:
    text = GRAPH.replace('<data key="distance">2<', '<data key="distance">-2<')
    assert faults(text, resources=RESOURCES.format(limit=1)) == [
        "line 14: expected integers as delay and distance, distance >= 0"
    ]


# -- any graph with durations ------------------------------------------------------


def test_a_graph_that_networkx_writes_keeps_its_bound() -> None:
    """A ring of 3 + 2 ticks and two delays: 5/2."""
    bare: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    bare.add_node("a", duration=3)
    bare.add_node("b", duration=2, colour="red")
    bare.add_edge("a", "b", delay=0)
    bare.add_edge("b", "a", delay=2, lag=0, weight=1.5)
    stream = io.BytesIO()
    nx.write_graphml(bare, stream)
    imported = read_graphml(stream.getvalue().decode(), source="ring.graphml")
    assert iteration_bound(imported.document).value == iteration_bound(bare).value
    assert imported.document.name == "ring"
    assert imported.document.devices == ()
    assert imported.remarks == (
        "attributes of nodes passed over: colour",
        "attributes of edges passed over: weight",
    )


def head(*lines: str, keys: str = "") -> str:
    body = "\n".join(lines)
    return f"<graphml>{keys}<graph>\n{body}\n</graph></graphml>"


A = '<node id="a"><data key="duration">1</data></node>'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1: not XML: no element found"),
        ("<graphml><graph>", "line 1: not XML: no element found"),
        ("<gexf/>", "line 1: expected <graphml> with one graph, got <gexf>"),
        ("<graphml/>", "line 1: expected <graphml> with one graph, got 0 graphs"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a/>', "line 1: a document type declaration"),
        (head('<node id="a"/>'), "line 2: node 'a' has no duration"),
        (head(A, A), "line 3: a second node 'a'"),
        (head(A, '<edge source="a" target="b"/>'), "line 3: an edge of the unknown"),
        (head(A, '<edge source="a" target="a"/>'), "line 3: edge 'a' -> 'a' has no"),
        (head(A, '<edge source="a" target="a" directed="false"/>'), "a directed edge"),
        (head(A, "<hyperedge/>"), "line 3: a hyperedge is not supported"),
        (head('<node id="a"><graph/></node>'), "line 2: a graph inside a node"),
        (head(A.replace("1<", "-1<")), "ops[0].duration: "),
        (
            head(keys="").replace("<graph>", '<graph edgedefault="undirected">'),
            "line 1: expected directed edges, got an undirected graph",
        ),
    ],
)
def test_faults_are_told_with_their_line(text: str, expected: str) -> None:
    assert any(
        fault.startswith(expected) or expected in fault for fault in faults(text)
    )


@pytest.mark.parametrize(
    ("kind", "value"), [("int", "1.5"), ("double", "x"), ("boolean", "perhaps")]
)
def test_a_value_must_be_of_its_declared_type(kind: str, value: str) -> None:
    key = f'<key id="k" for="node" attr.name="duration" attr.type="{kind}"/>'
    text = head(f'<node id="a"><data key="k">{value}</data></node>', keys=key)
    assert faults(text) == [f"line 2: duration: expected a {kind}, got {value!r}"]


def test_too_many_nodes_are_refused_at_the_line_of_the_first_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lpsched.network.readers.marked.MAX_NODES", 2)
    text = head(*(f'<node id="a{i}"/>' for i in range(3)))
    expected = "line 4: more elements <node> than are read: taken for a mistake"
    assert faults(text) == [expected]


def test_a_negative_duration_is_told_with_its_line() -> None:
    key = '<key id="k" for="node" attr.name="duration" attr.type="int"/>'
    text = head('<node id="a"><data key="k">-3</data></node>', keys=key)
    assert faults(text) == ["line 2: duration: expected an integer >= 0, got -3"]


def test_what_an_editor_draws_is_passed_over() -> None:
    key = '<key id="g" for="node" yfiles.type="nodegraphics"/>'
    key += '<key id="k" for="node" attr.name="duration" attr.type="double"/>'
    node = '<node id="a"><data key="g"><shape>7</shape></data><data key="k">2.0</data>'
    graph = read(head(f"{node}</node>", keys=key))
    assert graph.ops[0].duration == 2


def test_an_edge_must_be_of_a_tensor_of_its_source() -> None:
    text = """<graphml><graph><data key="schema">lpsched/graph/1</data>
<data key="name">g</data><data key="devices.json">[]</data>
<data key="tensors.json">[{"id": "x", "size": 1, "producer": "a"}]</data>
<node id="a"><data key="kind">F</data><data key="duration.json">1</data>
<data key="devices.json">[]</data></node>
<node id="b"><data key="kind">F</data><data key="duration.json">1</data>
<data key="devices.json">[]</data></node>
<edge source="b" target="a"><data key="tensor">x</data></edge>
<edge source="a" target="b"><data key="tensor">y</data></edge>
</graph></graphml>"""
    assert faults(text) == [
        "line 8: tensor 'x' is made by 'a', not by 'b'",
        "line 9: the graph lists no tensor 'y'",
    ]
    broken = text.replace('"devices.json">[]', '"devices.json">[', 1)
    assert "devices.json is no JSON: '['" in faults(broken)[0]
