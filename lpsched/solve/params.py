"""What a user can ask of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from lpsched.core.result import INTEGER_OBJECTIVES
from lpsched.core.schedule import Schedule
from lpsched.errors import Fault, InstanceError

__all__ = ["BACKENDS", "CAPPED", "Report", "Snapshot", "SolveParams"]

#: Names that ``backend`` takes.
BACKENDS = ("auto", "cpsat", "ilp", "partition")

#: Objectives that ``at_most`` takes: no rule about them breaks as the period grows.
CAPPED = ("communication", "staleness", "peak_memory")

DEFAULT_OBJECTIVE = ("period", "communication", "staleness")


@dataclass(frozen=True, kw_only=True)
class SolveParams:
    """Objectives, limits and switches of one search.

    Attributes
    ----------
    objective : tuple of str
        What to minimise, each before the next: ``period``, ``communication``,
        ``staleness``, ``peak_memory``, ``makespan``.
    backend : str
        ``auto``, ``cpsat``, ``ilp`` or, for communication, ``partition``.
    period_slack : Fraction
        Once the least period P is settled, later objectives may use any period up
        to ⌊P·(1 + period_slack)⌋.
    max_period : int or None
        That cap outright, in ticks.
    at_most : mapping of str to int
        Caps on communication, staleness or peak_memory.
    max_received : int or None
        Most that any device may receive per period, in size units.
    hint : Schedule or None
        A schedule of the same graph to start from.
    fix : Schedule or None
        A schedule whose placements are kept.
    time_limit : float
        Seconds for the whole search.
    workers : int
        Threads of a solver; 1 gives the same answer every time.
    options : mapping of str to bool
        Strengthenings switched off, for benchmarks.
    """

    objective: tuple[str, ...] = DEFAULT_OBJECTIVE
    backend: str = "auto"
    period_slack: Fraction = Fraction(0)
    max_period: int | None = None
    at_most: Mapping[str, int] = field(default_factory=dict)
    max_received: int | None = None
    hint: Schedule | None = None
    fix: Schedule | None = None
    time_limit: float = 60.0
    seed: int = 0
    workers: int = 1
    options: Mapping[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise InstanceError(faults)

    def _faults(self) -> list[Fault]:
        known = ", ".join(INTEGER_OBJECTIVES)
        faults = [
            Fault("objective", f"unknown objective {name!r}; known: {known}")
            for name in self.objective
            if name not in INTEGER_OBJECTIVES
        ]
        if not self.objective:
            faults.append(Fault("objective", f"expected at least one of {known}"))
        if len(set(self.objective)) < len(self.objective):
            faults.append(Fault("objective", "an objective is named twice"))
        if self.backend not in BACKENDS:
            text = f"expected one of {', '.join(BACKENDS)}, got {self.backend!r}"
            faults.append(Fault("backend", text))
        if self.period_slack < 0:
            text = f"expected a number >= 0, got {self.period_slack}"
            faults.append(Fault("period_slack", text))
        if self.period_slack > 0 and "period" not in self.objective:
            text = "a share of the least period, so `period` must be an objective"
            faults.append(Fault("period_slack", f"{text}; or give max_period outright"))
        if self.max_period is not None and self.max_period < 1:
            text = f"expected an integer >= 1, got {self.max_period}"
            faults.append(Fault("max_period", text))
        if self.max_received is not None and self.max_received < 0:
            text = f"expected an integer >= 0, got {self.max_received}"
            faults.append(Fault("max_received", text))
        faults += [
            Fault("at_most", f"{name} cannot be capped; known: {', '.join(CAPPED)}")
            for name in self.at_most
            if name not in CAPPED
        ]
        if not self.time_limit > 0:
            text = f"expected seconds > 0, got {self.time_limit}"
            faults.append(Fault("time_limit", text))
        if self.workers < 1:
            faults.append(
                Fault("workers", f"expected an integer >= 1, got {self.workers}")
            )
        return faults


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a search stands: for progress lines.

    `incumbent` and `bound` belong to `objective`, the one being settled.
    """

    objective: str
    doing: str
    incumbent: int | None
    bound: int | None


#: Called now and then as a search goes on.
Report = Callable[[Snapshot], None]
