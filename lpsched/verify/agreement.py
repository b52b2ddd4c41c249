"""Schedules of one graph do not refute what others of them claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from lpsched.core.graph import Graph
from lpsched.core.result import INTEGER_OBJECTIVES
from lpsched.core.schedule import Schedule
from lpsched.errors import Violation
from lpsched.verify.measures import measure

__all__ = ["check_agreement"]

_Measured = tuple[str, Schedule, dict[str, int]]


def check_agreement(
    graph: Graph, schedules: Sequence[tuple[str, Schedule]]
) -> tuple[Violation, ...]:
    """No valid schedule lies below a bound that another one claims of the same graph.

    A bound b_k of objective k holds among the schedules that are as good in the
    objectives settled before, whose periods may be lengthened by a cap. The claimant A
    is one of them, so whichever schedule B has

        B_T <= A_T  and  B_i <= A_i  for all i before k   (T itself only if k is not T)

    is one, too, and B_k >= b_k. A bound given a placement binds that placement only.

    Parameters
    ----------
    schedules : sequence of (name, schedule)
        Valid schedules, each with what messages call it.
    """
    measured: list[_Measured] = []
    for name, schedule in schedules:
        figures = measure(graph, schedule).figures()
        values = {key: int(figures[key]) for key in INTEGER_OBJECTIVES}
        measured.append((name, schedule, values))
    return tuple(
        v for one, other in permutations(measured, 2) for v in _refuted(one, other)
    )


def _refuted(claimant: _Measured, witness: _Measured) -> Iterator[Violation]:
    """Yield the bounds of `claimant` that `witness` lies below."""
    (name, schedule, mine), (other, seen, found) = claimant, witness
    if schedule.result is None:
        return
    before: list[str] = []
    for objective, bound in schedule.result.bound.items():
        proof = schedule.result.proof.get(objective)
        settled = before if objective == "period" else ["period", *before]
        applies = all(found[key] <= mine[key] for key in settled) and (
            proof is None or proof.given is None or _places(seen) == _places(schedule)
        )
        if applies and found[objective] < bound:
            text = (
                f"{name} claims that {objective} is at least {bound}, yet {other},"
                f" valid for the same graph, has {found[objective]}"
            )
            yield Violation(
                rule="claims", message=text, excess=bound - found[objective]
            )
        before.append(objective)


def _places(schedule: Schedule) -> dict[str, str | None]:
    return {op: placed.device for op, placed in schedule.ops.items()}
