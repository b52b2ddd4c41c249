"""LayerPipe's delays beside the least that the best period needs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lpsched.analysis.layerpipe import layerpipe_delays, stages_of_schedule
from lpsched.analysis.staleness_bound import least_delays
from lpsched.core.answer import Answer
from lpsched.core.graph import DelayName, Graph, OpId
from lpsched.core.schedule import Schedule
from lpsched.heuristics import layerpipe
from lpsched.solve.facade import solve
from lpsched.solve.params import Report, SolveParams

__all__ = ["DelayTable", "compare_delays", "staleness"]


@dataclass(frozen=True, kw_only=True)
class DelayTable:
    """The delays of one problem, by rule, by LayerPipe's schedule, by the optimum.

    Attributes
    ----------
    layerpipe : Schedule
        The heuristic's schedule, whose devices are the stages.
    answer : Answer
        The best period found, and at it the least staleness found, each with a bound.
    stages : mapping of OpId to int
        Stage of each op.
    rule : mapping of DelayName to int
        1 + 2·S(l).
    loops : mapping of DelayName to int
        What the loops of the graph need at the answer's period, on any devices: no
        schedule of this period has a smaller delay. Empty without a schedule.
    """

    graph: Graph
    layerpipe: Schedule
    answer: Answer
    stages: Mapping[OpId, int]
    rule: Mapping[DelayName, int]
    loops: Mapping[DelayName, int]

    @property
    def optimum(self) -> Mapping[DelayName, int]:
        """Delays of the best schedule found; empty if there is none."""
        schedule = self.answer.schedule
        return {} if schedule is None else schedule.delays

    @property
    def staleness_bound(self) -> int:
        """Least staleness at the answer's period, as far as it is proved."""
        proved = self.answer.result.bound.get("staleness", 0)
        return max(proved, staleness(self.loops))

    def document(self) -> dict[str, Any]:
        """Plain JSON data: totals, then one entry a delay."""
        schedule = self.answer.schedule
        return {
            "devices": len(self.graph.devices),
            "stages": max(self.stages.values()) + 1,
            "layerpipe_period": self.layerpipe.period,
            "period": None if schedule is None else schedule.period,
            "period_proved": schedule is not None
            and self.answer.result.bound.get("period") == schedule.period,
            "staleness": {
                "rule": staleness(self.rule),
                "layerpipe": staleness(self.layerpipe.delays),
                "optimum": None if schedule is None else staleness(self.optimum),
                "bound": self.staleness_bound,
            },
            "delays": {
                name: {
                    "stage": self.stage_of(name),
                    "rule": value,
                    "layerpipe": self.layerpipe.delays[name],
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

    Stages are the devices of LayerPipe's schedule of the graph. The optimum is the
    least period, and at it the least staleness: what the rule could be if the ops were
    free to run anywhere.

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
    params = replace(params or SolveParams(), objective=("period", "staleness"))
    schedule = layerpipe(graph)
    stages = stages_of_schedule(graph, schedule)
    rule = layerpipe_delays(graph, stages)
    answer = solve(graph, params, report=report, interrupt=interrupt)
    loops: Mapping[DelayName, int] = {}
    if answer.schedule is not None:
        needs = least_delays(graph, answer.schedule.period) or {}
        loops = {name: need.value for name, need in needs.items()}
    return DelayTable(
        graph=graph,
        layerpipe=schedule,
        answer=answer,
        stages=stages,
        rule=rule,
        loops=loops,
    )
