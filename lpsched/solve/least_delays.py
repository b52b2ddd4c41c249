"""LayerPipe's delays beside the least that the best period needs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lpsched.analysis.layerpipe import layerpipe_delays, stages_of_schedule
from lpsched.analysis.staleness_bound import least_delays
from lpsched.analysis.stretching import stretched
from lpsched.core.graph import DelayName, Graph, OpId
from lpsched.core.schedule import Schedule
from lpsched.heuristics import layerpipe
from lpsched.heuristics.annealing import freshen
from lpsched.solve.facade import solve
from lpsched.solve.params import Report, SolveParams

__all__ = ["DelayTable", "compare_delays", "staleness"]


#: Shares of the time: for the period, for annealing at it and at LayerPipe's; the rest
#: is for a proof.
PERIOD_SHARE, ANNEAL_SHARE, SAME_SHARE = 0.3, 0.3, 0.2


@dataclass(frozen=True, kw_only=True)
class DelayTable:
    """The delays of one problem, by rule, by LayerPipe's schedule, by the optimum.

    Attributes
    ----------
    layerpipe : Schedule
        The heuristic's schedule, whose devices are the stages.
    same_period : Schedule
        Of LayerPipe's period, with the least staleness found.
    best : Schedule or None
        Of the best period found, and at it of the least staleness found.
    stages : mapping of OpId to int
        Stage of each op.
    rule : mapping of DelayName to int
        1 + 2·S(l).
    loops : mapping of DelayName to int
        What the loops of the graph need at the best period, on any devices: no
        schedule of this period has a smaller delay. Empty without a schedule.
    period_bound, staleness_bound : int
        Proved lower bounds; of the staleness at the best period.
    """

    graph: Graph
    layerpipe: Schedule
    same_period: Schedule
    best: Schedule | None
    stages: Mapping[OpId, int]
    rule: Mapping[DelayName, int]
    loops: Mapping[DelayName, int]
    period_bound: int
    staleness_bound: int

    @property
    def optimum(self) -> Mapping[DelayName, int]:
        """Delays of the best schedule found; empty if there is none."""
        return {} if self.best is None else self.best.delays

    def document(self) -> dict[str, Any]:
        """Plain JSON data: totals, then one entry a delay."""
        best = self.best
        return {
            "devices": len(self.graph.devices),
            "stages": max(self.stages.values()) + 1,
            "layerpipe_period": self.layerpipe.period,
            "period": None if best is None else best.period,
            "period_proved": best is not None and best.period == self.period_bound,
            "staleness": {
                "rule": staleness(self.rule),
                "layerpipe": staleness(self.layerpipe.delays),
                "same_period": staleness(self.same_period.delays),
                "optimum": None if best is None else staleness(best.delays),
                "bound": self.staleness_bound,
            },
            "delays": {
                name: {
                    "stage": self.stage_of(name),
                    "rule": value,
                    "layerpipe": self.layerpipe.delays[name],
                    "same_period": self.same_period.delays[name],
                    "optimum": self.optimum.get(name),
                    "loops": self.loops.get(name),
                }
                for name, value in self.rule.items()
            },
        }

    def stage_of(self, name: DelayName) -> int:
        """Stage of the earliest forward that reads weights with this delay."""
        return max(self.stages.values()) - (self.rule[name] - 1) // 2


def staleness(delays: Mapping[DelayName, int]) -> int:
    """Sum over delays of (value - 1)."""
    return sum(delays.values()) - len(delays)


def compare_delays(
    graph: Graph,
    params: SolveParams | None = None,
    *,
    report: Report | None = None,
    interrupt: threading.Event | None = None,
) -> DelayTable:
    """Set LayerPipe's delays beside the least that the best period needs.

    Stages are the devices of LayerPipe's schedule of the graph. Its period needs less
    delay when ops may run on any device: that is sought by annealing (`freshen`). The
    optimum is the least period, and at it the least staleness, sought by the solver, by
    annealing, and by the solver again, which may prove it.

    Parameters
    ----------
    graph : Graph
        An asynchronous training graph with named delays.
    params : SolveParams, optional
        Limits; the objective is period, then staleness.

    Raises
    ------
    UnsupportedError
        If the graph is no training graph of layers or has no named delays.
    """
    params = params or SolveParams()
    start = _beginning(graph)
    same = _fresher(start, start.layerpipe, SAME_SHARE, params, interrupt)
    table = replace(start, same_period=same)
    first = _share(params, PERIOD_SHARE, objective=("period",))
    first = replace(first, hint=start.layerpipe)
    answer = solve(graph, first, report=report, interrupt=interrupt)
    found = answer.schedule
    if found is None:
        return table
    loops = _loops(graph, found.period)
    chosen = same if same.period == found.period else found
    table = replace(
        table,
        best=_fresher(table, chosen, ANNEAL_SHARE, params, interrupt),
        loops=loops,
        period_bound=answer.result.bound.get("period", 0),
        staleness_bound=staleness(loops),
    )
    left = 1 - PERIOD_SHARE - ANNEAL_SHARE - SAME_SHARE
    table = _proved(table, _share(params, left), report, interrupt)
    return replace(table, same_period=_fewer(table))


def _share(
    params: SolveParams, share: float, *, objective: tuple[str, ...] = ("staleness",)
) -> SolveParams:
    return replace(params, objective=objective, time_limit=share * params.time_limit)


def _beginning(graph: Graph) -> DelayTable:
    """LayerPipe's schedule with its stages and its rule; nothing else yet."""
    schedule = layerpipe(graph)
    stages = stages_of_schedule(graph, schedule)
    return DelayTable(
        graph=graph,
        layerpipe=schedule,
        same_period=schedule,
        best=None,
        stages=stages,
        rule=layerpipe_delays(graph, stages),
        loops={},
        period_bound=0,
        staleness_bound=0,
    )


def _fresher(
    table: DelayTable,
    schedule: Schedule,
    share: float,
    params: SolveParams,
    interrupt: threading.Event | None,
) -> Schedule:
    """Lower a schedule's staleness by annealing, down to what its loops need."""
    return freshen(
        table.graph,
        schedule,
        enough=staleness(_loops(table.graph, schedule.period)),
        seconds=share * params.time_limit,
        seed=params.seed,
        interrupt=interrupt,
    )


def _fewer(table: DelayTable) -> Schedule:
    """At LayerPipe's longer period the best schedule's delays would do as well."""
    same = table.same_period
    if table.best is None or staleness(table.optimum) >= staleness(same.delays):
        return same
    return stretched(table.graph, table.best, table.layerpipe.period)


def _loops(graph: Graph, period: int) -> dict[DelayName, int]:
    """What the loops need at a period; empty if it cannot be met."""
    needs = least_delays(graph, period) or {}
    return {name: need.value for name, need in needs.items()}


def _proved(
    table: DelayTable,
    params: SolveParams,
    report: Report | None,
    interrupt: threading.Event | None,
) -> DelayTable:
    """Let the solver lower the staleness at the best period, and its bound rise."""
    best = table.best
    if best is None or staleness(best.delays) == table.staleness_bound:
        return table
    last = replace(params, max_period=best.period, hint=best, fix=None)
    answer = solve(table.graph, last, report=report, interrupt=interrupt)
    bound = max(table.staleness_bound, answer.result.bound.get("staleness", 0))
    found = answer.schedule or best
    better = staleness(found.delays) < staleness(best.delays)
    return replace(table, best=found if better else best, staleness_bound=bound)
