"""Bare networkx graphs for the tests: textbook ones, random ones, and their loops."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
from hypothesis import strategies as st

from lpsched.analysis.dataflow import MultiDiGraph

__all__ = ["TEXTBOOK", "bare_graph", "bare_graphs", "greatest_ratio", "textbook"]

_FILE = Path(__file__).resolve().parents[1] / "data" / "cyclic_graphs.json"
#: Parhi, *VLSI Digital Signal Processing Systems*, ch. 2 and 4; Leiserson and Saxe's
#: correlator.
TEXTBOOK: Mapping[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))["graphs"]


def bare_graph(
    times: Mapping[str, int], edges: Iterable[tuple[str, str, int]]
) -> MultiDiGraph:
    """Build a graph from durations and edges (from, to, delay)."""
    graph: MultiDiGraph = nx.MultiDiGraph()
    for node, duration in times.items():
        graph.add_node(node, duration=duration)
    for u, v, delay in edges:
        graph.add_edge(u, v, delay=delay)
    return graph


def textbook(name: str) -> MultiDiGraph:
    """Build one of the `TEXTBOOK` graphs."""
    return bare_graph(
        TEXTBOOK[name]["times"], [tuple(edge) for edge in TEXTBOOK[name]["edges"]]
    )


@st.composite
def bare_graphs(draw: st.DrawFn) -> MultiDiGraph:
    """Any graph of up to 6 nodes; edges that do not lead forward carry delay."""
    count = draw(st.integers(1, 6))
    node = st.integers(0, count - 1)
    times = {str(i): draw(st.integers(0, 9)) for i in range(count)}
    ends = draw(st.lists(st.tuples(node, node, st.integers(0, 3)), max_size=14))
    return bare_graph(
        times, [(str(u), str(v), k + (u >= v and k == 0)) for u, v, k in ends]
    )


def greatest_ratio(graph: MultiDiGraph) -> Fraction:
    """The iteration bound by definition: every loop, every choice of parallel edges."""
    return max(_ratios(graph), default=Fraction(0))


def _ratios(graph: MultiDiGraph) -> Iterator[Fraction]:
    for loop in nx.simple_cycles(nx.DiGraph(graph)):
        work = sum(graph.nodes[node]["duration"] for node in loop)
        steps = zip(loop, [*loop[1:], loop[0]], strict=True)
        choices = [[d["delay"] for d in graph[u][v].values()] for u, v in steps]
        for delays in product(*choices):
            yield Fraction(work, sum(delays))
