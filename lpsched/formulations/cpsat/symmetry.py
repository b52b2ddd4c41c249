"""Equal devices and equal ops, and rows that keep one of each class of schedules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from lpsched.analysis.at_period import AtPeriod
from lpsched.analysis.equal_devices import equal_devices, swap_classes
from lpsched.core.graph import OpId
from lpsched.formulations.cpsat.scope import Scope
from lpsched.formulations.cpsat.variables import Literal, Variables

__all__ = [
    "add_symmetry",
    "equal_ops",
    "microbatch_copies",
    "ordered_ops",
]


def add_symmetry(x: Variables) -> None:
    r"""Number equal devices by first use, and start interchangeable ops in order.

    .. math:: on_{vq} \le \sum_{u < v} on_{up}, \qquad s_u \le s_v

    for neighbours p < q in a class of equal devices, and neighbours u < v of
    `ordered_ops`; if these share a device, v waits for u's end as well. Any schedule
    can first have its ops sorted, which moves no set of starts from its device, then
    its devices renamed, which moves no start, then be rotated to its anchor.
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
    for ops in ordered_ops(x.scope):
        for u, v in pairwise(ops):
            shared = x.scope.occupies(u) and x.scope.twin[u] == x.scope.twin[v]
            x.cp.add(x.start[u] + (x.duration(u) if shared else 0) <= x.start[v])


def ordered_ops(scope: Scope) -> list[list[int]]:
    """Lists of ops that may be taken to start in this order.

    Copies of an op for equal microbatches, then equal ops. Shifting a component by
    whole periods may reverse the order of starts, so they must lie in one.
    """
    if not scope.is_timed:
        return []
    component = scope.windows.component
    copies = microbatch_copies(scope)
    if len({int(component[v]) for ops in copies for v in ops}) > 1:
        copies = []
    taken = {v for ops in copies for v in ops}
    found = list(copies)
    for ops in equal_ops(scope.at):
        by_component: dict[int, list[int]] = defaultdict(list)
        for v in ops:
            if v not in taken:
                by_component[int(component[v])].append(v)
        found += [part for part in by_component.values() if len(part) > 1]
    return found


def microbatch_copies(scope: Scope) -> list[list[int]]:
    r"""Copies of ops for equal microbatches, each list in the order of these.

    Ops of one kind, layer, stage and part are copies. If all copies of an op share
    their device and duration, and what the graph says of one microbatch it says of
    each, never of two at once but for what is said of all, then the starts of each
    op's copies can be sorted, op by op. For a wait ``s_v >= s_u + w`` between copies
    u, v of each microbatch holds for the sorted starts too; the set of starts of an
    op on its device stays; and no peak rises: of the copies of a tensor, born when
    their producers start, those dead at a time are those all of whose uses are over,
    at most the least number of uses over of any consumer, which sorting attains.

    Returns
    -------
    list of list of int
        Empty unless this holds for all ops with a microbatch.
    """
    families: dict[Hashable, dict[int, int]] = defaultdict(dict)
    for v, op in enumerate(scope.at.graph.ops):
        if op.microbatch is not None:
            family = op.kind, op.layer, op.stage, op.part
            if op.microbatch in families[family]:
                return []
            families[family][op.microbatch] = v
    if len({frozenset(family) for family in families.values()}) != 1:
        return []
    copies = [[v for _, v in sorted(family.items())] for family in families.values()]
    if len(copies[0]) < 2 or not _are_alike(scope, copies):
        return []
    return copies


def _are_alike(scope: Scope, copies: Sequence[Sequence[int]]) -> bool:
    """Tell whether all microbatches are equal, and no fact is about two of them."""
    durations, twin = scope.at.durations, scope.twin
    for ops in copies:
        head = ops[0]
        for v in ops:
            if twin[v] != twin[head] or (durations[v] != durations[head]).any():
                return False
    family = {v: ops[0] for ops in copies for v in ops}
    batch = {v: m for ops in copies for m, v in enumerate(ops)}
    said: list[Counter[Hashable]] = [Counter() for _ in copies[0]]
    for what, roles in _facts(scope.at):
        if what == "colocate" or (isinstance(what, tuple) and what[0] == "resident"):
            continue  # about devices alone, which copies share
        parts: dict[int, list[Hashable]] = defaultdict(list)
        for (role, v), times in roles.items():
            if v in batch:
                parts[batch[v]].append((role, family[v], times))
        others = frozenset(
            (role, v, times) for (role, v), times in roles.items() if v not in batch
        )
        if len(parts) > 1 and not _is_from_outside(what, others):
            return False
        for m, part in parts.items():
            said[m][what, others, frozenset(part)] += 1
    return all(of_one == said[0] for of_one in said)


def _is_from_outside(
    what: Hashable, others: Iterable[tuple[Hashable, int, int]]
) -> bool:
    """Tell whether a fact is a tensor made by no microbatch."""
    return isinstance(what, int) and any(role == "made" for role, _, _ in others)


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

    classes = swap_classes(range(at.num_ops), can_swap)
    return [group for group in classes if len(group) > 1]


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
