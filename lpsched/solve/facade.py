"""`solve`: the lexicographically best schedule of a graph, with its proof."""

from __future__ import annotations

import threading
from dataclasses import replace

from lpsched.analysis.bounds import period_bound
from lpsched.analysis.pipeline import Pipeline
from lpsched.core.answer import Answer
from lpsched.core.graph import Graph
from lpsched.core.result import Proof, Status, Stop
from lpsched.core.schedule import Schedule
from lpsched.errors import Fault, InstanceError, NoScheduleError, UnsupportedError
from lpsched.heuristics import METHODS
from lpsched.solve.infeasible import explain_infeasible, impossible, with_relaxations
from lpsched.solve.params import Report, SolveParams
from lpsched.solve.pipeline import read_pipeline, search_pipeline
from lpsched.solve.search import Search, answer_with_claims
from lpsched.solve.settle import settle_all

__all__ = ["pin", "solve", "solve_by_method"]

#: Share of the time that the period of a pipeline gets if there is more to minimise.
PIPELINE_SHARE = 0.8

#: Share of the time after which heuristics that take long make do with what they have.
HEURISTICS_SHARE = 0.1

#: Share of the time for what would do where it is known at once that nothing does.
EXPLANATION_SHARE = 0.1


def solve(
    graph: Graph,
    params: SolveParams | None = None,
    *,
    report: Report | None = None,
    interrupt: threading.Event | None = None,
) -> Answer:
    """Find, prove and verify the best schedule of a graph.

    Objectives are settled in order, each at the best value of those before it. The
    status is ``optimal`` only if every one of them is proved.

    Parameters
    ----------
    graph : Graph
        The problem.
    params : SolveParams, optional
        Objectives, limits, back end.
    report : callable, optional
        Called with a `Snapshot` as the search goes on.
    interrupt : threading.Event, optional
        Once set, the search ends soon with the best schedule and bounds it has.

    Returns
    -------
    Answer
        With a verified schedule unless the status is ``infeasible`` or ``unknown``.

    Raises
    ------
    SolverError
        A solver failed or contradicted a proof or a verified schedule.
    """
    params = params or SolveParams()
    if params.fix is not None:
        pinned = pin(graph, params.fix)
        inner = replace(params, fix=None)
        answer = solve(pinned, inner, report=report, interrupt=interrupt)
        return _for_graph(answer, graph)
    search = Search(graph, params, report=report, interrupt=interrupt)
    conflict = impossible(
        graph, period=params.max_period, max_received=params.max_received
    )
    if conflict is None and _run(search):
        return search.answer()
    if conflict is None:
        seconds = search.remaining
        conflict = explain_infeasible(graph, params, seconds=seconds, solver=_plain)
    elif "memory" in conflict["rules"]:
        seconds = EXPLANATION_SHARE * params.time_limit
        more = explain_infeasible(graph, params, seconds=seconds, solver=_plain)
        conflict = with_relaxations(conflict, more)
    return replace(search.answer(status=Status.INFEASIBLE), conflict=conflict)


def _plain(graph: Graph, params: SolveParams) -> Answer:
    """Solve without explaining an infeasible outcome (which would not end)."""
    search = Search(graph, params)
    conflict = impossible(
        graph, period=params.max_period, max_received=params.max_received
    )
    feasible = conflict is None and _run(search)
    return search.answer(status=None if feasible else Status.INFEASIBLE)


def _run(search: Search) -> bool:
    """Search; False if it is proved that there is no schedule."""
    pipeline = read_pipeline(search.graph)
    if pipeline is not None:
        return _run_pipeline(search, pipeline)
    bound = period_bound(search.graph)
    if "period" in search.params.objective:
        search.raise_bound("period", bound.value, bound.proof)
    if search.cap is not None and bound.value > search.cap:
        return False
    _start(search)
    return settle_all(search)


def _run_pipeline(search: Search, pipeline: Pipeline) -> bool:
    """Search a synchronous pipeline by its own means, then settle what is left."""
    _offer_hint(search)
    share = 1.0 if len(search.params.objective) == 1 else PIPELINE_SHARE
    if not search_pipeline(search, pipeline, seconds=share * search.remaining):
        return False
    return settle_all(search)


def solve_by_method(
    graph: Graph, method: str, *, interrupt: threading.Event | None = None
) -> Answer:
    """Build one heuristic's schedule, verified; its status is ``feasible``.

    Parameters
    ----------
    interrupt : threading.Event, optional
        Once set, a method that takes long ends with the best schedule it has.

    Raises
    ------
    InstanceError
        An unknown method.
    UnsupportedError, NoScheduleError
        The method does not apply to this graph or finds nothing.
    """
    if method not in METHODS:
        text = f"unknown method {method!r}; known: {', '.join(METHODS)}"
        raise InstanceError([Fault("method", text)])
    search = Search(graph, SolveParams(), interrupt=interrupt)
    bound = period_bound(graph)
    search.raise_bound("period", bound.value, bound.proof)
    search.offer(METHODS[method].build(graph, search.interrupt.is_set), by=method)
    return search.answer(stop=None if search.interrupt.is_set() else Stop.METHOD)


def pin(graph: Graph, schedule: Schedule) -> Graph:
    """Return the graph with every op allowed only where `schedule` has it."""
    missing = [op.id for op in graph.ops if op.id not in schedule.ops]
    if missing:
        text = f"the schedule to keep has no op {missing[0]!r} of graph {graph.name!r}"
        raise InstanceError([Fault("fix", text)])
    ops = []
    for op in graph.ops:
        device = schedule.ops[op.id].device
        if device is not None and device not in graph.allowed(op.id):
            text = f"op {op.id!r} is not allowed on device {device!r}"
            raise InstanceError([Fault("fix", text)])
        ops.append(op if device is None else replace(op, devices=(device,)))
    return graph.replace(ops=tuple(ops))


def _for_graph(answer: Answer, graph: Graph) -> Answer:
    """Make the answer to a pinned graph one to the graph itself; verify again.

    The certificates speak of the pinned graph. What they prove holds given the
    placement, which the verifier cannot see, so they become a solver's word.
    """
    proof = {
        name: Proof(
            kind="exhaustion",
            value=p.value,
            certificate={"given": "placement", "kind": p.kind},
        )
        for name, p in answer.result.proof.items()
    }
    result = replace(answer.result, proof=proof)
    if answer.schedule is None:
        return replace(answer, result=result)
    check = Search(graph, SolveParams())
    check.offer(answer.schedule, by="solve")
    return answer_with_claims(graph, check.best, result)


def _start(search: Search) -> None:
    """Seed the search with the caller's hint and with every heuristic that applies."""
    search.report(search.params.objective[0], "heuristics")
    _offer_hint(search)
    enough = HEURISTICS_SHARE * search.params.time_limit
    for method in METHODS.values():
        if search.stopped:
            return
        if method.name == "layerpipe":
            continue  # the better of two that are offered themselves
        try:
            schedule = method.build(
                search.graph, lambda: search.stopped or search.seconds > enough
            )
        except (UnsupportedError, NoScheduleError):
            continue  # it does not apply to this graph; others will
        search.offer(schedule, by=method.name)
        search.seeds[method.name] = schedule
        search.starts.append(schedule.placement)


def _offer_hint(search: Search) -> None:
    """Take the hint as an incumbent if it is valid; else back ends start from it."""
    hint = search.params.hint
    if hint is None:
        return
    unknown = [op.id for op in search.graph.ops if op.id not in hint.ops]
    if unknown:
        text = f"it has no op {unknown[0]!r} of graph {search.graph.name!r}"
        raise InstanceError([Fault("hint", text)])
    strange = {p.device for p in hint.ops.values()} - {None, *search.graph.device_ids}
    if strange:
        text = (
            f"device {min(map(str, strange))!r} is none of graph {search.graph.name!r}"
        )
        raise InstanceError([Fault("hint", text)])
    if search.fits(hint):
        search.offer(hint, by="hint")
