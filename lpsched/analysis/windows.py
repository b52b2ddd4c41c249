"""Windows of starts at a fixed period, and which pairs of ops may share a device."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from lpsched.analysis.at_period import LARGEST, Arc, AtPeriod, Bools, Ints
from lpsched.core.graph import DelayName, OpId
from lpsched.errors import UnsupportedError

__all__ = [
    "NO_PATH",
    "Refutation",
    "Windows",
    "lap_horizon",
    "shared",
    "together_groups",
    "windows_at",
]

#: Entry of L where no path constrains the pair; far below any sum of times.
NO_PATH = -(2**60)

#: Steps that deduction may take (a round takes n³); stopping early loses strength,
#: never validity.
_STEPS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """No schedule exists at this period: the ops that cannot be served, and why."""

    reason: str
    ops: tuple[OpId, ...]


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
        return _possible(self.problem, arc, self.longest, self.may_share, self.may_part)

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
) -> Windows | Refutation:
    r"""Deduce windows and device pairs at a fixed period, or refute the period.

    L is the closure of the longest paths with weights t_u + c + lag − k·T, k at its
    largest and the device pair at its cheapest. Where that leaves an arc no way back
    (a cycle of positive weight) for some pair of devices, the pair is ruled out, and
    weights rise; two ops that must share a device take turns, which shortens the
    interval of s_v − s_u to the hull of ``t_u <= s_v - s_u - j T <= T - t_v`` over
    integers j, and if that is empty they must part; groups that share a device must
    fit on one. All this repeats until nothing changes.

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

    Raises
    ------
    UnsupportedError
        A horizon too long for 64-bit integers.
    """
    closure = _Closure(problem, makespan)
    for _ in range(_rounds(problem.num_ops)):
        before = closure.state()
        refutation = closure.paths()
        if refutation is None:
            refutation = (closure.share() if deduce else None) or closure.blocked()
        if refutation is not None:
            return refutation
        if not deduce or closure.state() == before:
            break
    return _windows(closure, coupled=coupled or makespan is not None)


def _rounds(n: int) -> int:
    return max(3, min(25, _STEPS // max(n, 1) ** 3))


def shared(size: int) -> Bools:
    """Mask of the device pairs (p, q) that are one device; "no device" is none."""
    mask = np.eye(size, dtype=np.bool_)
    mask[-1, -1] = False
    return mask


def _possible(
    problem: AtPeriod, arc: Arc, longest: Ints, may_share: Bools, may_part: Bools
) -> Bools:
    """Device pairs of an arc that the paths back leave room for."""
    u, v = arc.src, arc.dst
    pairs: Bools = problem.allowed[u][:, None] & problem.allowed[v][None, :]
    if u == v:
        pairs &= np.eye(len(pairs), dtype=np.bool_)
    else:
        pairs &= np.where(shared(len(pairs)), may_share[u, v], may_part[u, v])
    back = longest[v, u]
    if arc.high is not None and back != NO_PATH:
        pairs &= problem.costs(arc) + back <= arc.high * problem.period
    return pairs


class _Closure:
    """The deductions of `windows_at`, in the making."""

    def __init__(self, problem: AtPeriod, makespan: int | None) -> None:
        n = problem.num_ops
        self.problem = replace(problem, allowed=problem.allowed.copy())
        self.allowed = self.problem.allowed
        self.makespan = makespan
        self.longest = np.full((n, n), NO_PATH, dtype=np.int64)
        np.fill_diagonal(self.longest, 0)
        self.may_share = np.ones((n, n), dtype=np.bool_)
        self.may_part = ~np.eye(n, dtype=np.bool_)
        nowhere = self.allowed[:, -1]
        self.may_share[nowhere, :] = self.may_share[:, nowhere] = False
        np.fill_diagonal(self.may_share, val=True)
        for group in problem.graph.colocate:
            members = [problem.op_numbers[op] for op in group]
            self.may_part[np.ix_(members, members)] = False

    def state(self) -> tuple[int, ...]:
        """Fingerprint of what is known; it changes with every deduction."""
        finite = self.longest != NO_PATH
        return (
            int(self.allowed.sum()),
            int(self.may_share.sum()),
            int(self.may_part.sum()),
            int(finite.sum()),
            int(self.longest[finite].sum()),
        )

    def refuted(self, reason: str, faults: Bools) -> Refutation | None:
        """Name the ops (rows of `faults`) for which a rule cannot be kept, if any."""
        rows = np.unique(np.nonzero(faults)[0])
        listed = self.problem.graph.ops
        ids = tuple(listed[v].id for v in rows)
        return Refutation(reason=reason, ops=ids) if ids else None

    def paths(self) -> Refutation | None:
        """Rule out device pairs without a way back, then close the paths."""
        refutation = self.blocked()
        if refutation is not None:
            return refutation
        for arc in self.problem.arcs:
            pairs = self._pairs(arc)
            if arc.high is not None and pairs.any():
                self._keep(arc.src, arc.dst, pairs)
                weight = int(self.problem.costs(arc)[pairs].min())
                weight -= arc.high * self.problem.period
                known = self.longest[arc.src, arc.dst]
                self.longest[arc.src, arc.dst] = max(known, weight)
        return self._span() or self._close()

    def blocked(self) -> Refutation | None:
        """Find the ops of arcs for which no pair of devices is left."""
        faults = np.zeros(self.problem.num_ops, dtype=np.bool_)
        for arc in self.problem.arcs:
            if not self._pairs(arc).any():
                faults[[arc.src, arc.dst]] = True
        return self.refuted("precedence", faults)

    def _pairs(self, arc: Arc) -> Bools:
        return _possible(self.problem, arc, self.longest, self.may_share, self.may_part)

    def _keep(self, u: int, v: int, pairs: Bools) -> None:
        self.allowed[u] &= pairs.any(axis=1)
        self.allowed[v] &= pairs.any(axis=0)
        if u != v:
            one = shared(len(pairs))
            self.may_share[[u, v], [v, u]] &= (pairs & one).any()
            self.may_part[[u, v], [v, u]] &= (pairs & ~one).any()

    def _span(self) -> Refutation | None:
        """Cap on the makespan: ``s_u >= s_v + t_v - makespan`` for all u, v."""
        if self.makespan is None:
            return None
        least = self.problem.least_durations()
        longer = least > self.makespan
        np.maximum(self.longest, (least - self.makespan)[:, None], out=self.longest)
        np.fill_diagonal(self.longest, 0)
        return self.refuted("makespan", longer)

    def _close(self) -> Refutation | None:
        """Close L by Floyd and Warshall; a positive diagonal refutes the period."""
        L, through = self.longest, np.empty_like(self.longest)
        for w in range(len(L)):
            np.add.outer(L[:, w], L[w], out=through)
            np.maximum(L, through, out=L)
            if (np.diagonal(L) > 0).any():
                return self.refuted("precedence", np.diagonal(L) > 0)
        L[NO_PATH // 2 > L] = NO_PATH
        return None

    def share(self) -> Refutation | None:
        """Deduce from exclusivity and load."""
        return (
            self._fit_groups()
            or self._take_turns()
            or self.refuted("exclusive", self.allowed.sum(axis=1) == 0)
        )

    def _fit_groups(self) -> Refutation | None:
        """Groups that share a device have one domain and must fit on it."""
        group = together_groups(self.may_part)
        member = group[None, :] == np.arange(group.max(initial=-1) + 1)[:, None]
        busy = np.where(self.allowed, self.problem.durations, 0)
        busy[:, -1] = 0
        load = member.astype(np.int64) @ busy
        domain = ~(member.astype(np.int64) @ (~self.allowed).astype(np.int64) > 0)
        domain &= load <= self.problem.period
        self.allowed &= domain[group]
        fits = np.eye(len(domain), dtype=np.bool_)
        for p in range(self.problem.num_devices):
            room = np.add.outer(load[:, p], load[:, p]) <= self.problem.period
            fits |= room & np.outer(domain[:, p], domain[:, p])
        self.may_share &= fits[np.ix_(group, group)]
        together = np.equal.outer(group, group)
        home = np.where(self.allowed.sum(axis=1) == 1, self.allowed.argmax(axis=1), -1)
        together |= np.equal.outer(home, home) & (home >= 0)
        together[self.allowed[:, -1]] = False
        self.may_part &= ~together
        stuck = ~self.may_part & ~self.may_share
        return self.refuted("exclusive", stuck)

    def _take_turns(self) -> Refutation | None:
        """Shorten s_v - s_u of pairs on one device to what taking turns allows."""
        T, L, t = self.problem.period, self.longest, self.problem.least_durations()
        busy = (t > 0) & ~self.allowed[:, -1]
        turns = busy[:, None] & busy[None, :] & ~np.eye(len(L), dtype=np.bool_)
        known = turns & (L != NO_PATH)
        after, until = t[:, None], T - t[None, :]
        phase = L % T
        push = np.where(
            phase < after,
            after - phase,
            np.where(phase > until, T - phase + after, 0),
        )
        earliest = np.where(known, L + push, L)
        closed = known & known.T & (earliest + earliest.T > 0)
        self.may_share &= ~closed
        forced = known & ~self.may_part
        np.copyto(L, earliest, where=forced)
        return self.refuted("exclusive", closed & ~self.may_part)


def together_groups(may_part: Bools) -> Ints:
    """Number the groups of ops that must share a device, in order of first member."""
    return _groups(~may_part)


def _groups(together: Bools) -> Ints:
    """Number the groups that a symmetric relation makes, in order of first member."""
    n = len(together)
    group = np.full(n, -1, dtype=np.int64)
    count = 0
    for v in range(n):
        if group[v] < 0:
            for w in _reached(together, v):
                group[w] = count
            count += 1
    return group


def _reached(together: Bools, start: int) -> Iterator[int]:
    seen, stack = {start}, [start]
    while stack:
        v = stack.pop()
        yield v
        for w in np.flatnonzero(together[v]):
            if int(w) not in seen:
                seen.add(int(w))
                stack.append(int(w))


def _windows(closure: _Closure, *, coupled: bool) -> Windows:
    problem, L = closure.problem, closure.longest
    n, T = problem.num_ops, problem.period
    linked = L != NO_PATH
    component = _groups(linked & linked.T)
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
        may_share=closure.may_share,
        may_part=closure.may_part,
        component=component,
        anchor=anchor,
        low=low,
        high=high,
    )
