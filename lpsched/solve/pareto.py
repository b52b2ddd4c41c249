"""The front of two objectives: for each cap on the first, the least of the second."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from lpsched.core.answer import Answer
from lpsched.core.graph import Graph
from lpsched.core.result import INTEGER_OBJECTIVES, Status
from lpsched.core.schedule import Schedule
from lpsched.errors import Fault, InstanceError
from lpsched.solve.facade import solve
from lpsched.solve.params import CAPPED, Report, SolveParams
from lpsched.solve.pipeline import read_pipeline
from lpsched.solve.search import objective_values

__all__ = ["Front", "Point", "pareto_front"]

#: Share of the time left that one search may take.
SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class Point:
    """A schedule that none found beats in both objectives.

    Attributes
    ----------
    objective : mapping of str to int
        All that is measured.
    bound : mapping of str to int
        Of the capped objective: no schedule with as little of the other has less. Of
        the other: no schedule with as little of the capped one has less.
    proved : bool
        Whether no schedule at all beats it: both bounds are met.
    """

    schedule: Schedule
    objective: Mapping[str, int]
    bound: Mapping[str, int]
    proved: bool


@dataclass(frozen=True, kw_only=True)
class Front:
    """Points in ascending order of the first objective.

    Attributes
    ----------
    complete : bool
        Whether every point is proved, and that there are no others.
    status : Status
        ``optimal`` if complete.
    conflict : mapping or None
        Why there is no schedule, as in `Answer`.
    """

    graph: Graph
    objectives: tuple[str, str]
    points: tuple[Point, ...]
    complete: bool
    status: Status
    seconds: float
    conflict: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """Plain JSON data."""
        known = {} if self.conflict is None else {"conflict": dict(self.conflict)}
        return {
            "objectives": list(self.objectives),
            "status": str(self.status),
            "complete": self.complete,
            **known,
            "seconds": round(self.seconds, 3),
            "points": [
                {
                    "status": str(Status.OPTIMAL if p.proved else Status.FEASIBLE),
                    **p.objective,
                    "bound": dict(p.bound),
                }
                for p in self.points
            ],
        }


def pareto_front(
    graph: Graph,
    objectives: Sequence[str],
    params: SolveParams | None = None,
    *,
    report: Report | None = None,
    interrupt: threading.Event | None = None,
) -> Front:
    r"""Trade one objective against another: all that no schedule beats in both.

    With objectives x and y, the function

    .. math:: y^*(c) = \min \{ y : x \le c \}

    descends in steps. Its ends come from two searches, each objective first; the
    widest open step between two points is then searched from its middle, and from its
    right end to close it. One objective is capped: the period if it is among them.

    Parameters
    ----------
    objectives : sequence of str
        Two of them; the front ascends in the first.
    params : SolveParams, optional
        Limits and back end; the time limit is that of the whole front.

    Raises
    ------
    InstanceError
        Not two different objectives.
    """
    pair = _checked(objectives)
    pipeline = read_pipeline(graph) is not None
    x, y = sorted(pair, key=_memory_first if pipeline else _capped_first)
    search = _FrontSearch(
        graph=graph,
        pair=(x, y),
        alone=pipeline and x == "peak_memory",
        params=replace(params or SolveParams(), period_slack=Fraction(0)),
        report=report,
        interrupt=interrupt or threading.Event(),
    )
    status = search.run()
    points = search.points()
    points.sort(key=lambda point: point.objective[pair[0]])
    return Front(
        graph=graph,
        objectives=pair,
        points=tuple(points),
        complete=status is Status.OPTIMAL,
        status=status,
        seconds=time.perf_counter() - search.begun,
        conflict=search.conflict,
    )


def _checked(objectives: Sequence[str]) -> tuple[str, str]:
    known = ", ".join(INTEGER_OBJECTIVES)
    faults = [
        Fault("pareto", f"unknown objective {name!r}; known: {known}")
        for name in objectives
        if name not in INTEGER_OBJECTIVES
    ]
    if not faults and (len(objectives) != 2 or len(set(objectives)) != 2):
        text = f"expected two different objectives of {known}, got {len(objectives)}"
        faults.append(Fault("pareto", text))
    if faults:
        raise InstanceError(faults)
    return objectives[0], objectives[1]


def _capped_first(name: str) -> int:
    """Rank of an objective: the period can be capped best, the makespan not at all."""
    return 0 if name == "period" else 1 if name in CAPPED else 2


def _memory_first(name: str) -> int:
    """Rank of an objective on pipelines, whose own search knows memory limits."""
    return -1 if name == "peak_memory" else _capped_first(name)


@dataclass
class _Floor:
    """What is proved of y*: its values from below, cap by cap.

    Attributes
    ----------
    least : int
        No schedule has an x below this.
    """

    least: int = 0
    known: list[tuple[int | None, int]] = field(default_factory=list)

    def raise_to(self, value: int, cap: int | None) -> None:
        """Note that schedules with x <= cap (None: all) have y >= value."""
        self.known.append((cap, value))

    def at(self, cap: int | None) -> int:
        """Return the best bound of y under a cap; what holds under a wider one does."""
        holds = (
            value
            for top, value in self.known
            if top is None or (cap is not None and cap <= top)
        )
        return max(holds, default=0)

    def flat_from(self, value: int, begin: int, end: int) -> int:
        """Return the greatest cap in [begin, end) under which y >= value, or begin."""
        tops = (t for t, v in self.known if t is not None and v >= value and t < end)
        return max([begin, *tops])


@dataclass(kw_only=True)
class _FrontSearch:
    graph: Graph
    pair: tuple[str, str]
    alone: bool  # under a cap on x minimise y alone: a search for x would take too long
    params: SolveParams
    report: Report | None
    interrupt: threading.Event
    begun: float = field(default_factory=time.perf_counter)
    floor: _Floor = field(default_factory=_Floor)
    found: dict[tuple[int, int], Schedule] = field(default_factory=dict)
    tried: set[int] = field(default_factory=set)
    conflict: Mapping[str, Any] | None = None

    def run(self) -> Status:
        """Search until the front is complete, time is over or nothing helps."""
        x, y = self.pair
        first = self._solve((x, y), self._top(), None)
        if first.schedule is None:
            self.conflict = first.conflict
            return first.result.status
        self.floor.least = first.result.bound.get(x, 0)
        self._solve((y, x), self._top(), first.schedule)
        while not self._is_over():
            step = self._next()
            if step is None:
                break
            cap, start = step
            self._solve((y, x), cap, start)
        return Status.OPTIMAL if self._is_complete() else Status.FEASIBLE

    def _top(self) -> int | None:
        """The cap on x that the problem has itself."""
        x = self.pair[0]
        return self.params.max_period if x == "period" else self.params.at_most.get(x)

    @property
    def _remaining(self) -> float:
        return self.params.time_limit - (time.perf_counter() - self.begun)

    def _is_over(self) -> bool:
        return self.interrupt.is_set() or self._remaining <= 0

    def _solve(
        self, objective: tuple[str, str], cap: int | None, start: Schedule | None
    ) -> Answer:
        """Settle two objectives under a cap on x; learn from what is proved."""
        params = replace(
            self._with_cap(cap),
            objective=objective[:1] if self.alone and cap is not None else objective,
            hint=start or self.params.hint,
            time_limit=max(0.1, SHARE * self._remaining),
        )
        answer = solve(self.graph, params, report=self.report, interrupt=self.interrupt)
        if answer.schedule is not None:
            values = objective_values(self.graph, answer.schedule)
            here = values[self.pair[0]], values[self.pair[1]]
            self.found.setdefault(here, answer.schedule)
            self._learn(objective, cap, here, answer.result.bound)
        elif answer.result.status is Status.INFEASIBLE and cap is not None:
            self.floor.least = max(self.floor.least, cap + 1)
        return answer

    def _with_cap(self, cap: int | None) -> SolveParams:
        x = self.pair[0]
        if cap is None:
            return self.params
        if x == "period":
            return replace(self.params, max_period=cap)
        return replace(self.params, at_most={**self.params.at_most, x: cap})

    def _learn(
        self,
        objective: tuple[str, str],
        cap: int | None,
        here: tuple[int, int],
        bound: Mapping[str, int],
    ) -> None:
        """The bound of the second objective holds given the first one's value."""
        x, y = self.pair
        if objective == (x, y):
            self.floor.raise_to(bound.get(y, 0), here[0])
            return
        self.floor.raise_to(bound.get(y, 0), cap)
        # Whoever has no more y than this schedule has at least so much x.
        self.floor.raise_to(here[1] + 1, bound.get(x, 0) - 1)

    def _corners(self) -> list[tuple[int, int]]:
        """Values of the schedules that no other one beats, in ascending order of x."""
        best: list[tuple[int, int]] = []
        for here in sorted(self.found):
            if not best or here[1] < best[-1][1]:
                best.append(here)
        return best

    def _next(self) -> tuple[int, Schedule] | None:
        """The cap to try next, and a schedule that keeps it; None if none is left.

        Between two corners there may be others, or a better one, while y* is not
        known to be flat up to the right one. The largest such step comes first.
        """
        steps = [
            (p, q)
            for p, q in pairwise(self._corners())
            if self.floor.at(q[0] - 1) < p[1]
        ]
        steps.sort(key=lambda s: (s[1][0] - s[0][0]) * (s[1][1] - s[0][1]))
        for p, q in steps:
            for cap in self._caps(p, q):
                if cap not in self.tried:
                    self.tried.add(cap)
                    return cap, self.found[p]
        return None

    def _caps(self, p: tuple[int, int], q: tuple[int, int]) -> Iterator[int]:
        """The middle of a step, unless y* is flat beyond it; then its right end."""
        begin = self.floor.flat_from(p[1], p[0], q[0])
        if begin == p[0]:
            yield (begin + q[0]) // 2
        yield q[0] - 1

    def _is_complete(self) -> bool:
        """Whether all between the ends is known, and both ends are."""
        corners = self._corners()
        closed = all(self.floor.at(q[0] - 1) >= p[1] for p, q in pairwise(corners))
        ends = corners[0][0] == self.floor.least
        return ends and closed and self.floor.at(self._top()) == corners[-1][1]

    def points(self) -> list[Point]:
        """Return the corners with what is proved of each."""
        x, y = self.pair
        points = []
        for here in self._corners():
            bound = {x: self._least_x(here), y: self.floor.at(here[0])}
            points.append(
                Point(
                    schedule=self.found[here],
                    objective=objective_values(self.graph, self.found[here]),
                    bound=bound,
                    proved=(bound[x], bound[y]) == here,
                )
            )
        return points

    def _least_x(self, here: tuple[int, int]) -> int:
        """The least x that a schedule with no more y can have, as far as is proved."""
        tops = (t + 1 for t, v in self.floor.known if t is not None and v > here[1])
        return max([self.floor.least, *tops])
