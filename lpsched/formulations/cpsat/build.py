"""Building the model of a request; nothing here solves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ortools.sat.python.cp_model import CpModel

from lpsched.analysis.windows import Refutation
from lpsched.errors import OutOfTimeError
from lpsched.formulations.api import Request
from lpsched.formulations.cpsat import constraints as rules
from lpsched.formulations.cpsat import objective
from lpsched.formulations.cpsat.memory import add_memory, add_peak, memory_in_use
from lpsched.formulations.cpsat.scope import Options, scope_of
from lpsched.formulations.cpsat.symmetry import add_symmetry
from lpsched.formulations.cpsat.variables import Expression, Variables, create_variables

__all__ = ["Model", "build"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A built model, and how its variables stand for a schedule.

    Attributes
    ----------
    figures : mapping of str to expression
        What is minimised or capped, in units (`Scope.unit_of`).
    """

    cp: CpModel
    x: Variables
    figures: Mapping[str, Expression]


def build(
    request: Request,
    options: Mapping[str, bool] | None = None,
    *,
    over: Callable[[], bool] = lambda: False,
) -> Model | Refutation:
    """Build the model of a request, or refute the request without one.

    Parameters
    ----------
    options : mapping of str to bool
        Strengthenings switched off by name (`Options`); all on by default.
    over : callable
        Asked before each rule; once it says so, building is given up.

    Raises
    ------
    OutOfTimeError
        Given up.
    UnsupportedError
        Times too long for exact arithmetic.
    """
    chosen = Options.of(options or {})
    scope = scope_of(request, chosen, over)
    if isinstance(scope, Refutation):
        return scope
    cp = CpModel()
    x = create_variables(cp, scope)
    for add in (
        rules.add_coverage,
        partial(rules.add_load, least=chosen.loads),
        rules.add_period,
        rules.add_precedence,
        rules.add_exclusive,
        rules.add_flush,
        rules.add_received,
    ):
        if over():
            raise OutOfTimeError("the model is not built")
        add(x)
    in_use = memory_in_use(x)
    add_memory(x, in_use)
    if chosen.symmetry:
        add_symmetry(x)
    return Model(cp=cp, x=x, figures=_figures(x, in_use))


def _figures(x: Variables, in_use: dict[int, Expression]) -> dict[str, Expression]:
    """Cap and minimise what the request names; a makespan is capped as a rule is."""
    scope, request = x.scope, x.scope.request
    figures: dict[str, Expression] = {}
    if scope.wants("communication"):
        figures["communication"] = objective.add_communication(x)
    if scope.wants("staleness"):
        figures["staleness"] = objective.add_staleness(x)
    if scope.wants("peak_memory"):
        figures["peak_memory"] = add_peak(x, in_use)
    if scope.wants("makespan"):
        figures["makespan"] = x.makespan()
    for name, cap in request.at_most.items():
        if name in figures and name != "makespan":
            objective.add_cap(x, figures[name], cap // scope.unit_of(name))
    if request.minimise is not None:
        lower = -(-request.lower // scope.unit_of(request.minimise))
        objective.add_objective(x, figures[request.minimise], lower)
    return figures
