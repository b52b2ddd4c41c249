"""The objectives: each an integer variable, tied by rows, capped by its bounds."""

from __future__ import annotations

import math

import numpy as np
import pulp

from lpsched.core.graph import Graph
from lpsched.formulations.ilp.scope import Scope
from lpsched.formulations.ilp.variables import Variables

__all__ = ["add_communication", "add_makespan", "add_peak", "add_staleness", "unit_of"]


def unit_of(scope: Scope, objective: str) -> int:
    """Return what one unit of an objective's variable stands for.

    Communication and peaks are sums of sizes, so they are multiples of the gcd of
    all sizes; a makespan is a sum of times.
    """
    if objective == "makespan":
        return scope.at.unit
    if objective == "staleness":
        return 1
    return common_size(scope.at.graph)


def common_size(graph: Graph) -> int:
    """Greatest common divisor of the sizes of tensors and residents; at least 1."""
    sizes = [tensor.size for tensor in graph.tensors]
    return math.gcd(*sizes, *(resident.size for resident in graph.residents)) or 1


def _figure(x: Variables, objective: str) -> pulp.LpVariable:
    """Make the variable of an objective: below its cap, above its proved bound."""
    request, unit = x.scope.request, unit_of(x.scope, objective)
    cap = request.at_most.get(objective)
    low = request.lower if request.minimise == objective else 0
    return x.integer(-(-low // unit), None if cap is None else cap // unit, objective)


def add_communication(x: Variables) -> pulp.LpVariable:
    r"""Each tensor counts once for each device it is sent to.

    .. math::

        communication = \sum size\, sends_{\tau p}, \qquad
        sends_{\tau p} \ge on_{vp} - on_{up}

    for producer u and each consumer v of tensor τ: 1 if v is on p and u is not.
    """
    figure, scope = _figure(x, "communication"), x.scope
    at, unit = scope.at, unit_of(scope, "communication")
    sent = []
    for i, tensor in enumerate(at.graph.tensors):
        u = at.op_numbers[tensor.producer]
        users = {arc.dst for arc in at.arcs if arc.tensor == i} - {u}
        if tensor.size == 0 or at.allowed[u, -1]:
            continue
        for p in np.flatnonzero(at.allowed[sorted(users), :-1].any(axis=0)).tolist():
            name = tensor.id, at.device_id(p)
            sends = x.integer(0, 1, "sends", *name)
            for v in sorted(users):
                if at.allowed[v, p]:
                    away = x.on[v, p] - pulp.lpSum([x.on.get((u, p), 0)])
                    x.require(sends >= away, "sent_to", *name, scope.op_id(v))
            sent.append(tensor.size // unit * sends)
    x.require(pulp.lpSum(sent) == figure, "communication")
    return figure


def add_staleness(x: Variables) -> pulp.LpVariable:
    r"""Sum of all named delays less one each.

    .. math:: staleness = \sum_d (delay_d - 1)
    """
    figure = _figure(x, "staleness")
    x.require(pulp.lpSum(d - 1 for d in x.delay.values()) == figure, "staleness")
    return figure


def add_makespan(x: Variables) -> pulp.LpVariable:
    r"""One iteration, from its first start to its last end.

    .. math:: s_v + t_v - s_u \le makespan

    written with a variable each for the first start and the last end.
    """
    figure, scope = _figure(x, "makespan"), x.scope
    early, late = int(scope.early.min(initial=0)), int(scope.late.max(initial=0))
    first = x.real(early, late, "earliest")
    for v, start in x.start.items():
        x.require(start >= first, "begins", scope.op_id(v))
        end = start + x.duration(v)
        x.require(end <= first + figure, "ends", scope.op_id(v))
    return figure


def add_peak(x: Variables) -> pulp.LpVariable:
    """Make the highest peak of a device; `add_memory` ties it."""
    return _figure(x, "peak_memory")
