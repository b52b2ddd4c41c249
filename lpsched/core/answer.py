"""What a search hands back: the result, and the schedule if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lpsched.core.result import Result
from lpsched.core.schedule import Schedule
from lpsched.core.shown import Shown
from lpsched.errors import NoScheduleError

__all__ = ["Answer"]


@dataclass(frozen=True, kw_only=True)
class Answer(Shown):
    """A result with its verified schedule, or with none and the reason.

    Attributes
    ----------
    conflict : mapping or None
        For an infeasible problem: which rules conflict and, where known, the least
        relaxation that would do. Plain JSON data.
    """

    result: Result
    schedule: Schedule | None = None
    conflict: Mapping[str, Any] | None = None

    def require_schedule(self) -> Schedule:
        """Return the schedule; raise `NoScheduleError` if there is none."""
        if self.schedule is None:
            raise NoScheduleError(f"no schedule: {self.result.status}")
        return self.schedule
