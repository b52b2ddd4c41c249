"""From a solver's values to a schedule."""

from __future__ import annotations

from collections.abc import Sequence

from lpsched.analysis.precedence import PlacedGraph
from lpsched.core.graph import DeviceId, OpId
from lpsched.core.io import graph_digest
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import SolverError
from lpsched.formulations.cpsat.variables import Variables

__all__ = ["extract"]


def extract(x: Variables, values: Sequence[int]) -> Schedule:
    """Read the schedule that a solution, a value per variable, stands for.

    Where arcs between components were left out of the model (`Windows`), laps are
    found anew: the least ones for the solution's devices and phases. Every named
    delay gets the least value that the starts allow, which breaks nothing and stores
    nothing more.

    Raises
    ------
    SolverError
        No laps fit the phases: the model is wrong.
    """
    at, period = x.scope.at, x.scope.request.period
    graph = at.graph
    placement = {
        op.id: next(
            (at.device_id(p) for p in x.scope.domain[v] if values[x.on[v, p].index]),
            None,
        )
        for v, op in enumerate(graph.ops)
    }
    if x.scope.is_timed:
        starts = {
            op.id: values[x.start[v].index] * at.unit for v, op in enumerate(graph.ops)
        }
    else:
        starts = _packed(x, placement)
    placed = PlacedGraph.of(graph, placement)
    if not x.scope.is_coupled:
        limits = placed.greatest_delays()
        limits |= {name: values[k.index] for name, k in x.delay.items()}
        phases = [starts[op] % period for op in placed.ops]
        least = placed.least_starts(period, phases, limits)
        if least is None:
            raise SolverError("no laps fit the phases that CP-SAT found")
        starts = dict(zip(placed.ops, least, strict=True))
    return Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=period,
        ops={op.id: Placed(placement[op.id], starts[op.id]) for op in graph.ops},
        delays=placed.least_delays(period, [starts[op] for op in placed.ops]),
    )


def _packed(x: Variables, placement: dict[OpId, DeviceId | None]) -> dict[OpId, int]:
    """Ops of each device one after the other from phase 0, in the graph's order."""
    busy: dict[DeviceId | None, int] = dict.fromkeys(placement.values(), 0)
    starts = {}
    for op, device in placement.items():
        starts[op] = busy[device]
        if device is not None:
            busy[device] += x.scope.at.graph.duration(op, device)
    return starts
