"""A plain layered layout: ranks, dummies on long wires, few crossings, even rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from lpsched.plot.flow import Wire

__all__ = ["Cell", "Layers"]

#: A box, or the place where a wire passes a rank: (number of the wire, rank).
Cell: TypeAlias = "str | tuple[int, int]"

#: Sweeps over the ranks to untangle, and to straighten, the wires.
SWEEPS = 24
#: How much more a wire that passes a rank keeps straight than one that ends there.
STRAIGHT = 4
#: Above this many wires feedback is found along wires without delay only.
MOST_WIRES = 3_000


class Layers:
    """Boxes and passing wires in ranks, most wires leading to the next one.

    Source: Sugiyama, Tagawa and Toda, *Methods for visual understanding of hierarchical
    system structures* (1981), with barycentres.

    Attributes
    ----------
    ranks : list of list of Cell
        Cells of each rank, from top to bottom.
    rows : dict of Cell to float
        Height of each cell, in rows; cells of one rank are at least 1 apart.
    passes : dict of int to list of Cell
        Cells of each wire from its source to its target, both included; self-loops
        have none.
    """

    def __init__(self, boxes: Sequence[str], wires: Sequence[Wire]) -> None:
        rank = _ranks(boxes, wires)
        count = max(rank.values(), default=0) + 1
        self.ranks: list[list[Cell]] = [[] for _ in range(count)]
        for box in boxes:
            self.ranks[rank[box]].append(box)
        self.passes: dict[int, list[Cell]] = {}
        self._next: defaultdict[Cell, list[Cell]] = defaultdict(list)
        self._last: defaultdict[Cell, list[Cell]] = defaultdict(list)
        for number, wire in enumerate(wires):
            self._thread(number, wire, rank)
        self._untangle()
        self.rows = self._straighten()

    def _thread(self, number: int, wire: Wire, rank: Mapping[str, int]) -> None:
        """Lead a wire through a dummy in every rank between its ends."""
        a, b = rank[wire.src], rank[wire.dst]
        if a == b:
            return
        low, high = min(a, b), max(a, b)
        dummies: list[Cell] = [(number, i) for i in range(low + 1, high)]
        for dummy, i in zip(dummies, range(low + 1, high), strict=True):
            self.ranks[i].append(dummy)
        ends: tuple[Cell, Cell] = (wire.src, wire.dst)
        way = [ends[a > b], *dummies, ends[a < b]]
        for before, after in pairwise(way):
            self._next[before].append(after)
            self._last[after].append(before)
        self.passes[number] = way if a < b else way[::-1]

    def _untangle(self) -> None:
        """Order each rank by the mean place of its neighbours, to and fro."""
        for sweep in range(SWEEPS):
            forward = sweep % 2 == 0
            near = self._last if forward else self._next
            order = self.ranks if forward else self.ranks[::-1]
            for before, cells in pairwise(order):
                place = {cell: i for i, cell in enumerate(before)}
                own = {cell: i for i, cell in enumerate(cells)}
                mean = {
                    cell: _mean([place[n] for n in near[cell]], own[cell])
                    for cell in cells
                }
                cells.sort(key=mean.__getitem__)

    def _straighten(self) -> dict[Cell, float]:
        """Give rows: draw every cell to its neighbours, keep the order and distance."""
        tallest = max((len(cells) for cells in self.ranks), default=0)
        rows: dict[Cell, float] = {
            cell: i + (tallest - len(cells)) / 2
            for cells in self.ranks
            for i, cell in enumerate(cells)
        }
        for sweep in range(SWEEPS):
            for cells in self.ranks if sweep % 2 == 0 else self.ranks[::-1]:
                wish = [self._pull(cell, rows) for cell in cells]
                rows.update(zip(cells, _apart(wish), strict=True))
        least = min(rows.values(), default=0.0)
        return {cell: row - least for cell, row in rows.items()}

    def _pull(self, cell: Cell, rows: Mapping[Cell, float]) -> float:
        """Mean row of the neighbours; where a wire only passes it counts for more."""
        near = (*self._last[cell], *self._next[cell])
        weights = [
            1 + STRAIGHT * (isinstance(cell, tuple) + isinstance(n, tuple))
            for n in near
        ]
        if not near:
            return rows[cell]
        total = sum(w * rows[n] for w, n in zip(weights, near, strict=True))
        return total / sum(weights)


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _apart(wish: Sequence[float]) -> list[float]:
    """Nearest rows (least squares) to those wished for that are 1 apart and in order.

    Pool adjacent violators: cells that would come too near become one block, whose
    place is the mean of its members' wishes.
    """
    blocks: list[tuple[float, int]] = []  # sum of (wish - index), count
    for i, row in enumerate(wish):
        blocks.append((row - i, 1))
        while len(blocks) > 1 and _average(blocks[-2]) >= _average(blocks[-1]):
            total, count = blocks.pop()
            blocks[-1] = (blocks[-1][0] + total, blocks[-1][1] + count)
    flat = [_average(block) for block in blocks for _ in range(block[1])]
    return [base + i for i, base in enumerate(flat)]


def _average(block: tuple[float, int]) -> float:
    return block[0] / block[1]


def _ranks(boxes: Sequence[str], wires: Sequence[Wire]) -> dict[str, int]:
    """Longest path over the wires that lead forward."""
    rank = dict.fromkeys(boxes, 0)
    after: dict[str, list[str]] = {box: [] for box in boxes}
    waits = dict.fromkeys(boxes, 0)
    for wire in _forward(boxes, wires):
        after[wire.src].append(wire.dst)
        waits[wire.dst] += 1
    ready = [box for box in boxes if waits[box] == 0]
    for box in ready:
        for other in after[box]:
            rank[other] = max(rank[other], rank[box] + 1)
            waits[other] -= 1
            if waits[other] == 0:
                ready.append(other)
    return rank


def _forward(boxes: Sequence[str], wires: Sequence[Wire]) -> list[Wire]:
    """Wires that close no cycle, those without delay before the others."""
    order = sorted(
        (wire for wire in wires if wire.src != wire.dst), key=lambda w: w.is_delayed
    )
    if len(order) > MOST_WIRES:
        order = [wire for wire in order if not wire.is_delayed]
    after: dict[str, set[str]] = {box: set() for box in boxes}
    kept = []
    for wire in order:
        if not _leads(after, wire.dst, wire.src):
            after[wire.src].add(wire.dst)
            kept.append(wire)
    return kept


def _leads(after: Mapping[str, Iterable[str]], start: str, goal: str) -> bool:
    seen = {start}
    stack = [start]
    while stack:
        box = stack.pop()
        if box == goal:
            return True
        fresh = [other for other in after[box] if other not in seen]
        seen.update(fresh)
        stack += fresh
    return False
