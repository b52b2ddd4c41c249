"""A periodic schedule: a device and a start for every op (`lpsched/schedule/1`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lpsched.core.graph import DelayName, DeviceId, Graph, OpId
from lpsched.core.result import Result
from lpsched.core.shown import Shown

__all__ = ["Placed", "Schedule"]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where and when iteration 0 of an op runs; `device` None if it needs none."""

    device: DeviceId | None
    start: int


@dataclass(frozen=True, kw_only=True)
class Schedule(Shown):
    """An answer: iteration n of op v starts at ``ops[v].start + n * period``.

    ``start = lap * period + phase`` with ``0 <= phase < period``; the lap is the
    op's retiming.
    """

    graph: str
    graph_digest: str
    period: int
    ops: Mapping[OpId, Placed]
    delays: Mapping[DelayName, int] = field(default_factory=dict)
    result: Result | None = None
    graph_document: Graph | None = field(default=None, repr=False)

    @property
    def placement(self) -> dict[OpId, DeviceId]:
        """Device of every op that occupies one."""
        return {op: at.device for op, at in self.ops.items() if at.device is not None}

    def lap(self, op: OpId) -> int:
        """Periods that `op` runs late against iteration 0's first period."""
        return self.ops[op].start // self.period

    def phase(self, op: OpId) -> int:
        """Return the slot of `op` inside the period, in ticks."""
        return self.ops[op].start % self.period

    def delay(self, delay: int | DelayName) -> int:
        """Return the value of an edge's delay in this schedule."""
        return delay if isinstance(delay, int) else self.delays[delay]

    def with_result(self, result: Result) -> Schedule:
        """Return the same answer with another result attached."""
        return replace(self, result=result)
