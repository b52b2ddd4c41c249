"""Deduction at a fixed period: longest paths, and what pairs of ops can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from lpsched.analysis.at_period import Arc, AtPeriod, Bools, Ints
from lpsched.core.graph import OpId
from lpsched.errors import OutOfTimeError

__all__ = [
    "NO_PATH",
    "Deduction",
    "Refutation",
    "groups",
    "possible_pairs",
    "shared",
]

#: Entry of L where no path constrains the pair; far below any sum of times.
NO_PATH = -(2**60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """No schedule exists at this period: the ops that cannot be served, and why."""

    reason: str
    ops: tuple[OpId, ...]


def shared(size: int) -> Bools:
    """Mask of the device pairs (p, q) that are one device; "no device" is none."""
    mask = np.eye(size, dtype=np.bool_)
    mask[-1, -1] = False
    return mask


def possible_pairs(
    problem: AtPeriod,
    arc: Arc,
    longest: Ints,
    apart: Ints,
    may_share: Bools,
    may_part: Bools,
) -> Bools:
    """Device pairs of an arc that the paths back leave room for."""
    u, v = arc.src, arc.dst
    pairs: Bools = problem.allowed[u][:, None] & problem.allowed[v][None, :]
    one = shared(len(pairs))
    if u == v:
        pairs &= np.eye(len(pairs), dtype=np.bool_)
    else:
        pairs &= np.where(one, may_share[u, v], may_part[u, v])
    if arc.high is not None and longest[v, u] != NO_PATH:
        back = np.where(one, longest[v, u], apart[v, u])
        pairs &= problem.costs(arc) + back <= arc.high * problem.period
    return pairs


class Deduction:
    """What is known so far; every method adds to it and is valid at any time.

    Attributes
    ----------
    longest : array (n, n) of int
        L: ``s_v - s_u >= L[u, v]``; `NO_PATH` where nothing is known.
    apart : array (n, n) of int
        The same for two ops on different devices; at least L.
    may_share, may_part : array (n, n) of bool
        Whether two ops may sit on one device, on two.
    """

    def __init__(
        self, problem: AtPeriod, makespan: int | None, over: Callable[[], bool]
    ) -> None:
        n = problem.num_ops
        self.problem = replace(problem, allowed=problem.allowed.copy())
        self.allowed = self.problem.allowed
        self.makespan = makespan
        self._over = over
        self.longest = np.full((n, n), NO_PATH, dtype=np.int64)
        np.fill_diagonal(self.longest, 0)
        self.apart = self.longest.copy()
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

    def paths(self) -> Refutation | None:
        """Rule out device pairs without a way back, then close the paths."""
        refutation = self.blocked()
        if refutation is not None:
            return refutation
        for arc in self.problem.arcs:
            pairs = self.pairs(arc)
            if arc.high is not None and pairs.any():
                self._keep(arc.src, arc.dst, pairs)
                weight = self._least(arc, pairs)
                known = self.longest[arc.src, arc.dst]
                self.longest[arc.src, arc.dst] = max(known, weight)
        return self._span() or self._close()

    def share(self) -> Refutation | None:
        """Deduce from transfers, exclusivity and load."""
        return (
            self._pay_transfers()
            or self._fit_groups()
            or self._take_turns()
            or self._refuted("exclusive", self.allowed.sum(axis=1) == 0)
        )

    def blocked(self) -> Refutation | None:
        """Find the ops of arcs for which no pair of devices is left."""
        faults = np.zeros(self.problem.num_ops, dtype=np.bool_)
        for arc in self.problem.arcs:
            if not self.pairs(arc).any():
                faults[[arc.src, arc.dst]] = True
        return self._refuted("precedence", faults)

    def pairs(self, arc: Arc) -> Bools:
        """Device pairs that are left to an arc."""
        return possible_pairs(
            self.problem, arc, self.longest, self.apart, self.may_share, self.may_part
        )

    def _refuted(self, reason: str, faults: Bools) -> Refutation | None:
        """Name the ops (rows of `faults`) for which a rule cannot be kept, if any."""
        rows = np.unique(np.nonzero(faults)[0])
        listed = self.problem.graph.ops
        ids = tuple(listed[v].id for v in rows)
        return Refutation(reason=reason, ops=ids) if ids else None

    def _least(self, arc: Arc, pairs: Bools) -> int:
        """Least ``t_u + c + lag - k T`` of an arc over some device pairs."""
        granted = (arc.high or 0) * self.problem.period
        return int(self.problem.costs(arc)[pairs].min()) - granted

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
        return self._refuted("makespan", longer)

    def _close(self) -> Refutation | None:
        _close(self.longest, self._over)
        np.maximum(self.apart, self.longest, out=self.apart)
        return self._refuted("precedence", np.diagonal(self.longest) > 0)

    def _pay_transfers(self) -> Refutation | None:
        r"""Between ops on two devices every path pays a transfer somewhere.

        .. math:: s_v - s_u \ge \max_{\gamma} (L_\gamma(u, v) + \gamma)
            \quad \text{if u and v are apart}

        where L_γ uses only arcs that cost at least γ more when their ends are apart,
        and what is known of ops that must share a device: on a path from u to v some
        two neighbours are apart. If there is no time for that both ways, u and v must
        share a device; if they cannot, it holds for sure.
        """
        tied = np.where(self.may_part, NO_PATH, self.longest)
        arcs = list(self._extras())
        levels = sorted({extra for *_, extra in arcs if extra > 0})
        for level in levels[:: -(-len(levels) // _levels(len(tied))) or 1]:
            paths = tied.copy()
            for u, v, weight, extra in arcs:
                if extra >= level:
                    paths[u, v] = max(paths[u, v], weight)
            _close(paths, self._over)
            known = paths != NO_PATH
            np.maximum(self.apart, paths + level, out=self.apart, where=known)
        np.fill_diagonal(self.apart, 0)
        somewhere = ~self.allowed[:, -1]
        pairs = np.logical_and.outer(somewhere, somewhere)
        known = pairs & (self.apart != NO_PATH) & (self.apart.T != NO_PATH)
        self.may_part &= ~(known & (self.apart + self.apart.T > 0))
        np.copyto(self.longest, self.apart, where=pairs & ~self.may_share)
        stuck = pairs & ~self.may_part & ~self.may_share
        return self._refuted("precedence", stuck)

    def _extras(self) -> Iterator[tuple[int, int, int, int]]:
        """Ends and weight of each arc, and what it costs more if they are apart."""
        for arc in self.problem.arcs:
            u, v = arc.src, arc.dst
            pairs = self.pairs(arc)
            if arc.high is None or u == v or not pairs.any():
                continue
            parted = pairs & ~shared(len(pairs))
            weight = self._least(arc, pairs)
            if parted.any():
                yield u, v, weight, self._least(arc, parted) - weight

    def _fit_groups(self) -> Refutation | None:
        """Groups that share a device have one domain and must fit on it."""
        group = groups(~self.may_part)
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
        return self._refuted("exclusive", stuck)

    def _take_turns(self) -> Refutation | None:
        r"""Two ops on one device take turns, which shortens s_v - s_u or parts them.

        It lies in the hull of what ``t_u <= s_v - s_u - j T <= T - t_v`` for an
        integer j leaves of ``L(u, v) .. -L(v, u)``.
        """
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
        return self._refuted("exclusive", closed & ~self.may_part)


#: Steps that one deduction may take; a closure takes n³.
_STEPS = 10**8


def _levels(n: int) -> int:
    return max(2, min(32, _STEPS // max(n, 1) ** 3))


def _close(longest: Ints, over: Callable[[], bool]) -> None:
    """Close in place by Floyd and Warshall; stop at a positive diagonal."""
    through = np.empty_like(longest)
    for w in range(len(longest)):
        if over():
            raise OutOfTimeError("paths are not closed")
        np.add.outer(longest[:, w], longest[w], out=through)
        np.maximum(longest, through, out=longest)
        if (np.diagonal(longest) > 0).any():
            return
    longest[longest < NO_PATH // 2] = NO_PATH


def groups(related: Bools) -> Ints:
    """Number the groups of a symmetric relation, in order of first member."""
    n = len(related)
    group = np.full(n, -1, dtype=np.int64)
    count = 0
    for v in range(n):
        if group[v] < 0:
            for w in _reached(related, v):
                group[w] = count
            count += 1
    return group


def _reached(related: Bools, start: int) -> Iterator[int]:
    seen, stack = {start}, [start]
    while stack:
        v = stack.pop()
        yield v
        for w in np.flatnonzero(related[v]):
            if int(w) not in seen:
                seen.add(int(w))
                stack.append(int(w))
