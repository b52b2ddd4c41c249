"""Lower bounds of every objective, each with a certificate that anyone can check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil

from lpsched.analysis.certified import Bound, certified
from lpsched.analysis.critical_path import critical_path
from lpsched.analysis.dataflow import flow_of
from lpsched.analysis.iteration_bound import LoopWithoutDelayError, iteration_bound
from lpsched.analysis.load_bounds import (
    assignment_bound,
    group_bound,
    resource_bounds,
)
from lpsched.analysis.packing_bound import packing_bounds
from lpsched.analysis.placement_bounds import communication_bounds, memory_bounds
from lpsched.analysis.sites import Sites
from lpsched.analysis.staleness_bound import staleness_bound
from lpsched.analysis.synchronous import pipeline_bounds
from lpsched.analysis.transfer_bound import transfer_bound
from lpsched.analysis.window_bound import window_bounds
from lpsched.core.graph import Graph
from lpsched.core.order import topological_order
from lpsched.core.over import Over, never
from lpsched.core.result import Proof

__all__ = [
    "Bound",
    "infeasible_cycle",
    "objective_bounds",
    "period_bound",
    "period_bounds",
]


def infeasible_cycle(graph: Graph) -> Proof | None:
    """Find a loop that takes time but carries no delay; None if there is none.

    With one, no schedule of any period exists. Its proof is of kind ``cycle`` without
    a value.
    """
    before: dict[str, list[str]] = {op.id: [] for op in graph.ops}
    for edge in graph.edges:
        if edge.delay == 0:
            before[edge.dst].append(edge.src)
    if not topological_order(before)[1]:
        return None  # no loop without delay at all: told in a fraction of the time
    try:
        iteration_bound(graph)
    except LoopWithoutDelayError as error:
        certificate = {"ops": list(error.loop), "edges": list(error.edges)}
        return Proof(kind="cycle", certificate=certificate)
    return None


def period_bounds(graph: Graph) -> tuple[Bound, ...]:
    """Lower bounds of the period, in ticks, greatest first.

    ``cycle`` (the iteration bound, and with the transfers that cycles cannot avoid),
    ``resource`` (work of devices, longest op or colocate group), ``assignment``
    (unequal devices), ``packing`` (indivisible ops) and, with flush, ``path`` and
    ``window`` (work between what precedes and follows it); for synchronous pipelines
    those of `chain_bounds` (``pipeline``). Among equals the simpler stands first.

    Raises
    ------
    LoopWithoutDelayError
        If a loop takes time but carries no delay; see `infeasible_cycle`.
    """
    sites = Sites.of(graph)
    bounds = [*_cycle_bounds(graph), *_load_bounds(sites)]
    if graph.flush:
        bounds.append(_path_bound(graph, "period"))
    least = max((bound.value for bound in bounds), default=0)
    stronger = transfer_bound(sites, flow_of(graph), least=least)
    if stronger is not None:
        bounds.append(stronger)
        least = stronger.value
    bounds.extend(packing_bounds(sites, least=least))
    if graph.flush:
        bounds.extend(_window_bounds(graph, sites, bounds, "period"))
    bounds.extend(pipeline_bounds(graph))
    bounds.sort(key=lambda bound: -bound.value)
    return tuple(bounds)


def period_bound(graph: Graph) -> Bound:
    """Return the greatest lower bound of the period; see `period_bounds`.

    A graph without work has a period of 1 at least, like any: kind ``trivial``.
    """
    trivial = Bound(objective="period", value=1, proof=Proof(kind="trivial", value=1))
    return max((*period_bounds(graph), trivial), key=lambda bound: bound.value)


def objective_bounds(
    graph: Graph, objective: str, *, period: int | None = None, over: Over = never
) -> tuple[Bound, ...]:
    """Lower bounds of any objective, greatest first.

    Parameters
    ----------
    objective : str
        ``period``, ``communication``, ``staleness``, ``peak_memory`` or ``makespan``.
    period : int, optional
        The longest period that schedules may have, in ticks; without it bounds hold
        for every period, but are weaker.

    Raises
    ------
    LoopWithoutDelayError
        If a loop takes time but carries no delay (period and makespan).
    OutOfTimeError
        Once `over` says so (staleness, whose bound may take seconds).
    """
    if objective == "period":
        return period_bounds(graph)
    sites = Sites.of(graph)
    bounds: Iterable[Bound]
    if objective == "communication":
        bounds = communication_bounds(sites, period=period)
    elif objective == "peak_memory":
        bounds = memory_bounds(sites, period=period)
    elif objective == "makespan":
        bounds = _makespan_bounds(graph, sites)
    elif objective == "staleness":
        found = staleness_bound(graph, period=period, over=over)
        bounds = () if found is None else (found,)
    else:
        raise ValueError(f"no objective {objective!r}")
    return tuple(sorted(bounds, key=lambda bound: -bound.value))


def _cycle_bounds(graph: Graph) -> Iterator[Bound]:
    bound = iteration_bound(graph)
    if bound.value > 0:
        certificate = {"ops": list(bound.loop), "edges": list(bound.edges)}
        yield certified("period", "cycle", ceil(bound.value), certificate)


def _load_bounds(sites: Sites) -> Iterator[Bound]:
    known = [*resource_bounds(sites)]
    group = group_bound(sites)
    if group is not None and group.value > 0:
        known.append(group)
    yield from known
    assignment = assignment_bound(sites)
    if assignment is not None and all(assignment.value > b.value for b in known):
        yield assignment


def _path_bound(graph: Graph, objective: str) -> Bound:
    path = critical_path(graph)
    certificate = {"ops": list(path.nodes), "edges": list(path.edges)}
    return certified(objective, "path", path.length, certificate)


def _makespan_bounds(graph: Graph, sites: Sites) -> Iterator[Bound]:
    """The longest path; and work, as ops of one iteration take turns on a device."""
    bounds = [*_load_bounds(sites)]
    least = max((bound.value for bound in bounds), default=0)
    bounds.extend(packing_bounds(sites, least=least))
    known = [_path_bound(graph, "makespan")]
    known.extend(replace(bound, objective="makespan") for bound in bounds)
    yield from known
    yield from _window_bounds(graph, sites, known, "makespan")
    yield from pipeline_bounds(graph, "makespan")


def _window_bounds(
    graph: Graph, sites: Sites, known: Sequence[Bound], objective: str
) -> Iterator[Bound]:
    """Windows that bound an objective better than all bounds known."""
    least = max((bound.value for bound in known), default=0)
    yield from window_bounds(sites, flow_of(graph), objective=objective, least=least)
