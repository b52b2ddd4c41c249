"""What every exact back end is asked and what it answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.result import Status, Stop
from lpsched.core.schedule import Schedule

__all__ = ["Backend", "Limits", "Outcome", "Progress", "Request"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One search at one fixed period.

    Attributes
    ----------
    graph : Graph
        The problem.
    period : int
        T, in ticks; the schedule wanted has exactly this period.
    minimise : str or None
        ``communication``, ``staleness``, ``peak_memory`` or ``makespan``; None
        asks for any schedule.
    at_most : mapping of str to int
        Caps on any of these objectives.
    lower : int
        A proved lower bound of `minimise`.
    max_received : int or None
        Most that a device may receive per period, in size units.
    placement : mapping of OpId to DeviceId
        Ops whose device is fixed beforehand.
    hint : Schedule or None
        A schedule to start from; it need not have this period.
    starts : sequence of mappings of OpId to DeviceId
        Placements to start from besides; they may overload devices.
    """

    graph: Graph
    period: int
    minimise: str | None = None
    at_most: Mapping[str, int] = field(default_factory=dict)
    lower: int = 0
    max_received: int | None = None
    placement: Mapping[OpId, DeviceId] = field(default_factory=dict)
    hint: Schedule | None = None
    starts: Sequence[Mapping[OpId, DeviceId]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long and how a search may run.

    Attributes
    ----------
    seconds : float
        Wall-clock limit of this search.
    work : float or None
        Limit on what the solver counts as work, the same on every machine; CP-SAT's
        deterministic time. Other solvers ignore it.
    options : mapping
        Strengthenings of a formulation switched on or off by name, for
        benchmarks; all on by default.
    """

    seconds: float = 60.0
    work: float | None = None
    seed: int = 0
    workers: int = 1
    options: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a back end found.

    ``optimal`` means that the minimum is proved (or, with nothing to minimise, that
    a schedule was found); ``infeasible`` that none exists at this period under
    these caps. `bound` is a proved lower bound of `minimise`, None if there is
    none. Nothing here is verified yet: the facade does that, and names the `solver`.
    """

    status: Status
    stop: Stop
    schedule: Schedule | None = None
    bound: int | None = None
    seconds: float = 0.0
    stats: Mapping[str, Any] = field(default_factory=dict)
    solver: str = ""


#: Called with (incumbent value or None, bound or None) as a search goes on.
Progress = Callable[[int | None, int | None], None]


class Backend(Protocol):
    """A back end: a function from request to outcome."""

    def __call__(
        self,
        request: Request,
        limits: Limits,
        *,
        progress: Progress | None = None,
        interrupt: threading.Event | None = None,
    ) -> Outcome:
        """Search; return early, with what there is, once `interrupt` is set."""
        ...
