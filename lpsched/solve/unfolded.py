"""Schedules of J iterations at once: periods that are no integer per iteration."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from lpsched.analysis.dataflow import require_fixed_delays
from lpsched.analysis.delays import delay_values, fix_delays
from lpsched.analysis.unfolding import fold_schedule, unfold, unfold_schedule
from lpsched.core.answer import Answer
from lpsched.core.graph import DelayName, Graph
from lpsched.core.schedule import Schedule
from lpsched.solve.facade import solve
from lpsched.solve.params import Report, SolveParams

__all__ = ["UnfoldedAnswer", "solve_unfolded"]

#: Share of the time for the plain graph, whose best schedule, repeated, is the hint.
PLAIN_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class UnfoldedAnswer:
    """The answer to an unfolded graph.

    Attributes
    ----------
    graph : Graph
        The unfolded graph; its schedules have iteration period T / J.
    answer : Answer
        Its best schedule, claims and proofs; all of them speak of J iterations.
    folded : Schedule or None
        The same as a schedule of the graph itself, with period T / J; None where the
        J iterations run differently, or where there is no schedule.
    """

    graph: Graph
    answer: Answer
    folded: Schedule | None = None


def solve_unfolded(
    graph: Graph,
    J: int,  # noqa: N803 - as in the mathematics
    params: SolveParams | None = None,
    *,
    delays: Mapping[DelayName, int] | Literal["min", "max"] | None = None,
    report: Report | None = None,
    interrupt: threading.Event | None = None,
) -> UnfoldedAnswer:
    """Find the best schedule of J iterations of a graph.

    It may beat every schedule of one iteration: the period T of the block serves J
    iterations, and T / J need not be an integer. It is never worse than the best
    schedule found of the graph itself, which is the starting point.

    Parameters
    ----------
    graph : Graph
        The graph to unfold.
    J : int
        Iterations, at least 1.
    params : SolveParams, optional
        Of the unfolded problem: caps and hints speak of J iterations.
    delays : mapping, "min" or "max", optional
        Values of the named delays, which must be fixed first; see `fix_delays`.

    Raises
    ------
    InstanceError
        If delays are missing or do not fit, naming each.
    ValueError
        If J < 1.
    """
    params = params or SolveParams()
    if delays is None:
        require_fixed_delays(graph)
    values = {} if delays is None else delay_values(graph, delays)
    fixed = fix_delays(graph, values)
    unfolded = unfold(fixed, J)
    if params.hint is None and params.fix is None and J > 1:
        params = _hinted(fixed, unfolded, J, params, interrupt)
    answer = solve(unfolded, params, report=report, interrupt=interrupt)
    if answer.schedule is None:
        return UnfoldedAnswer(graph=unfolded, answer=answer)
    folded = fold_schedule(answer.schedule, graph, J, delays=values)
    return UnfoldedAnswer(graph=unfolded, answer=answer, folded=folded)


def _hinted(
    fixed: Graph,
    unfolded: Graph,
    J: int,  # noqa: N803 - as in the mathematics
    params: SolveParams,
    interrupt: threading.Event | None,
) -> SolveParams:
    """Spend some of the time on the graph itself; repeat what comes of it J times."""
    plain = replace(
        params,
        objective=("period",),
        max_period=None,
        max_received=None,
        time_limit=PLAIN_SHARE * params.time_limit,
    )
    answer = solve(fixed, plain, interrupt=interrupt)
    if answer.schedule is None:
        return params
    left = max(params.time_limit - (answer.result.seconds or 0.0), 1e-3)
    hint = unfold_schedule(answer.schedule, unfolded, J)
    return replace(params, hint=hint, time_limit=left)
