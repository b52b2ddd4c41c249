"""What a method is, and the check that everything it returns must pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import NoScheduleError
from lpsched.verify import verify

__all__ = ["Method", "verified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A heuristic under its name.

    Attributes
    ----------
    function : callable
        From a graph to a valid schedule without a result. Raises `UnsupportedError`
        if the method does not apply to the graph, `NoScheduleError` if it finds none.
    summary : str
        One line for people.
    """

    name: str
    function: Callable[[Graph], Schedule]
    summary: str


def verified(graph: Graph, schedule: Schedule) -> Schedule:
    """Return a valid schedule; raise `NoScheduleError` with what is wrong otherwise."""
    violations = verify(graph, schedule)
    if violations:
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        raise NoScheduleError(f"the schedule found breaks {violations[0]}{more}")
    return schedule
