"""One door to the exact back ends: choose, call, verify, cross-check."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import NamedTuple

from lpsched.analysis.freedom import has_free_delays
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.result import Proof, Status, Stop
from lpsched.errors import SolverError, UnsupportedError
from lpsched.formulations.api import Backend, Limits, Outcome, Progress, Request
from lpsched.solve.params import SolveParams
from lpsched.solve.relax import has_memory_limit, without_memory_limits
from lpsched.solve.search import Search

#: Share of a search's time that may go to the problem without memory limits.
RELAXED_SHARE = 0.4
#: The same where any schedule of a period is asked for.
PROBE_SHARE = 0.1

__all__ = ["exhaustion", "is_placement", "probe"]


#: Share of an answer's time that may go to listing placements.
LISTING_SHARE = 0.6

#: Share of an answer's time for placements in order of communication, each timed.
TIMED_SHARE = 0.8

#: The same where delays have limits, so that fewer of these placements have times; and
#: how many ops there may be.
SOUGHT_SHARE, MOST_SOUGHT = 0.8, 200

#: Work, as CP-SAT counts it, in which it settles most of what placements would: about
#: a second. No time, so that the same search goes the same way everywhere.
FIRST_WORK = 0.6

#: Ops up to which it is asked first wherever memory is limited, too.
SMALL = 30


class _Turn(NamedTuple):
    """A back end, the share of the time left that it may take, and its work.

    A substitute is asked only if the one before refused.
    """

    name: str
    share: float = 1.0
    work: float | None = None
    is_substitute: bool = False


def backend_of(name: str) -> Backend:
    """Return a back end by name; its solver is loaded only now."""
    module = import_module(f"lpsched.formulations.{name}")
    if name == "placements":
        by_placements: Backend = module.ByPlacements(timed_by=backend_of("cpsat"))
        return by_placements
    if name == "partition":
        return partial(module.solve_at_period, timed_by=_cpsat)
    backend: Backend = module.solve_at_period
    return backend


def _cpsat(
    request: Request,
    limits: Limits,
    *,
    progress: Progress | None = None,
    interrupt: threading.Event | None = None,
) -> Outcome:
    """Ask CP-SAT, which takes a while to load and times few placements."""
    back_end = backend_of("cpsat")
    return back_end(request, limits, progress=progress, interrupt=interrupt)


def probe(
    search: Search,
    period: int,
    *,
    seconds: float,
    minimise: str | None = None,
    at_most: Mapping[str, int] | None = None,
    doing: str,
    feasible: bool = False,
    placement: Mapping[OpId, DeviceId] | None = None,
) -> Outcome:
    """Ask the back end for a schedule of exactly `period`; offer what comes back.

    Parameters
    ----------
    feasible : bool
        A verified schedule shows that one exists; "infeasible" is then an error.
    placement : mapping of OpId to DeviceId, optional
        Devices to keep; the outcome then speaks of these alone.

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
        max_received=search.params.max_received,
        placement=placement or {},
        hint=search.best or search.params.hint,
        starts=search.starts if minimise == "communication" else (),
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
    graph, asked = search.graph, _asked(request)
    if not has_memory_limit(graph) or "peak_memory" in asked:
        return None
    if has_free_delays(graph, but_for_memory=True) and asked <= {"communication"}:
        return None  # placements are sought with the limits in view
    relaxed = replace(request, graph=without_memory_limits(graph))
    share = RELAXED_SHARE if asked else PROBE_SHARE
    outcome = _ask(search, relaxed, seconds * share, doing)
    if outcome.status is Status.INFEASIBLE:
        return outcome
    if request.minimise and outcome.bound is not None and not request.placement:
        proof = exhaustion(outcome, outcome.bound)
        search.raise_bound(request.minimise, outcome.bound, proof)
    if outcome.status is Status.OPTIMAL and outcome.schedule is not None:
        if search.fits(outcome.schedule):
            return outcome
        if request.minimise == "communication":
            return _timed_anew(search, request, outcome, seconds * RELAXED_SHARE, doing)
    return None


def _timed_anew(
    search: Search, request: Request, relaxed: Outcome, seconds: float, doing: str
) -> Outcome | None:
    """Give a placement times that keep the memory limits; None if none are found.

    If it is the best without these limits, it then is so with them.
    """
    if relaxed.schedule is None or relaxed.bound is None:
        return None
    again = replace(
        request,
        minimise=None,
        at_most={**request.at_most, "communication": relaxed.bound},
        lower=0,
        placement=relaxed.schedule.placement,
    )
    found = _ask(search, again, seconds, doing)
    if found.schedule is None:
        return None
    solver = f"{relaxed.solver}+{found.solver}"
    return replace(relaxed, schedule=found.schedule, solver=solver)


def _ask(search: Search, request: Request, seconds: float, doing: str) -> Outcome:
    """Ask the back ends that serve, one after the other, until one settles it."""
    end = max(0.0, search.remaining - seconds)

    def progress(incumbent: int | None, bound: int | None) -> None:
        if request.minimise:
            search.report_values(request.minimise, doing, incumbent, bound)

    last: Outcome | None = None
    refusal = None
    for used, share, work, is_substitute in _serving(search.params, request):
        if is_substitute and refusal is None:
            continue
        limits = Limits(
            seconds=max(0.05, (search.remaining - end) * share),
            work=work,
            seed=search.params.seed,
            workers=search.params.workers,
            options=search.params.options,
        )
        try:
            if used not in search.backends:
                search.backends[used] = backend_of(used)
            outcome = search.backends[used](
                _continued(request, last),
                limits,
                progress=progress,
                interrupt=search.interrupt,
            )
        except UnsupportedError as error:
            refusal = error
            continue
        search.searched(used)
        last = _merged(replace(outcome, solver=used), last)
        if outcome.stop is Stop.PROVED or search.stopped or search.remaining <= end:
            break
    if last is not None:
        return last
    if search.best is None and refusal is not None:
        raise refusal
    # What has been found stands; the result says why no more was.
    search.stats["unsupported"] = str(refusal)
    return Outcome(status=Status.UNKNOWN, stop=Stop.METHOD, solver=search.found_by)


def _continued(request: Request, last: Outcome | None) -> Request:
    """Go on from what the back end before could do."""
    if last is None:
        return request
    lower = max(request.lower, last.bound or 0)
    return replace(request, lower=lower, hint=last.schedule or request.hint)


def _merged(outcome: Outcome, last: Outcome | None) -> Outcome:
    """Name the back ends whose word a bound rests on; keep a schedule found before."""
    if last is None:
        return outcome
    named = dict.fromkeys([*last.solver.split("+"), outcome.solver])
    schedule = outcome.schedule or last.schedule
    return replace(outcome, schedule=schedule, solver="+".join(named))


def _serving(params: SolveParams, request: Request) -> tuple[_Turn, ...]:
    """Back ends for a request, the one to ask first first."""
    if params.backend == "partition" and request.minimise is None:
        # Times under all caps are sought, which it leaves to CP-SAT in any case.
        return (_Turn("partition"), _Turn("cpsat", is_substitute=True))
    if params.backend != "auto":
        return (_Turn(params.backend),)
    asked, graph = _asked(request), request.graph
    is_free = has_free_delays(graph, but_for_memory=True)
    is_limited = has_memory_limit(graph)
    is_small = len(graph.ops) <= SMALL
    first = _Turn("cpsat", work=FIRST_WORK)
    is_packing = is_limited or request.max_received is not None
    if is_free and (asked == {"communication"} or (is_packing and not asked)):
        share = TIMED_SHARE if is_limited else 1.0
        placed = (_Turn("partition", share=share), _Turn("cpsat"))
        return (first, *placed) if is_limited and is_small else placed
    turns = [_Turn("cpsat")]
    if is_free:
        return tuple(turns)
    if "communication" in asked and params.options.get("placements", True):
        if not is_limited:
            substitute = _Turn("partition", share=TIMED_SHARE, is_substitute=True)
            turns.insert(0, substitute)
        turns.insert(0, _Turn("placements", share=LISTING_SHARE))
    if is_limited and asked <= {"communication"} and len(graph.ops) <= MOST_SOUGHT:
        turns.insert(0, _Turn("partition", share=SOUGHT_SHARE))
    is_quick = bool(asked) or is_small
    if is_quick and len(turns) > 1 and params.options.get("first", True):
        turns.insert(0, first)
    return tuple(turns)


def _asked(request: Request) -> set[str]:
    """Objectives that a request minimises or caps."""
    return {*request.at_most, *filter(None, [request.minimise])}


def is_placement(graph: Graph, asked: Collection[str]) -> bool:
    """Whether placement decides alone: communication is asked and delays are free."""
    return set(asked) == {"communication"} and has_free_delays(graph)


def exhaustion(outcome: Outcome, value: int, **more: int) -> Proof:
    """Proof of a bound by a solver's word: it searched everything below."""
    certificate = {"solver": outcome.solver, **more}
    return Proof(kind="exhaustion", value=value, certificate=certificate)
