"""The rules of a valid schedule, memory apart, one function each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lpsched.analysis.at_period import Arc, Bools
from lpsched.analysis.windows import shared
from lpsched.formulations.cpsat.objective import add_receives
from lpsched.formulations.cpsat.variables import Expression, Literal, Variables

__all__ = [
    "add_coverage",
    "add_exclusive",
    "add_flush",
    "add_load",
    "add_period",
    "add_precedence",
    "add_received",
]


def add_coverage(x: Variables) -> None:
    r"""Every op that needs a device runs on exactly one.

    .. math:: \sum_p on_{vp} = 1 \qquad \forall v

    Ops that must share a device (colocation, or no time for a transfer) share their
    variables, so each group is covered once.
    """
    for v, head in enumerate(x.scope.twin):
        if head == v and len(x.scope.domain[v]) != 1:
            x.cp.add_exactly_one(x.on[v, p] for p in x.scope.domain[v])


def add_period(x: Variables) -> None:
    r"""Split a start into lap and phase, for ops whose slot in the period matters.

    .. math:: s_v = T\,lap_v + phase_v, \quad 0 \le phase_v < T

    This one equality is all that ties the precedences, pure differences of starts, to
    exclusivity and memory, which see phases alone.
    """
    T, windows = x.scope.period, x.scope.windows
    for v, start in x.start.items():
        if x.scope.occupies(v):
            first, last = int(windows.low[v]) // T, int(windows.high[v]) // T
            x.lap[v] = x.cp.new_int_var(first, last, f"lap[{v}]")
            x.phase[v] = x.cp.new_int_var(0, T - 1, f"phase[{v}]")
            x.cp.add(start == T * x.lap[v] + x.phase[v])


def add_precedence(x: Variables) -> None:
    r"""An op waits for its operands, less the iterations that their delays grant.

    .. math:: s_v + k\,T \ge s_u + t_u(p) + c_{pq} + lag
        \qquad \forall (u, v) \in E,\; on_{up} \wedge on_{vq}

    Written as a difference at the cheapest pair of devices, and again, each time
    under its condition, where more is known (`_levels`). Pairs that leave no time
    for the way back (`Windows.pairs`) are forbidden.
    """
    for arc in x.scope.arcs:
        pairs = x.scope.windows.pairs(arc)
        _forbid(x, arc, pairs)
        granted = x.iterations(arc) * x.scope.period
        if arc.src != arc.dst:
            granted = x.start[arc.dst] - x.start[arc.src] + granted
        elif isinstance(granted, int):
            continue  # the pairs left are those for which this holds
        for cost, condition in _levels(x, arc, pairs):
            x.cp.add(granted >= cost).only_enforce_if(condition)


def _forbid(x: Variables, arc: Arc, pairs: Bools) -> None:
    """Rule out the device pairs of an arc for which there is no time."""
    u, v = arc.src, arc.dst
    one = shared(len(pairs))
    left = np.outer(x.scope.mask(u), x.scope.mask(v)) & ~pairs
    if u == v or x.scope.twin[u] == x.scope.twin[v]:
        left &= np.eye(len(pairs), dtype=np.bool_)
    elif x.scope.occupies(u) and x.scope.occupies(v):
        for kind, literal in ((~one, True), (one, False)):
            if not pairs[kind].any():
                together = x.together(u, v)
                x.cp.add_bool_or(together if literal else ~together)
                left &= ~kind
    for p, q in np.argwhere(left):
        x.cp.add_bool_or(~x.on[u, int(p)], ~x.on[v, int(q)])


def _levels(
    x: Variables, arc: Arc, pairs: Bools
) -> Iterator[tuple[int, list[Literal]]]:
    """Least costs t_u + c + lag of an arc, each with the condition that asks it.

    Without condition the cheapest pair of devices; more if u and v are apart, for u
    on p, for v on q, and last for single pairs (p, q).
    """
    u, v = arc.src, arc.dst
    costs = x.scope.at.costs(arc)
    known = np.full(costs.shape, np.iinfo(np.int64).min)
    for cells, condition in _conditions(x, arc, pairs):
        chosen = cells & pairs
        if chosen.any() and costs[chosen].min() > known[chosen].min():
            known[chosen] = np.maximum(known[chosen], costs[chosen].min())
            yield int(costs[chosen].min()), condition
    for p, q in np.argwhere(pairs & (costs > known)):
        yield int(costs[p, q]), [x.on[u, int(p)], x.on[v, int(q)]]


def _conditions(
    x: Variables, arc: Arc, pairs: Bools
) -> Iterator[tuple[Bools, list[Literal]]]:
    """Sets of device pairs (p, q), each with the literals that say so."""
    u, v = arc.src, arc.dst
    one = shared(len(pairs))
    yield np.ones_like(pairs), []
    if pairs[one].any() and pairs[~one].any():
        yield ~one, [~x.together(u, v)]
    devices = np.arange(len(pairs))
    for p in x.scope.domain[u]:
        yield np.broadcast_to((devices == p)[:, None], pairs.shape), [x.on[u, p]]
    for q in x.scope.domain[v]:
        yield np.broadcast_to(devices == q, pairs.shape), [x.on[v, q]]


def add_exclusive(x: Variables) -> None:
    r"""Ops on one device never overlap modulo T.

    Op v on device p occupies phase_v .. phase_v + t_v, and the same one period later;
    all these intervals of a device are disjoint on the line:

    .. math:: [\varphi_v, \varphi_v + t_{vp}),\;
        [\varphi_v + T, \varphi_v + T + t_{vp}) \qquad on_{vp}

    With phases in 0 .. T - 1 that is exact: of two ops with phases a <= b, the first
    must end by b, and the second by a + T, where the first's next copy begins.
    Ops of no duration occupy nothing and have no interval.
    """
    T, times = x.scope.period, x.scope.at.durations
    for p in range(x.scope.at.num_devices):
        intervals = []
        for v, phase in x.phase.items():
            if x.scope.is_busy(v, p):
                t, on = int(times[v, p]), x.on[v, p]
                for lap, begin in enumerate((phase, phase + T)):
                    name = f"run[{v},{p},{lap}]"
                    intervals.append(
                        x.cp.new_optional_fixed_size_interval_var(begin, t, on, name)
                    )
        x.cp.add_no_overlap(intervals)


def add_load(x: Variables, *, least: bool) -> None:
    r"""A device works at most T ticks a period, and at least what others leave.

    .. math:: \sum_v \min_q t_{vq} - (P - 1)\,T \le \sum_v \min_q t_{vq}\,on_{vp},
        \quad \sum_v t_{vp}\,on_{vp} \le T

    The greatest load follows from exclusivity, and is all of it where no op waits for
    another; the least one follows from the greatest of the other devices.
    """
    at, T = x.scope.at, x.scope.period
    shortest = at.least_durations()
    ops = [v for v in range(at.num_ops) if x.scope.occupies(v)]
    rest = sum(int(shortest[v]) for v in ops) - (at.num_devices - 1) * T
    for p in range(at.num_devices):
        mine = [v for v in ops if p in x.scope.domain[v]]
        x.cp.add(sum(int(at.durations[v, p]) * x.on[v, p] for v in mine) <= T)
        if least and rest > 0:
            x.cp.add(sum(int(shortest[v]) * x.on[v, p] for v in mine) >= rest)


def add_received(x: Variables) -> None:
    r"""No device receives more than asked for per period.

    .. math:: \sum_i size_i\,y_{ip} \le N \qquad \forall p

    with :math:`y_{ip}` of `add_receives`.
    """
    most, unit = x.scope.request.max_received, x.scope.unit_of("communication")
    if most is None:
        return
    received: dict[int, list[Expression]] = {}
    for i, tensor in enumerate(x.scope.at.graph.tensors):
        if tensor.size > 0:
            for p, sent in add_receives(x, i).items():
                received.setdefault(p, []).append(tensor.size // unit * sent)
    for sizes in received.values():
        x.cp.add(sum(sizes) <= most // unit)


def add_flush(x: Variables) -> None:
    r"""An iteration spans no more than the cap on the makespan; with flush, T.

    .. math:: \max_v (s_v + t_v) - \min_v s_v \le M
    """
    if x.scope.makespan is not None:
        x.cp.add(x.makespan() <= x.scope.makespan)
