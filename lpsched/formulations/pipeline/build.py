"""Building the counting model of a chain at a period; nothing here solves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ortools.sat.python.cp_model import CpModel

from lpsched.analysis.chain import Chain
from lpsched.formulations.pipeline import constraints as rules
from lpsched.formulations.pipeline.variables import (
    KINDS,
    Expression,
    Variables,
    create_variables,
)

__all__ = ["StageOrder", "add_hint", "build", "orders_of"]

#: What a stage runs, in order: kind and microbatch.
StageOrder = Sequence[tuple[str, int]]


def build(chain: Chain, period: int) -> Variables | None:
    """Build the model; None if the work of a stage alone is longer than the period."""
    x = create_variables(CpModel(), chain, period)
    if x is None:
        return None
    for stage in range(chain.num_stages):
        rules.add_order(x, stage)
        rules.add_transitivity(x, stage)
        rules.add_timing(x, stage)
        rules.add_exclusive(x, stage)
        rules.add_memory(x, stage)
    rules.add_precedence(x)
    rules.add_span(x)
    return x


def add_hint(x: Variables, orders: Sequence[StageOrder]) -> None:
    """Let a search begin with the orders of the stages."""
    places = [{op: n for n, op in enumerate(order)} for order in orders]
    for (kind, j, other, i, stage), literal in x.order.items():
        place = places[stage]
        x.cp.add_hint(literal, place[kind, j] < place[other, i])


def orders_of(
    x: Variables, value: Callable[[Expression], int]
) -> tuple[StageOrder, ...]:
    """Read the order of every stage off a solution: an op's place is what precedes it.

    Parameters
    ----------
    value : callable
        Value of an expression in the solution.
    """
    ops = [(kind, i) for kind in KINDS for i in range(x.chain.microbatches)]
    found = []
    for stage in range(x.chain.num_stages):
        places = {
            (kind, i): sum(value(x.before(other, kind, i, stage)) for other in KINDS)
            for kind, i in ops
        }
        found.append(tuple(sorted(ops, key=lambda op: places[op])))
    return tuple(found)
