r"""Merging nodes of a DAG into their readers, with a proof of what that can cost.

**Theorem.** Let every node weigh :math:`t_k(v) \ge 0` for each kind k of work (F, I, W
of a layer; one kind per device for a task), let the period of a placement be the
largest load of a device, and let groups of nodes be merged such that each group G has a
*heart* h (a node, or nodes that must share a device anyway) with

.. math:: \sum_{v \in G \setminus h} t_k(v) \le \varepsilon\, t_k(h) \quad\forall k .

Then the least period T of the nodes and T' of the groups satisfy
:math:`T \le T' \le (1 + \varepsilon)\, T`.

*Proof.* A placement of the groups places their nodes with the same loads: T <= T'.
From a best placement of the nodes move, kind by kind, the rest of each group to the
device of its heart. A device of load L gains at most :math:`\varepsilon` times the
load of the hearts on it, so it ends with at most :math:`(1 + \varepsilon) L`.

The same holds for the least maximum over chains of down-sets (PipeDream's stages), for
moving keeps their order: a node that comes before its heart in G has no reader outside
G and moves to a later stage; a node that comes after has no other predecessor and moves
to an earlier one. So if x in G is read by y in another group H, the heart of G leads to
x, and y leads to the heart of H: the stages of the hearts are in order.

With free delays the period *is* the largest load, whatever transfers take (design fact
2): then the least period of the training graph obeys the theorem. Where delays or
memory are limited, or ticks are rounded after merging, it speaks of the load only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Group", "Piece", "merged"]

Weights = tuple[Fraction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A node as merging sees it.

    Attributes
    ----------
    weights : tuple of Fraction
        Work of each kind.
    tie : str or None
        Nodes of one tie share a device whatever happens.
    free : bool
        If true, the node may be moved to any device that its heart may run on.
    apart : bool
        If true, the node merges with nothing.
    sort : str
        Only nodes of one sort merge.
    """

    weights: Weights
    sort: str = ""
    tie: str | None = None
    free: bool = True
    apart: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Nodes that became one.

    Attributes
    ----------
    members : tuple of str
        In topological order.
    heart : str
        The name of the node that the others moved to.
    loss : Fraction
        The group's own epsilon: what was moved over the heart's work, at worst.
    """

    members: tuple[str, ...]
    heart: str
    loss: Fraction


@dataclass(slots=True)
class _Class:
    """A group while it grows: its work, its heart's, and its neighbours."""

    members: list[str]
    heart: str
    total: Weights
    core: Weights
    tie: str | None
    free: bool
    apart: bool
    sort: str
    before: dict[int, None]
    readers: dict[int, None]


def merged(
    pieces: Mapping[str, Piece],
    predecessors: Mapping[str, Sequence[str]],
    *,
    epsilon: Fraction = Fraction(0),
) -> tuple[Group, ...]:
    """Merge nodes into their only readers as long as the theorem's epsilon allows.

    A group and its only reader merge if they are tied together, or if one of them is
    free and so light that it may move to the other's heart: the group to its reader, or
    the reader to the group if that is all it reads. `epsilon` 0 merges only what costs
    nothing or is tied.

    Parameters
    ----------
    pieces : mapping of str to Piece
        In topological order.
    predecessors : mapping of str to sequence of str
        Those of every node.

    Returns
    -------
    tuple of Group
        In an order in which each group follows those it reads; single nodes too.
    """
    merger = _Merger(pieces, predecessors, epsilon)
    merger.run()
    return merger.groups()


class _Merger:
    """Classes of a union-find; each merge looks again at the neighbours it changed."""

    def __init__(
        self,
        pieces: Mapping[str, Piece],
        predecessors: Mapping[str, Sequence[str]],
        epsilon: Fraction,
    ) -> None:
        self._place = {name: i for i, name in enumerate(pieces)}
        self._epsilon = epsilon
        self._waiting: list[int] = []
        self._root = list(range(len(pieces)))
        self._classes = [
            _Class(
                members=[name],
                heart=name,
                total=piece.weights,
                core=piece.weights,
                tie=piece.tie,
                free=piece.free,
                apart=piece.apart,
                sort=piece.sort,
                before={self._place[other]: None for other in predecessors[name]},
                readers={},
            )
            for name, piece in pieces.items()
        ]
        for i, found in enumerate(self._classes):
            for j in found.before:
                self._classes[j].readers[i] = None

    def run(self) -> None:
        """Merge until nothing more can be."""
        self._waiting = list(range(len(self._classes)))[::-1]
        while self._waiting:
            node = self._find(self._waiting.pop())
            reader = self._only_reader(node)
            if reader is not None:
                self._join(node, reader)

    def groups(self) -> tuple[Group, ...]:
        """Every class, by its last member: no reader of it comes before that one."""
        classes = [c for i, c in enumerate(self._classes) if self._find(i) == i]
        found = [
            Group(
                members=tuple(sorted(c.members, key=self._place.__getitem__)),
                heart=c.heart,
                loss=_share(c.total, c.core),
            )
            for c in classes
        ]
        return tuple(sorted(found, key=lambda g: self._place[g.members[-1]]))

    def _find(self, node: int) -> int:
        while self._root[node] != node:
            self._root[node] = self._root[self._root[node]]
            node = self._root[node]
        return node

    def _only_reader(self, node: int) -> int | None:
        """The class that alone reads a class."""
        only = None
        for name in self._classes[node].readers:
            found = self._find(name)
            if found not in (node, only):
                if only is not None:
                    return None
                only = found
        return only

    def _reads_only(self, reader: int, node: int) -> bool:
        return all(
            self._find(name) in (node, reader) for name in self._classes[reader].before
        )

    def _join(self, node: int, reader: int) -> None:
        """Merge a class and its only reader if that costs no more than allowed."""
        first, second = self._classes[node], self._classes[reader]
        if first.apart or second.apart or first.sort != second.sort:
            return
        total = _sum(first.total, second.total)
        if first.tie is not None and first.tie == second.tie:
            core, heart = _sum(first.core, second.core), second.heart
            fits = self._fits(total, core)
        elif first.free and self._fits(total, second.core):
            core, heart, fits = second.core, second.heart, True
        else:
            core, heart = first.core, first.heart
            light = second.free and self._fits(total, core)
            fits = light and self._reads_only(reader, node)
        if fits:
            self._look_again(first, second, core)
            kept = self._absorb(node, reader)
            kept.total, kept.core, kept.heart = total, core, heart
            kept.tie = first.tie if second.tie is None else second.tie
            kept.free = first.free and second.free
            self._waiting.append(node)

    def _look_again(self, first: _Class, second: _Class, core: Weights) -> None:
        """Put those in line that may merge now: with one reader left, or a new heart.

        A class that costs something gains by a new heart only if some loss is allowed.
        """
        small, large = sorted((first.before, second.before), key=len)
        self._waiting += [name for name in small if name in large]
        for part in (first, second):
            if self._epsilon and core != part.core:
                self._waiting += part.before

    def _fits(self, total: Weights, core: Weights) -> bool:
        return all(t - c <= self._epsilon * c for t, c in zip(total, core, strict=True))

    def _absorb(self, node: int, reader: int) -> _Class:
        """Make one class of two, the smaller poured into the larger."""
        sizes = [
            len(c.members) + len(c.before) + len(c.readers)
            for c in (self._classes[node], self._classes[reader])
        ]
        small, large = (node, reader) if sizes[0] <= sizes[1] else (reader, node)
        self._root[small] = large
        kept, gone = self._classes[large], self._classes[small]
        kept.members += gone.members
        kept.before.update(gone.before)
        kept.readers.update(gone.readers)
        for inside in (small, large):
            kept.before.pop(inside, None)
            kept.readers.pop(inside, None)
        return kept


def _sum(first: Weights, second: Weights) -> Weights:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def _share(total: Weights, core: Weights) -> Fraction:
    shares = [(t - c) / c for t, c in zip(total, core, strict=True) if t > c]
    return max(shares, default=Fraction(0))
