"""Subset-row cuts, averaged over items that are interchangeable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import comb, prod

__all__ = ["Counter", "Cut"]


@dataclass(frozen=True, order=True)
class Cut:
    r"""Three items of which at most one set of a partition holds two or more.

    For items i, j, k the subset-row cut

    .. math:: \sum_{|S \cap \{i, j, k\}| \ge 2} x_S \le 1

    holds, since two sets cannot both have two of three. Where items are
    interchangeable, a set says only how many of each class it holds, not which; then
    all cuts for one choice of classes are added up: a set counts once for each choice
    of three different items of which it holds at least two.

    Attributes
    ----------
    classes : tuple of tuple of int
        The classes the three items are from, each once, in ascending order.
    picks : tuple of int
        How many of the three are from each; they sum to 3.
    """

    classes: tuple[tuple[int, ...], ...]
    picks: tuple[int, ...]

    @property
    def most(self) -> int:
        """The right-hand side: how many choices there are."""
        sizes = map(len, self.classes)
        return prod(comb(m, n) for m, n in zip(sizes, self.picks, strict=True))

    @property
    def items(self) -> tuple[int, ...]:
        """All items of the classes."""
        return tuple(item for members in self.classes for item in members)

    @cached_property
    def coefficients(self) -> dict[tuple[int, ...], int]:
        """The coefficient of a set, by how many items of each class it holds."""
        counts = product(*(range(len(members) + 1) for members in self.classes))
        return {held: self._coefficient(held) for held in counts}

    def _coefficient(self, held: Sequence[int]) -> int:
        """Count the choices with two or three of their items among those held."""
        total = 0
        for inside in product(*(range(n + 1) for n in self.picks)):
            if sum(inside) >= 2:
                total += prod(
                    comb(k, j) * comb(len(members) - k, n - j)
                    for k, j, members, n in zip(
                        held, inside, self.classes, self.picks, strict=True
                    )
                )
        return total


class Counter:
    """A cut's coefficient, counted up as its items are read in some order.

    States are numbered anew after each item read; 0 is the one from which nothing
    more can be counted.

    Attributes
    ----------
    start : int
        State before the first item.
    moves : list of list of (int, int, int)
        Per place, of each state: the state after the item there is left out, what is
        counted when it is taken in, and the state after that.
    """

    def __init__(self, cut: Cut, order: Sequence[int]) -> None:
        class_of = {v: c for c, members in enumerate(cut.classes) for v in members}
        self.moves: list[list[tuple[int, int, int]]] = []
        read = [sum(class_of[v] == c for v in order) for c in range(len(cut.classes))]
        number = dict.fromkeys(_up_to(read), 0)
        for item in reversed(order):
            c = class_of[item]
            read[c] -= 1
            moves = {(0, 0, 0): 0}
            before = {}
            for held in _up_to(read):
                more = (*held[:c], held[c] + 1, *held[c + 1 :])
                gain = cut.coefficients[more] - cut.coefficients[held]
                move = number[held], gain, number[more]
                before[held] = moves.setdefault(move, len(moves))
            number = before
            self.moves.append(list(moves))
        self.moves.reverse()
        self.start = number[(0,) * len(cut.classes)]


def _up_to(most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return product(*(range(m + 1) for m in most))
