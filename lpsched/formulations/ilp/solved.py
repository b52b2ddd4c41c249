"""What a solver of integer programs says, in one form for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

__all__ = ["ABSOLUTE_GAP", "INTEGRALITY", "Solved", "Watch"]

#: How far from an integer solvers may leave an integer variable. A number of laps
#: that is off by this, times the period, must stay well below one unit of time.
INTEGRALITY = 1e-9

#: Solvers may stop with their bound this close: objectives here are integers.
ABSOLUTE_GAP = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """The end of a run.

    Attributes
    ----------
    is_complete : bool
        Whether the search ended by itself: the values are optimal, or, without
        values, there are none.
    values : sequence of float or None
        One per variable, in the order of ``problem.variables()``.
    bound : float or None
        Proved lower bound of the objective.
    """

    is_complete: bool
    values: Sequence[float] | None = None
    bound: float | None = None
    nodes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Watch:
    """When to stop a run, and whom to tell how it goes.

    Attributes
    ----------
    deadline : float
        On the clock of `time.monotonic`.
    tell : callable
        Takes the incumbent's objective and the bound, each None if there is none.
    """

    deadline: float
    interrupt: threading.Event = field(default_factory=threading.Event)
    tell: Callable[[float | None, float | None], None] = lambda _value, _bound: None

    @property
    def seconds(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Tell whether to stop now."""
        return self.interrupt.is_set() or self.seconds <= 0

    def is_overdue(self, grace: float) -> bool:
        """Tell whether the deadline lies more than `grace` seconds back."""
        return time.monotonic() > self.deadline + grace
