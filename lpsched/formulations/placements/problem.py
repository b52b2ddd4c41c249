"""What placing ops means at one period: units of ops, classes of devices, traffic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lpsched.analysis.at_period import AtPeriod, Bools, Ints, at_period
from lpsched.analysis.equal_devices import equal_devices
from lpsched.analysis.windows import Refutation, Windows, groups, windows_at
from lpsched.core.graph import DeviceId, OpId
from lpsched.errors import UnsupportedError
from lpsched.formulations.api import Request

__all__ = ["IN", "OPEN", "OUT", "Problem", "SetCodes", "problem_of"]

#: Codes of an op while sets of one device are looked at.
IN, OUT, OPEN = 0, 1, 2

#: Codes by op and set.
SetCodes: TypeAlias = NDArray[np.uint8]

#: Units of ops that a set can hold, one bit each.
_MOST_UNITS = 62


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """A request's ops as units that are placed, its devices as classes of equals.

    Attributes
    ----------
    windows : Windows
        What holds in every schedule of the request.
    classes : tuple of tuple of int
        Device numbers; those of one class can be swapped.
    units : tuple of tuple of int
        Op numbers that must share a device; ops without a device are in none.
    """

    request: Request
    windows: Windows
    classes: tuple[tuple[int, ...], ...]
    units: tuple[tuple[int, ...], ...]

    @property
    def at(self) -> AtPeriod:
        """The problem in numbers."""
        return self.windows.problem

    @cached_property
    def gcd(self) -> int:
        """Greatest common divisor of all sizes: what communication is counted in."""
        return math.gcd(*(tensor.size for tensor in self.at.graph.tensors)) or 1

    @cached_property
    def unit_of(self) -> Ints:
        """Number of each op's unit, -1 for ops without a device; shape (n,)."""
        unit = np.full(self.at.num_ops, -1, dtype=np.int64)
        for k, ops in enumerate(self.units):
            unit[list(ops)] = k
        return unit

    @cached_property
    def rivals(self) -> tuple[int, ...]:
        """Units that cannot share a device with each unit, as a set of bits."""
        apart = ~self.windows.may_share
        return tuple(
            sum(
                1 << b
                for b, others in enumerate(self.units)
                if b != a and apart[np.ix_(ops, others)].any()
            )
            for a, ops in enumerate(self.units)
        )

    @cached_property
    def messages(self) -> tuple[tuple[int, int, int], ...]:
        """Of each tensor that may be sent: producer's unit, consumers' bits, size.

        Sizes in units of `gcd`; tensors alike in both ends are one.
        """
        merged: dict[tuple[int, int], int] = {}
        for tensor in self.at.graph.tensors:
            source = int(self.unit_of[self.at.op_numbers[tensor.producer]])
            ends = {
                int(self.unit_of[self.at.op_numbers[use.op]])
                for use in tensor.consumers
            }
            users = sum(1 << k for k in ends - {source, -1})
            if source >= 0 and users and tensor.size:
                key = source, users
                merged[key] = merged.get(key, 0) + tensor.size // self.gcd
        return tuple((u, users, size) for (u, users), size in merged.items())

    @cached_property
    def worst(self) -> int:
        """More communication than any placement has, in units of `gcd`."""
        fan = len(self.at.graph.devices)
        return 1 + fan * sum(size for *_, size in self.messages)

    def domain(self, unit: int) -> Bools:
        """Devices left to a unit as a mask of P + 1."""
        allowed = self.at.allowed[list(self.units[unit])]
        mask: Bools = np.logical_and.reduce(allowed, axis=0)
        return mask

    def loads(self, device: int) -> Ints:
        """Time each unit takes on a device; shape (units,)."""
        return self._by_unit(self.at.durations[:, device])

    def least_loads(self) -> Ints:
        """Time each unit takes at the least; shape (units,)."""
        return self._by_unit(self.at.least_durations())

    def codes_of(self, bits: Ints, *, decided: int = -1) -> SetCodes:
        """Code of each op for sets of units; open unless its unit is `decided`."""
        codes = np.full((self.at.num_ops, len(bits)), OPEN, dtype=np.uint8)
        for op, unit in enumerate(self.unit_of):
            if unit >= 0 and decided >> int(unit) & 1:
                codes[op] = np.where(bits >> unit & 1 == 1, IN, OUT)
        return codes

    def _by_unit(self, times: Ints) -> Ints:
        sums = [int(times[list(ops)].sum()) for ops in self.units]
        return np.array(sums, dtype=np.int64)

    def placement(self, homes: Ints) -> dict[OpId, DeviceId]:
        """Devices by op id, from device numbers by unit."""
        ids, ops = self.at.graph.device_ids, self.at.graph.ops
        return {
            ops[v].id: ids[int(home)]
            for members, home in zip(self.units, homes, strict=True)
            for v in members
        }


def problem_of(
    request: Request, over: Callable[[], bool] = lambda: False
) -> Problem | Refutation:
    """Find what every schedule of a request satisfies, or refute the request.

    Caps on communication are left to the caller.

    Raises
    ------
    UnsupportedError
        Times too long for exact arithmetic, no units, or more than a set can hold.
    OutOfTimeError
        `over` said so.
    """
    graph, period = request.graph, request.period
    at = at_period(graph, period, placement=request.placement)
    if "staleness" in request.at_most:
        at = at.with_delay_caps(request.at_most["staleness"])
    caps = [at.period] if graph.flush else []
    if "makespan" in request.at_most:
        caps.append(request.at_most["makespan"] // at.unit)
    makespan = min(caps, default=None)
    windows = windows_at(at, coupled=False, makespan=makespan, over=over)
    if isinstance(windows, Refutation):
        return windows
    somewhere = np.flatnonzero(~windows.problem.allowed[:, -1])
    group = groups(~windows.may_part)
    units = [
        tuple(int(v) for v in somewhere if group[v] == number)
        for number in dict.fromkeys(int(group[v]) for v in somewhere)
    ]
    if not 0 < len(units) <= _MOST_UNITS:
        text = f"{len(units)} ops to place apart, expected 1 to {_MOST_UNITS}"
        raise UnsupportedError(text)
    return Problem(
        request=request,
        windows=windows,
        classes=tuple(tuple(devices) for devices in equal_devices(at)),
        units=tuple(units),
    )
