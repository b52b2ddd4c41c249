"""The placement of least communication at a load limit, with its proof."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.result import Stop
from lpsched.errors import UnsupportedError
from lpsched.formulations.api import Limits, Progress
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.columns import Grid
from lpsched.formulations.partition.contraction import Contraction, contract
from lpsched.formulations.partition.problem import Placed
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


def least_communication(  # noqa: PLR0913 - what a search starts from
    graph: Graph,
    *,
    period: int,
    limits: Limits,
    lower: int = 0,
    goal: int | None = None,
    upper: Mapping[OpId, DeviceId] | None = None,
    starts: Sequence[Mapping[OpId, DeviceId]] = (),
    forbidden: Sequence[Mapping[OpId, DeviceId]] = (),
    max_received: int | None = None,
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
    period : int
        T, in ticks: the greatest load of a device.
    lower : int
        A proved lower bound of the communication.
    goal : int, optional
        Ask only whether this much communication is enough: the search ends once it
        has found a placement of no more, or a bound above it.
    upper : mapping of OpId to DeviceId, optional
        A placement to start from; one that breaks a rule is ignored.
    starts : sequence of mapping
        More of them; one that overloads devices is repaired, if that succeeds.
    forbidden : sequence of mapping
        Placements that do not count; nor do those that differ by equal devices only.
    max_received : int, optional
        Most that a device may receive per period, in the graph's size unit.
    progress : callable, optional
        Called with the value of the best placement and the bound as they improve.

    Raises
    ------
    UnsupportedError
        Sizes that sum to more than fits into 64-bit arithmetic.
    """
    reading = read_graph(graph, period)
    deadline = Deadline(limits.seconds, interrupt)
    if not reading.items or not reading.devices:
        return _trivial(reading, deadline)
    sets = [placed for p in forbidden if (placed := reading.sets(p)) is not None]
    capped = replace(reading.problem, forbidden=tuple(sets), most_received=max_received)
    contraction = contract(capped)
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
        lower=-(-lower // unit),
        goal=None if goal is None else goal // unit,
        placed=_start(reading, contraction, upper),
        starts=_starts(reading, contraction, starts),
        report=report,
    )
    found = search.run()
    if found.is_infeasible:
        return _none(deadline, search.stats)
    return _outcome(reading, contraction, found, deadline, search.stats)


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
    reading: Reading, contraction: Contraction, upper: Mapping[OpId, DeviceId] | None
) -> Placed | None:
    """Read the placement to start from; None if it is of no use."""
    placed = None if upper is None else reading.sets(upper)
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
