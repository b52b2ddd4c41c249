"""A graph of one loop with a valid schedule made by hand, to be broken by tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factories import make_graph, make_schedule, make_tensor

from lpsched.core.graph import Delay, DelayName, Graph, Link, OpId, Resident
from lpsched.core.schedule import Schedule
from lpsched.errors import Violation
from lpsched.verify import verify

__all__ = ["A", "B", "C", "K", "loop", "only", "schedule_of"]

A, B, C = OpId("A"), OpId("B"), OpId("C")
K = DelayName("k")


def loop(**fields: Any) -> Graph:  # noqa: ANN401 - any field of Graph
    """Build A -> B -> A with a bystander C, transfers of 1 + ceil(size / 4) ticks.

    x (8 units, 3 ticks to send) goes from A to B at once and to C an iteration
    later; w (4 units, 2 ticks to send) goes from B to A with the delay k.
    """
    return make_graph(
        {"A": 3, "B": 2, "C": 4},
        [
            make_tensor("x", 8, "A", "B", ("C", 1)),
            make_tensor("w", 4, "B", ("A", "k")),
        ],
        **{
            "devices": 2,
            "link": Link(latency=1, units_per_tick=4),
            "delays": {K: Delay(min=1, max=3)},
            "residents": (Resident(size=10, ops=(A, C)),),
            **fields,
        },
    )


def schedule_of(
    graph: Graph, ops: Mapping[str, tuple[str | None, int]] | None = None, k: int = 2
) -> Schedule:
    """Build the valid schedule of `loop` with period 8, with some ops elsewhere.

    d0: A in [0, 3), C in [3, 7); d1: B in [6, 8), just when x arrives. w is on d0
    at 8 + 2 = 10, so A (at 0 + 16) could read it with k = 2, not with k = 1.
    """
    places: dict[str, tuple[str | None, int]] = {
        "A": ("d0", 0),
        "B": ("d1", 6),
        "C": ("d0", 3),
    }
    return make_schedule(graph, 8, places | dict(ops or {}), k=k)


def only(graph: Graph, schedule: Schedule) -> Violation:
    """Return the one violation that there must be."""
    (violation,) = verify(graph, schedule)
    return violation
