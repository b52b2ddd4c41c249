"""What each rank does: run schedules with PyTorch's runtime, and clock every pass."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

from lpsched.replay.job import Job, Span
from lpsched.replay.model import Chain, load_chain
from lpsched.replay.stand_in import Sleeper, stand_in
from lpsched.replay.whole import Whole

__all__ = ["BATCH", "TABLE", "WEIGHTS", "chain_of_job", "gradients_file", "work"]

#: Files that the parent writes into a job's folder for every rank.
BATCH, TABLE, WEIGHTS = "batch.pt", "table.csv", "weights.pt"


def gradients_file(folder: str, rank: int) -> Path:
    """Where a rank writes the gradients of its blocks."""
    return Path(folder) / f"gradients-{rank}.pt"


def chain_of_job(job: Job) -> Chain:
    """Build a job's model, or its stand-in."""
    if job.model is None:
        return stand_in(len(job.blocks), job.naps)
    return load_chain(job.model, seed=job.seed)


@record
def work(jobs: Sequence[Job], seconds: int) -> list[list[Span]]:
    """Run jobs one after the other on this rank; return the spans of each.

    Parameters
    ----------
    seconds : int
        How long a rank waits for another before it gives up.
    """
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", timeout=timedelta(seconds=seconds))
    try:
        return [_Rank(job).run() for job in jobs]
    finally:
        distributed.destroy_process_group()


class _Clock:
    """Notes when each pass begins and ends."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.iteration = 0

    @contextmanager
    def measure(self, kind: str, stage: int, microbatch: int | None) -> Iterator[None]:
        start = time.monotonic_ns()
        yield
        end = time.monotonic_ns()
        self.spans.append(Span(self.iteration, kind, stage, microbatch, start, end))


class _Stage(PipelineStage):
    """A stage whose passes are clocked, without what they wait for."""

    clock: _Clock

    def forward_one_chunk(self, fwd_chunk_id: int, *rest: Any, **more: Any) -> Any:  # noqa: ANN401 - the signature is PyTorch's
        self._wake(fwd_chunk_id)
        with self.clock.measure("F", self.stage_index, fwd_chunk_id):
            return super().forward_one_chunk(fwd_chunk_id, *rest, **more)

    def backward_one_chunk(
        self,
        bwd_chunk_id: int,
        loss: Any = None,  # noqa: ANN401 - the signature is PyTorch's
        full_backward: bool = True,  # noqa: FBT001, FBT002 - PyTorch's signature
        last_backward: bool = False,  # noqa: FBT001, FBT002 - the signature is PyTorch's
    ) -> None:
        self._wake(bwd_chunk_id)
        kind = "B" if full_backward else "I"
        with self.clock.measure(kind, self.stage_index, bwd_chunk_id):
            super().backward_one_chunk(bwd_chunk_id, loss, full_backward, last_backward)

    def backward_weight_one_chunk(
        self,
        bwd_chunk_id: int,
        last_backward: bool = False,  # noqa: FBT001, FBT002 - the signature is PyTorch's
    ) -> None:
        with self.clock.measure("W", self.stage_index, bwd_chunk_id):
            super().backward_weight_one_chunk(bwd_chunk_id, last_backward)

    def _wake(self, microbatch: int) -> None:
        """Tell a stand-in which microbatch is at hand."""
        for block in self.submod:
            if isinstance(block, Sleeper):
                block.microbatch = microbatch


class _Rank:
    """The stages of one job that are on this rank."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._rank = distributed.get_rank()
        self._clock = _Clock()
        chain = chain_of_job(job)
        nn.ModuleList(chain.blocks).load_state_dict(_load(job, WEIGHTS))
        self._stages = {
            s: self._stage(s, chain)
            for s, home in enumerate(job.homes)
            if home == self._rank
        }
        self._runtime = _PipelineScheduleRuntime(
            list(self._stages.values()), job.microbatches, loss_fn=chain.loss
        )
        form = "compute_comms" if job.communication else "compute_only"
        self._runtime._load_csv(str(Path(job.folder) / TABLE), format=form)  # noqa: SLF001 - PyTorch has no other door
        self._updates = {
            s: torch.optim.SGD(list(stage.submod.parameters()), lr=0.0)
            for s, stage in self._stages.items()
            if s in job.updates
        }

    def _stage(self, stage: int, chain: Chain) -> _Stage:
        start = sum(self._job.blocks[:stage])
        blocks = chain.blocks[start : start + self._job.blocks[stage]]
        sleeper = blocks[0] if isinstance(blocks[0], Sleeper) else None
        made = _Stage(
            nn.Sequential(*blocks, Whole()),
            stage,
            len(self._job.blocks),
            torch.device("cpu"),
            dw_builder=None if sleeper is None else sleeper.weight_builder,
        )
        made.clock = self._clock
        return made

    def run(self) -> list[Span]:
        """Run one iteration for the gradients, then those that are measured."""
        inputs, targets = _load(self._job, BATCH)
        given = (inputs,) if 0 in self._stages else ()
        last = len(self._job.blocks) - 1 in self._stages
        for i in range(self._job.iterations + 1):
            for stage in self._stages.values():
                stage.submod.zero_grad(set_to_none=True)
            if self._job.flush or i <= 1:
                distributed.barrier()
            self._clock.iteration = i
            self._runtime.step(
                *given, target=targets if last else None, return_outputs=False
            )
            for s, optimizer in self._updates.items():
                with self._clock.measure("U", s, None):
                    self._update(s, optimizer)
            if i == 0:
                self._save_gradients()
        distributed.barrier()
        return self._clock.spans

    def _update(self, stage: int, optimizer: torch.optim.Optimizer) -> None:
        """Run an optimizer's step at rate 0, or a stand-in's nap."""
        naps = self._job.naps.get(("U", stage))
        if self._job.model is None and naps:
            time.sleep(naps[0])
        else:
            optimizer.step()

    def _save_gradients(self) -> None:
        """Write the gradients of this rank, by number of the block and name."""
        found = {}
        for s, stage in self._stages.items():
            start = sum(self._job.blocks[:s])
            for name, parameter in stage.submod.named_parameters():
                block, _, rest = name.partition(".")
                found[f"{start + int(block)}.{rest}"] = parameter.grad
        torch.save(found, gradients_file(self._job.folder, self._rank))


def _load(job: Job, name: str) -> Any:  # noqa: ANN401 - tensors in some nest
    return torch.load(Path(job.folder) / name, weights_only=True)
