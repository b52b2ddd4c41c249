"""The state of one search: best schedule, bounds, proofs, time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace

from lpsched._version import __version__
from lpsched.analysis.metrics import measure, received_sizes
from lpsched.core.answer import Answer
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.io import graph_digest
from lpsched.core.result import INTEGER_OBJECTIVES, Proof, Result, Status, Stop
from lpsched.core.schedule import Schedule
from lpsched.errors import SolverError
from lpsched.formulations.api import Backend
from lpsched.solve.params import Report, Snapshot, SolveParams
from lpsched.verify import verify

__all__ = ["Search", "answer_with_claims", "objective_values"]


def objective_values(graph: Graph, schedule: Schedule) -> dict[str, int]:
    """Measure every integer objective of a schedule."""
    measured = measure(graph, schedule)
    return {name: getattr(measured, name) for name in INTEGER_OBJECTIVES}


class Search:
    """Keeps the best verified schedule and the best bound of each objective.

    Schedules are ranked by the objectives in order. Once the period is settled at P,
    every period up to `cap` counts as equal; among equals the shorter one wins.
    """

    def __init__(
        self,
        graph: Graph,
        params: SolveParams,
        *,
        report: Report | None = None,
        interrupt: threading.Event | None = None,
    ) -> None:
        self.graph = graph
        self.params = params
        self.interrupt = interrupt or threading.Event()
        self.best: Schedule | None = None
        self.best_values: dict[str, int] = {}
        self.cap: int | None = params.max_period
        self.period_settled = "period" not in params.objective
        self.shortest: Schedule | None = None  # the one of the least period
        self.settled: list[str] = []
        self.bounds: dict[str, int] = {}
        self.proofs: dict[str, Proof] = {}
        self.stats: dict[str, object] = {}
        self.found_by = ""
        self.seeds: dict[str, Schedule] = {}  # what heuristics made, by their names
        self.starts: list[Mapping[OpId, DeviceId]] = []  # placements to start from
        self.period_searched = False  # a back end of its own has had its time
        self.exact: list[str] = []  # back ends that have searched
        self.backends: dict[str, Backend] = {}  # what they keep serves to the end
        self._report = report
        self._digest = graph_digest(graph)
        self._started = time.perf_counter()
        self._deadline = self._started + params.time_limit

    # -- time ------------------------------------------------------------------
    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self._started

    @property
    def remaining(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self._deadline - time.perf_counter())

    @property
    def stopped(self) -> bool:
        """Tell whether to come to an end now."""
        return self.interrupt.is_set() or self.remaining <= 0

    # -- incumbents ------------------------------------------------------------
    def offer(self, schedule: Schedule, *, by: str) -> bool:
        """Verify a schedule and keep it if it beats the best; tell whether it did.

        Raises
        ------
        SolverError
            The schedule breaks a rule or a bound that has been proved.
        """
        schedule = self.bare(schedule)
        violations = verify(self.graph, schedule)
        if violations:
            text = "; ".join(str(v) for v in violations[:3])
            raise SolverError(f"{by} made a schedule that breaks rules: {text}")
        return self._keep(schedule, by)

    def offer_if_valid(self, schedule: Schedule, *, by: str) -> bool:
        """Offer a schedule that may break rules; tell whether it is the best now."""
        schedule = self.bare(schedule)
        return not verify(self.graph, schedule) and self._keep(schedule, by)

    def _keep(self, schedule: Schedule, by: str) -> bool:
        """Keep a verified schedule if it beats the best."""
        values = objective_values(self.graph, schedule)
        if self.cap is not None and values["period"] > self.cap:
            return False
        if any(values[name] > cap for name, cap in self.params.at_most.items()):
            return False
        if not self._may_receive(schedule):
            return False
        self._check_bounds(values, by)
        if self.best is not None and self._rank(values) >= self._rank(self.best_values):
            return False
        self.best, self.best_values, self.found_by = schedule, values, by
        return True

    def fits(self, schedule: Schedule) -> bool:
        """Tell whether a schedule of a relaxed problem is one of this problem."""
        return self._may_receive(schedule) and not verify(
            self.graph, self.bare(schedule)
        )

    def _may_receive(self, schedule: Schedule) -> bool:
        """Tell whether no device receives more than asked."""
        cap = self.params.max_received
        if cap is None:
            return True
        homes = {op: placed.device for op, placed in schedule.ops.items()}
        return max(received_sizes(self.graph, homes).values(), default=0) <= cap

    def bare(self, schedule: Schedule) -> Schedule:
        """Return placements, starts and delays alone, as a schedule of this graph."""
        return replace(
            schedule,
            graph=self.graph.name,
            graph_digest=self._digest,
            graph_document=self.graph,
            result=None,
        )

    def searched(self, backend: str) -> None:
        """Note that an exact back end has been at work."""
        if backend not in self.exact:
            self.exact.append(backend)

    def _rank(self, values: Mapping[str, int]) -> tuple[int, ...]:
        names = [
            name
            for name in self.params.objective
            if name != "period" or not self.period_settled
        ]
        return (*(values[name] for name in names), values["period"])

    def _check_bounds(self, values: Mapping[str, int], by: str) -> None:
        """A schedule below a proved bound means that one of the two is wrong.

        The bound of an objective holds for schedules that are no worse than the best
        in every objective before it (the period: no longer than the cap).
        """
        for name in self.params.objective:
            bound = self.bounds.get(name)
            if bound is not None and values[name] < bound:
                raise SolverError(
                    f"{by} found {name} {values[name]}, below the bound {bound}"
                    f" proved by {self.proofs[name].kind}"
                )
            limit = self.best_values.get(name)
            if name == "period" and self.period_settled:
                limit = self.cap
            if limit is None or values[name] > limit:
                return

    def reopen_period(self) -> None:
        """Rank by the period (again), from the shortest schedule known."""
        self.period_settled = False
        self.cap = self.params.max_period
        if self.shortest is not None:
            self.best = self.shortest
            self.best_values = objective_values(self.graph, self.shortest)

    def close_period(self) -> None:
        """Settle the period P: from now on any up to ⌊P·(1 + slack)⌋ will do."""
        self.period_settled = True
        self.shortest = self.best
        if self.best is not None and self.params.max_period is None:
            self.cap = int(self.best.period * (1 + self.params.period_slack))
        for name, schedule in self.seeds.items():
            self.offer(schedule, by=name)  # it may send less than the shortest one
        self.seeds.clear()

    # -- bounds ----------------------------------------------------------------
    def raise_bound(self, objective: str, value: int, proof: Proof) -> None:
        """Keep a proved lower bound if it is the best known.

        Raises
        ------
        SolverError
            It lies above the value of a verified schedule.
        """
        incumbent = self.best_values.get(objective)
        if incumbent is not None and value > incumbent:
            raise SolverError(
                f"a bound of {value} on {objective} ({proof.kind}) contradicts a"
                f" verified schedule of {incumbent}"
            )
        if value > self.bounds.get(objective, -1):
            self.bounds[objective] = value
            self.proofs[objective] = proof

    def settled_before(self, objective: str | None) -> dict[str, int]:
        """Values of the objectives before this one (None: of all), the period's not.

        With the caps of the problem itself they are those of a search at a fixed
        period.
        """
        names = self.params.objective
        before = names if objective is None else names[: names.index(objective)]
        values = {k: self.best_values[k] for k in before if k != "period"}
        return {**self.params.at_most, **values}

    def proved(self, objective: str) -> bool:
        """Tell whether the best value equals the bound.

        The period counts by the least one found: slack may have lengthened it since.
        """
        value = self.best_values.get(objective)
        if objective == "period" and self.shortest is not None:
            value = self.shortest.period
        return value is not None and self.bounds.get(objective) == value

    def report(self, objective: str, doing: str) -> None:
        """Tell whoever listens where the search stands."""
        self.report_values(objective, doing, self.best_values.get(objective), None)

    def report_values(
        self, objective: str, doing: str, incumbent: int | None, bound: int | None
    ) -> None:
        """Tell where the search stands, with figures from inside a back end."""
        if self._report is not None:
            best = [v for v in (bound, self.bounds.get(objective)) if v is not None]
            self._report(Snapshot(objective, doing, incumbent, max(best, default=None)))

    # -- the end ---------------------------------------------------------------
    def answer(
        self, *, status: Status | None = None, stop: Stop | None = None
    ) -> Answer:
        """Wrap up: the status is ``optimal`` only if every objective is proved."""
        objectives = self.params.objective
        proved = all(self.proved(name) for name in objectives)
        if status is None:
            status = Status.OPTIMAL if proved else Status.FEASIBLE
            if self.best is None:
                status = Status.UNKNOWN
        if stop is None:
            stop = Stop.INTERRUPTED if self.interrupt.is_set() else Stop.TIME_LIMIT
        if status in (Status.OPTIMAL, Status.INFEASIBLE):
            stop = Stop.PROVED
        objective: dict[str, int | str] = {}
        if self.best is not None:
            objective.update(self.best_values)
            period = measure(self.graph, self.best).iteration_period
            objective["iteration_period"] = str(period)
        result = Result(
            method="+".join(self.exact) or self.found_by or self.params.backend,
            status=status,
            objective=objective,
            bound={k: self.bounds[k] for k in objectives if k in self.bounds},
            proof={k: self.proofs[k] for k in objectives if k in self.proofs},
            seconds=self.seconds,
            seed=self.params.seed,
            workers=self.params.workers,
            version=__version__,
            stop=stop,
            stats={"found_by": self.found_by, **self._within(), **self.stats},
        )
        return answer_with_claims(self.graph, self.best, result)

    def _within(self) -> dict[str, dict[str, int]]:
        """What the caller allows at most: bounds and optima hold within that."""
        limits = {
            "max_period": self.params.max_period,
            "max_received": self.params.max_received,
        }
        stated = {name: value for name, value in limits.items() if value is not None}
        return {"within": stated} if stated else {}


def answer_with_claims(
    graph: Graph, schedule: Schedule | None, result: Result
) -> Answer:
    """Attach the result and have the verifier check every claim in it."""
    if schedule is None:
        return Answer(result=result)
    claimed = schedule.with_result(result)
    violations = verify(graph, claimed)
    if violations:
        text = "; ".join(str(v) for v in violations[:3])
        raise SolverError(f"{result.method} makes a claim that does not hold: {text}")
    return Answer(result=result, schedule=claimed)
