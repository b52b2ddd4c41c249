"""What each part of the search is worth: proved, times, gaps, one switch at a time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.registry import family, table
from lpsched.core.graph import Graph
from lpsched.core.io import load_graph
from lpsched.core.result import Status, relative_gap
from lpsched.network import compile_network, load_shipped
from lpsched.solve import SolveParams, solve

INSTANCES = Path(__file__).resolve().parents[1] / "instances"
OBJECTIVE = ("period", "communication", "staleness")
SWITCHES = ("windows", "deduce", "loads", "symmetry", "hint", "placements")

#: Variants: all strengthenings, each one off, all off, and the second back end.
VARIANTS: dict[str, Mapping[str, bool]] = {
    "all on": {},
    **{f"without {name}": {name: False} for name in SWITCHES},
    "compact": dict.fromkeys(SWITCHES, False),
}


def _run(
    graphs: Sequence[Graph],
    seconds: float,
    **changes: Any,  # noqa: ANN401 - any field
) -> tuple[list[float], int, int, list[float]]:
    """Times, solved, proved, and gaps of the first objective not proved."""
    times, gaps, solved, proved = [], [], 0, 0
    for graph in graphs:
        params = replace(
            SolveParams(objective=OBJECTIVE, time_limit=seconds), **changes
        )
        begun = time.perf_counter()
        result = solve(graph, params).result
        times.append(time.perf_counter() - begun)
        solved += bool(result.objective)
        proved += result.status is Status.OPTIMAL
        for name in params.objective:
            value = result.objective.get(name)
            gap = relative_gap(
                value if isinstance(value, int) else None, result.bound.get(name)
            )
            if gap != 0:
                gaps.append(1.0 if gap is None else gap)
                break
    return times, solved, proved, gaps


def _compare(title: str, graphs: Sequence[Graph], seconds: float) -> None:
    rows: list[list[object]] = []
    base = None
    runs: list[tuple[str, dict[str, Any]]] = [
        (name, {"options": dict(options)}) for name, options in VARIANTS.items()
    ]
    runs.append(("ilp", {"backend": "ilp"}))
    for name, changes in runs:
        times, solved, proved, gaps = _run(graphs, seconds, **changes)
        total = sum(times)
        base = base or total
        rows.append(
            [
                name,
                f"{solved}/{len(graphs)}",
                f"{proved}/{len(graphs)}",
                f"{statistics.median(times):.2f}",
                f"{max(times):.2f}",
                f"{100 * max(gaps, default=0):.1f} %",
                f"{total / base:.2f}",
            ]
        )
    heads = ("variant", "solved", "proved", "median s", "worst s", "worst gap", "ratio")
    table(f"{title}, limit {seconds:g} s each", heads, rows)


@family("small")
def small(seconds: float) -> None:
    """Every graph of instances/small."""
    paths = sorted((INSTANCES / "small").glob("chain*.json"))
    _compare("instances/small", [load_graph(path) for path in paths], seconds)


@family("chains8")
def chains8(seconds: float) -> None:
    """Three chains of eight layers at each largest delay 1 to 4."""
    for most in (1, 2, 3, 4):
        graphs = [
            load_graph(INSTANCES / "chains8" / f"chain8-s{i}.json").with_delay_max(most)
            for i in range(3)
        ]
        _compare(f"instances/chains8, delays up to {most}", graphs, seconds)


@family("balance")
def balance(seconds: float) -> None:
    """Least periods with free delays: every shipped classic on 2 to 9 devices."""
    rows = []
    for name in ("vgg16", "alexnet", "resnet18", "gpt2-small"):
        network = load_shipped(name)
        graphs = [compile_network(network, devices=n).graph for n in range(2, 10)]
        times, _, proved, gaps = _run(graphs, seconds, objective=("period",))
        rows.append(
            [
                name,
                f"{proved}/{len(graphs)}",
                f"{statistics.median(times):.2f}",
                f"{max(times):.2f}",
                f"{100 * max(gaps, default=0):.3f} %",
            ]
        )
    heads = ("network", "proved", "median s", "worst s", "worst gap")
    table("least period with free delays, 2 to 9 devices", heads, rows)
