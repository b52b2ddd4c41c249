"""One door to the exact back ends: choose, call, verify, cross-check."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib import import_module

from lpsched.analysis.freedom import has_free_delays
from lpsched.core.graph import Graph
from lpsched.core.result import Proof, Status, Stop
from lpsched.errors import SolverError, UnsupportedError
from lpsched.formulations.api import Backend, Limits, Outcome, Request
from lpsched.solve.relax import has_memory_limit, without_memory_limits
from lpsched.solve.search import Search

#: Share of a search's time that may go to the problem without memory limits.
RELAXED_SHARE = 0.4

__all__ = ["exhaustion", "is_placement", "probe"]


def backend_of(name: str) -> Backend:
    """Return a back end by name; its solver is loaded only now."""
    module = import_module(f"lpsched.formulations.{name}")
    backend: Backend = module.solve_at_period
    return backend


def probe(
    search: Search,
    period: int,
    *,
    seconds: float,
    minimise: str | None = None,
    at_most: Mapping[str, int] | None = None,
    doing: str,
    feasible: bool = False,
) -> Outcome:
    """Ask the back end for a schedule of exactly `period`; offer what comes back.

    Parameters
    ----------
    feasible : bool
        A verified schedule shows that one exists; "infeasible" is then an error.

    Raises
    ------
    SolverError
        The back end's word contradicts a verified schedule or a proved bound.
    """
    request = Request(
        graph=search.graph,
        period=period,
        minimise=minimise,
        at_most=dict(at_most or {}),
        lower=search.bounds.get(minimise, 0) if minimise else 0,
        hint=search.best or search.params.hint,
    )
    search.report(minimise or "period", doing)
    outcome = _without_memory(search, request, seconds, doing)
    if outcome is None:
        if minimise:
            request = replace(request, lower=search.bounds.get(minimise, 0))
        outcome = _ask(search, request, seconds, doing)
    if outcome.schedule is not None:
        search.offer(outcome.schedule, by=outcome.solver)
    if outcome.status is Status.INFEASIBLE and feasible:
        raise SolverError(
            f"{outcome.solver} calls period {period} infeasible,"
            " yet a verified schedule exists"
        )
    return outcome


def _without_memory(
    search: Search, request: Request, seconds: float, doing: str
) -> Outcome | None:
    """Drop the memory limits, which are hard to search with and often do not bind.

    What is infeasible without them is so with them; an optimum that fits them is the
    optimum. None if there are no limits, or if the answer does not settle the matter.
    """
    graph = search.graph
    if not has_memory_limit(graph) or "peak_memory" in (
        request.minimise,
        *request.at_most,
    ):
        return None
    relaxed = replace(request, graph=without_memory_limits(graph))
    outcome = _ask(search, relaxed, seconds * RELAXED_SHARE, doing)
    if outcome.status is Status.INFEASIBLE:
        return outcome
    if request.minimise and outcome.bound is not None:
        proof = exhaustion(outcome, outcome.bound)
        search.raise_bound(request.minimise, outcome.bound, proof)
    if outcome.status is Status.OPTIMAL and outcome.schedule is not None:
        return outcome if search.fits(outcome.schedule) else None
    return None


def _ask(search: Search, request: Request, seconds: float, doing: str) -> Outcome:
    limits = Limits(
        seconds=max(0.05, min(seconds, search.remaining)),
        seed=search.params.seed,
        workers=search.params.workers,
        options=search.params.options,
    )

    def progress(incumbent: int | None, bound: int | None) -> None:
        if request.minimise:
            search.report_values(request.minimise, doing, incumbent, bound)

    refusal = None
    for used in _serving(search.params.backend, request):
        try:
            outcome = backend_of(used)(
                request, limits, progress=progress, interrupt=search.interrupt
            )
        except UnsupportedError as error:
            refusal = error
            continue
        search.searched(used)
        return replace(outcome, solver=used)
    if search.best is None and refusal is not None:
        raise refusal
    # What has been found stands; the result says why no more was.
    search.stats["unsupported"] = str(refusal)
    return Outcome(status=Status.UNKNOWN, stop=Stop.METHOD, solver=search.found_by)


def _serving(backend: str, request: Request) -> tuple[str, ...]:
    """Names of the back ends for a request, the one to ask first first."""
    if backend != "auto":
        return (backend,)
    asked = {*request.at_most, *filter(None, [request.minimise])}
    is_for_partition = is_placement(request.graph, asked)
    return ("partition", "cpsat") if is_for_partition else ("cpsat",)


def is_placement(graph: Graph, asked: Collection[str]) -> bool:
    """Whether placement decides alone: communication is asked and delays are free."""
    return set(asked) == {"communication"} and has_free_delays(graph)


def exhaustion(outcome: Outcome, value: int, **more: int) -> Proof:
    """Proof of a bound by a solver's word: it searched everything below."""
    certificate = {"solver": outcome.solver, **more}
    return Proof(kind="exhaustion", value=value, certificate=certificate)
