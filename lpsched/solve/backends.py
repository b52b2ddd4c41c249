"""One door to the exact back ends: choose, call, verify, cross-check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

from lpsched.core.result import Proof, Status, Stop
from lpsched.errors import SolverError, UnsupportedError
from lpsched.formulations.api import Backend, Limits, Outcome, Request
from lpsched.solve.relax import has_memory_limit, without_memory_limits
from lpsched.solve.search import Search

#: Share of a search's time that may go to the problem without memory limits.
RELAXED_SHARE = 0.4

__all__ = ["exhaustion", "probe", "used_name"]


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
        outcome = _ask(search, request, seconds, doing)
    if outcome.schedule is not None:
        search.offer(outcome.schedule, by=used_name(search))
    if outcome.status is Status.INFEASIBLE and feasible:
        raise SolverError(
            f"{used_name(search)} calls period {period} infeasible,"
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

    used = used_name(search)
    search.searched(used)
    try:
        return backend_of(used)(
            request, limits, progress=progress, interrupt=search.interrupt
        )
    except UnsupportedError as error:
        if search.best is None:
            raise
        # What has been found stands; the result says why no more was.
        search.stats["unsupported"] = str(error)
        return Outcome(status=Status.UNKNOWN, stop=Stop.METHOD)


def exhaustion(search: Search, value: int, **more: int) -> Proof:
    """Proof of a bound by a solver's word: it searched everything below."""
    solver = used_name(search)
    return Proof(kind="exhaustion", value=value, certificate={"solver": solver, **more})


def used_name(search: Search) -> str:
    """Name of the back end that serves this search."""
    name = search.params.backend
    return "cpsat" if name == "auto" else name
