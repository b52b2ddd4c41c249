"""`verify`: every rule of a valid schedule, in the order of formats.md."""

from __future__ import annotations

from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import Violation
from lpsched.verify.claims import check_claims
from lpsched.verify.memory import check_memory
from lpsched.verify.rules import (
    check_colocate,
    check_coverage,
    check_delay,
    check_exclusive,
    check_flush,
    check_precedence,
)

__all__ = ["RULES", "verify"]

#: The rules, in order.
RULES = (
    check_coverage,
    check_exclusive,
    check_precedence,
    check_delay,
    check_colocate,
    check_flush,
    check_memory,
    check_claims,
)


def verify(graph: Graph, schedule: Schedule) -> tuple[Violation, ...]:
    """Check a schedule against every rule of its graph, in exact integers.

    Shares no arithmetic with any solver, heuristic or bound. Rules that cannot
    speak of an op (missing, or on an illegal device) pass over it: *coverage* has
    reported it.

    Returns
    -------
    tuple of Violation
        Empty if and only if the schedule is valid and everything it claims holds.
    """
    if type(schedule.period) is not int or schedule.period < 1:
        text = f"the period is {schedule.period!r}, expected an integer >= 1"
        return (Violation(rule="coverage", message=text),)
    return tuple(v for rule in RULES for v in rule(graph, schedule))
