"""The placement of least communication at a load limit, with its proof."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.result import Stop
from lpsched.core.schedule import Schedule
from lpsched.errors import UnsupportedError
from lpsched.formulations.api import Limits, Progress, Request
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.columns import Grid
from lpsched.formulations.partition.contraction import Contraction, contract
from lpsched.formulations.partition.problem import Placed, Problem
from lpsched.formulations.partition.reading import Reading, read_graph
from lpsched.formulations.partition.search import Found, Search

__all__ = ["PartitionOutcome", "least_communication"]


@dataclass(frozen=True, kw_only=True)
class PartitionOutcome:
    """The best placement found and how good it is.

    Attributes
    ----------
    placement : mapping of OpId to DeviceId or None
        A device for every op that occupies one, each with a load <= T.
    value : int or None
        Its communication per period, in the graph's size unit.
    bound : int or None
        No placement with loads <= T communicates less; None if there is none.
    proved : bool
        Whether the two are equal, or there is no placement.
    infeasible : bool
        Whether it is proved that there is no placement.
    """

    placement: Mapping[OpId, DeviceId] | None
    value: int | None
    bound: int | None
    proved: bool
    infeasible: bool
    stop: Stop
    seconds: float
    stats: Mapping[str, Any] = field(default_factory=dict)


def least_communication(
    request: Request,
    limits: Limits,
    *,
    forbidden: Sequence[Mapping[OpId, DeviceId]] = (),
    progress: Progress | None = None,
    interrupt: threading.Event | None = None,
) -> PartitionOutcome:
    """Place ops so that no device carries more than T and communication is least.

    Only loads limit the placement, and what a device must hold at the least
    (`lpsched.analysis.memory_shares`): times and delays are not looked at. So the
    bound holds for every schedule of this period, and where delays are free
    (`lpsched.analysis.freedom.has_free_delays`) the placement has one.

    Parameters
    ----------
    request : Request
        Its hint's placement is where the search starts from, ignored if it breaks a
        rule; its other starts are repaired, if that succeeds. Where nothing is
        minimised the search ends once it has found a placement that communicates no
        more than the cap, if there is one, or a bound above it.
    forbidden : sequence of mapping
        Placements that do not count; nor do those that differ by equal devices only.
    progress : callable, optional
        Called with the value of the best placement and the bound as they improve.

    Raises
    ------
    UnsupportedError
        Sizes that sum to more than fits into 64-bit arithmetic.
    """
    reading = read_graph(_pinned(request.graph, request.placement), request.period)
    deadline = Deadline(limits.seconds, interrupt)
    if not reading.items or not reading.devices:
        return _trivial(reading, deadline)
    sets = [placed for p in forbidden if (placed := reading.sets(p)) is not None]
    contraction = contract(
        replace(
            reading.problem,
            forbidden=tuple(sets),
            most_received=request.max_received,
        )
    )
    unit = contraction.problem.unit
    problem = contraction.problem.in_units()
    if not Grid.of(problem).fits(problem):
        text = f"tensors of {problem.most_cost * unit} units in all are too large"
        raise UnsupportedError(f"{text} for exact bounds; use a larger size_tick")

    def report(value: int | None, bound: int) -> None:
        if progress is not None:
            progress(None if value is None else value * unit, bound * unit)

    search = Search(
        problem,
        deadline,
        lower=-(-request.lower // unit),
        goal=_goal(request, problem, unit),
        placed=_start(reading, contraction, request.hint),
        starts=_starts(reading, contraction, request.starts),
        report=report,
    )
    found = search.run()
    if found.is_infeasible:
        return _none(deadline, search.stats)
    return _outcome(reading, contraction, found, deadline, search.stats)


def _pinned(graph: Graph, placement: Mapping[OpId, DeviceId]) -> Graph:
    """Return the graph with some ops allowed on one device only."""
    if not placement:
        return graph
    ops = (
        replace(op, devices=(placement[op.id],)) if op.id in placement else op
        for op in graph.ops
    )
    return graph.replace(ops=tuple(ops))


def _goal(request: Request, problem: Problem, unit: int) -> int | None:
    """Communication that is enough, in units; None if as little as can be is asked."""
    if request.minimise is not None:
        return None
    cap = request.at_most.get("communication")
    return problem.most_cost if cap is None else cap // unit


def _none(
    deadline: Deadline, stats: Mapping[str, Any] | None = None
) -> PartitionOutcome:
    return PartitionOutcome(
        placement=None,
        value=None,
        bound=None,
        proved=True,
        infeasible=True,
        stop=Stop.PROVED,
        seconds=deadline.elapsed,
        stats=stats or {},
    )


def _trivial(reading: Reading, deadline: Deadline) -> PartitionOutcome:
    """Nothing to place, or no device to place it on."""
    if reading.items:
        return _none(deadline)
    return PartitionOutcome(
        placement={},
        value=0,
        bound=0,
        proved=True,
        infeasible=False,
        stop=Stop.PROVED,
        seconds=deadline.elapsed,
    )


def _start(
    reading: Reading, contraction: Contraction, hint: Schedule | None
) -> Placed | None:
    """Read the placement to start from; None if it is of no use."""
    placed = None if hint is None else reading.sets(hint.placement)
    return None if placed is None else contraction.shrink(placed)


def _starts(
    reading: Reading,
    contraction: Contraction,
    starts: Sequence[Mapping[OpId, DeviceId]],
) -> tuple[Placed, ...]:
    """Read placements that may overload devices."""
    found = (reading.sets(start, overloaded=True) for start in starts)
    return tuple(contraction.shrink(placed) for placed in found if placed is not None)


def _outcome(
    reading: Reading,
    contraction: Contraction,
    found: Found,
    deadline: Deadline,
    stats: Mapping[str, Any],
) -> PartitionOutcome:
    unit = contraction.problem.unit
    placement = None
    if found.placed is not None:
        placement = reading.placement(tuple(map(contraction.expand, found.placed)))
    value = None if found.cost is None else found.cost * unit
    proved = found.cost == found.bound
    return PartitionOutcome(
        placement=placement,
        value=value,
        bound=found.bound * unit,
        proved=proved,
        infeasible=False,
        stop=Stop.PROVED if proved else deadline.stop,
        seconds=deadline.elapsed,
        stats=stats,
    )
