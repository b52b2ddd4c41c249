r"""Every way to fill one device that some placement of period T can contain.

Let :math:`y_d \ge 0` be weights of the devices and :math:`v_i = \min_d y_d t_i(d)` the
value of item i. A device of load <= T holds items of value at most :math:`y_d T`, and
all values together are :math:`V = \sum_i v_i`. So what the devices lack,
:math:`\sum_d (y_d T - V_d) = T \sum_d y_d - V =: S`, has no negative term, and

.. math:: y_d T - S \;\le\; V_d \;\le\; y_d T .

On equal devices y = 1: each must be loaded to :math:`\sum_i t_i - (P - 1) T` at least.
The closer T is to the load bound, the fewer patterns remain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lpsched.formulations.balance.chains import Chain

__all__ = ["Patterns", "alike_devices", "fill_patterns"]

#: Partial patterns of one half of the chains, and whole patterns, at most.
_MAX_HALF = 100_000
_MAX_PATTERNS = 20_000
#: Pairs of halves that are looked at to find them.
_MAX_PAIRS = 1_000_000

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """Units of each chain (columns) in each pattern (rows) of some devices.

    Attributes
    ----------
    devices : tuple of int
        Device numbers, alike for all chains.
    units : array of int
        Patterns by chains.
    """

    devices: tuple[int, ...]
    units: _Ints


def alike_devices(chains: Sequence[Chain], num_devices: int) -> list[tuple[int, ...]]:
    """Classes of devices on which every item takes as long."""
    classes: dict[tuple[int | None, ...], list[int]] = {}
    for d in range(num_devices):
        classes.setdefault(tuple(c.profile[d] for c in chains), []).append(d)
    return [tuple(devices) for devices in classes.values()]


def fill_patterns(
    chains: Sequence[Chain], weights: Sequence[int], period: int
) -> list[Patterns] | None:
    """List the patterns of each class of devices for one period.

    Parameters
    ----------
    weights : sequence of int
        y, one per device, equal on devices that are alike.
    period : int
        T, in units of the problem.

    Returns
    -------
    list of Patterns or None
        None if there are too many to be of use.
    """
    values = [
        min(y * t for y, t in zip(weights, c.profile, strict=True) if t is not None)
        for c in chains
    ]
    total = sum(v * c.units for v, c in zip(values, chains, strict=True))
    slack = period * sum(weights) - total
    found, room = list[Patterns](), _MAX_PATTERNS
    for devices in alike_devices(chains, len(weights)):
        full = weights[devices[0]] * period
        window = (full - slack, full)
        units = _fill(chains, values, devices[0], period, window, room)
        if units is None:
            return None
        room -= len(units)
        found.append(Patterns(devices=devices, units=units))
    return found


@dataclass(frozen=True, slots=True)
class _Half:
    """Partial patterns over some chains, by rising value.

    Each chain extended the partial patterns of those before it: it has the number of
    the shorter pattern and of the units added, for each longer one.
    """

    chains: list[int]
    parents: list[_Ints]
    added: list[_Ints]
    load: _Ints
    value: _Ints

    def read(self, numbers: _Ints, units: _Ints) -> None:
        """Write the units of some patterns into their columns."""
        levels = list(zip(self.chains, self.parents, self.added, strict=True))
        for c, parents, added in reversed(levels):
            units[:, c] = added[numbers]
            numbers = parents[numbers]


def _fill(
    chains: Sequence[Chain],
    values: Sequence[int],
    device: int,
    period: int,
    window: tuple[int, int],
    most: int,
) -> _Ints | None:
    """Join two halves of the chains where their values add up into the window."""
    first, second = _halves(chains, device, period)
    one = _enumerate(chains, values, first, device, period)
    if one is None:
        return None
    two = _enumerate(chains, values, second, device, period)
    if two is None:
        return None
    low, high = window
    begin = np.searchsorted(two.value, low - one.value, side="left")
    end = np.searchsorted(two.value, high - one.value, side="right")
    count = np.maximum(end - begin, 0)
    if int(count.sum()) > _MAX_PAIRS:
        return None
    i = np.repeat(np.arange(len(count)), count)
    offset = np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count)
    j = begin[i] + offset
    fits = one.load[i] + two.load[j] <= period
    if int(fits.sum()) > most:
        return None
    units = np.zeros((int(fits.sum()), len(chains)), dtype=np.int64)
    one.read(i[fits], units)
    two.read(j[fits], units)
    return units


def _most(chain: Chain, device: int, period: int) -> int:
    """Most units of a chain that a device holds."""
    ticks = chain.profile[device]
    return 0 if ticks is None else min(chain.units, period // ticks)


def _halves(
    chains: Sequence[Chain], device: int, period: int
) -> tuple[list[int], list[int]]:
    """Divide the chains so that both halves have about as many partial patterns."""
    halves: tuple[list[int], list[int]] = ([], [])
    sizes = [0.0, 0.0]
    choices = [1 + _most(chain, device, period) for chain in chains]
    for c in sorted(range(len(chains)), key=lambda c: -choices[c]):
        smaller = 0 if sizes[0] <= sizes[1] else 1
        halves[smaller].append(c)
        sizes[smaller] += math.log(choices[c])
    return halves


def _enumerate(
    chains: Sequence[Chain],
    values: Sequence[int],
    members: list[int],
    device: int,
    period: int,
) -> _Half | None:
    """List all partial patterns of load <= T; None if they are too many."""
    parents, added = list[_Ints](), list[_Ints]()
    load = value = np.zeros(1, dtype=np.int64)
    for c in members:
        choices = np.arange(_most(chains[c], device, period) + 1)
        if len(load) * len(choices) > 10 * _MAX_HALF:
            return None
        loads = load[:, None] + choices * (chains[c].profile[device] or 0)
        parent, units = np.nonzero(loads <= period)
        if len(parent) > _MAX_HALF:
            return None
        load = loads[parent, units]
        value = value[parent] + units * values[c]
        parents.append(parent)
        added.append(units)
    order = np.argsort(value, kind="stable")
    if members:
        parents[-1], added[-1] = parents[-1][order], added[-1][order]
    return _Half(members, parents, added, load[order], value[order])
