"""A synchronous schedule as the CSV that torch.distributed.pipelining loads."""

from __future__ import annotations

import csv
import heapq
import io
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from lpsched.analysis.actions import Steps, action_faults, partner, steps_of
from lpsched.analysis.precedence import topological_order
from lpsched.core.actions import COMMUNICATION, Action, Table
from lpsched.core.graph import Graph, OpId
from lpsched.core.schedule import Schedule
from lpsched.errors import Fault, InstanceError

__all__ = ["action_table", "torch_csv_text"]


def torch_csv_text(
    graph: Graph, schedule: Schedule, *, communication: bool = False
) -> str:
    """Write a valid schedule for ``_PipelineScheduleRuntime._load_csv``.

    Parameters
    ----------
    communication : bool
        If true, SEND, RECV and REDUCE_GRAD are spelt out (``compute_comms``);
        otherwise PyTorch adds them (``compute_only``). Nothing is said of FSDP.

    Raises
    ------
    InstanceError
        With every reason why PyTorch could not run it.
    """
    table = action_table(graph, schedule, communication=communication)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([str(cell) for cell in row] for row in table.rows)
    return stream.getvalue()


def action_table(
    graph: Graph, schedule: Schedule, *, communication: bool = False
) -> Table:
    """Return a schedule's actions, a row for each device; see `torch_csv_text`."""
    steps, faults = steps_of(graph)
    if not faults:
        faults += _device_faults(graph, schedule, steps)
        faults += _lap_faults(graph, schedule)
    if faults:
        raise InstanceError(faults)
    table = Table.of(_rows(graph, schedule, steps, communication=communication))
    faults = action_faults(table, microbatches=steps.microbatches)
    if faults:
        raise InstanceError(faults)
    return table


def _device_faults(graph: Graph, schedule: Schedule, steps: Steps) -> Iterator[Fault]:
    """Complain of ops away from their stage, and of devices without a stage."""
    homes: dict[int, tuple[OpId, str | None]] = {}
    for op in graph.ops:
        device = schedule.ops[op.id].device
        first, home = homes.setdefault(steps.stage_of[op.id], (op.id, device))
        if device != home:
            text = f"is on {device}, away from {first} of its stage on {home}"
            yield Fault(f"op {op.id}", f"{text}; PyTorch keeps a stage on one rank")
        elif device is None:
            yield Fault(f"op {op.id}", "occupies no device; PyTorch needs a rank")
    used = {device for _, device in homes.values()}
    for name in graph.device_ids:
        if name not in used:
            text = "runs nothing; PyTorch needs a stage on every rank"
            yield Fault(f"device {name}", text)


def _lap_faults(graph: Graph, schedule: Schedule) -> Iterator[Fault]:
    """Complain of devices that begin an iteration before the last one has ended."""
    spans: defaultdict[str | None, list[int]] = defaultdict(list)
    for op in graph.ops:
        placed = schedule.ops[op.id]
        end = placed.start + graph.duration(op.id, placed.device)
        spans[placed.device] += [placed.start, end]
    for device, times in spans.items():
        span = max(times) - min(times)
        if span > schedule.period:
            text = (
                f"an iteration takes {span:,} ticks, more than the period of "
                f"{schedule.period:,}: PyTorch ends one before it begins the next"
            )
            yield Fault(f"device {device}", text)


class _Step(NamedTuple):
    """When an action runs; `order` puts those of one time as they depend."""

    start: int
    order: int
    end: int
    action: Action


def _rows(
    graph: Graph, schedule: Schedule, steps: Steps, *, communication: bool
) -> list[list[tuple[Action, ...]]]:
    """Order the actions of each device by start, then as they depend on each other."""
    rank = {device: r for r, device in enumerate(graph.device_ids)}
    tape = _Tape(steps, [-1] * steps.stages, len(rank))
    run = []
    for order, op in enumerate(topological_order(graph)):
        device, start = schedule.ops[op].device, schedule.ops[op].start
        if op in steps.actions and device is not None:
            action = steps.actions[op]
            tape.homes[action.stage] = rank[device]
            end = start + graph.duration(op, device)
            run.append(_Step(start, order, end, action))
    for step in sorted(run):
        tape.send(step.start)
        tape.write(step.action)
        if communication:
            tape.plan(step)
    tape.send(None)
    return tape.rows


class _Tape:
    """Rows as they are written, and what has still to be sent.

    A SEND follows what it sends at its end, before anything else that starts then,
    and its RECV stands where the other device is at this moment. So the rows of all
    ranks follow one order in time, and cannot wait for each other.
    """

    def __init__(self, steps: Steps, homes: list[int], ranks: int) -> None:
        self.homes = homes
        self.rows: list[list[tuple[Action, ...]]] = [[] for _ in range(ranks)]
        self._stages = steps.stages
        self._left = [steps.microbatches] * steps.stages
        self._plans: list[tuple[int, int, Action]] = []

    def write(self, action: Action) -> None:
        """Append an action to the row of its stage."""
        self.rows[self.homes[action.stage]].append((action,))

    def plan(self, step: _Step) -> None:
        """Plan what follows a step at its end: messages, the stage's mean gradient."""
        stage, kind, m = step.action
        if kind == "F":
            self._message(step, stage + 1, Action(stage, "SEND_F", m))
        if kind in ("I", "B"):
            self._message(step, stage - 1, Action(stage, "SEND_B", m))
        if kind in ("W", "B"):
            self._left[stage] -= 1
            if self._left[stage] == 0:
                self._add(step, Action(stage, "REDUCE_GRAD"))

    def _message(self, step: _Step, to: int, action: Action) -> None:
        is_there = 0 <= to < self._stages
        if is_there and self.homes[to] != self.homes[action.stage]:
            self._add(step, action)

    def _add(self, step: _Step, action: Action) -> None:
        heapq.heappush(self._plans, (step.end, step.order, action))

    def send(self, until: int | None) -> None:
        """Write what was planned, up to a time (None: all of it)."""
        while self._plans and (until is None or self._plans[0][0] <= until):
            action = heapq.heappop(self._plans)[2]
            self.write(action)
            if action.kind in COMMUNICATION:
                self.write(partner(action))
