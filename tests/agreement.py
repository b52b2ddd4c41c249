"""The exact back ends on one random graph: the same answer, or a report of the quarrel.

Used by the suite at a small size and by `make fuzz` for as long as one likes:
``python tests/agreement.py --seconds 3600 --first 0``.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from placement_problems import random_placement_graph
from random_cases import random_case

from lpsched.analysis.freedom import has_free_delays
from lpsched.core.graph import Device, Graph
from lpsched.core.io import save_graph
from lpsched.core.result import Status
from lpsched.errors import LpschedError
from lpsched.solve import SolveParams, solve

__all__ = ["Verdict", "compare_backends", "random_placement", "random_problem"]

ORDERS = (
    ("period", "communication", "staleness", "peak_memory", "makespan"),
    ("period", "peak_memory", "communication"),
    ("communication", "period", "staleness"),
    ("period", "makespan"),
    ("staleness", "period"),
)
#: Where delays are free `partition` settles these alone.
PLACEMENT_ORDERS = (("period", "communication"), ("communication", "period"))


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the back ends said of one problem.

    Attributes
    ----------
    settled : bool
        All of them finished with a proof.
    quarrel : str or None
        What they disagree about.
    """

    settled: bool
    quarrel: str | None = None
    values: dict[str, object] = field(default_factory=dict)


def random_problem(seed: int, *, max_ops: int = 5) -> tuple[Graph, tuple[str, ...]]:
    """A random graph, every third with memory limits near what a schedule needs."""
    rng = Random(seed)
    graph, _schedule = random_case(seed, max_ops=max_ops, max_devices=2 + seed % 2)
    if seed % 3 == 0:
        total = sum(t.size for t in graph.tensors) + sum(
            r.size for r in graph.residents
        )
        limits = tuple(
            Device(id=d.id, memory=rng.randint(0, 2 * total + 1)) for d in graph.devices
        )
        graph = graph.replace(devices=limits)
    return graph, ORDERS[seed % len(ORDERS)]


def random_placement(seed: int) -> tuple[Graph, tuple[str, ...]]:
    """A random graph of free delays; every third one with memory limits as well."""
    rng = Random(seed)
    graph = random_placement_graph(rng)
    if seed % 3 == 0:
        total = sum(t.size for t in graph.tensors)
        devices = tuple(
            Device(id=d.id, memory=rng.randint(0, 3 * total + 1)) for d in graph.devices
        )
        graph = graph.replace(devices=devices)
    return graph, PLACEMENT_ORDERS[seed % 2]


def compare_backends(
    graph: Graph, objective: tuple[str, ...], *, seconds: float = 20.0
) -> Verdict:
    """Solve with all back ends that apply; statuses and values must be equal.

    `auto` goes without its first try by CP-SAT, which would settle all that is small.
    """
    first = {"first": False}
    params = SolveParams(objective=objective, time_limit=seconds, options=first)
    found: dict[str, object] = {}
    settled = True
    backends = ["auto", "cpsat", "ilp"]
    is_free = has_free_delays(graph, but_for_memory=True)
    if is_free and objective in PLACEMENT_ORDERS:
        backends.append("partition")
    for backend in backends:
        try:
            result = solve(graph, replace(params, backend=backend)).result
        except LpschedError as error:
            return Verdict(settled=False, quarrel=f"{backend}: {error}", values=found)
        if result.status in (Status.OPTIMAL, Status.INFEASIBLE):
            values = tuple(result.objective.get(name) for name in objective)
            found[backend] = (str(result.status), values)
        else:
            settled = False
    quarrel = None if len(set(map(str, found.values()))) <= 1 else str(found)
    return Verdict(settled=settled, quarrel=quarrel, values=found)


def main() -> int:
    """Compare until the time is up; keep every problem that they quarrel about."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--max-ops", type=int, default=6)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    seed, open_, quarrels, infeasible = options.first, 0, 0, 0
    while time.monotonic() < end:
        graph, objective = (
            random_placement(seed)
            if seed % 4 == 3
            else random_problem(seed, max_ops=options.max_ops)
        )
        verdict = compare_backends(graph, objective)
        open_ += not verdict.settled
        infeasible += "infeasible" in str(verdict.values)
        if verdict.quarrel is not None:
            quarrels += 1
            path = Path(f"quarrel-{seed}.json")
            save_graph(graph, path)
            sys.stdout.write(f"seed {seed} {objective}: {verdict.quarrel} ({path})\n")
        seed += 1
    count = seed - options.first
    sys.stdout.write(
        f"{count} problems, {infeasible} infeasible, {open_} not settled in time,"
        f" {quarrels} quarrels\n"
    )
    return 1 if quarrels else 0


if __name__ == "__main__":
    sys.exit(main())
