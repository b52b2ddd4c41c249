"""The variables of the model, and the sums of them that rules are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulp

from lpsched.analysis.at_period import Arc
from lpsched.core.graph import DelayName
from lpsched.formulations.ilp.names import Names
from lpsched.formulations.ilp.scope import Scope

__all__ = ["Variables", "create_variables"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Variables:
    r"""What the solver decides; u, v are op numbers, p, q device numbers.

    ======== ================= ============================================ =========
    symbol   domain            meaning                                      about
    ======== ================= ============================================ =========
    on       binary            op v runs on device p                        n P
    start    integer, window   s_v; none where no op waits for another      n
    same     [0, 1]            u and v share a device (u < v)               pairs
    moved    [0, 1]            u on p and v on q (u < v), instead of same   pairs P^2
                               where the devices decide about times
    order    integer, window   k: u starts k laps and more after v ends,    pairs
                               and ends before v starts once more (u < v)
    delay    integer, range    value of a named delay, where it matters     delays
    ======== ================= ============================================ =========

    Starts could be continuous, since with all else integral they are tied by
    differences with integral right-hand sides only; HiGHS is faster as it is.
    Device P stands for "no device". Rules that need variables of their own (sends,
    lives, spans, objectives) make them with `integer` and `real`.
    """

    problem: pulp.LpProblem
    names: Names
    scope: Scope
    on: Mapping[tuple[int, int], pulp.LpVariable]
    start: Mapping[int, pulp.LpVariable]
    same: Mapping[tuple[int, int], pulp.LpVariable]
    moved: Mapping[tuple[int, int, int, int], pulp.LpVariable]
    order: Mapping[tuple[int, int], pulp.LpVariable]
    delay: Mapping[DelayName, pulp.LpVariable]

    # -- making variables and rows ---------------------------------------------
    def integer(
        self, low: int | None, high: int | None, *name: str | None
    ) -> pulp.LpVariable:
        """Make an integer variable."""
        return self.problem.add_variable(self.names.make(*name), low, high, "Integer")

    def real(
        self, low: int | None, high: int | None, *name: str | None
    ) -> pulp.LpVariable:
        """Make a continuous variable."""
        return self.problem.add_variable(self.names.make(*name), low, high)

    def require(self, row: pulp.LpConstraint, *name: str | None) -> None:
        """Add a row to the model."""
        self.problem.addConstraint(row, self.names.make(*name))

    # -- sums ------------------------------------------------------------------
    def shared(self, u: int, v: int) -> pulp.LpAffineExpression:
        """1 if u and v share a device, for a pair of `Scope.paired`."""
        u, v = min(u, v), max(u, v)
        if (u, v) in self.same:
            return pulp.lpSum([self.same[u, v]])
        return pulp.lpSum(self.moved[u, v, p, p] for p in self.scope.common(u, v))

    def shared_time(self, u: int, v: int, w: int) -> pulp.LpAffineExpression:
        """Duration of w, one of u < v, if u and v share a device; otherwise 0."""
        scope = self.scope
        times = {p: int(scope.at.durations[w, p]) for p in scope.common(u, v)}
        if (u, v) in self.same:
            return max(times.values()) * self.same[u, v]
        return pulp.lpSum(
            time * self.moved[u, v, p, p]
            for p, time in times.items()
            if scope.busy[u, p] and scope.busy[v, p]
        )

    def duration(self, v: int) -> pulp.LpAffineExpression:
        """t_v on the device chosen, in units."""
        times = {p: int(self.scope.at.durations[v, p]) for p in self.scope.places(v)}
        if len(set(times.values())) == 1:
            return pulp.lpSum(set(times.values()))
        return pulp.lpSum(time * self.on[v, p] for p, time in times.items())

    def transfer(
        self, arc: Arc, *, out_of: int | None = None, into: int | None = None
    ) -> pulp.LpAffineExpression:
        """Transfer time of an arc, in units: 0 if its ends share a device.

        Given a device it is to leave, or to arrive at: at most 0 if it does not.
        """
        times = self.scope.transfer_times(arc)
        if not times.any():
            return pulp.lpSum([])
        if self.scope.is_detailed(arc):
            return self._detailed_transfer(arc, out_of, into)
        happens = pulp.lpSum([1])
        if out_of is not None:
            happens = self.on[arc.src, out_of]
        elif into is not None:
            happens = self.on[arc.dst, into]
        return int(times[0]) * (happens - self.shared(arc.src, arc.dst))

    def _detailed_transfer(
        self, arc: Arc, out_of: int | None, into: int | None
    ) -> pulp.LpAffineExpression:
        u, v, places = arc.src, arc.dst, self.scope.places
        times = self.scope.at.transfers[arc.tensor or 0]
        return pulp.lpSum(
            int(times[p, q])
            * (self.moved[u, v, p, q] if u < v else self.moved[v, u, q, p])
            for p in places(u)
            for q in places(v)
            if p != q and out_of in (None, p) and into in (None, q)
        )

    def delay_of(self, arc: Arc) -> pulp.LpAffineExpression:
        """Delay of an arc: a variable, or the constant it stands at."""
        if arc.name is not None and arc.name in self.delay:
            return pulp.lpSum([self.delay[arc.name]])
        return pulp.lpSum([arc.high or 0])


def create_variables(scope: Scope, problem: pulp.LpProblem) -> Variables:
    """Make the variables that every model has."""
    names = Names()

    def make(low: int, high: int, kind: str, *name: str | None) -> pulp.LpVariable:
        return problem.add_variable(names.make(*name), low, high, kind)

    n = scope.at.num_ops
    op, device, places = scope.op_id, scope.at.device_id, scope.places
    detailed = scope.detailed
    return Variables(
        problem=problem,
        names=names,
        scope=scope,
        on={
            (v, p): make(0, int(scope.is_fit(v, p)), "Integer", "on", op(v), device(p))
            for v in range(n)
            for p in places(v)
        },
        start={
            v: make(int(scope.early[v]), int(scope.late[v]), "Integer", "start", op(v))
            for v in range(n if scope.is_timed else 0)
        },
        same={
            (u, v): make(0, 1, "Continuous", "same", op(u), op(v))
            for u, v in scope.paired
            if (u, v) not in detailed
        },
        moved={
            (u, v, p, q): make(
                0, 1, "Continuous", "moved", op(u), op(v), device(p), device(q)
            )
            for u, v in sorted(detailed)
            for p in places(u)
            for q in places(v)
        },
        order={
            (u, v): make(*scope.order_range(u, v), "Integer", "order", op(u), op(v))
            for u, v in sorted(scope.contended)
        },
        delay={
            name: make(low, high, "Integer", "delay", name)
            for name, (low, high) in scope.delays.items()
        },
    )
