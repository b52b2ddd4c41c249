"""One door to the exact back ends: choose, call, verify, cross-check."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from lpsched.core.result import Proof, Status
from lpsched.errors import SolverError
from lpsched.formulations.api import Backend, Limits, Outcome, Request
from lpsched.solve.search import Search

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
    shown = minimise or "period"
    request = Request(
        graph=search.graph,
        period=period,
        minimise=minimise,
        at_most=dict(at_most or {}),
        lower=search.bounds.get(minimise, 0) if minimise else 0,
        hint=search.best or search.params.hint,
    )
    limits = Limits(
        seconds=max(0.05, min(seconds, search.remaining)),
        seed=search.params.seed,
        workers=search.params.workers,
        options=search.params.options,
    )

    def progress(incumbent: int | None, bound: int | None) -> None:
        if minimise:
            search.report_values(shown, doing, incumbent, bound)

    search.report(shown, doing)
    used = used_name(search)
    search.searched(used)
    outcome = backend_of(used)(
        request, limits, progress=progress, interrupt=search.interrupt
    )
    if outcome.schedule is not None:
        search.offer(outcome.schedule, by=used)
    if outcome.status is Status.INFEASIBLE and feasible:
        raise SolverError(
            f"{used} calls period {period} infeasible, yet a verified schedule exists"
        )
    return outcome


def exhaustion(search: Search, value: int, **more: int) -> Proof:
    """Proof of a bound by a solver's word: it searched everything below."""
    solver = used_name(search)
    return Proof(kind="exhaustion", value=value, certificate={"solver": solver, **more})


def used_name(search: Search) -> str:
    """Name of the back end that serves this search."""
    name = search.params.backend
    return "cpsat" if name == "auto" else name
