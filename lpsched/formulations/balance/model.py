"""The two CP-SAT models: cover all items by patterns, or give each device its units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from ortools.sat.python.cp_model import CpModel, IntVar

from lpsched.formulations.balance.chains import Chain
from lpsched.formulations.balance.items import Problem, Where
from lpsched.formulations.balance.patterns import Patterns, alike_devices

__all__ = ["CoverModel", "UnitsModel", "add_hint", "cover_model", "units_model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverModel:
    """Which patterns the devices follow; see `cover_model`.

    Attributes
    ----------
    counts : tuple of tuple of IntVar
        How many devices follow each pattern, by class of devices and pattern.
    """

    cp: CpModel
    chains: tuple[Chain, ...]
    patterns: tuple[Patterns, ...]
    counts: tuple[tuple[IntVar, ...], ...]

    def where(self, values: Sequence[int]) -> Where:
        """Read a placement off a solution."""
        num_devices = sum(len(group.devices) for group in self.patterns)
        room = np.zeros((num_devices, len(self.chains)), dtype=np.int64)
        for group, counts in zip(self.patterns, self.counts, strict=True):
            devices = iter(group.devices)
            for units, x in zip(group.units, counts, strict=True):
                for _ in range(values[x.index]):
                    room[next(devices)] = units
        return _unpack(self.chains, room.T.tolist())


def cover_model(chains: Sequence[Chain], patterns: Sequence[Patterns]) -> CoverModel:
    r"""Choose a pattern for each device such that all items find room.

    With :math:`x_{kp}` devices of class k that follow pattern p,

    .. math:: \sum_p x_{kp} = m_k, \qquad
       \sum_{k,p} \left\lfloor U_{kpc} / r_{cj} \right\rfloor x_{kp} \ge N_{cj}

    for every size j of every chain c (see `chains`). There is nothing to minimise: a
    solution exists if and only if the items fit in the period of the patterns.
    """
    cp = CpModel()
    counts = []
    for group in patterns:
        num = len(group.devices)
        x = tuple(cp.new_int_var(0, num, "") for _ in group.units)
        cp.add(sum(x) == num)
        counts.append(x)
    for c, chain in enumerate(chains):
        for size, need in zip(chain.sizes, chain.needs, strict=True):
            room = [
                int(units[c]) // size * count
                for group, x in zip(patterns, counts, strict=True)
                for units, count in zip(group.units, x, strict=True)
                if units[c] >= size
            ]
            cp.add(sum(room) >= need)
    return CoverModel(
        cp=cp, chains=tuple(chains), patterns=tuple(patterns), counts=tuple(counts)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsModel:
    """Units of each chain on each device; see `units_model`.

    Attributes
    ----------
    blocks : tuple of tuple of tuple of IntVar
        By chain, size and device.
    """

    cp: CpModel
    chains: tuple[Chain, ...]
    blocks: tuple[tuple[tuple[IntVar, ...], ...], ...]

    def where(self, values: Sequence[int]) -> Where:
        """Read a placement off a solution."""
        room = [[values[u.index] for u in sizes[0]] for sizes in self.blocks]
        return _unpack(self.chains, room)


def units_model(
    problem: Problem,
    chains: Sequence[Chain],
    *,
    low: int,
    high: int,
    order_alike: bool = True,
) -> UnitsModel:
    r"""Minimise the highest load over the units that each device makes room for.

    .. math:: \min T \quad\text{s.t.}\quad \sum_c p_{cd} U_{c1d} \le T, \qquad
       \sum_d U_{cjd} \ge N_{cj}, \qquad r_{cj} U_{cjd} \le r_{c,j-1} U_{c,j-1,d},

    where :math:`U_{cjd}` counts the blocks of size j of chain c on device d. Devices
    that are alike are ordered by load.

    Parameters
    ----------
    low, high : int
        Range of T, in units of the problem.
    order_alike : bool
        If false, alike devices may come in any order.
    """
    cp = CpModel()
    T = cp.new_int_var(low, high, "")
    cp.minimize(T)
    blocks = tuple(_add_blocks(cp, chain) for chain in chains)
    loads = []
    for d in range(len(problem.devices)):
        load = cp.new_int_var(0, high, "")
        work = [
            t * sizes[0][d]
            for chain, sizes in zip(chains, blocks, strict=True)
            if (t := chain.profile[d]) is not None
        ]
        cp.add(sum(work) == load)
        cp.add(load <= T)
        loads.append(load)
    if order_alike:
        for devices in alike_devices(chains, len(loads)):
            for d, e in pairwise(devices):
                cp.add(loads[d] >= loads[e])
    return UnitsModel(cp=cp, chains=tuple(chains), blocks=blocks)


def _add_blocks(cp: CpModel, chain: Chain) -> tuple[tuple[IntVar, ...], ...]:
    blocks: list[tuple[IntVar, ...]] = []
    for j, (size, need) in enumerate(zip(chain.sizes, chain.needs, strict=True)):
        row = tuple(
            cp.new_int_var(0, 0 if ticks is None else need, "")
            for ticks in chain.profile
        )
        cp.add(sum(row) >= need)
        if j > 0:
            ratio = size // chain.sizes[j - 1]
            for large, small in zip(row, blocks[-1], strict=True):
                cp.add(ratio * large <= small)
        blocks.append(row)
    return tuple(blocks)


def add_hint(model: UnitsModel, problem: Problem, where: Where) -> None:
    """Start the search from a placement, alike devices put in order of load."""
    loads = problem.loads(where)
    place = list(range(len(loads)))
    for devices in alike_devices(model.chains, len(loads)):
        for d, source in zip(
            devices, sorted(devices, key=lambda d: -loads[d]), strict=True
        ):
            place[source] = d
    for chain, sizes in zip(model.chains, model.blocks, strict=True):
        units = [0] * len(loads)
        for size, items in zip(chain.sizes, chain.items, strict=True):
            for item in items:
                units[place[where[item]]] += size
        for size, row in zip(chain.sizes, sizes, strict=True):
            for d, block in enumerate(row):
                model.cp.add_hint(block, units[d] // size)


def _unpack(chains: Sequence[Chain], room: Sequence[Sequence[int]]) -> Where:
    where: dict[int, int] = {}
    for chain, units in zip(chains, room, strict=True):
        where.update(chain.unpack(units))
    return tuple(where[i] for i in range(len(where)))
