r"""Items that divide each other, counted together.

If on every device an item of one kind takes r ticks for each tick of another, r a whole
number, a device only needs to know how many *units* (items of the smallest kind of
such a chain) it has room for, not which items fill it.

For kinds of :math:`r_1 = 1 \mid r_2 \mid \dots \mid r_m` units and :math:`n_j` items,
devices with room for :math:`U_d` units can hold all items if and only if

.. math:: \sum_d \left\lfloor \frac{U_d}{r_j} \right\rfloor \ge
   N_j := \sum_{i \ge j} n_i \frac{r_i}{r_j} \qquad \text{for each } j.

Necessary: cut every larger item into blocks of :math:`r_j`. Sufficient: place largest
items first, anywhere; each takes :math:`r_i / r_j` whole blocks of every smaller size,
so that as many remain as the smaller items need.

Training graphs are full of such chains, since layers of a network repeat and an I in
two equal parts is half its F. On VGG-16 with 10 devices they leave 380 of 22,188 ways
to fill a device that matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lpsched.formulations.balance.items import Problem, Profile

__all__ = ["Chain", "make_chains"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Kinds of items, smallest first, each a multiple of the one before.

    Attributes
    ----------
    profile : Profile
        Ticks of one unit on each device.
    sizes : tuple of int
        Units in an item of each kind, r; the first is 1.
    items : tuple of tuple of int
        Item numbers of each kind.
    """

    profile: Profile
    sizes: tuple[int, ...]
    items: tuple[tuple[int, ...], ...]

    @property
    def units(self) -> int:
        """Units of all items together."""
        return self.needs[0]

    @property
    def needs(self) -> tuple[int, ...]:
        """Blocks of each size that the devices must have room for, N."""
        kinds = list(zip(self.sizes, self.items, strict=True))
        return tuple(
            sum(len(items) * r // size for r, items in kinds[j:])
            for j, size in enumerate(self.sizes)
        )

    def unpack(self, room: Sequence[int]) -> dict[int, int]:
        """Give each item a device, where each has room for so many units.

        Raises
        ------
        ValueError
            If the devices cannot hold the items.
        """
        left = list(room)
        where: dict[int, int] = {}
        for size, items in reversed(list(zip(self.sizes, self.items, strict=True))):
            blocks = [d for d, units in enumerate(left) for _ in range(units // size)]
            if len(blocks) < len(items):
                raise ValueError(f"{len(items)} items of {size} units find no room")
            for item, d in zip(items, blocks, strict=False):
                where[item] = d
                left[d] -= size
        return where


def make_chains(problem: Problem, *, join: bool = True) -> tuple[Chain, ...]:
    """Join the kinds of a problem to chains, where that leaves fewer values to try.

    A chain of u units and n more items, of which r make one of its units, has about
    u·r + n values instead of (u + 1)·(n + 1): fewer if r <= n.

    Parameters
    ----------
    join : bool
        If false, every kind is a chain of its own.
    """
    chains: list[list[tuple[Profile, tuple[int, ...]]]] = []
    for profile, items in sorted(problem.kinds.items(), key=_size, reverse=True):
        fitting = [
            (r, c)
            for c, chain in enumerate(chains if join and len(items) > 1 else ())
            if (r := _ratio(chain[0][0], profile)) is not None and r <= len(items)
        ]
        if fitting:
            chains[min(fitting)[1]].insert(0, (profile, items))
        else:
            chains.append([(profile, items)])
    return tuple(_chain(kinds) for kinds in chains)


def _size(kind: tuple[Profile, tuple[int, ...]]) -> int:
    return sum(t for t in kind[0] if t is not None)


def _ratio(large: Profile, small: Profile) -> int | None:
    """How many times `small` goes into `large` on every device, if it is one number."""
    ratios: set[int] = set()
    for a, b in zip(large, small, strict=True):
        if a is None and b is None:
            continue
        if a is None or b is None or a % b:
            return None
        ratios.add(a // b)
    return ratios.pop() if len(ratios) == 1 else None


def _chain(kinds: Sequence[tuple[Profile, tuple[int, ...]]]) -> Chain:
    unit = kinds[0][0]
    return Chain(
        profile=unit,
        sizes=tuple(_ratio(profile, unit) or 1 for profile, _ in kinds),
        items=tuple(items for _, items in kinds),
    )
