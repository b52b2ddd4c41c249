"""A schedule as bars: what runs where and when, cut to the window that is shown."""

from __future__ import annotations

from dataclasses import dataclass

from lpsched.core.graph import DeviceId, Graph, Op, OpId
from lpsched.core.schedule import Schedule

__all__ = ["Bar", "bars"]

#: A run of an op: the iteration it belongs to, and its start on the picture's axis.
Run = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One visible piece of one run of an op.

    Attributes
    ----------
    start, length : int
        The visible piece, in ticks on the picture's axis.
    cut_left, cut_right : bool
        The run began before the window, or goes on after it.
    first_start : int
        Start of iteration 0, as the schedule states it.
    duration : int
        Ticks of the whole run.
    lap : int
        The op's lap in the schedule.
    iteration : int
        Over one period: the iteration that runs here, relative to the newest one
        of the period, which is 0. Unrolled: its number, from 0.
    """

    op: OpId
    kind: str
    layer: str | None
    microbatch: int | None
    device: DeviceId | None
    start: int
    length: int
    first_start: int
    duration: int
    lap: int
    iteration: int
    cut_left: bool = False
    cut_right: bool = False

    @property
    def end(self) -> int:
        """End of the visible piece."""
        return self.start + self.length

    @property
    def wrapped(self) -> bool:
        """Tell whether the run crosses an end of the window."""
        return self.cut_left or self.cut_right


def bars(
    graph: Graph, schedule: Schedule, *, iterations: int | None = None
) -> list[Bar]:
    """Return the bars of one steady-state period, or of a whole run.

    Parameters
    ----------
    iterations
        None for the window ``[0, period)`` of the steady state, in which an op that
        crosses the end of the period shows on both sides; N for the iterations
        0 to N - 1 from first start to last end, none of them cut.

    Notes
    -----
    The window of period p is ``[p*T, (p+1)*T)``. A run that starts m periods before
    it, ``m = 0, -1, ...``, is iteration ``n = p + m - lap``, at
    ``phase + m*T`` on the window's axis. Ops of duration 0 occupy nothing and have
    no bar.
    """
    shown = [op for op in graph.ops if op.id in schedule.ops]
    newest = min((schedule.lap(op.id) for op in shown), default=0)
    result = []
    for op in shown:
        duration = graph.duration(op.id, schedule.ops[op.id].device)
        if iterations is not None:
            window = None
            runs = _unrolled_runs(schedule, op.id, iterations)
        else:
            window = (0, schedule.period)
            runs = _steady_runs(schedule, op.id, duration, newest)
        result += [
            _bar(op, schedule, duration, run, window) for run in runs if duration
        ]
    return result


def _unrolled_runs(schedule: Schedule, op: OpId, count: int) -> list[Run]:
    first = schedule.ops[op].start
    return [(n, first + n * schedule.period) for n in range(count)]


def _steady_runs(schedule: Schedule, op: OpId, duration: int, newest: int) -> list[Run]:
    """Return the runs that touch ``[0, T)``: ``phase + m*T + duration > 0, m <= 0``."""
    period, phase, lap = schedule.period, schedule.phase(op), schedule.lap(op)
    oldest = (-phase - duration) // period + 1
    return [(m - (lap - newest), phase + m * period) for m in range(oldest, 1)]


def _bar(
    op: Op, schedule: Schedule, duration: int, run: Run, window: tuple[int, int] | None
) -> Bar:
    iteration, begin = run
    end = begin + duration
    low, high = window or (begin, end)
    start = max(begin, low)
    return Bar(
        op=op.id,
        kind=op.kind,
        layer=op.layer,
        microbatch=op.microbatch,
        device=schedule.ops[op.id].device,
        start=start,
        length=min(end, high) - start,
        first_start=schedule.ops[op.id].start,
        duration=duration,
        lap=schedule.lap(op.id),
        iteration=iteration,
        cut_left=begin < low,
        cut_right=end > high,
    )
