"""The figures of a schedule, measured by the verifier's own arithmetic."""

from __future__ import annotations

from fractions import Fraction

from lpsched.core.graph import Graph
from lpsched.core.measures import Measures
from lpsched.core.schedule import Schedule
from lpsched.errors import VerificationError
from lpsched.verify.memory import copies, peak, resident_sizes
from lpsched.verify.rules import check_coverage, check_delay
from lpsched.verify.runs import runs

__all__ = ["measure"]


def measure(graph: Graph, schedule: Schedule) -> Measures:
    """Measure a schedule as formats.md states it, exactly.

    Raises
    ------
    VerificationError
        The schedule does not cover the graph's ops and named delays, so that there
        is nothing to measure.
    """
    uncovered = check_coverage(graph, schedule)
    if uncovered or any(type(schedule.delays.get(k)) is not int for k in graph.delays):
        raise VerificationError((*uncovered, *check_delay(graph, schedule)))
    run = runs(graph, schedule).values()
    period = schedule.period
    load = dict.fromkeys(graph.device_ids, 0)
    for r in run:
        if r.device is not None:
            load[r.device] += r.duration
    return Measures(
        period=period,
        iteration_period=Fraction(period, graph.unfolding),
        communication=_communication(graph, schedule),
        staleness=sum(schedule.delays[name] - 1 for name in graph.delays),
        makespan=max((r.end for r in run), default=0)
        - min((r.start for r in run), default=0),
        peak_memory=_peak_memory(graph, schedule),
        bubble_ratio=1 - Fraction(sum(load.values()), len(load) * period)
        if load
        else Fraction(0),
        utilisation={d: Fraction(ticks, period) for d, ticks in load.items()},
    )


def _communication(graph: Graph, schedule: Schedule) -> int:
    """Size of each tensor, once for each other device that has a consumer of it."""
    run = runs(graph, schedule)
    total = 0
    for tensor in graph.tensors:
        home = run[tensor.producer].device
        users = {run[use.op].device for use in tensor.consumers}
        if home is not None:
            total += tensor.size * len(users - {home, None})
    return total


def _peak_memory(graph: Graph, schedule: Schedule) -> int:
    resident = resident_sizes(graph, schedule)
    return max(
        (
            resident[device] + peak(schedule.period, alive)[0]
            for device, alive in copies(graph, schedule).items()
        ),
        default=0,
    )
