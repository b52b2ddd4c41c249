"""Building the counting model of a chain at a period; nothing here solves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ortools.sat.python.cp_model import CpModel

from lpsched.analysis.chain import Chain
from lpsched.formulations.pipeline import constraints as rules
from lpsched.formulations.pipeline.variables import (
    Expression,
    Variables,
    create_variables,
)

__all__ = ["LaneOrder", "add_hint", "build", "orders_of"]

#: What a device runs, in order: kind, stage and microbatch.
LaneOrder = Sequence[tuple[str, int, int]]


def build(chain: Chain, period: int) -> Variables | None:
    """Build the model; None if the work of a device alone is longer than the period."""
    x = create_variables(CpModel(), chain, period)
    if x is None:
        return None
    for lane in range(len(chain.lanes)):
        rules.add_order(x, lane)
        rules.add_transitivity(x, lane)
        rules.add_timing(x, lane)
        rules.add_exclusive(x, lane)
        rules.add_memory(x, lane)
    rules.add_precedence(x)
    rules.add_span(x)
    return x


def add_hint(x: Variables, orders: Sequence[LaneOrder]) -> None:
    """Let a search begin with the orders of the devices."""
    place = {op: n for order in orders for n, op in enumerate(order)}
    for (a, j, b, i), literal in x.order.items():
        x.cp.add_hint(literal, place[(*a, j)] < place[(*b, i)])


def orders_of(
    x: Variables, value: Callable[[Expression], int]
) -> tuple[LaneOrder, ...]:
    """Read the order of every device off a solution: an op's place is what precedes it.

    Parameters
    ----------
    value : callable
        Value of an expression in the solution.
    """
    found = []
    for lane in range(len(x.chain.lanes)):
        rows = x.rows(lane)
        places: dict[tuple[str, int, int], int] = {}
        for row in rows:
            for i in range(x.chain.microbatches):
                earlier = sum(value(x.before(other, row, i)) for other in rows)
                places[row.kind, row.stage, i] = earlier
        found.append(tuple(sorted(places, key=lambda op: places[op])))
    return tuple(found)
