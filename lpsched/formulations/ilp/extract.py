"""From a solver's numbers to a schedule; the only place that rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from lpsched.analysis.precedence import PlacedGraph
from lpsched.core.graph import DeviceId, OpId
from lpsched.core.io import graph_digest
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import SolverError
from lpsched.formulations.ilp.build import Model

__all__ = ["extract", "figure_value", "round_integer"]

#: Largest distance from an integer that a solver may leave.
TOLERANCE = 1e-6


def round_integer(value: float, name: str) -> int:
    """Round what should be integral.

    Raises
    ------
    SolverError
        It is not, within 1e-6.
    """
    nearest = round(value)
    if abs(value - nearest) > TOLERANCE:
        raise SolverError(f"the solver's {name} = {value!r} is not integral")
    return nearest


def extract(model: Model, values: Sequence[float]) -> Schedule:
    """Read the schedule that a solution stands for.

    Where arcs between components were left out of the model, laps are found anew:
    the least ones for the phases and devices of the solution. Named delays get the
    least values that the starts allow, which breaks nothing and stores nothing more.

    Raises
    ------
    SolverError
        An integer variable is not integral, or no laps fit the phases.
    """
    variables = model.problem.variables()
    found = {x.name: value for x, value in zip(variables, values, strict=True)}
    for x in variables:
        if x.cat == "Integer":
            found[x.name] = round_integer(found[x.name], x.name)
    graph, period = model.scope.at.graph, model.scope.request.period
    placement = _placement(model, found)
    starts = _starts(model, found) or _packed(model, placement)
    placed = PlacedGraph.of(graph, placement)
    if not model.scope.is_coupled:
        limits = placed.greatest_delays() | {
            name: int(found.get(x.name, x.lowBound))
            for name, x in model.variables.delay.items()
        }
        phases = [starts[op] % period for op in placed.ops]
        least = placed.least_starts(period, phases, limits)
        if least is None:
            raise SolverError("no laps fit the phases that the solver found")
        starts = dict(zip(placed.ops, least, strict=True))
    return Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=period,
        ops={op.id: Placed(placement[op.id], starts[op.id]) for op in graph.ops},
        delays=placed.least_delays(period, [starts[op] for op in placed.ops]),
    )


def figure_value(model: Model, values: Sequence[float]) -> int:
    """Value of the variable that is minimised, in the objective's own unit."""
    variables = model.problem.variables()
    for x, value in zip(variables, values, strict=True):
        if model.objective is not None and x.name == model.objective.name:
            return round_integer(value, x.name) * model.unit
    raise SolverError("the model minimises nothing")


def _placement(model: Model, found: Mapping[str, float]) -> dict[OpId, DeviceId | None]:
    at = model.scope.at
    return {
        at.graph.ops[v].id: at.device_id(p)
        for (v, p), x in model.variables.on.items()
        if found[x.name] == 1
    }


def _starts(model: Model, found: Mapping[str, float]) -> dict[OpId, int]:
    """Starts in ticks; empty if the model has none. Unused ones stay at their least."""
    at = model.scope.at
    return {
        at.graph.ops[v].id: int(found.get(x.name, x.lowBound)) * at.unit
        for v, x in model.variables.start.items()
    }


def _packed(model: Model, placement: Mapping[OpId, DeviceId | None]) -> dict[OpId, int]:
    """Ops of each device one after the other from phase 0, in the graph's order."""
    graph = model.scope.at.graph
    busy: dict[DeviceId | None, int] = defaultdict(int)
    phases = {}
    for op in graph.ops:
        device = placement[op.id]
        phases[op.id] = busy[device]
        busy[device] += 0 if device is None else graph.duration(op.id, device)
    return phases
