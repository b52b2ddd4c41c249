"""Building the model of a request; nothing here solves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulp

from lpsched.formulations.api import Request
from lpsched.formulations.ilp import constraints as rules
from lpsched.formulations.ilp import objective
from lpsched.formulations.ilp.memory import add_memory
from lpsched.formulations.ilp.scope import Scope, scope_of
from lpsched.formulations.ilp.tightening import add_neighbours, add_symmetry
from lpsched.formulations.ilp.variables import Variables, create_variables

__all__ = ["OPTIONS", "Model", "build"]

#: Strengthenings: none cuts off a schedule, but for symmetry, which cuts off twins.
OPTIONS = ("windows", "deduce", "loads", "neighbours", "symmetry", "memory_cuts")


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A built model, and how its variables stand for a schedule.

    Attributes
    ----------
    objective : variable or None
        What is minimised, in multiples of `unit`.
    """

    problem: pulp.LpProblem
    scope: Scope
    variables: Variables
    objective: pulp.LpVariable | None
    unit: int


def build(request: Request, options: Mapping[str, bool] | None = None) -> Model:
    """Build the integer program of a request.

    Parameters
    ----------
    options : mapping of str to bool
        Strengthenings to switch off, all on by default: ``windows``, ``deduce``,
        ``loads``, ``neighbours``, ``symmetry``, ``memory_cuts``.

    Raises
    ------
    UnsupportedError
        Times too long for exact arithmetic.
    """
    chosen = dict.fromkeys(OPTIONS, True) | dict(options or {})
    scope = scope_of(request, deduce=chosen["deduce"], narrow=chosen["windows"])
    problem = pulp.LpProblem("lpsched", pulp.LpMinimize)
    x = create_variables(scope, problem)
    rules.add_coverage(x)
    rules.add_refutation(x)
    rules.add_colocate(x)
    rules.add_sharing(x)
    if chosen["loads"] or not scope.is_timed:
        rules.add_load(x)
    rules.add_exclusive(x)
    rules.add_precedence(x)
    rules.add_flush(x)
    rules.add_received(x)
    figures = {}
    if scope.wants("communication"):
        figures["communication"] = objective.add_communication(x)
    if scope.wants("staleness"):
        figures["staleness"] = objective.add_staleness(x)
    if scope.wants("makespan"):
        figures["makespan"] = objective.add_makespan(x)
    if scope.wants("peak_memory"):
        figures["peak_memory"] = objective.add_peak(x)
    if scope.is_timed:
        add_memory(x, figures.get("peak_memory"), cuts=chosen["memory_cuts"])
    if chosen["neighbours"]:
        add_neighbours(x)
    if chosen["symmetry"]:
        add_symmetry(x)
    name = request.minimise or ""
    wanted = figures.get(name)
    problem.setObjective(pulp.lpSum([] if wanted is None else [wanted]))
    return Model(
        problem=problem,
        scope=scope,
        variables=x,
        objective=wanted,
        unit=objective.unit_of(scope, name),
    )
