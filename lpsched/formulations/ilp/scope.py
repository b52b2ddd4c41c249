"""What of a request enters the model: arcs, delays, windows and pairs of ops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lpsched.analysis.at_period import Arc, AtPeriod, Bools, Ints, at_period
from lpsched.analysis.windows import Refutation, Windows, lap_horizon, windows_at
from lpsched.core.graph import DelayName
from lpsched.errors import UnsupportedError
from lpsched.formulations.api import Request

__all__ = ["Scope", "scope_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Scope:
    """The part of a problem that a search at one period has to decide.

    All times are in units of ``at.unit``.

    Attributes
    ----------
    arcs : tuple of Arc
        Precedences that bind. One whose delay has no limit binds only where delays
        are variables; one between two components of `Windows` does not bind.
    delays : mapping of DelayName to (int, int)
        Named delays that are variables, with their ranges. The others stand at
        their maximum: a larger delay only loosens precedences.
    is_coupled : bool
        Whether anything but arcs and exclusivity depends on times.
    is_timed : bool
        False if no op waits for another: then exclusivity is load <= T, since ops
        can be packed in any order, and the model has no starts.
    windows : Windows or None
        None for a refuted period.
    refutation : Refutation or None
        Why there is no schedule, where the windows alone show it.
    gaps : array (n, n) of int
        Least value of ``s_v - s_u`` in the model, for u, v.
    early, late : array (n,) of int
        Window of each start.
    """

    request: Request
    at: AtPeriod
    arcs: tuple[Arc, ...]
    delays: Mapping[DelayName, tuple[int, int]]
    is_coupled: bool
    is_timed: bool
    windows: Windows | None
    refutation: Refutation | None
    gaps: Ints
    early: Ints
    late: Ints

    # -- objectives and memory ----------------------------------------------------
    def wants(self, objective: str) -> bool:
        """Tell whether an objective is minimised or capped."""
        return _wants(self.request, objective)

    @cached_property
    def memory_devices(self) -> tuple[int, ...]:
        """Devices whose memory the model has to follow."""
        everywhere = self.wants("peak_memory")
        return tuple(
            p
            for p, device in enumerate(self.at.graph.devices)
            if everywhere or device.memory is not None
        )

    # -- ops and devices ------------------------------------------------------------
    def op_id(self, op: int) -> str:
        """Id of an op number."""
        return self.at.graph.ops[op].id

    def places(self, op: int) -> list[int]:
        """Devices of an op; "no device" also for an op that has none left."""
        return self.at.devices_of(op) or [self.at.num_devices]

    def is_fit(self, op: int, device: int) -> bool:
        """Tell whether an op alone fits: its waits for itself are met on a device."""
        duration = int(self.at.durations[op, device])
        return bool(self.at.allowed[op, device]) and all(
            duration + arc.lag <= arc.high * self.at.period
            for arc in self.at.arcs
            if arc.src == arc.dst == op and arc.high is not None
        )

    @cached_property
    def most(self) -> Ints:
        """Longest duration of each op, in units; shape (n,)."""
        return self.at.most_durations()

    @cached_property
    def least(self) -> Ints:
        """Shortest duration of each op, in units; shape (n,)."""
        return self.at.least_durations()

    @cached_property
    def busy(self) -> Bools:
        """Whether op v takes time on device p; shape (n, P + 1)."""
        busy = self.at.allowed & (self.at.durations > 0)
        busy[:, -1] = False
        return busy

    # -- pairs ----------------------------------------------------------------------
    def common(self, u: int, v: int) -> list[int]:
        """Devices that both ops may run on, if they may share one."""
        if self.windows is not None and not self.windows.may_share[u, v]:
            return []
        both = self.at.allowed[u] & self.at.allowed[v]
        return [int(p) for p in np.flatnonzero(both[:-1])]

    @cached_property
    def contended(self) -> frozenset[tuple[int, int]]:
        """Pairs u < v that may meet on a device and take time there."""
        if not self.is_timed:
            return frozenset()
        n = self.at.num_ops
        return frozenset(
            (u, v)
            for u in range(n)
            for v in range(u + 1, n)
            if any(self.busy[u, p] and self.busy[v, p] for p in self.common(u, v))
        )

    @cached_property
    def parted(self) -> tuple[tuple[int, int, int], ...]:
        """Pairs u < v and devices p that the windows forbid them to share."""
        if self.windows is None:
            return ()
        n, P = self.at.num_ops, self.at.num_devices
        return tuple(
            (u, v, p)
            for u in range(n)
            for v in range(u + 1, n)
            if not self.windows.may_share[u, v]
            for p in range(P)
            if self.at.allowed[u, p] and self.at.allowed[v, p]
        )

    @cached_property
    def carried(self) -> frozenset[tuple[int, int]]:
        """Pairs u < v with a transfer of which the model follows the time."""
        return frozenset(
            (min(arc.src, arc.dst), max(arc.src, arc.dst))
            for arc in self.at.arcs
            if arc.src != arc.dst and self._is_carried(arc)
        )

    def _is_carried(self, arc: Arc) -> bool:
        if self.at.allowed[[arc.src, arc.dst], -1].any():
            return False
        follows = arc in self.arcs or bool(self.memory_devices)
        return follows and bool(self.transfer_times(arc).any())

    @cached_property
    def paired(self) -> tuple[tuple[int, int], ...]:
        """Pairs u < v for which it matters whether they share a device."""
        return tuple(sorted({*self.contended, *self.carried}))

    def transfer_times(self, arc: Arc) -> Ints:
        """Times of an arc's transfer between any two distinct devices of its ends."""
        if arc.tensor is None:
            return np.zeros(0, dtype=np.int64)
        pairs = np.outer(self.at.allowed[arc.src], self.at.allowed[arc.dst])
        np.fill_diagonal(pairs, val=False)
        times: Ints = self.at.transfers[arc.tensor][pairs]
        return times

    @cached_property
    def detailed(self) -> frozenset[tuple[int, int]]:
        """Pairs of which a transfer time or a duration depends on the devices."""
        moved = {
            (min(arc.src, arc.dst), max(arc.src, arc.dst))
            for arc in self.at.arcs
            if len(np.unique(self.transfer_times(arc))) > 1
        }
        worked = {
            (u, v)
            for u, v in self.contended
            if any(
                len(np.unique(self.at.durations[w, self.common(u, v)])) > 1
                for w in (u, v)
            )
        }
        return frozenset(self.paired) & (moved | worked)

    def is_detailed(self, arc: Arc) -> bool:
        """Tell whether the ends of an arc are a pair of `detailed`."""
        return (min(arc.src, arc.dst), max(arc.src, arc.dst)) in self.detailed

    def order_range(self, u: int, v: int) -> tuple[int, int]:
        r"""Values of k so that :math:`s_u - s_v - k T` lies in [0, T] for one of them.

        Whatever the starts in their windows.
        """
        low = int(self.gaps[v, u]) // self.at.period
        high = -(int(self.gaps[u, v]) // self.at.period) - 1
        return low, max(low, high)

    def order_range_together(self, u: int, v: int) -> tuple[int, int]:
        """Values of k possible if u and v share a device; empty if they cannot.

        There ``k T + t_v <= s_u - s_v <= (k + 1) T - t_u``.
        """
        T = self.at.period
        low = -(-(int(self.gaps[v, u]) + int(self.least[u])) // T) - 1
        high = (-int(self.gaps[u, v]) - int(self.least[v])) // T
        return low, high


def scope_of(request: Request, *, deduce: bool = True, narrow: bool = True) -> Scope:
    """Find what binds, and windows for everything (`windows_at`).

    Parameters
    ----------
    deduce : bool
        If false, nothing is deduced from sharing devices (for benchmarks).
    narrow : bool
        If false, windows are as wide as the horizon of laps (for benchmarks).

    Raises
    ------
    UnsupportedError
        Times too long for exact arithmetic, or an objective that is not known.
    """
    _check_names(request)
    at = at_period(request.graph, request.period, placement=request.placement)
    if request.period > request.at_most.get("period", request.period):
        everything = tuple(op.id for op in request.graph.ops)
        return _refuted(request, at, Refutation(reason="period", ops=everything))
    if "staleness" in request.at_most:
        at = at.with_delay_caps(request.at_most["staleness"])
    has_memory = _wants(request, "peak_memory") or any(
        device.memory is not None for device in request.graph.devices
    )
    has_choice = has_memory or _wants(request, "staleness")
    span = _span(request, at)
    is_coupled = (
        has_memory
        or span is not None
        or _wants(request, "makespan")
        or (has_choice and any(arc.high is None for arc in at.arcs))
    )
    windows = windows_at(at, coupled=is_coupled, makespan=span, deduce=deduce)
    if isinstance(windows, Refutation):
        return _refuted(request, at, windows)
    if not narrow:
        windows = _widened(windows)
    arcs = tuple(
        arc
        for arc in windows.problem.arcs
        if windows.holds(arc) and (has_choice or arc.high is not None)
    )
    gaps = windows.low[None, :] - windows.high[:, None]
    if narrow:
        joined = np.equal.outer(windows.component, windows.component)
        gaps = np.where(joined, np.maximum(windows.longest, gaps), gaps)
    return Scope(
        request=request,
        at=windows.problem,
        arcs=arcs,
        delays=_ranges(windows) if has_choice else {},
        is_coupled=is_coupled,
        is_timed=is_coupled or any(arc.src != arc.dst for arc in arcs),
        windows=windows,
        refutation=None,
        gaps=gaps,
        early=windows.low,
        late=windows.high,
    )


def _check_names(request: Request) -> None:
    known = ("period", "communication", "staleness", "peak_memory", "makespan")
    names = [*request.at_most, *filter(None, [request.minimise])]
    unknown = [name for name in names if name not in known]
    if unknown or request.minimise == "period":
        wrong = ", ".join(unknown) or "period"
        raise UnsupportedError(f"at a fixed period there is no minimising {wrong}")


def _widened(windows: Windows) -> Windows:
    """Every start within the horizon of laps; anchors keep their windows."""
    reach = (lap_horizon(windows.problem) + 1) * windows.problem.period
    free = windows.anchor != np.arange(windows.problem.num_ops)
    return replace(
        windows,
        low=np.where(free, -reach, windows.low),
        high=np.where(free, reach, windows.high),
    )


def _refuted(request: Request, at: AtPeriod, refutation: Refutation) -> Scope:
    """Return a scope without times: nothing is left to decide."""
    n = at.num_ops
    return Scope(
        request=request,
        at=at,
        arcs=(),
        delays={},
        is_coupled=False,
        is_timed=False,
        windows=None,
        refutation=refutation,
        gaps=np.zeros((n, n), dtype=np.int64),
        early=np.zeros(n, dtype=np.int64),
        late=np.zeros(n, dtype=np.int64),
    )


def _wants(request: Request, objective: str) -> bool:
    return request.minimise == objective or objective in request.at_most


def _span(request: Request, at: AtPeriod) -> int | None:
    """Most ticks of one iteration (flush, a cap on the makespan), in units."""
    spans = [at.period] if request.graph.flush else []
    if "makespan" in request.at_most:
        spans.append(request.at_most["makespan"] // at.unit)
    return min(spans, default=None)


def _ranges(windows: Windows) -> dict[DelayName, tuple[int, int]]:
    r"""Range of each named delay.

    A delay without limit need not exceed the least value that its arcs ask,
    :math:`\lceil (t_u + c + lag + s_u - s_v) / T \rceil`, at the ends of the
    windows: nothing gains from a larger one.
    """
    at = windows.problem
    least = windows.least_delays()
    found = {}
    for name, delay in at.graph.delays.items():
        arcs = [arc for arc in at.arcs if arc.name == name]
        asked = [least[name]]
        for arc in arcs:
            if windows.holds(arc):
                room = int(windows.high[arc.src] - windows.low[arc.dst])
                cost = int(at.costs(arc)[windows.pairs(arc)].max(initial=0))
                asked.append(-(-(cost + room) // at.period))
        limits = [arc.high for arc in arcs if arc.high is not None]
        limits += [] if delay.max is None else [delay.max]
        found[name] = least[name], max(min([max(asked), *limits]), least[name])
    return found
