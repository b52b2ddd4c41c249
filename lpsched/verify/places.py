"""Certificates on where things must be: traffic that placements cost, and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import repeat
from math import ceil
from typing import Any

from lpsched.core.graph import Graph, OpId, Tensor
from lpsched.verify.evidence import (
    Certificate,
    Hosts,
    RefusedError,
    ceil_div,
    hosts,
    is_whole,
    least_work,
    read_integer,
    read_ops,
    run_ticks,
    sequence,
)

__all__ = ["average_bound", "confined_bound", "connected_bound", "working_set_bound"]


def confined_bound(graph: Graph, certificate: Certificate) -> int:
    """Value of a ``confined`` certificate: tensors that must be sent.

    Wherever a tensor's producer may run, consumers that may not run there need it
    elsewhere, those that pairwise share no device on as many devices.

    Fields: ``copies`` (by tensor, on how many other devices it is needed).
    """
    host = hosts(graph)
    total = 0
    for tensor, copies in _copies(graph, certificate):
        places = host.allowed[tensor.producer]
        certain = min((_forced(host, tensor, p) for p in places), default=0)
        if copies > certain:
            raise RefusedError(f"tensor {tensor.id!r} is sent {certain} times for sure")
        total += copies * tensor.size
    return total


def _forced(host: Hosts, tensor: Tensor, home: str) -> int:
    """Devices other than `home` that consumers need: pairwise disjoint choices."""
    choices = sorted((host.allowed[use.op] for use in tensor.consumers), key=len)
    taken: set[str] = set()
    count = 0
    for devices in choices:
        if devices and home not in devices and taken.isdisjoint(devices):
            taken.update(devices)
            count += 1
    return count


def _copies(graph: Graph, certificate: Certificate) -> Iterator[tuple[Tensor, int]]:
    raw = certificate.get("copies")
    if not isinstance(raw, Mapping):
        raise RefusedError("expected a mapping at 'copies'")
    known: dict[str, Tensor] = {tensor.id: tensor for tensor in graph.tensors}
    for name, copies in raw.items():
        if name not in known or not is_whole(copies):
            raise RefusedError(f"copies: expected a count for a tensor: {name!r}")
        yield known[name], copies


def connected_bound(graph: Graph, certificate: Certificate) -> int:
    r"""Value of a ``connected`` certificate: ops joined by tensors, too much for one.

    Ops of least work w need :math:`m = \lceil w / T \rceil` devices at a period of T
    or less. If tensors join them all, those that cross join these devices, and that
    takes m - 1 different arrivals of a tensor at a device: at least the m - 1 smallest
    sizes, each as often as its tensor has consumers among the ops.

    Fields: ``period`` (T), ``parts`` (each with ``ops``; no op in two parts).
    """
    period = read_integer(certificate, "period", least=1)
    host = hosts(graph)
    parts = [_part_ops(part) for part in sequence(certificate, "parts")]
    read_ops(graph, [op for ops in parts for op in ops], "parts")
    total = 0
    for ops in parts:
        inside = set(ops)
        uses = [
            (tensor, {use.op for use in tensor.consumers} & inside - {tensor.producer})
            for tensor in graph.tensors
            if tensor.producer in inside
        ]
        _expect_joined(inside, [{tensor.producer, *users} for tensor, users in uses])
        work = least_work(graph, host, ops, dict.fromkeys(graph.device_ids, 1))
        arrivals = sorted(s for t, users in uses for s in repeat(t.size, len(users)))
        total += sum(arrivals[: max(0, ceil_div(work, period) - 1)])
    return total


def _part_ops(part: Any) -> tuple[OpId, ...]:  # noqa: ANN401 - plain data
    if not isinstance(part, Mapping) or not part.get("ops"):
        raise RefusedError("parts: expected mappings with ops")
    return tuple(sequence(part, "ops"))


def _expect_joined(ops: set[OpId], links: Sequence[set[OpId]]) -> None:
    """Refuse ops that the links do not join all together."""
    links_of: dict[OpId, list[set[OpId]]] = {op: [] for op in ops}
    for link in links:
        for op in link:
            links_of[op].append(link)
    reached: set[OpId] = set()
    waiting = [min(ops)]
    while waiting:
        op = waiting.pop()
        if op not in reached:
            reached.add(op)
            waiting.extend(o for link in links_of[op] for o in link - reached)
    if reached != ops:
        raise RefusedError(f"no tensors join {min(ops)!r} to {min(ops - reached)!r}")


def working_set_bound(graph: Graph, certificate: Certificate) -> int:
    """Value of a ``working_set`` certificate: what one op keeps on its device.

    While an op runs, for some ticks at least, its device holds its group's residents,
    what it makes, and of each tensor that it uses one version for each plain delay
    among its uses (a named delay may equal a plain one, but never 0).

    Fields: ``op``, ``copies`` (by tensor, versions held), ``residents`` (indices into
    `Graph.residents`).
    """
    (op,) = read_ops(graph, [certificate.get("op")], "op")
    host = hosts(graph)
    if min(run_ticks(graph, op, d) for d in host.occupied_by(op)) == 0:
        raise RefusedError(f"op {op!r} may take no time")
    total = _resident_size(graph, host, op, sequence(certificate, "residents"))
    for tensor, copies in _copies(graph, certificate):
        certain = _versions(host, tensor, op)
        if copies > certain:
            text = f"op {op!r} holds {certain} versions of {tensor.id!r} for sure"
            raise RefusedError(text)
        total += copies * tensor.size
    return total


def _versions(host: Hosts, tensor: Tensor, op: OpId) -> int:
    if not host.allowed[tensor.producer]:
        return 0
    delays = {use.delay for use in tensor.consumers if use.op == op}
    ages = {delay for delay in delays if isinstance(delay, int)}
    named = 1 if len(delays) > len(ages) and not ages - {0} else 0
    return len(ages | ({0} if tensor.producer == op else set())) + named


def _resident_size(
    graph: Graph, host: Hosts, op: OpId, indices: Sequence[object]
) -> int:
    """Units of the residents listed, each of them due wherever `op` runs."""
    total = 0
    for index in indices:
        if not is_whole(index) or index >= len(graph.residents):
            raise RefusedError("the graph has no resident of some index")
        owners = graph.residents[index].ops
        if all(host.group[owner] != host.group[op] for owner in owners):
            raise RefusedError(f"resident {index} need not be where {op!r} runs")
        total += graph.residents[index].size
    if len(set(indices)) < len(indices):
        raise RefusedError("a resident is counted twice")
    return total


def average_bound(graph: Graph, certificate: Certificate) -> int:
    r"""Value of an ``average`` certificate: what all devices keep, shared evenly.

    Each resident that some device must pay stands once. At a period of T or less a
    tensor is held, on average over time, for the shortest run of its producer u and
    of any one consumer v, which never run at once:

    .. math:: \frac{1}{P} \Bigl( \sum_r \mathrm{size}_r + \frac{1}{T} \sum_a
        \mathrm{size}_a (t_u + \max_v t_v) \Bigr)

    Fields: ``period`` (T, or null: residents only).
    """
    if not graph.devices:
        raise RefusedError("the graph has no device")
    host = hosts(graph)
    kept = Fraction(
        sum(r.size for r in graph.residents if any(host.allowed[op] for op in r.ops))
    )
    if certificate.get("period") is not None:
        period = read_integer(certificate, "period", least=1)
        kept += Fraction(
            sum(_held(graph, host, tensor) for tensor in graph.tensors), period
        )
    return ceil(kept / len(graph.devices))


def _held(graph: Graph, host: Hosts, tensor: Tensor) -> int:
    """Least units times ticks that a tensor costs each iteration."""

    def least(op: OpId) -> int:
        return min((run_ticks(graph, op, d) for d in host.allowed[op]), default=0)

    if not host.allowed[tensor.producer]:
        return 0
    use = max((least(use.op) for use in tensor.consumers), default=0)
    return tensor.size * (least(tensor.producer) + use)
