"""`replay`: run a schedule on this machine and compare it with what it promises."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import torch

from lpsched.analysis.actions import Steps, steps_of
from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import Fault, InstanceError, UnsupportedError
from lpsched.export.torch_csv import torch_csv_text
from lpsched.export.trace import tick_ns
from lpsched.replay.gradients import TOLERANCE, greatest_error, prepare
from lpsched.replay.job import Job, Naps
from lpsched.replay.launch import launch
from lpsched.replay.outcome import Outcome, outcome_of
from lpsched.replay.source import blaming
from lpsched.replay.worker import TABLE, chain_of_job

__all__ = ["Case", "replay", "replay_all"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A schedule to run and the model to run it with.

    Attributes
    ----------
    model : str or None
        MODULE:FUNCTION (see `lpsched.replay.model`); None for a stand-in whose passes
        sleep as long as their ops take.
    blocks : sequence of int, optional
        How many blocks of the model each stage has; by default one each.
    tick : Fraction, optional
        Nanoseconds of a tick; by default the graph's unit says it, and if that is no
        time, the run does.
    communication : bool
        If true, the ranks are told what to send and receive, and when.
    iterations : int
        Measured ones, 2 at least; one more runs before them.
    """

    graph: Graph
    schedule: Schedule
    model: str | None = None
    blocks: Sequence[int] | None = None
    tick: Fraction | None = None
    communication: bool = False
    iterations: int = 5
    seed: int = 0


def replay(case: Case, *, seconds: int = 300) -> Outcome:
    """Run one schedule; see `replay_all`."""
    return replay_all([case], seconds=seconds)[0]


def replay_all(cases: Sequence[Case], *, seconds: int = 300) -> list[Outcome]:
    """Run schedules of equally many devices in the same processes, a rank a device.

    Before, the model's gradients are computed without a pipeline, from the same
    weights and inputs.

    Parameters
    ----------
    seconds : int
        How long a rank waits for another before it gives up.

    Raises
    ------
    InstanceError
        With every reason why PyTorch cannot run a schedule, or has no time for a tick.
    RunError
        A rank failed.
    """
    with tempfile.TemporaryDirectory(prefix="lpsched-run-") as folder:
        runs = [_Run(case, Path(folder) / str(i)) for i, case in enumerate(cases)]
        spans = launch([run.job for run in runs], seconds=seconds)
        return [
            outcome_of(
                run.case.graph,
                run.case.schedule,
                run.steps,
                found,
                tick=run.tick,
                is_stand_in=run.case.model is None,
                gradients=greatest_error(run.job, run.expected),
                tolerance=TOLERANCE,
            )
            for run, found in zip(runs, spans, strict=True)
        ]


class _Run:
    """A case made ready: its job, and the gradients that have to come out."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        graph, schedule = case.graph, case.schedule
        text = torch_csv_text(graph, schedule, communication=case.communication)
        self.steps = steps_of(graph)[0]
        if case.iterations < 2:
            raise InstanceError([Fault("iterations", "expected 2 or more")])
        of_unit = tick_ns(graph.time_unit)
        if case.tick is not None and of_unit is not None:
            text = f"is {graph.time_unit} in the graph, and cannot be something else"
            raise InstanceError([Fault("tick", text)])
        self.tick = case.tick if of_unit is None else Fraction(of_unit)
        if self.tick is None and case.model is None:
            text = f"how long is a {graph.time_unit}? A stand-in has to know"
            raise InstanceError([Fault("tick", text)])
        folder.mkdir()
        (folder / TABLE).write_text(text, encoding="utf-8")
        job = Job(
            communication=case.communication,
            homes=_homes(graph, schedule, self.steps),
            microbatches=self.steps.microbatches,
            blocks=tuple(case.blocks or [1] * self.steps.stages),
            model=case.model,
            naps={} if case.model else _naps(graph, schedule, self.steps, self.tick),
            updates=_updates(graph, schedule, self.steps),
            flush=graph.flush,
            iterations=case.iterations,
            seed=case.seed,
            folder=str(folder),
        )
        chain = chain_of_job(job)
        _check_blocks(job, self.steps, len(chain.blocks))
        threads = torch.get_num_threads()
        try:
            torch.set_num_threads(1)  # as the ranks do: sums in the same order
            with (
                blaming("the model", source=case.model) if case.model else nullcontext()
            ):
                self.expected = prepare(job, chain)
        finally:
            torch.set_num_threads(threads)
        self.job = job


def _check_blocks(job: Job, steps: Steps, count: int) -> None:
    if len(job.blocks) != steps.stages or sum(job.blocks) != count:
        text = (
            f"expected a number of blocks for each of {steps.stages} stages, {count} "
            f"together, got {', '.join(map(str, job.blocks))}"
        )
        raise InstanceError([Fault("stages", text)])


def _homes(graph: Graph, schedule: Schedule, steps: Steps) -> tuple[int, ...]:
    rank = {device: r for r, device in enumerate(graph.device_ids)}
    homes = {
        steps.stage_of[op]: rank[placed.device]
        for op, placed in schedule.ops.items()
        if placed.device is not None
    }
    return tuple(homes[s] for s in range(steps.stages))


def _naps(
    graph: Graph, schedule: Schedule, steps: Steps, tick: Fraction | None
) -> Naps:
    if tick is None:
        raise UnsupportedError("a stand-in needs the length of a tick")
    found: defaultdict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for op in graph.ops:
        action = steps.actions.get(op.id)
        ticks = graph.duration(op.id, schedule.ops[op.id].device)
        key = ("U" if action is None else action.kind, steps.stage_of[op.id])
        number = 0 if action is None else action.microbatch or 0
        found[key][number] = float(ticks * tick / 10**9)
    return {key: [naps[m] for m in sorted(naps)] for key, naps in found.items()}


def _updates(graph: Graph, schedule: Schedule, steps: Steps) -> frozenset[int]:
    """Stages whose update takes time in the graph."""
    return frozenset(
        steps.stage_of[op.id]
        for op in graph.ops
        if op.kind == "U" and graph.duration(op.id, schedule.ops[op.id].device)
    )
