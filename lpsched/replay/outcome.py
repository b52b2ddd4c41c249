"""What came of a run: predicted against measured times, and the gradients."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lpsched.analysis.actions import Steps
from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.replay.job import Span

__all__ = ["Outcome", "Row", "outcome_of", "work_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Times in nanoseconds: of all passes of a kind in an iteration, or the period."""

    name: str
    passes: int
    predicted: Fraction
    measured: int

    @property
    def error(self) -> Fraction | None:
        """``measured / predicted - 1``; None if nothing was predicted."""
        return self.measured / self.predicted - 1 if self.predicted else None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A schedule as it ran.

    Attributes
    ----------
    tick : Fraction
        Nanoseconds of a tick.
    calibrated : bool
        If true, the tick was chosen so that all work together takes what was measured:
        the graph's unit is no time.
    kinds : tuple of Row
        By kind of pass.
    period : Row
    gradient_error : float
        Greatest difference of a gradient from the model without a pipeline, over the
        greatest entry of its parameter's.
    parameter : str
        The parameter where that is.
    tolerance : float
        What sums in another order may differ by.
    spans : tuple of tuple of Span
        Of each rank.
    """

    tick: Fraction
    calibrated: bool
    kinds: tuple[Row, ...]
    period: Row
    gradient_error: float
    parameter: str
    tolerance: float
    spans: tuple[tuple[Span, ...], ...]

    @property
    def is_right(self) -> bool:
        """Tell whether the gradients are those without a pipeline."""
        return self.gradient_error <= self.tolerance

    def document(self) -> dict[str, Any]:
        """Plain data; times in nanoseconds."""
        return {
            "tick_ns": float(self.tick),
            "calibrated": self.calibrated,
            "period": _plain(self.period),
            "kinds": {row.name: _plain(row) for row in self.kinds},
            "gradients": {
                "right": self.is_right,
                "error": self.gradient_error,
                "parameter": self.parameter,
                "tolerance": self.tolerance,
            },
        }


def _plain(row: Row) -> dict[str, Any]:
    error = row.error
    return {
        "passes": row.passes,
        "predicted": float(row.predicted),
        "measured": row.measured,
        "error": None if error is None else float(error),
    }


def work_of(
    graph: Graph, schedule: Schedule, steps: Steps, *, is_stand_in: bool
) -> dict[str, list[int]]:
    """Ticks of every pass of an iteration, by PyTorch's letter, U included.

    PyTorch's runtime leaves the first stage's I to its W, except with a stand-in.
    """
    found: defaultdict[str, list[int]] = defaultdict(list)
    for op in graph.ops:
        action = steps.actions.get(op.id)
        ticks = graph.duration(op.id, schedule.ops[op.id].device)
        kind = "U" if action is None else action.kind
        if kind == "I" and steps.stage_of[op.id] == 0 and not is_stand_in:
            found["I"].append(0)
            found["W"].append(ticks)
        else:
            found[kind].append(ticks)
    return dict(found)


def outcome_of(
    graph: Graph,
    schedule: Schedule,
    steps: Steps,
    spans: Sequence[Sequence[Span]],
    *,
    tick: Fraction | None,
    is_stand_in: bool,
    gradients: tuple[float, str],
    tolerance: float,
) -> Outcome:
    """Set what ran beside what the schedule says.

    Iteration 0 warms up and does not count; of the others the median does.

    Parameters
    ----------
    tick : Fraction or None
        Nanoseconds of a tick; None to choose it by all that was measured.
    """
    work = work_of(graph, schedule, steps, is_stand_in=is_stand_in)
    times = _times_of_kinds(spans)
    ticks = sum(one for passes in work.values() for one in passes)
    length = tick if tick is not None else Fraction(sum(times.values()), max(1, ticks))
    kinds = tuple(_rows(work, times, steps, length))
    measured = _makespan(spans) if graph.flush else _period(spans)
    predicted = schedule.period * length
    return Outcome(
        tick=length,
        calibrated=tick is None,
        kinds=kinds,
        period=Row(
            name="period",
            passes=sum(row.passes for row in kinds),
            predicted=predicted,
            measured=measured,
        ),
        gradient_error=gradients[0],
        parameter=gradients[1],
        tolerance=tolerance,
        spans=tuple(map(tuple, spans)),
    )


def _rows(
    work: Mapping[str, Sequence[int]],
    times: Mapping[str, int],
    steps: Steps,
    tick: Fraction,
) -> Iterator[Row]:
    """One row a kind of pass; none for updates that take no time."""
    passes = Counter(action.kind for action in steps.actions.values())
    passes["U"] = len(work.get("U", ()))
    for kind in "FIWBU":
        if kind in work and (kind != "U" or any(work[kind]) or kind in times):
            yield Row(
                name=kind,
                passes=passes[kind],
                predicted=sum(work[kind]) * tick,
                measured=times.get(kind, 0),
            )


def _by_iteration(spans: Sequence[Span]) -> Mapping[int, list[Span]]:
    found: defaultdict[int, list[Span]] = defaultdict(list)
    for span in spans:
        if span.iteration > 0:
            found[span.iteration].append(span)
    return found


def _times_of_kinds(spans: Sequence[Sequence[Span]]) -> dict[str, int]:
    """Median over iterations of the time that all passes of a kind took together."""
    sums: defaultdict[str, defaultdict[int, int]]
    sums = defaultdict(lambda: defaultdict(int))
    for span in (span for rank in spans for span in rank if span.iteration > 0):
        sums[span.kind][span.iteration] += span.end - span.start
    return {kind: statistics.median_low(found.values()) for kind, found in sums.items()}


def _makespan(spans: Sequence[Sequence[Span]]) -> int:
    """Median time from the first start of an iteration to its last end."""
    everything = _by_iteration([span for rank in spans for span in rank])
    return statistics.median_low(
        max(s.end for s in found) - min(s.start for s in found)
        for found in everything.values()
    )


def _period(spans: Sequence[Sequence[Span]]) -> int:
    """Time from an iteration's end on a rank to the next one's, of the slowest rank."""
    periods = []
    for rank in spans:
        ends = [max(s.end for s in found) for found in _by_iteration(rank).values()]
        periods.append((ends[-1] - ends[0]) // (len(ends) - 1))
    return max(periods)
