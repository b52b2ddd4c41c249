"""Equal devices and equal ops, and rows that keep one of each class of schedules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from lpsched.analysis.at_period import AtPeriod
from lpsched.core.graph import OpId
from lpsched.formulations.cpsat.variables import Literal, Variables

__all__ = ["add_symmetry", "equal_devices", "equal_ops"]


def add_symmetry(x: Variables) -> None:
    r"""Number equal devices by first use, and start equal ops in order.

    .. math:: on_{vq} \le \sum_{u < v} on_{up}, \qquad s_u \le s_v

    for neighbours p < q in a class of equal devices, and neighbours u < v in a class
    of equal ops. Swapping two of a class maps schedules to schedules of the same
    figures, and renaming devices moves no start; so any schedule can first have its
    equal ops sorted, then its devices renamed, then be rotated until its anchor
    starts at 0. Shifting a component by whole periods may reverse the order of
    starts, so equal ops are ordered only within one.
    """
    for devices in equal_devices(x.scope.at):
        for p, q in pairwise(devices):
            earlier: list[Literal] = []
            for v, head in enumerate(x.scope.twin):
                if head == v:
                    if (v, q) in x.on:
                        x.cp.add_bool_or(~x.on[v, q], *earlier)
                    if (v, p) in x.on:
                        earlier.append(x.on[v, p])
    component = x.scope.windows.component
    for ops in equal_ops(x.scope.at):
        for u, v in pairwise(ops):
            if x.scope.is_timed and component[u] == component[v]:
                x.cp.add(x.start[u] <= x.start[v])


def equal_devices(at: AtPeriod) -> list[list[int]]:
    """Classes of two or more devices any two of which can be swapped.

    They have the same memory, allow the same ops with the same durations, and no
    transfer tells them apart.
    """
    memory = [device.memory for device in at.graph.devices]
    transfers = list({matrix.tobytes(): matrix for matrix in at.transfers}.values())

    def can_swap(p: int, q: int) -> bool:
        order = np.arange(at.num_devices + 1)
        order[[p, q]] = q, p
        return (
            memory[p] == memory[q]
            and bool((at.allowed[:, order] == at.allowed).all())
            and bool((at.durations[:, order] == at.durations)[at.allowed].all())
            and all((m[np.ix_(order, order)] == m).all() for m in transfers)
        )

    return _classes(range(at.num_devices), can_swap)


def equal_ops(at: AtPeriod) -> list[list[int]]:
    """Classes of two or more ops any two of which can be swapped, such as equal parts.

    Swapping them leaves devices, durations, tensors, dependences, colocation and
    residents as they are.
    """
    facts = list(_facts(at))
    about: dict[int, list[int]] = defaultdict(list)
    for number, (_, roles) in enumerate(facts):
        for op in {op for _, op in roles}:
            about[op].append(number)

    def can_swap(u: int, v: int) -> bool:
        if len(about[u]) != len(about[v]):
            return False
        other = {u: v, v: u}
        touched = [facts[number] for number in {*about[u], *about[v]}]
        return (
            bool((at.allowed[u] == at.allowed[v]).all())
            and bool((at.durations[u] == at.durations[v])[at.allowed[u]].all())
            and Counter(_sealed(fact) for fact in touched)
            == Counter(_sealed(fact, other) for fact in touched)
        )

    return _classes(range(at.num_ops), can_swap)


#: Something a graph says: what, and how often each op plays which role in it.
_Fact: TypeAlias = tuple[Hashable, Counter[tuple[Hashable, int]]]


def _facts(at: AtPeriod) -> Iterator[_Fact]:
    """All that a graph says of its ops, but for devices and durations."""
    for tensor in at.graph.tensors:
        made: list[tuple[Hashable, OpId]] = [("made", tensor.producer)]
        uses = [((use.delay, use.lag), use.op) for use in tensor.consumers]
        yield tensor.size, _roles(at, [*made, *uses])
    for order in at.graph.dependences:
        ends = [("src", order.src), ("dst", order.dst)]
        yield ("order", order.delay, order.lag), _roles(at, ends)
    for group in at.graph.colocate:
        yield "colocate", _roles(at, [("in", op) for op in set(group)])
    for resident in at.graph.residents:
        ops = [("in", op) for op in set(resident.ops)]
        yield ("resident", resident.size), _roles(at, ops)


def _roles(
    at: AtPeriod, played: Iterable[tuple[Hashable, OpId]]
) -> Counter[tuple[Hashable, int]]:
    return Counter((role, at.op_numbers[op]) for role, op in played)


def _sealed(fact: _Fact, other: Mapping[int, int] | None = None) -> Hashable:
    """Make a fact comparable, some ops under other names."""
    what, roles = fact
    names = other or {}
    renamed = {(role, names.get(op, op)): n for (role, op), n in roles.items()}
    return what, frozenset(renamed.items())


def _classes(
    members: Iterable[int], can_swap: Callable[[int, int], bool]
) -> list[list[int]]:
    """Group by swapping, an equivalence: (a c) = (a b)(b c)(a b)."""
    classes: list[list[int]] = []
    for member in members:
        for group in classes:
            if can_swap(group[0], member):
                group.append(member)
                break
        else:
            classes.append([member])
    return [group for group in classes if len(group) > 1]
