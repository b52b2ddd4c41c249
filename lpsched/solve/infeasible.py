"""Why a problem has no schedule: the rules in conflict and the least relaxation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from lpsched.analysis.bounds import infeasible_cycle
from lpsched.analysis.metrics import received_sizes
from lpsched.analysis.placement_bounds import total_memory, working_sets
from lpsched.analysis.sites import Sites
from lpsched.core.answer import Answer
from lpsched.core.graph import Graph
from lpsched.solve.params import SolveParams
from lpsched.solve.relax import has_memory_limit, without_memory_limits

__all__ = ["explain_infeasible", "impossible", "with_relaxations"]

Solver = Callable[[Graph, SolveParams], Answer]


def impossible(
    graph: Graph, *, period: int | None = None, max_received: int | None = None
) -> dict[str, Any] | None:
    """Find a conflict without a search; None if there is none that simple.

    Parameters
    ----------
    period : int, optional
        The longest period that schedules may have; without it the conflict holds at
        every period.
    max_received : int, optional
        Most that a device may receive per period.
    """
    proof = infeasible_cycle(graph)
    if proof is not None and proof.certificate is not None:
        cycle = list(proof.certificate["ops"])
        reason = "a cycle of " + " -> ".join(cycle) + " takes time but carries no delay"
        return {"rules": ["precedence"], "reason": reason, "ops": cycle}
    for group in graph.colocate:
        common = set(graph.device_ids).intersection(*map(graph.allowed, group))
        if group and not common:
            reason = f"no device is allowed to all of {', '.join(group)}"
            return {
                "rules": ["coverage", "colocate"],
                "reason": reason,
                "ops": list(group),
            }
    if max_received is not None:
        conflict = _received_conflict(graph, max_received)
        if conflict is not None:
            return conflict
    return _memory_conflict(graph, period) if has_memory_limit(graph) else None


def _received_conflict(graph: Graph, most: int) -> dict[str, Any] | None:
    """Hold what devices receive by ops without a choice against what they may."""
    sites = Sites.of(graph)
    fixed = {op: home[0] for op, home in sites.allowed.items() if len(home) == 1}
    received = received_sizes(graph, fixed)
    device = max(received, key=lambda d: received[d], default=None)
    if device is None or received[device] <= most:
        return None
    reason = (
        f"{device} receives {received[device]:,} {graph.size_unit}s a period for ops"
        f" that may run nowhere else, and may receive {most:,}"
    )
    return {"rules": ["coverage", "received"], "reason": reason}


def _memory_conflict(graph: Graph, period: int | None) -> dict[str, Any] | None:
    """Hold the bounds of the memory against what the devices have."""
    sites = Sites.of(graph)
    memory = {device.id: device.memory for device in graph.devices}
    sets = working_sets(sites)
    for op in sorted(sets, key=lambda op: -sets[op].value):  # the least relaxation
        limits = [memory[site] for site in sites.allowed[op] if site is not None]
        known = [limit for limit in limits if limit is not None]
        if len(known) == len(limits) and max(known) < sets[op].value:
            reason = (
                f"{op} needs a memory of {sets[op].value:,} while it runs; no device"
                f" that is allowed to it has more than {max(known):,}"
            )
            return {"rules": ["memory"], "reason": reason, "ops": [op]}
    known = [limit for limit in memory.values() if limit is not None]
    total = total_memory(sites, period=period)
    if len(known) == len(memory) and sum(known) < total:
        reason = (
            f"all devices together need a memory of {ceil(total):,}"
            f"{'' if period is None else f' at a period of {period:,}'}, and have"
            f" {sum(known):,}"
        )
        rules = ["memory"] if period is None else ["memory", "period"]
        return {"rules": rules, "reason": reason}
    return None


def explain_infeasible(
    graph: Graph, params: SolveParams, *, seconds: float, solver: Solver
) -> dict[str, Any]:
    """Relax one rule family at a time and see whether a schedule appears.

    Returns
    -------
    dict
        ``rules``: the families whose relaxation alone makes the problem feasible;
        ``relaxations``: for each what would do (least period, least peak memory,
        delay values, what a device then receives); ``undecided``: families that the
        time did not settle.
    """
    families = list(_relaxed(graph, params))
    rules: list[str] = []
    relaxations: dict[str, Any] = {}
    undecided: list[str] = []
    for name, relaxed, objective, cap in families:
        trial = SolveParams(
            objective=(objective,),
            backend="auto" if params.backend == "partition" else params.backend,
            max_period=cap,
            max_received=None if name == "received" else params.max_received,
            time_limit=max(1.0, seconds / len(families)),
            seed=params.seed,
            workers=params.workers,
        )
        answer = solver(relaxed, trial)
        if answer.schedule is not None:
            rules.append(name)
            relaxations[name] = _what_would_do(name, graph, answer)
        elif str(answer.result.status) == "unknown":
            undecided.append(name)
    return {
        "rules": rules or [name for name, *_ in families],
        "reason": _sentence(rules, relaxations),
        "relaxations": relaxations,
        **({"undecided": undecided} if undecided else {}),
    }


def with_relaxations(
    conflict: Mapping[str, Any], explained: Mapping[str, Any]
) -> dict[str, Any]:
    """Add to a conflict what would do, if anything was found in time."""
    if not explained["relaxations"]:
        return dict(conflict)
    reason = f"{conflict['reason']}; {explained['reason']}"
    return {**conflict, **explained, "reason": reason}


def _relaxed(
    graph: Graph, params: SolveParams
) -> Iterator[tuple[str, Graph, str, int | None]]:
    """Each family that binds: its name, the graph without it, what to minimise."""
    cap = params.max_period
    if cap is not None:
        yield "period", graph, "period", None
    if has_memory_limit(graph):
        yield "memory", without_memory_limits(graph), "peak_memory", cap
    if params.max_received is not None:
        yield "received", graph, "communication", cap
    if any(delay.max is not None for delay in graph.delays.values()):
        yield "delay", graph.with_delay_max(None), "staleness", cap
    if graph.flush:
        yield "flush", graph.replace(flush=False), "period", cap
    if graph.colocate:
        yield "colocate", graph.replace(colocate=()), "period", cap
    if any(op.devices for op in graph.ops):
        ops = tuple(
            replace(op, devices=None)
            if op.devices and isinstance(op.duration, int)
            else op
            for op in graph.ops
        )
        yield "coverage", graph.replace(ops=ops), "period", cap


def _what_would_do(name: str, graph: Graph, answer: Answer) -> Mapping[str, Any]:
    schedule = answer.require_schedule()
    values = answer.result.objective
    proved = str(answer.result.status) == "optimal"
    if name == "period":
        return {"period": values["period"], "least": proved}
    if name == "memory":
        return {"memory": values["peak_memory"], "least": proved}
    if name == "delay":
        over = {
            delay: value
            for delay, value in schedule.delays.items()
            if (top := graph.delays[delay].max) is not None and value > top
        }
        return {"delays": over, "least": proved}
    if name == "received":
        homes = {op: placed.device for op, placed in schedule.ops.items()}
        return {"received": max(received_sizes(graph, homes).values(), default=0)}
    return {"period": values["period"]}


def _sentence(rules: list[str], relaxations: Mapping[str, Mapping[str, Any]]) -> str:
    if not rules:
        return "no single rule is to blame; the rules conflict together"
    parts = []
    for name in rules:
        what = {k: v for k, v in relaxations[name].items() if k != "least"}
        values = ", ".join(f"{k} {v}" for k, v in what.items())
        parts.append(f"without the {name} limit a schedule exists ({values})")
    return "; ".join(parts)
