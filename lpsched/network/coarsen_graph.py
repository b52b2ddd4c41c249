"""Coarser graphs of tasks: ops merged into their readers, with a bound on the loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from lpsched.core.graph import Graph, Op, OpId, Resident, Tensor
from lpsched.core.order import topological_order
from lpsched.network.chains import Group, Piece, merged

__all__ = ["GraphCoarsening", "coarsened_graph"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCoarsening:
    """A coarser graph and what it differs in.

    Attributes
    ----------
    graph : Graph
        A merged op has the id of the one that the others were moved to.
    groups : tuple of Group
        The ops merged, those of more than one member.
    loss : Fraction
        The least period is at most (1 + loss) times what it was, and never less;
        see `lpsched.network.chains`.
    """

    graph: Graph
    groups: tuple[Group, ...]
    loss: Fraction


def coarsened_graph(
    graph: Graph, *, epsilon: Fraction = Fraction(0)
) -> GraphCoarsening:
    """Merge ops whose merging lengthens the least period by no more than a share.

    An op and its only reader, both of one kind, become one where they are colocated
    anyway, or where one of them takes no time (at most `epsilon` times the other's on
    each device), may run anywhere and takes no resident memory. Merged ops add their
    durations and their residents; tensors inside them are gone, and with them what
    they would cost in communication and memory. Ops that a delay, a lag or a
    dependence touches, or that are in two colocated groups, stay as they are.

    The loss is bounded for the period where it is the largest load of a device: no
    delay, no flush, memory of residents only.

    Parameters
    ----------
    epsilon : Fraction
        The loss allowed; 0 changes no optimum.
    """
    before: dict[str, list[str]] = {op.id: [] for op in graph.ops}
    for edge in graph.edges:
        if edge.delay == 0:
            before[edge.dst].append(edge.src)
    order, cycle = topological_order(before)
    if cycle or graph.flush:
        return GraphCoarsening(graph=graph, groups=(), loss=Fraction(0))
    pieces = _pieces(graph)
    groups = merged({name: pieces[name] for name in order}, before, epsilon=epsilon)
    heart = {OpId(n): OpId(g.heart) for g in groups for n in g.members}
    colocate = [tuple(dict.fromkeys(heart[n] for n in g)) for g in graph.colocate]
    coarse = graph.replace(
        ops=tuple(_op(graph, group) for group in groups),
        tensors=tuple(_tensors(graph, heart)),
        dependences=tuple(
            replace(d, src=heart[d.src], dst=heart[d.dst]) for d in graph.dependences
        ),
        colocate=tuple(group for group in colocate if len(group) > 1),
        residents=tuple(_residents(graph, heart)),
    )
    return GraphCoarsening(
        graph=coarse,
        groups=tuple(group for group in groups if len(group.members) > 1),
        loss=max((group.loss for group in groups), default=Fraction(0)),
    )


def _pieces(graph: Graph) -> dict[str, Piece]:
    """Ops as merging sees them; ties are colocated groups on the same devices."""
    ties: dict[OpId, list[int]] = {}
    for i, group in enumerate(graph.colocate):
        for name in group:
            ties.setdefault(name, []).append(i)
    heavy = {name for r in graph.residents if r.size for name in r.ops}
    apart = _apart(graph) | {name for name, found in ties.items() if len(found) > 1}
    pieces: dict[str, Piece] = {}
    for op in graph.ops:
        tie = f"{ties[op.id][0]} on {op.devices}" if op.id in ties else None
        allowed = graph.allowed(op.id)
        pieces[op.id] = Piece(
            weights=tuple(
                Fraction(graph.duration(op.id, d) if d in allowed else 0)
                for d in graph.device_ids
            ),
            sort=op.kind,
            tie=tie,
            free=tie is None and op.id not in heavy and op.devices is None,
            apart=op.id in apart or not allowed,
        )
    return pieces


def _apart(graph: Graph) -> set[OpId]:
    """Ops that something other than a plain use of a tensor touches."""
    found = {end for d in graph.dependences for end in (d.src, d.dst)}
    for edge in graph.edges:
        if edge.delay != 0 or edge.lag:
            found |= {edge.src, edge.dst}
    return found


def _op(graph: Graph, group: Group) -> Op:
    """One op of a group: its heart with the durations of all."""
    members = [graph.op_by_id[OpId(name)] for name in group.members]
    heart = graph.op_by_id[OpId(group.heart)]
    whole = [op.duration for op in members if isinstance(op.duration, int)]
    if len(whole) == len(members):
        return replace(heart, duration=sum(whole))
    return replace(
        heart,
        duration={
            device: sum(graph.duration(op.id, device) for op in members)
            for device in graph.allowed(heart.id)
        },
    )


def _tensors(graph: Graph, heart: Mapping[OpId, OpId]) -> Iterator[Tensor]:
    """Yield the tensors that leave their op's group, with consumers by new ids."""
    for tensor in graph.tensors:
        producer = heart[tensor.producer]
        uses = tuple(
            dict.fromkeys(replace(use, op=heart[use.op]) for use in tensor.consumers)
        )
        inside = all(use.op == producer and use.delay == 0 for use in uses)
        if not (uses and inside):
            yield replace(
                tensor,
                producer=producer,
                consumers=tuple(u for u in uses if u.op != producer or u.delay != 0),
            )


def _residents(graph: Graph, heart: Mapping[OpId, OpId]) -> Iterator[Resident]:
    for resident in graph.residents:
        ops = tuple(dict.fromkeys(heart[name] for name in resident.ops))
        yield replace(resident, ops=ops)
