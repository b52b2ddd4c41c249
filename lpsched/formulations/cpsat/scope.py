"""What of a request enters the CP-SAT model, and which helps are switched on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from lpsched.analysis.at_period import Arc, AtPeriod, Bools, at_period
from lpsched.analysis.windows import (
    Refutation,
    Windows,
    groups,
    lap_horizon,
    windows_at,
)
from lpsched.core.graph import DelayName
from lpsched.formulations.api import Request

__all__ = ["Options", "Scope", "is_coupled", "scope_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Strengthenings that can be switched off by name, to see what each is worth.

    None changes the set of schedules, but for `symmetry`, which keeps one of each
    class of equals.

    Attributes
    ----------
    windows : bool
        Starts in windows from longest paths instead of the whole horizon of laps.
    deduce : bool
        Which ops must, or cannot, share a device, deduced before the search.
    loads : bool
        Least and greatest load of each device.
    symmetry : bool
        Equal devices numbered by first use, equal ops in order.
    hint : bool
        Begin at the schedule given.
    """

    windows: bool = True
    deduce: bool = True
    loads: bool = True
    symmetry: bool = True
    hint: bool = True

    @classmethod
    def of(cls, switches: Mapping[str, bool]) -> Options:
        """Take the switches that are known here; other back ends have others."""
        known = {field.name for field in fields(cls)}
        return cls(**{k: v for k, v in switches.items() if k in known})


@dataclass(frozen=True, kw_only=True, eq=False)
class Scope:
    """The part of a problem that a search at one period decides; times in units.

    Attributes
    ----------
    arcs : tuple of Arc
        Precedences that bind. One between two components of `windows` does not, and
        one of unlimited delay only where delays are variables.
    delays : mapping of DelayName to (int, int)
        Named delays that are variables, with their ranges. The others stand at their
        maximum: a larger delay only loosens precedences.
    memory : tuple of int
        Devices whose memory is followed.
    makespan : int or None
        Cap on last end - first start: T with flush, or the request's.
    is_coupled : bool
        Whether anything but arcs and exclusivity depends on times.
    is_timed : bool
        False if no op waits for another; then exclusivity is load <= T, as the ops
        of a device can be packed in any order, and the model has no starts.
    """

    request: Request
    options: Options
    windows: Windows
    arcs: tuple[Arc, ...]
    delays: Mapping[DelayName, tuple[int, int]]
    memory: tuple[int, ...]
    makespan: int | None
    is_coupled: bool
    is_timed: bool

    @property
    def at(self) -> AtPeriod:
        """The problem in numbers, with the devices left to each op."""
        return self.windows.problem

    @property
    def period(self) -> int:
        """T, in units."""
        return self.at.period

    def wants(self, objective: str) -> bool:
        """Tell whether an objective is minimised or capped."""
        return _wants(self.request, objective)

    def unit_of(self, objective: str | None) -> int:
        """Greatest common divisor of what an objective can be: the model's unit."""
        graph = self.at.graph
        sizes = [tensor.size for tensor in graph.tensors]
        if objective == "makespan":
            return self.at.unit
        if objective == "peak_memory":
            sizes += [resident.size for resident in graph.residents]
        elif objective != "communication":
            return 1
        return math.gcd(*sizes) or 1

    @cached_property
    def twin(self) -> tuple[int, ...]:
        """First of the ops with which each op must share a device; itself if none."""
        first: dict[int, int] = {}
        group = groups(~self.windows.may_part)
        return tuple(first.setdefault(int(g), v) for v, g in enumerate(group))

    @cached_property
    def domain(self) -> tuple[tuple[int, ...], ...]:
        """Devices left to each op and all that must share one with it."""
        left: dict[int, Bools] = {}
        for v, head in enumerate(self.twin):
            allowed = self.at.allowed[v]
            left[head] = left[head] & allowed if head in left else allowed
        return tuple(
            tuple(int(p) for p in np.flatnonzero(left[head])) for head in self.twin
        )

    @cached_property
    def fixed_durations(self) -> tuple[int | None, ...]:
        """Duration of each op; None where it depends on the device."""
        least, most = self.at.least_durations(), self.at.most_durations()
        return tuple(
            int(t) if t == longest else None
            for t, longest in zip(least, most, strict=True)
        )

    def mask(self, op: int) -> Bools:
        """Devices left to an op as a mask of P + 1."""
        mask = np.zeros(self.at.num_devices + 1, dtype=np.bool_)
        mask[list(self.domain[op])] = True
        return mask

    def occupies(self, op: int) -> bool:
        """Tell whether an op runs on a device at all."""
        return not self.at.allowed[op, -1]

    def is_busy(self, op: int, device: int) -> bool:
        """Tell whether an op may take time on a device."""
        return device in self.domain[op] and bool(self.at.durations[op, device] > 0)


def scope_of(
    request: Request, options: Options, over: Callable[[], bool] = lambda: False
) -> Scope | Refutation:
    """Find what binds at the period of a request, or refute the request.

    With no memory to follow and staleness neither minimised nor capped, every named
    delay stands at its maximum. A cap on staleness limits each of them, so that
    unlimited delays become finite before a search for the least staleness.

    Raises
    ------
    UnsupportedError
        Times too long for exact arithmetic.
    OutOfTimeError
        `over` said so.
    """
    if request.period > request.at_most.get("period", request.period):
        return Refutation(reason="period", ops=())
    at = at_period(request.graph, request.period, placement=request.placement)
    if "staleness" in request.at_most:
        at = at.with_delay_caps(request.at_most["staleness"])
    memory = tuple(
        p
        for p, device in enumerate(request.graph.devices)
        if _wants(request, "peak_memory") or device.memory is not None
    )
    makespan = _makespan(request, at)
    coupled = is_coupled(request)
    has_choice = bool(memory) or _wants(request, "staleness")
    windows = windows_at(
        at, coupled=coupled, makespan=makespan, deduce=options.deduce, over=over
    )
    if isinstance(windows, Refutation):
        return windows
    if not options.windows:
        windows = _widened(windows)
    arcs = tuple(
        arc
        for arc in windows.problem.arcs
        if windows.holds(arc) and (has_choice or arc.high is not None)
    )
    return Scope(
        request=request,
        options=options,
        windows=windows,
        arcs=arcs,
        delays=windows.delay_ranges() if has_choice else {},
        memory=memory,
        makespan=makespan,
        is_coupled=coupled,
        is_timed=coupled or any(arc.src != arc.dst for arc in arcs),
    )


def is_coupled(request: Request) -> bool:
    """Tell whether anything but arcs and exclusivity depends on times."""
    return (
        request.graph.flush
        or any(device.memory is not None for device in request.graph.devices)
        or _wants(request, "peak_memory")
        or _wants(request, "makespan")
    )


def _wants(request: Request, objective: str) -> bool:
    return request.minimise == objective or objective in request.at_most


def _makespan(request: Request, at: AtPeriod) -> int | None:
    caps = [at.period] if request.graph.flush else []
    if "makespan" in request.at_most:
        caps.append(request.at_most["makespan"] // at.unit)
    return min(caps, default=None)


def _widened(windows: Windows) -> Windows:
    """Every start within the horizon of laps around its anchor."""
    reach = (lap_horizon(windows.problem) + 1) * windows.problem.period
    free = windows.anchor != np.arange(windows.problem.num_ops)
    return replace(
        windows,
        low=np.where(free, windows.low * 0 - reach, windows.low),
        high=np.where(free, windows.high * 0 + reach, windows.high),
    )
