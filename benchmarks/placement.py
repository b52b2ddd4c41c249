"""Least communication at a load limit: what is proved, how fast, and what it saves."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from benchmarks.registry import family, table
from lpsched.core.graph import Graph
from lpsched.core.instance import Instance
from lpsched.core.io import load_instance, load_network
from lpsched.core.network import Network
from lpsched.core.result import Result, relative_gap
from lpsched.core.schedule import Schedule
from lpsched.network import compile_instance, compile_network, load_shipped
from lpsched.solve import SolveParams, compare, solve

INSTANCES = Path(__file__).resolve().parents[1] / "instances"
STORED = INSTANCES / "placement"
SHIPPED = ("vgg16", "resnet18", "gpt2-small")
DEVICES = (4, 8, 16)
SLACKS = (0, 1, 2, 5)
#: Devices and limits at which the loads of `vgg16-p8-5` cannot be packed.
OVERFULL = ((8, 584), (8, 590), (12, 393), (12, 405))


def _networks() -> dict[str, Network]:
    """Shipped networks, costs in MAC, and those measured, in microseconds."""
    measured = sorted((INSTANCES / "measured").glob("*-network.yaml"))
    return {
        **{name: load_shipped(name) for name in SHIPPED},
        **{f"measured {p.stem[:-8]}": load_network(p) for p in measured},
    }


def _gap(value: int | str | None, bound: int | None) -> str:
    gap = relative_gap(value if isinstance(value, int) else None, bound)
    return "-" if gap is None else f"{100 * gap:.2f} %"


def _least(
    graph: Graph, period: int, seconds: float, hint: Schedule | None = None
) -> tuple[Result, float, float]:
    """Minimise communication up to a period; with CPU and wall-clock seconds."""
    params = SolveParams(
        objective=("communication",), max_period=period, time_limit=seconds, hint=hint
    )
    cpu, wall = time.process_time(), time.perf_counter()
    result = solve(graph, params).result
    return result, time.process_time() - cpu, time.perf_counter() - wall


@family("placement-stored")
def stored(seconds: float) -> None:
    """Every instance of instances/placement, and limits too tight for any packing."""
    rows = []
    for name, instance in _instances():
        graph = compile_instance(instance).graph
        result, cpu, wall = _least(graph, instance.max_period or 1, seconds)
        value = result.objective.get("communication")
        bound = result.bound.get("communication")
        known = instance.known.get("communication")
        best = "-" if known is None else known.value
        figures = [value, bound, _gap(value, bound), best]
        times = [f"{cpu:.1f}", f"{wall:.1f}"]
        rows.append([name, instance.max_period, *figures, result.status, *times])
    heads = ["instance", "limit", "communication", "bound", "gap", "known"]
    heads += ["status", "CPU s", "seconds"]
    table(f"least communication, limit {seconds:g} s each", heads, rows)


def _instances() -> Iterator[tuple[str, Instance]]:
    for path in sorted(STORED.glob("*-*-*.yaml")):
        yield path.stem, load_instance(path)
    whole = load_instance(STORED / "vgg16-p8-5.yaml")
    for count, limit in OVERFULL:
        devices = tuple(
            replace(whole.devices[0], id=type(whole.devices[0].id)(f"d{i}"))
            for i in range(count)
        )
        tight = replace(whole, devices=devices, max_period=limit, known={})
        yield f"vgg16-p{count} at {limit}", tight


@family("placement")
def placement(seconds: float) -> None:
    """Networks on 4, 8 and 16 devices at 0, 1, 2 and 5 % over the least period."""
    heads = ["network", "ops", "devices", "slack", "limit", "communication", "bound"]
    heads += ["gap", "CPU s", "seconds"]
    for name, network in _networks().items():
        rows = []
        for count in DEVICES:
            graph = compile_network(network, devices=count).graph
            first = SolveParams(objective=("period",), time_limit=seconds)
            least = solve(graph, first).require_schedule()
            for slack in SLACKS:
                limit = int(least.period * (1 + Fraction(slack, 100)))
                result, cpu, wall = _least(graph, limit, seconds, least)
                value = result.objective.get("communication")
                bound = result.bound.get("communication")
                where = [name, len(graph.ops), count, f"{slack} %", limit]
                figures = [value, bound, _gap(value, bound)]
                rows.append([*where, *figures, f"{cpu:.1f}", f"{wall:.1f}"])
        title = f"least communication of {name}, limit {seconds:g} s each"
        table(title, heads, rows)


@family("placement-savings")
def savings(seconds: float) -> None:
    """What PipeDream and LayerPipe send, and what would do at their own period."""
    rows: list[Sequence[object]] = []
    for name, network in _networks().items():
        for count in DEVICES:
            graph = compile_network(network, devices=count).graph
            rows += _saved(name, graph, seconds)
    heads = ("network", "devices", "method", "period", "sends", "would do", "bound")
    title = f"communication at the methods' own periods, limit {seconds:g} s each"
    table(title, (*heads, "saved", "seconds"), rows)


def _saved(name: str, graph: Graph, seconds: float) -> Sequence[Sequence[object]]:
    methods = ("pipedream", "layerpipe", "least-communication")
    params = SolveParams(objective=("period",), time_limit=seconds)
    found = {r.method: r for r in compare(graph, methods=methods, params=params)}
    rows = []
    for method in methods[:2]:
        given, best = found[method], found.get(f"{methods[2]}@{method}")
        if best is None or given.schedule is None:
            continue
        sends = given.objective["communication"]
        would: Mapping[str, int] = best.objective
        least = would.get("communication", sends)
        rows.append(
            [
                name,
                len(graph.devices),
                method,
                given.objective["period"],
                sends,
                least,
                best.bound.get("communication"),
                _gap(sends, least),
                f"{best.seconds:.1f}",
            ]
        )
    return rows
