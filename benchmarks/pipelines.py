"""Synchronous pipelines: how many are proved, how fast, and by what."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from random import Random

from benchmarks.registry import family, table
from lpsched.core.graph import Graph
from lpsched.core.instance import Instance
from lpsched.core.io import instance_from_document, load_instance
from lpsched.core.result import Result, Status
from lpsched.network import compile_instance
from lpsched.solve import SolveParams, solve

INSTANCES = Path(__file__).resolve().parents[1] / "instances"


def _solve(graph: Graph, seconds: float) -> tuple[Result, float]:
    begun = time.perf_counter()
    params = SolveParams(objective=("period",), time_limit=seconds)
    result = solve(graph, params).result
    return result, time.perf_counter() - begun


def _folder(folder: str, seconds: float) -> None:
    """Solve every instance of a folder again and set it beside its best known value."""
    rows: list[list[object]] = []
    proved = 0
    for path in sorted((INSTANCES / folder).glob("*.yaml")):
        instance = load_instance(path)
        result, took = _solve(compile_instance(instance).graph, seconds)
        value, bound = result.objective.get("period"), result.bound.get("period")
        proved += result.status is Status.OPTIMAL
        known = instance.known.get("period")
        rows.append(
            [
                path.stem,
                value,
                bound,
                _gap(value, bound),
                None if known is None else known.value,
                result.status,
                result.method,
                f"{took:.1f}",
            ]
        )
    heads = ("instance", "period", "bound", "gap", "known", "status", "by", "seconds")
    title = f"instances/{folder}: {proved} of {len(rows)} proved"
    table(f"{title}, limit {seconds:g} s each", heads, rows)


def _gap(value: int | str | None, bound: int | None) -> str:
    if not isinstance(value, int) or bound is None:
        return "-"
    return f"{100 * (value / bound - 1):.2f} %"


@family("zero-bubble")
def zero_bubble(seconds: float) -> None:
    """Every published row at both memory limits."""
    _folder("zero_bubble", seconds)


@family("synchronous")
def synchronous(seconds: float) -> None:
    """Equal and unequal stages, little memory, slow devices, two stages a device."""
    _folder("synchronous", seconds)


@family("random-pipelines")
def random_pipelines(seconds: float) -> None:
    """Random stages and limits: what bounds and constructions prove, what counting."""
    rng = Random(0)
    outcomes: dict[str, Counter[str]] = {}
    for _ in range(60):
        kind, instance = _drawn(rng)
        result, _took = _solve(compile_instance(instance).graph, seconds)
        how = "open"
        if result.status is Status.OPTIMAL:
            kinds = {"pipeline": "by a bound", "exhaustion": "by counting"}
            how = kinds.get(result.proof["period"].kind, "otherwise")
        outcomes.setdefault(kind, Counter())[how] += 1
    heads = ("by a bound", "by counting", "open")
    rows = [[kind, *(counts[h] for h in heads)] for kind, counts in outcomes.items()]
    table(f"60 random pipelines, limit {seconds:g} s each", ("stages", *heads), rows)


def _drawn(rng: Random) -> tuple[str, Instance]:
    """Draw 3 to 8 stages, up to 4 microbatches each, and memory of p to 4p."""
    p = rng.choice([3, 4, 5, 6, 8])
    m, limit = rng.randint(p, 4 * p), rng.randint(p, 4 * p)
    alike = rng.random() < 0.4
    base = [rng.randint(5, 15), rng.randint(5, 15), rng.randint(3, 15)]
    layers = []
    for s in range(p):
        times = [t + (0 if alike else rng.randint(-2, 2)) for t in base]
        keys = ("forward", "input_grad", "weight_grad")
        layers.append(
            {
                "name": f"s{s}",
                **dict(zip(keys, times, strict=True)),
                "memory": {"F": 2, "I": -1},
            }
        )
    document = {
        "schema": "lpsched/instance/1",
        "network": {"schema": "lpsched/network/1", "name": "n", "layers": layers},
        "devices": {"count": p, "memory": limit},
        "link": {"latency": rng.choice([0, 1, 2, 4])},
        "training": {
            "mode": "synchronous",
            "microbatches": m,
            "flush": rng.random() < 0.3,
        },
        "placement": {"stages": p},
    }
    kind = "equal" if alike else "unequal"
    room = "below 2p" if limit < 2 * p else "2p and more"
    return f"{kind}, memory {room}", instance_from_document(document)
