"""The variables of the modulo model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ortools.sat.python.cp_model import BoolVarT, CpModel, IntVar, LinearExpr

from lpsched.analysis.at_period import Arc
from lpsched.core.graph import DelayName
from lpsched.formulations.cpsat.scope import Scope

__all__ = ["Expression", "Literal", "Variables", "create_variables"]

#: A Boolean variable or its negation.
Literal: TypeAlias = BoolVarT
Expression: TypeAlias = LinearExpr | int


@dataclass(frozen=True, kw_only=True, eq=False)
class Variables:
    r"""What is decided; v an op, p a device, d a named delay, i a tensor.

    =============== ================ ================================== ==============
    symbol          domain           meaning                            count
    =============== ================ ================================== ==============
    start[v]        window of v      s_v, start of iteration 0          ops
    lap[v]          window // T      lap of v                           ops on devices
    phase[v]        0 .. T - 1       slot of v in the period            ops on devices
    on[v, p]        0, 1             v runs on p; shared by ops that    ops · devices
                                     must share a device
    same[u, v]      0, 1             u < v run on one device            pairs that
                                                                        exchange data
    delay[d]        its range        iterations that d carries          delays, if free
    receives[i][p]  0, 1             i is sent to p                     tensors times
                                                                        devices
    ends            windows          first start, last end              2, if asked
    end_phase[v]    0 .. T - 1       slot of v's end (memory)           ops that send
    =============== ================ ================================== ==============

    Times are in units; lap, phase and start only if the scope is timed. `same` and
    `receives` are filled as rules ask for them.
    """

    cp: CpModel
    scope: Scope
    start: Mapping[int, IntVar]
    on: Mapping[tuple[int, int], IntVar]
    delay: Mapping[DelayName, IntVar]
    lap: dict[int, IntVar] = field(default_factory=dict)
    phase: dict[int, IntVar] = field(default_factory=dict)
    same: dict[tuple[int, int], IntVar] = field(default_factory=dict)
    receives: dict[int, dict[int, IntVar]] = field(default_factory=dict)
    ends: list[IntVar] = field(default_factory=list)
    end_phase: dict[int, IntVar] = field(default_factory=dict)

    def duration(self, op: int) -> Expression:
        """t_v on the device chosen."""
        fixed = self.scope.fixed_durations[op]
        if fixed is not None:
            return fixed
        times = self.scope.at.durations[op]
        return sum(int(times[p]) * self.on[op, p] for p in self.scope.domain[op])

    def iterations(self, arc: Arc) -> Expression:
        """K of an arc: its delay's variable, or its greatest value."""
        if arc.name is not None and arc.name in self.delay:
            return self.delay[arc.name]
        if arc.high is None:
            raise ValueError("an arc of unlimited delay binds nothing")
        return arc.high

    def makespan(self) -> Expression:
        """Last end - first start of an iteration; created when first asked for."""
        if not self.ends:
            low, high = self.scope.windows.low, self.scope.windows.high
            longest = self.scope.at.most_durations()
            last = int((high + longest).max())
            first = self.cp.new_int_var(int(low.min()), int(high.max()), "first")
            end = self.cp.new_int_var(int(low.min()), last, "last")
            for v, start in self.start.items():
                self.cp.add(first <= start)
                self.cp.add(end >= start + self.duration(v))
            self.ends.extend((first, end))
        first, end = self.ends
        return end - first

    def together(self, u: int, v: int) -> IntVar:
        r"""Return the literal "u and v share a device", channelled to the placement.

        .. math:: z_{uv} \Leftrightarrow \exists p:\; on_{up} \wedge on_{vp}
        """
        u, v = sorted((self.scope.twin[u], self.scope.twin[v]))
        if (u, v) not in self.same:
            self.same[u, v] = self._channelled(u, v)
        return self.same[u, v]

    def _channelled(self, u: int, v: int) -> IntVar:
        cp, windows, P = self.cp, self.scope.windows, self.scope.at.num_devices
        if u == v:
            return cp.new_constant(self.scope.occupies(u))
        may_share = bool(windows.may_share[u, v])
        z = cp.new_bool_var(f"same[{u},{v}]") if may_share else cp.new_constant(0)
        for p in range(P):
            mine, its = self.on.get((u, p)), self.on.get((v, p))
            if mine is not None and its is not None:
                cp.add_bool_or(~z, ~mine, its)
                cp.add_bool_or(~z, mine, ~its)
                cp.add_bool_or(z, ~mine, ~its)
            elif mine is not None or its is not None:
                cp.add_bool_or(~z, *(~on for on in (mine, its) if on is not None))
        return z


def create_variables(cp: CpModel, scope: Scope) -> Variables:
    """Create starts, devices and delays, without a single rule."""
    windows, ops = scope.windows, range(scope.at.num_ops)
    starts = {
        v: cp.new_int_var(int(windows.low[v]), int(windows.high[v]), f"start[{v}]")
        for v in ops
        if scope.is_timed
    }
    on: dict[tuple[int, int], IntVar] = {}
    for v in ops:
        for p in scope.domain[v]:
            if scope.twin[v] != v:
                on[v, p] = on[scope.twin[v], p]
            elif len(scope.domain[v]) == 1:
                on[v, p] = cp.new_constant(1)
            else:
                on[v, p] = cp.new_bool_var(f"on[{v},{p}]")
    delays = {
        name: cp.new_int_var(low, high, f"delay[{name}]")
        for name, (low, high) in scope.delays.items()
    }
    return Variables(cp=cp, scope=scope, start=starts, on=on, delay=delays)
