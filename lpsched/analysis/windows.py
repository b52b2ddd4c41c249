"""Windows of starts at a fixed period, and which pairs of ops may share a device."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lpsched.analysis.at_period import LARGEST, Arc, AtPeriod, Bools, Ints
from lpsched.analysis.deduction import (
    NO_PATH,
    Deduction,
    Refutation,
    groups,
    possible_pairs,
    shared,
)
from lpsched.core.graph import DelayName
from lpsched.errors import UnsupportedError

__all__ = [
    "NO_PATH",
    "Refutation",
    "Windows",
    "groups",
    "lap_horizon",
    "shared",
    "windows_at",
]

#: Steps that deduction may take (a round takes n³); stopping early loses strength,
#: never validity.
_STEPS = 10**9


@dataclass(frozen=True, kw_only=True, eq=False)
class Windows:
    """What every schedule of a period satisfies; n ops, times in units.

    Attributes
    ----------
    problem : AtPeriod
        The problem, with the devices that deduction ruled out removed.
    longest : array (n, n) of int
        L: ``s_v - s_u >= L[u, v]`` in every schedule; `NO_PATH` where nothing is
        known. Closed: ``L[u, w] >= L[u, v] + L[v, w]``; 0 on the diagonal.
    apart : array (n, n) of int
        The same for two ops on different devices; at least L.
    may_share, may_part : array (n, n) of bool
        Whether two ops may sit on one device, on two; both symmetric.
    component : array (n,) of int
        Ops of one number hold each other in time and are scheduled together; arcs
        between components are restored afterwards by shifting laps.
    anchor : array (n,) of int
        The op from which the window of each op is measured, one per component.
    low, high : array (n,) of int
        ``low <= s_v <= high`` once every anchor starts in its own window.
    """

    problem: AtPeriod
    longest: Ints
    apart: Ints
    may_share: Bools
    may_part: Bools
    component: Ints
    anchor: Ints
    low: Ints
    high: Ints

    @property
    def main_anchor(self) -> int:
        """The anchor that starts at 0: that of the largest component."""
        sizes = np.bincount(self.component, minlength=1)
        return int(self.anchor[self.component == sizes.argmax()][0])

    def must_share(self, u: int, v: int) -> bool:
        """Tell whether two ops sit on one device in every schedule."""
        return u == v or not self.may_part[u, v]

    def holds(self, arc: Arc) -> bool:
        """Tell whether an arc is part of the model: its ends in one component."""
        return bool(self.component[arc.src] == self.component[arc.dst])

    def pairs(self, arc: Arc) -> Bools:
        """Device pairs (p, q) that an arc leaves its ends; shape (P + 1, P + 1)."""
        return possible_pairs(
            self.problem, arc, self.longest, self.apart, self.may_share, self.may_part
        )

    def least_delays(self) -> dict[DelayName, int]:
        """Least value of each named delay in any schedule.

        From ``k T >= t_u + c + lag + L(v, u)``, with L at the largest delays.
        """
        least = {name: d.min for name, d in self.problem.graph.delays.items()}
        for arc in self.problem.arcs:
            back = int(self.longest[arc.dst, arc.src])
            if arc.name is not None and back != NO_PATH:
                cost = int(self.problem.costs(arc)[self.pairs(arc)].min())
                bound = -(-(cost + back) // self.problem.period)
                least[arc.name] = max(least[arc.name], bound)
        return least

    def delay_ranges(self) -> dict[DelayName, tuple[int, int]]:
        r"""Range of each named delay in some best schedule.

        A delay without limit need not exceed what its arcs can ask of it,
        :math:`\lceil (t_u + c + lag + s_u - s_v) / T \rceil` at the ends of the
        windows: nothing gains from a larger one. Arcs left out of the model ask
        nothing.
        """
        T, ranges = self.problem.period, {}
        least = self.least_delays()
        asked = dict(least)
        limit = {name: d.max for name, d in self.problem.graph.delays.items()}
        for arc in self.problem.arcs:
            if arc.name is None:
                continue
            if arc.high is not None:
                limit[arc.name] = arc.high
            if self.holds(arc):
                cost = int(self.problem.costs(arc)[self.pairs(arc)].max())
                room = int(self.high[arc.src] - self.low[arc.dst])
                asked[arc.name] = max(asked[arc.name], -(-(cost + room) // T))
        for name, low in least.items():
            top = limit[name]
            high = asked[name] if top is None else min(top, asked[name])
            ranges[name] = low, max(low, high)
        return ranges


def lap_horizon(problem: AtPeriod) -> int:
    r"""Laps H such that some best schedule has all its laps within H of each other.

    Needed where finite delays do not tie all ops together and yet times matter:
    memory. Fix devices and phases of a schedule that is best for any objective; what
    is left are the laps and the values of the named delays, and every rule and
    objective is monotone in the retimed delays r(u→v) = k + lap(v) − lap(u): none
    may fall below a least r⁰ = ⌈(t + c + lag + φ_u − φ_v)/T⌉ >= 0, and smaller ones
    never cost memory. Order the ops by lap and let g be the gaps between neighbours,
    chosen with the least sum.

    *Every unlimited delay joins all its producers to all its consumers* (a weight,
    its parts and its readers do). Suppose a gap G between the ops below, A, and
    above, B, exceeds G⁰, the largest finite delay, least delay, r⁰ and t/T + 1.
    No arc B→A has a finite delay, for its r would be negative. Lower B by one lap,
    and by one each unlimited delay that has an arc B→A. Arcs A→B had r >= G > r⁰ and
    may shrink. An unlimited delay with an arc from x in B to y in A satisfies
    k >= lap(x) − lap(y), and as it joins x, y to its other ends too, its arcs within A
    or within B have r >= G, those A→B at least 2G: all may shrink by 1, by 2. No r
    grew: the gaps were not least. So H = (n − 1)·G⁰.

    *Otherwise* write x = (gaps, unlimited delays), N = n − 1 + D numbers. Rules and
    "no gap below min(itself, G⁰)" make a polyhedron A x >= b with entries −1, 0, 1
    and \|b\| <= G⁰; so x = p + Σ λ_j y_j, p a convex combination of vertices, y_j at
    most N integer rays of the recession cone, along which no r falls. If some
    λ_j >= 1, then x − y_j obeys the rules and no r is larger: not least. By Cramer's
    rule vertices are at most N·G⁰·δ and rays at most δ, the greatest subdeterminant
    of A: its rows are intervals of gaps (totally unimodular) next to one column per
    unlimited delay, so δ is at most the product of the numbers of arcs of the
    delays. Hence each x <= N·(G⁰ + 1)·δ, and H is n − 1 times that.

    (Gaps of at most t/T + 1 never shrink, so the makespan does not grow either.)
    """
    n, T = problem.num_ops, problem.period
    largest = 1 + max((int(t) // T + 1 for t in problem.most_durations()), default=0)
    ends: dict[DelayName, set[tuple[int, int]]] = {}
    for arc in problem.arcs:
        wait = int(problem.costs(arc).max())
        largest = max(largest, arc.low, arc.high or 0, (wait + T - 1) // T + 1)
        if arc.high is None and arc.name is not None:
            ends.setdefault(arc.name, set()).add((arc.src, arc.dst))
    if all(_joins_all(pairs) for pairs in ends.values()):
        return max(n - 1, 0) * largest
    size = n - 1 + len(ends)
    spread = math.prod(len(pairs) for pairs in ends.values())
    return max(n - 1, 0) * size * (largest + 1) * spread


def _joins_all(pairs: set[tuple[int, int]]) -> bool:
    sources, targets = {u for u, _ in pairs}, {v for _, v in pairs}
    return len(pairs) == len(sources) * len(targets)


def windows_at(
    problem: AtPeriod,
    *,
    coupled: bool,
    makespan: int | None = None,
    deduce: bool = True,
    over: Callable[[], bool] = lambda: False,
) -> Windows | Refutation:
    r"""Deduce windows and device pairs at a fixed period, or refute the period.

    L is the closure of the longest paths with weights t_u + c + lag − k·T, k at its
    largest and the device pair at its cheapest. Where that leaves an arc no way back
    (a cycle of positive weight) for some pair of devices, the pair is ruled out, and
    weights rise. Ops that must share a device take turns, those that cannot pay for
    a transfer on any path, and groups that share one must fit on it (`Deduction`).
    All this repeats until nothing changes.

    Windows: starts can be shifted together (all rules are differences, modulo T), so
    one anchor starts at 0 and ``L(a, v) <= s_v <= -L(v, a)``. If times matter only
    through the arcs (not `coupled`), each strongly connected component of finite
    delays can also be shifted alone by whole periods, which keeps every phase; so
    components are scheduled by themselves, the anchors of all but one in [0, T), and
    arcs between them are restored by adding laps downstream. If `coupled`, everything
    is one component, with `lap_horizon` where no path limits a window.

    Parameters
    ----------
    coupled : bool
        Whether anything but arcs and exclusivity depends on times.
    makespan : int or None
        Cap on last end - first start, in units (with flush: T).
    deduce : bool
        If false, only paths are used (for comparisons).
    over : callable
        Asked often; once it says so, the deduction is given up.

    Raises
    ------
    OutOfTimeError
        Given up.
    UnsupportedError
        A horizon too long for 64-bit integers.
    """
    known = Deduction(problem, makespan, over)
    for _ in range(_rounds(problem.num_ops)):
        before = known.state()
        refutation = known.paths()
        if refutation is None:
            refutation = (known.share() if deduce else None) or known.blocked()
        if refutation is not None:
            return refutation
        if not deduce or known.state() == before:
            break
    return _windows(known, coupled=coupled or makespan is not None)


def _rounds(n: int) -> int:
    return max(3, min(25, _STEPS // max(n, 1) ** 3))


def _windows(known: Deduction, *, coupled: bool) -> Windows:
    problem, L = known.problem, known.longest
    n, T = problem.num_ops, problem.period
    linked = L != NO_PATH
    component = groups(linked & linked.T)
    reach = 0
    if coupled and n:
        if not linked.all():
            reach = (lap_horizon(problem) + 1) * T
        component = np.zeros(n, dtype=np.int64)
    if reach > LARGEST:
        raise UnsupportedError(
            "memory is limited or minimised, and without an upper limit of the delays "
            f"laps may spread over {reach * problem.unit} ticks, too many to be exact; "
            "give the named delays a max"
        )
    anchor, low, high = (np.zeros(n, dtype=np.int64) for _ in range(3))
    lows, highs = np.where(linked, L, -reach), np.where(linked.T, -L.T, reach)
    main = np.bincount(component, minlength=1).argmax()
    for number in range(component.max(initial=-1) + 1):
        members = np.flatnonzero(component == number)
        block = np.ix_(members, members)
        width = (highs[block] - lows[block]).sum(axis=1)
        a = members[width.argmin()]
        room = 0 if number == main else T - 1
        anchor[members] = a
        low[members] = lows[a, members]
        high[members] = highs[a, members] + room
    return Windows(
        problem=problem,
        longest=L,
        apart=known.apart,
        may_share=known.may_share,
        may_part=known.may_part,
        component=component,
        anchor=anchor,
        low=low,
        high=high,
    )
