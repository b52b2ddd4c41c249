"""The rules, one function each; all times in units of `AtPeriod.unit`."""

from __future__ import annotations

import pulp

from lpsched.formulations.ilp.objective import common_size
from lpsched.formulations.ilp.variables import Variables

__all__ = [
    "add_colocate",
    "add_coverage",
    "add_exclusive",
    "add_flush",
    "add_load",
    "add_precedence",
    "add_received",
    "add_refutation",
    "add_sharing",
]


def add_coverage(x: Variables) -> None:
    r"""Every op runs on exactly one of its devices.

    .. math:: \sum_p on_{vp} = 1 \qquad \forall v

    Devices on which an op outlasts the period, or waits for itself in vain, have
    on = 0 by their bounds.
    """
    scope = x.scope
    for v in range(scope.at.num_ops):
        chosen = pulp.lpSum(x.on[v, p] for p in scope.places(v))
        x.require(chosen == 1, "place", scope.op_id(v))


def add_refutation(x: Variables) -> None:
    r"""A period that the windows refute has no schedule for the ops they name.

    .. math:: \sum_{v, p} on_{vp} \le n - 1

    over those n ops, against *coverage*: the model is infeasible, and says why.
    """
    refutation = x.scope.refutation
    if refutation is not None:
        numbers = [x.scope.at.op_numbers[op] for op in refutation.ops]
        placed = pulp.lpSum(x.on[v, p] for v in numbers for p in x.scope.places(v))
        row = placed <= len(numbers) - 1
        x.require(row, "refuted", refutation.reason, *refutation.ops)


def add_colocate(x: Variables) -> None:
    r"""Ops of one group share a device.

    .. math:: on_{up} = on_{vp} \qquad \forall p

    for the first member u of a group and each other member v. An op without a
    device shares none with an op that has one; `at_period` leaves neither a place.
    """
    scope = x.scope
    for group in scope.at.graph.colocate:
        members = [scope.at.op_numbers[op] for op in group]
        for u, v in zip(members[:1] * len(members[1:]), members[1:], strict=True):
            for p in sorted({*scope.places(u), *scope.places(v)}):
                left, right = x.on.get((u, p), 0), x.on.get((v, p), 0)
                x.require(
                    pulp.lpSum([left]) == right,
                    "colocate",
                    scope.op_id(u),
                    scope.op_id(v),
                    scope.at.device_id(p),
                )


def add_sharing(x: Variables) -> None:
    r"""Whether two ops share a device follows from their placements.

    .. math::

        on_{up} + on_{vp} - 1 \le same_{uv} \le 1 - |on_{up} - on_{vp}| \qquad \forall p

    and, where the devices decide about times, a transport problem between them, the
    strongest linear form of the products :math:`on_{up}\, on_{vq}`:

    .. math::

        \sum_q moved_{uvpq} = on_{up} \quad \forall p, \qquad
        \sum_p moved_{uvpq} = on_{vq} \quad \forall q
    """
    scope = x.scope
    for (u, v), same in x.same.items():
        for p in sorted({*scope.places(u), *scope.places(v)}):
            name = scope.op_id(u), scope.op_id(v), scope.at.device_id(p)
            on_u, on_v = (pulp.lpSum([x.on.get((w, p), 0)]) for w in (u, v))
            if (u, v) in scope.contended:
                x.require(same >= on_u + on_v - 1, "same_if", *name)
            if (u, v) in scope.carried:
                x.require(same <= 1 - on_u + on_v, "same_left", *name)
                x.require(same <= 1 + on_u - on_v, "same_right", *name)
    for u, v in sorted(scope.detailed):
        pair = scope.op_id(u), scope.op_id(v)
        for p in scope.places(u):
            moves = pulp.lpSum(x.moved[u, v, p, q] for q in scope.places(v))
            x.require(moves == x.on[u, p], "moved_from", *pair, scope.at.device_id(p))
        for q in scope.places(v):
            moves = pulp.lpSum(x.moved[u, v, p, q] for p in scope.places(u))
            x.require(moves == x.on[v, q], "moved_to", *pair, scope.at.device_id(q))


def add_load(x: Variables) -> None:
    r"""A device is busy for at most the period.

    .. math:: \sum_v t_{vp}\, on_{vp} \le T \qquad \forall p

    Implied by *exclusive* where ops wait for each other; all of it where none does.
    """
    scope = x.scope
    for p in range(scope.at.num_devices):
        load = pulp.lpSum(
            int(scope.at.durations[v, p]) * x.on[v, p]
            for v in range(scope.at.num_ops)
            if scope.busy[v, p]
        )
        x.require(load <= scope.at.period, "load", scope.at.device_id(p))


def add_exclusive(x: Variables) -> None:
    r"""Ops on one device never overlap modulo T.

    .. math:: t_v\, same_{uv} \le s_u - s_v - T\,k_{uv} \le T - t_u\, same_{uv}

    with :math:`\sum_p t_{vp}\, moved_{uvpp}` for the product where durations depend on
    the device.
    Exact and without big-M: apart, k only names the lap and its range of `Scope`
    leaves every difference one; on one device, u lies between the k-th and the next
    run of v. Values of k at the ends of the range that would not do on one device
    are cut off there. Pairs that the windows forbid to share a device have

    .. math:: on_{up} + on_{vp} \le 1 \qquad \forall p

    instead. Source: the periodic event scheduling problem (Serafini and Ukovich 1989).
    """
    scope, T = x.scope, x.scope.at.period
    for u, v, p in scope.parted:
        name = scope.op_id(u), scope.op_id(v), scope.at.device_id(p)
        x.require(x.on[u, p] + x.on[v, p] <= 1, "apart", *name)
    for u, v in sorted(scope.contended):
        pair = scope.op_id(u), scope.op_id(v)
        k, same = x.order[u, v], x.shared(u, v)
        apart = x.start[u] - x.start[v] - T * k
        x.require(apart >= x.shared_time(u, v, v), "after", *pair)
        x.require(apart <= T - x.shared_time(u, v, u), "before", *pair)
        if not all(scope.busy[[u, v], p].all() for p in scope.common(u, v)):
            continue  # where one takes no time any k will do
        low, high = scope.order_range(u, v)
        least, most = scope.order_range_together(u, v)
        if least > low:
            x.require(k >= low + (least - low) * same, "after_least", *pair)
        if most < high:
            x.require(k <= high - (high - most) * same, "before_most", *pair)
        if least > most:
            x.require(same == 0, "never_together", *pair)


def add_precedence(x: Variables) -> None:
    r"""Data arrive in time, and order without data is kept.

    .. math:: s_v + T\,k \ge s_u + t_u + c_{uv} + \mathrm{lag}

    over the arcs that bind. A delay k without limit binds where delays are
    variables; an op that waits for itself at a constant delay has the devices where
    it does so in vain shut by bounds (`Scope.is_fit`).
    """
    scope, T = x.scope, x.scope.at.period
    for i, arc in enumerate(scope.arcs):
        u, v = arc.src, arc.dst
        delay = x.delay_of(arc)
        if u == v:
            if arc.name in x.delay:
                waits = x.duration(u) + arc.lag
                x.require(T * delay >= waits, "repeat", scope.op_id(u), str(i))
            continue
        waits = x.duration(u) + x.transfer(arc) + arc.lag
        x.require(
            x.start[v] - x.start[u] + T * delay >= waits,
            "precede",
            scope.op_id(u),
            scope.op_id(v),
            str(i),
        )


def add_flush(x: Variables) -> None:
    r"""With flush, one whole iteration fits in a period.

    .. math:: first \le s_v, \qquad s_v + t_v \le first + T \qquad \forall v
    """
    scope = x.scope
    if not scope.at.graph.flush or not x.start:
        return
    first = x.real(
        int(scope.early.min()) - scope.at.period, int(scope.late.max()), "first"
    )
    for v, start in x.start.items():
        x.require(start >= first, "first", scope.op_id(v))
        x.require(
            start + x.duration(v) <= first + scope.at.period, "last", scope.op_id(v)
        )


def add_received(x: Variables) -> None:
    r"""What comes to a device from elsewhere, each tensor once, is limited.

    .. math:: \sum_\tau size_\tau\, takes_{\tau p} \le N, \qquad
        takes_{\tau p} \ge on_{vp} - on_{up} \qquad \forall p

    for producer u and each other consumer v of tensor τ.
    """
    scope, most = x.scope, x.scope.request.max_received
    if most is None:
        return
    unit = common_size(scope.at.graph)
    taken: dict[int, list[pulp.LpAffineExpression]] = {}
    for tensor in scope.at.graph.tensors:
        u = scope.at.op_numbers[tensor.producer]
        users = {scope.at.op_numbers[use.op] for use in tensor.consumers} - {u}
        if not tensor.size or scope.at.allowed[u, -1]:
            continue
        for p, device in enumerate(scope.at.graph.device_ids):
            near = [v for v in sorted(users) if (v, p) in x.on]
            if not near:
                continue
            takes = x.real(0, 1, "takes", tensor.id, device)
            for v in near:
                away = x.on[v, p] - pulp.lpSum([x.on.get((u, p), 0)])
                x.require(takes >= away, "taken", tensor.id, device, scope.op_id(v))
            taken.setdefault(p, []).append(tensor.size // unit * takes)
    for p, sizes in taken.items():
        x.require(pulp.lpSum(sizes) <= most // unit, "received", scope.at.device_id(p))
