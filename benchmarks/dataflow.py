"""How the signal-flow side grows with the graph, and LayerPipe's delays in full."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping

import networkx as nx

from benchmarks.registry import family, table
from lpsched.analysis.clock import min_period_retiming
from lpsched.analysis.critical_path import critical_path
from lpsched.analysis.dataflow import MultiDiGraph
from lpsched.analysis.iteration_bound import iteration_bound
from lpsched.analysis.registers import min_register_retiming
from lpsched.analysis.unfolding import unfold
from lpsched.errors import UnsupportedError
from lpsched.network import compile_network, load_shipped, shipped_names
from lpsched.solve import SolveParams
from lpsched.solve.least_delays import compare_delays

SIZES = (250, 500, 1000, 2000, 4000)
#: The linear program of the registers is timed up to here.
MOST_FOR_REGISTERS = 2000
DEVICES = (2, 4, 8, 16)


def _local(nodes: int) -> MultiDiGraph:
    """Edges between near nodes, three a node; those that lead on have no delay or one.

    Like a long signal-flow program: loops of every length, a critical path through it.
    """
    rng = random.Random(nodes)
    graph: MultiDiGraph = nx.MultiDiGraph()
    for i in range(nodes):
        graph.add_node(i, duration=rng.randint(1, 10**6))
    for _ in range(3 * nodes):
        u = rng.randrange(nodes)
        v = min(nodes - 1, max(0, u + rng.randint(-15, 50)))
        back = rng.randint(1, 4)
        graph.add_edge(u, v, delay=int(rng.random() < 0.3) if u < v else back)
    return graph


def _mesh(nodes: int) -> MultiDiGraph:
    """Edges between any two nodes, three a node; back ones carry delay."""
    rng = random.Random(nodes)
    graph: MultiDiGraph = nx.MultiDiGraph()
    for i in range(nodes):
        graph.add_node(i, duration=rng.randint(1, 10**6))
    for _ in range(3 * nodes):
        u, v = rng.randrange(nodes), rng.randrange(nodes)
        graph.add_edge(u, v, delay=rng.choice([0, 0, 1]) if u < v else 1)
    return graph


def _registers(graph: MultiDiGraph) -> None:
    if len(graph) <= MOST_FOR_REGISTERS:
        min_register_retiming(graph, min_period_retiming(graph)[0])


#: What is timed; unfolding by 4 includes the bound of what comes of it.
TASKS: Mapping[str, Callable[[MultiDiGraph], object]] = {
    "iteration bound": iteration_bound,
    "critical path": critical_path,
    "min period": min_period_retiming,
    "+ min registers": _registers,
    "unfold 4 + bound": lambda graph: iteration_bound(unfold(graph, 4)),
}


@family("dataflow")
def dataflow(_seconds: float) -> None:
    """Time each task at doubling sizes; the growth is the ratio to the half size."""
    for name, make in (("local edges", _local), ("any edges", _mesh)):
        before: dict[str, float] = {}
        rows = []
        for nodes in SIZES:
            graph = make(nodes)
            row = [str(nodes), str(graph.number_of_edges())]
            for task, function in TASKS.items():
                if function is _registers and nodes > MOST_FOR_REGISTERS:
                    row.append("–")
                    continue
                took = _time(function, graph)
                growth = f" (×{took / before[task]:.1f})" if task in before else ""
                row.append(f"{took:.3f} s{growth}")
                before[task] = took
            rows.append(row)
        table(f"growth, {name}", ["nodes", "edges", *TASKS], rows)


def _time(function: Callable[[MultiDiGraph], object], graph: MultiDiGraph) -> float:
    begun = time.perf_counter()
    function(graph)
    return time.perf_counter() - begun


@family("layerpipe-delays")
def layerpipe_delays(seconds: float) -> None:
    """Staleness by LayerPipe's rule, by its schedule, by the best period found."""
    rows = []
    for name in shipped_names():
        for devices in DEVICES:
            graph = compile_network(load_shipped(name), devices=devices).graph
            try:
                found = compare_delays(graph, SolveParams(time_limit=seconds))
            except UnsupportedError as error:
                rows.append([name, devices, str(error)])
                continue
            rows.append(_row(name, found.document()))
    heads = ["network", "devices", "period / best", "rule", "LayerPipe"]
    heads += ["its period", "best period", "bound", "rule / its", "rule / best"]
    padded = [[*row, *[""] * (len(heads) - len(row))] for row in rows]
    table("staleness: the sum of (delay - 1)", heads, padded)


def _row(name: str, document: Mapping[str, object]) -> list[object]:
    total = document["staleness"]
    assert isinstance(total, dict)  # noqa: S101 - of our own making
    period = document["period"]
    ratio = "–"
    if isinstance(period, int) and isinstance(document["layerpipe_period"], int):
        mark = "" if document["period_proved"] else " (open)"
        ratio = f"{document['layerpipe_period'] / period:.3f}{mark}"
    return [
        name,
        document["devices"],
        ratio,
        total["rule"],
        total["layerpipe"],
        total["same_period"],
        total["optimum"],
        total["bound"],
        *(_times(total["rule"], total[key]) for key in ("same_period", "optimum")),
    ]


def _times(value: int, least: int | None) -> str:
    return f"{value / least:.2f}" if least else "–"
