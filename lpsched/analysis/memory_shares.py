"""What a device must hold at the least for the ops it runs, whatever their times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpsched.analysis.sites import Sites
from lpsched.core.graph import DelayName, Edge, Graph, OpId, Tensor

__all__ = ["MemoryShare", "average_shares", "peak_shares"]

#: L where no path joins two ops; sums of three stay in 64 bits.
_NO_PATH = -(2**61)
#: Ops beyond which only precedences, and not the paths they make, are looked at.
_MOST_OPS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryShare:
    """What a device pays once if it runs any of some ops.

    Attributes
    ----------
    size : int
        In size units times ticks, so that T of it are one size unit of memory.
    """

    size: int
    ops: frozenset[OpId]


def average_shares(graph: Graph, period: int) -> tuple[MemoryShare, ...]:
    r"""Shares whose sum the mean over a period, and so T times the peak, is not below.

    With S the ops that a device runs, in every schedule of period T,

    .. math:: T \cdot peak \ge T \sum_r size_r\,[S \cap ops_r \ne \emptyset] +
       \sum_a size_a \Big( t_u\,[u \in S] + \max_{v \in S} f_{av} \Big)

    over residents r and tensors a of producer u and consumers v, with
    :math:`f_{av}` the least ticks from the end of u to the end of v's use
    (`_Paths.use_end`). For a copy on the producer's device lives
    :math:`t_u + \max f` at the least and one elsewhere :math:`\max f`; and a copy that
    lives :math:`\ell` ticks holds :math:`size\,\ell / T` in the mean.
    """
    paths = _Paths.of(graph, period)
    shares = _Shares()
    for resident in graph.residents:
        shares.add(resident.size * period, resident.ops)
    for tensor in _held(graph):
        shares.add(tensor.size * paths.ticks(tensor.producer), [tensor.producer])
        shares.add_greatest(tensor.size, paths.ends(tensor))
    return shares.of(graph)


def peak_shares(graph: Graph, period: int) -> tuple[MemoryShare, ...]:
    r"""Shares whose sum T times the peak is not below, by what is there at one moment.

    .. math:: peak \ge \sum_r size_r\,[S \cap ops_r \ne \emptyset] +
       \sum_a size_a \max_{v \in S} \lfloor f_{av} / T \rfloor + \max_{w \in S} e_w

    with residents, tensors and f as in `average_shares`: a copy that lives
    :math:`\ell` ticks is there :math:`\lfloor \ell / T \rfloor` times at every phase.
    When op w starts there is more, :math:`e_w`, if it takes time. Of a tensor that it
    makes: one copy, since its life is t_w longer than f. Of one that it uses:
    :math:`\lfloor (f_{aw} - t_w) / T \rfloor + 1` copies are made and not yet used
    by w, which counts as far as it exceeds :math:`\max_v \lfloor f_{av}/T \rfloor`
    over all consumers.
    """
    paths = _Paths.of(graph, period)
    shares = _Shares()
    extra: dict[OpId, int] = {}
    for resident in graph.residents:
        shares.add(resident.size * period, resident.ops)
    for tensor in _held(graph):
        ends = paths.ends(tensor)
        always = {op: end // period for op, end in ends.items()}
        shares.add_greatest(tensor.size * period, always)
        most = max(always.values(), default=0)
        more = {
            op: (end - paths.ticks(op)) // period + 1 - most for op, end in ends.items()
        }
        more[tensor.producer] = 1
        for op, copies in more.items():
            if copies > 0 and paths.ticks(op):
                extra[op] = extra.get(op, 0) + copies * tensor.size
    shares.add_greatest(period, extra)
    return shares.of(graph)


def _held(graph: Graph) -> Iterator[Tensor]:
    """Tensors that take memory."""
    for tensor in graph.tensors:
        if tensor.size and graph.occupies_device(tensor.producer):
            yield tensor


class _Shares:
    """Shares added up by their ops."""

    def __init__(self) -> None:
        self._sizes: dict[frozenset[OpId], int] = {}

    def add(self, size: int, ops: Iterable[OpId]) -> None:
        key = frozenset(ops)
        self._sizes[key] = self._sizes.get(key, 0) + size

    def add_greatest(self, size: int, values: Mapping[OpId, int]) -> None:
        r"""Add `size` times the greatest value >= 0 of the ops that a device runs.

        With values :math:`f_1 \ge f_2 \ge \dots` it is a sum of shares:
        :math:`\sum_j (f_j - f_{j+1})\,[S \cap \{v_1 \dots v_j\} \ne \emptyset]`.
        """
        ranked = sorted(values, key=lambda op: -values[op])
        for j, op in enumerate(ranked):
            below = values[ranked[j + 1]] if j + 1 < len(ranked) else 0
            self.add(size * (values[op] - below), ranked[: j + 1])

    def of(self, graph: Graph) -> tuple[MemoryShare, ...]:
        found: dict[frozenset[OpId], int] = {}
        for ops, size in self._sizes.items():
            placed = frozenset(filter(graph.occupies_device, ops))
            found[placed] = found.get(placed, 0) + size
        return tuple(
            MemoryShare(size=size, ops=ops)
            for ops, size in found.items()
            if size and ops
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Paths:
    """Least ticks between starts, with the shortest durations and no transfers.

    Attributes
    ----------
    longest : array (n, n) of int
        L: ``s_v - s_u >= L[u, v]`` in every schedule of period T.
    named : mapping of DelayName to sequence of Edge
        The precedences that share a named delay.
    """

    graph: Graph
    period: int
    number: Mapping[OpId, int]
    durations: Sequence[int]
    longest: NDArray[np.int64]
    named: Mapping[DelayName, Sequence[Edge]]

    @classmethod
    def of(cls, graph: Graph, period: int) -> _Paths:
        sites = Sites.of(graph)
        number = {op.id: v for v, op in enumerate(graph.ops)}
        durations = [sites.least_duration(op.id) for op in graph.ops]
        named: dict[DelayName, list[Edge]] = {}
        direct = np.full((len(number), len(number)), _NO_PATH, dtype=np.int64)
        np.fill_diagonal(direct, 0)
        for edge in graph.edges:
            if not isinstance(edge.delay, int):
                named.setdefault(edge.delay, []).append(edge)
            most = graph.delay_range(edge.delay)[1]
            if most is not None:
                u, v = number[edge.src], number[edge.dst]
                ticks = durations[u] + edge.lag - most * period
                direct[u, v] = max(direct[u, v], ticks)
        return cls(
            graph=graph,
            period=period,
            number=number,
            durations=durations,
            longest=_closed(direct),
            named=named,
        )

    def ticks(self, op: OpId) -> int:
        """Duration of an op at the least."""
        return self.durations[self.number[op]]

    def ends(self, tensor: Tensor) -> dict[OpId, int]:
        """Ticks from the producer's end to the end of each consumer's last use."""
        found: dict[OpId, int] = {}
        for use in tensor.consumers:
            if self.graph.occupies_device(use.op):
                end = self.use_end(tensor.producer, use.op, use.delay)
                found[use.op] = max(end, found.get(use.op, 0))
        return found

    def use_end(self, producer: OpId, user: OpId, delay: int | DelayName) -> int:
        r"""Ticks from a producer's end to the end of a use, at the least.

        .. math:: f_{av} = t_v - t_u + \max\{ L_{uv} + k T,\;
           \max_{x \to w} (L_{ux} + t_x + lag + L_{wv}) \}

        with k the least delay, and over all arcs of the same named delay: that waits
        as long, whatever its value. An op's use of what it made itself ends k T after
        it was made.
        """
        u, v = self.number[producer], self.number[user]
        least = self.graph.delay_range(delay)[0]
        if u == v:
            return least * self.period
        found = int(self.longest[u, v]) + least * self.period
        if not isinstance(delay, int):
            for edge in self.named[delay]:
                x, w = self.number[edge.src], self.number[edge.dst]
                ticks = self.durations[x] + edge.lag
                there = int(self.longest[u, x]) + ticks + int(self.longest[w, v])
                found = max(found, there)
        return max(0, found + self.durations[v] - self.durations[u])


def _closed(direct: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add paths to arcs; the arcs alone where there are too many, or loops that grow.

    (With a loop of positive length there is no schedule, and anything is valid.)
    """
    if len(direct) > _MOST_OPS:
        return direct
    longest = direct.copy()
    for w in range(len(direct)):
        if longest[w, w] > 0:
            return direct
        via = longest[:, w, None] + longest[None, w]
        np.maximum(longest, via, out=longest)
        np.maximum(longest, _NO_PATH, out=longest)
    return longest
