"""Sets of units that one device may run, with the communication each receives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lpsched.analysis.at_period import Bools, Ints
from lpsched.errors import UnsupportedError
from lpsched.formulations.placements.closure import Closure, Codes
from lpsched.formulations.placements.loops import Loops, Sets
from lpsched.formulations.placements.problem import Problem

__all__ = ["Columns", "list_columns", "unrefuted"]

#: Sets that are listed at most; more would not fit, nor be worth it.
_MOST_COLUMNS = 8_000_000

#: Sets that are held against paths together.
_PART = 2**12

#: Partial sets are held against loops once so many have come together; next when they
#: have grown by `_GROWTH`.
_FEW, _GROWTH = 256, 4

#: Up to so many are held against all paths, too, if that refutes half of as many as
#: `_FEW`: the work is some thousand times that of a loop.
_MOST_CLOSED = 2**14


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Columns of all classes of devices; m of them.

    Attributes
    ----------
    bits : array (m,) of int
        Units of each column.
    cost : array (m,) of int
        Sizes of the tensors that it must receive, in units of `Problem.gcd`.
    kind : array (m,) of int
        Class of devices.
    """

    bits: Ints
    cost: Ints
    kind: Ints

    def only(self, kept: Bools | Ints) -> Columns:
        """Keep some columns."""
        return Columns(bits=self.bits[kept], cost=self.cost[kept], kind=self.kind[kept])

    def __len__(self) -> int:
        return len(self.bits)


def list_columns(
    problem: Problem, closure: Closure, over: Callable[[], bool]
) -> tuple[Columns, tuple[Codes, ...]]:
    """List the columns of every class.

    Not all are held against paths to the end: `unrefuted` does that for those that
    matter. The codes are those to call it with.

    Raises
    ------
    OutOfTimeError
        `over` said so.
    UnsupportedError
        There are too many.
    """
    found, codes = [], []
    for kind, devices in enumerate(problem.classes):
        codes.append(_codes(problem, closure, devices[0]))
        bits = _Lister(problem, closure, codes[-1], devices[0], over).run()
        found.append((bits, np.full(len(bits), kind)))
    bits = np.concatenate([b for b, _ in found])
    columns = Columns(
        bits=bits,
        cost=_costs(problem, bits),
        kind=np.concatenate([k for _, k in found]),
    )
    return columns, tuple(codes)


def unrefuted(
    problem: Problem, closure: Closure, codes: tuple[Codes, ...], columns: Columns
) -> Bools:
    """Tell which columns paths and turns do not refute."""
    alive = np.zeros(len(columns), dtype=np.bool_)
    for kind, of_class in enumerate(codes):
        mine = np.flatnonzero(columns.kind == kind)
        alive[mine] = _possible(problem, closure, of_class, columns.bits[mine])
    return alive


def _possible(
    problem: Problem, closure: Closure, codes: Codes, bits: Ints, *, decided: int = -1
) -> Bools:
    """Tell which sets are not refuted, some bits decided."""
    parts = [bits[first : first + _PART] for first in range(0, len(bits), _PART)]
    alive = [
        closure.survivors(codes, problem.codes_of(part, decided=decided).T)
        for part in parts
    ]
    return np.concatenate([np.zeros(0, dtype=np.bool_), *alive])


def _codes(problem: Problem, closure: Closure, device: int) -> Codes:
    inside = np.zeros(problem.at.num_devices + 1, dtype=np.bool_)
    inside[device] = True
    return closure.codes([inside, ~inside, np.ones_like(inside)])


def _costs(problem: Problem, bits: Ints) -> Ints:
    r"""Communication that a device with these units receives.

    .. math:: \sum_i size_i\,[producer_i \notin S \wedge consumers_i \cap S \neq
        \emptyset]
    """
    cost = np.zeros(len(bits), dtype=np.int64)
    for source, users, size in problem.messages:
        cost += size * (((bits & users) != 0) & ((bits >> source) & 1 == 0))
    return cost


class _Lister:
    """Lists the columns of one device, unit after unit."""

    def __init__(
        self,
        problem: Problem,
        closure: Closure,
        codes: Codes,
        device: int,
        over: Callable[[], bool],
    ) -> None:
        self.problem, self.closure, self.codes = problem, closure, codes
        self.loops = Loops(closure.weighed(codes.homes), over)
        self.device = device
        at = problem.at
        self.loads, self.least = problem.loads(device), problem.least_loads()
        others = (at.num_devices - 1) * at.period
        self.rest = int(self.least.sum())
        self.needed = self.rest - others
        self.next_check, self.decided = _FEW, 0

    def run(self) -> Ints:
        """List them; a set takes at most T, and leaves others no more than theirs."""
        T = self.problem.at.period
        bits, load, share = (np.zeros(1, dtype=np.int64) for _ in range(3))
        for k, mine in enumerate(self.loads):
            grown = np.zeros(0, dtype=np.int64)
            if self.problem.domain(k)[self.device]:
                fits = (load + mine <= T) & ((bits & self.problem.rivals[k]) == 0)
                grown = np.flatnonzero(fits)
            bits = np.concatenate([bits, bits[grown] | (1 << k)])
            load = np.concatenate([load, load[grown] + mine])
            share = np.concatenate([share, share[grown] + self.least[k]])
            self.decided |= 1 << k
            self.rest -= int(self.least[k])
            kept = share + self.rest >= self.needed
            kept[kept] = self._unrefuted(bits[kept])
            bits, load, share = bits[kept], load[kept], share[kept]
            if len(bits) > _MOST_COLUMNS:
                raise UnsupportedError(f"more than {_MOST_COLUMNS} sets of ops")
        return bits

    def _unrefuted(self, bits: Ints) -> Bools:
        """Hold partial sets against loops now and then, few ones against all paths."""
        is_last = self.decided == (1 << len(self.loads)) - 1
        if len(bits) < self.next_check and not is_last:
            return np.ones(len(bits), dtype=np.bool_)
        alive = self.loops.unrefuted(
            Sets(problem=self.problem, bits=bits, decided=self.decided)
        )
        left = bits[alive]
        if len(left) <= _MOST_CLOSED and self._pays(left):
            alive[alive] = self._possible(left)
        self.next_check = max(_FEW, int(alive.sum()) * _GROWTH)
        return alive

    def _pays(self, bits: Ints) -> bool:
        """Tell whether paths refute half of a sample."""
        sample = bits[:: max(1, len(bits) // _FEW)][:_FEW]
        return 2 * int(self._possible(sample).sum()) <= len(sample)

    def _possible(self, bits: Ints) -> Bools:
        return _possible(
            self.problem, self.closure, self.codes, bits, decided=self.decided
        )
