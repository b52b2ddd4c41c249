"""The memory rule: how many copies of each tensor are alive, at every phase."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pulp

from lpsched.analysis.at_period import Arc
from lpsched.formulations.ilp.objective import common_size
from lpsched.formulations.ilp.variables import Variables

__all__ = ["add_memory", "longest_life"]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Life:
    """When copies of one tensor live on one device: [birth, death).

    A device without a copy has birth = death.
    """

    id: str
    size: int  # in units of `common_size`
    birth: pulp.LpAffineExpression
    death: pulp.LpVariable
    first: int  # least value of birth
    last: int  # greatest value of birth
    longest: int  # longest life wanted
    workers: frozenset[int]  # ops that need it while they run


def add_memory(
    x: Variables, peak: pulp.LpVariable | None = None, *, cuts: bool = True
) -> None:
    r"""Residents and copies alive never exceed a device's memory, at any phase.

    A tensor made by u lives on device p from

    .. math:: a = s_u + t_u - t_{up}\, on_{up}

    (the start of u at home, its end elsewhere) until b, at least the end of u, of
    every use on p and of every transfer into or out of p. At a moment e the copies
    alive are :math:`\lfloor (e - a)/T \rfloor - \lfloor (e - b)/T \rfloor`, for
    copies of all iterations. With integers f, g for the two floors,

    .. math::

        T f \ge e - a - (T - 1), \qquad T g \le e - b, \qquad
        \sum size\,(f - g) + residents \le memory .

    Memory held changes upwards at births only, so it is enough that e runs over the
    starts and ends of the ops whose copies may begin on p. These rows hold at every
    moment of a valid schedule, so no e is conditional. Source: formats.md, rule 6.

    Parameters
    ----------
    peak : variable or None
        To be at least the peak of every device, in units of `common_size`.
    cuts : bool
        Add, per device, that the memory held on average over a period is below the
        limit, :math:`\sum size (b - a) \le T (memory - residents)`, and that where
        an op runs, what it reads and makes is alive.
    """
    unit = common_size(x.scope.at.graph)
    for p in x.scope.memory_devices:
        limit = x.scope.at.graph.devices[p].memory
        rooms = []
        if limit is not None:
            rooms.append(("memory", pulp.lpSum([limit // unit])))
        if peak is not None:
            rooms.append(("peak", pulp.lpSum([peak])))
        residents = _residents(x, p, unit)
        lives = list(_lives(x, p, unit))
        for *name, held in _held(x, p, lives, cuts=cuts):
            for what, room in rooms:
                x.require(held + residents <= room, what, *name)
        for what, room in rooms:
            x.require(residents <= room, what, "residents", x.scope.at.device_id(p))
            if cuts:
                average = pulp.lpSum(
                    life.size * (life.death - life.birth) for life in lives
                )
                x.require(
                    average <= x.scope.at.period * (room - residents),
                    what,
                    "average",
                    x.scope.at.device_id(p),
                )


def _residents(x: Variables, p: int, unit: int) -> pulp.LpAffineExpression:
    """Units that device p pays once for what it runs."""
    scope = x.scope
    terms = []
    for i, resident in enumerate(scope.at.graph.residents):
        numbers = [scope.at.op_numbers[op] for op in resident.ops]
        members = [v for v in numbers if scope.at.allowed[v, p]]
        if not members or resident.size == 0:
            continue
        name = str(i), scope.at.device_id(p)
        pays = x.real(0, 1, "resident", *name)
        for v in members:
            x.require(pays >= x.on[v, p], "resides", *name, scope.op_id(v))
        terms.append(resident.size // unit * pays)
    return pulp.lpSum(terms)


def _lives(x: Variables, p: int, unit: int) -> Iterator[_Life]:
    """Every tensor that may have a copy on device p."""
    at = x.scope.at
    for i, tensor in enumerate(at.graph.tensors):
        u = at.op_numbers[tensor.producer]
        users = [arc for arc in at.arcs if arc.tensor == i and at.allowed[arc.dst, p]]
        if tensor.size == 0 or at.allowed[u, -1]:
            continue
        if at.allowed[u, p] or users:
            yield _life(x, p, i, unit)


def _life(x: Variables, p: int, number: int, unit: int) -> _Life:
    """Make the life of one tensor's copies on device p."""
    scope, at, T = x.scope, x.scope.at, x.scope.at.period
    tensor = at.graph.tensors[number]
    arcs = [arc for arc in at.arcs if arc.tensor == number]
    u = at.op_numbers[tensor.producer]
    home = int(at.durations[u, p]) * x.on[u, p] if at.allowed[u, p] else 0
    end = x.start[u] + x.duration(u)
    name = tensor.id, at.device_id(p)
    early, late = int(scope.early[u]), int(scope.late[u])
    most = int(scope.most[u])
    longest = max([most, *(longest_life(x, u, arc) for arc in arcs)])
    death = x.real(early, late + most + longest, "death", *name)
    x.require(death >= end, "made", *name)
    for i, arc in enumerate(arcs):
        v = arc.dst
        if at.allowed[v, p]:
            use = x.start[v] + x.duration(v) + T * x.delay_of(arc)
            off = longest_life(x, u, arc) * (1 - x.on[v, p])
            x.require(death >= use - off, "used", *name, str(i))
        if u != v and at.allowed[v, :-1].any():
            if at.allowed[u, p]:
                leaving = end + x.transfer(arc, out_of=p)
                x.require(death >= leaving, "sent", *name, str(i))
            if at.allowed[v, p]:
                arrival = end + x.transfer(arc, into=p)
                x.require(death >= arrival, "arrives", *name, str(i))
    return _Life(
        id=tensor.id,
        size=tensor.size // unit,
        birth=end - home,
        death=death,
        first=early,
        last=late + most,
        longest=longest,
        workers=frozenset({u, *(arc.dst for arc in arcs)}),
    )


def longest_life(x: Variables, u: int, arc: Arc) -> int:
    r"""Return M with ``s_v + t_v + k T <= s_u + t_u + M`` in every schedule wanted.

    .. math:: M = \max(s_v - s_u) + \max t_v - \min t_u + T \max k

    where :math:`s_v - s_u \le -gaps_{vu}` by the definition of the gaps; a transfer
    takes at most max c, so M is at least that. Subtracting M (1 - on) from the end
    of a use thus leaves nothing to obey when v is elsewhere, as the end of u has a
    row of its own.
    """
    scope, delay = x.scope, arc.high or 0
    if arc.name is not None and arc.name in x.delay:
        delay = int(x.delay[arc.name].upBound)
    latest = -int(scope.gaps[arc.dst, u]) + scope.at.period * delay
    use = latest + int(scope.most[arc.dst]) - int(scope.least[u])
    return max(use, int(scope.transfer_times(arc).max(initial=0)), 0)


def _held(
    x: Variables, p: int, lives: list[_Life], *, cuts: bool
) -> Iterator[tuple[Any, ...]]:
    """Return what device p holds at each moment, after the words of its name."""
    scope, T = x.scope, x.scope.at.period
    for u, at_end in _moments(x, p):
        name = scope.at.device_id(p), scope.op_id(u), "end" if at_end else "start"
        moment = x.start[u] + (x.duration(u) if at_end else 0)
        late = int(scope.late[u]) + (int(scope.most[u]) if at_end else 0)
        held = []
        for life in lives:
            low, high = int(scope.early[u]) - life.last, late - life.first
            begun = x.integer(low // T, high // T, "begun", life.id, *name)
            ended = x.integer(
                (low - life.longest) // T, high // T, "ended", life.id, *name
            )
            since = moment - life.birth - (T - 1)
            x.require(T * begun >= since, "is_begun", life.id, *name)
            x.require(T * ended <= moment - life.death, "is_ended", life.id, *name)
            at_work = not at_end and u in life.workers and scope.busy[u, p]
            least = x.on[u, p] if cuts and at_work else 0
            x.require(begun - ended >= least, "alive", life.id, *name)
            held.append(life.size * (begun - ended))
        yield (*name, pulp.lpSum(held))


def _moments(x: Variables, p: int) -> Iterator[tuple[int, bool]]:
    """Ops whose start (at home) or end (elsewhere) may begin a copy on device p."""
    at = x.scope.at
    found: set[tuple[int, bool]] = set()
    for i, tensor in enumerate(at.graph.tensors):
        u = at.op_numbers[tensor.producer]
        if tensor.size == 0 or at.allowed[u, -1]:
            continue
        if at.allowed[u, p]:
            found.add((u, False))
        is_used = any(at.allowed[arc.dst, p] for arc in at.arcs if arc.tensor == i)
        if is_used and at.devices_of(u) != [p]:
            found.add((u, True))
    yield from sorted(found)
