"""What a method is, and the check that everything it returns must pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lpsched.core.graph import Graph
from lpsched.core.over import Over, never
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
    timed : callable, optional
        The same for a method that may take long: asks its second argument whether to
        end with the best schedule so far.
    """

    name: str
    function: Callable[[Graph], Schedule]
    summary: str
    timed: Callable[[Graph, Over], Schedule] | None = None

    def build(self, graph: Graph, over: Over = never) -> Schedule:
        """Run the method, no longer than asked if it can be."""
        return self.function(graph) if self.timed is None else self.timed(graph, over)


def verified(graph: Graph, schedule: Schedule) -> Schedule:
    """Return a valid schedule; raise `NoScheduleError` with what is wrong otherwise."""
    violations = verify(graph, schedule)
    if violations:
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        raise NoScheduleError(f"the schedule found breaks {violations[0]}{more}")
    return schedule
