"""Gradients of a model without a pipeline, and how far the pipeline's are from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from lpsched.errors import UnsupportedError
from lpsched.replay.job import Job
from lpsched.replay.model import Chain
from lpsched.replay.worker import BATCH, WEIGHTS, gradients_file

__all__ = ["TOLERANCE", "greatest_error", "prepare"]

#: Greatest difference of a gradient, over the greatest of its parameter, that sums in
#: another order may make in single precision.
TOLERANCE = 1e-5


def prepare(job: Job, chain: Chain) -> dict[str, torch.Tensor | None]:
    """Write a job's inputs and weights; return the gradients without a pipeline.

    Microbatches run one after the other through the whole model, and the loss is the
    mean of theirs.

    Raises
    ------
    UnsupportedError
        The model is random, so that its gradients cannot be compared; or it shares
        parameters between stages.
    """
    _check_shared(job, chain)
    inputs = torch.cat([_vary(chain.example, m) for m in range(job.microbatches)])
    whole = nn.Sequential(*chain.blocks)
    with torch.no_grad():
        output = whole(chain.example)
    target = torch.zeros_like(output) if chain.target is None else chain.target
    targets = torch.cat([target] * job.microbatches)
    folder = Path(job.folder)
    torch.save((inputs, targets), folder / BATCH)
    torch.save(nn.ModuleList(chain.blocks).state_dict(), folder / WEIGHTS)
    first = _gradients(job, chain, whole, inputs, targets)
    again = _gradients(job, chain, whole, inputs, targets)
    if _error(first, again)[0] > TOLERANCE:
        text = "the model's gradients differ from run to run (dropout?)"
        raise UnsupportedError(f"{text}: there is nothing to compare with")
    return first


def _check_shared(job: Job, chain: Chain) -> None:
    owner: dict[int, int] = {}
    stages = [s for s, count in enumerate(job.blocks) for _ in range(count)]
    for i, (stage, block) in enumerate(zip(stages, chain.blocks, strict=True)):
        for parameter in block.parameters():
            if owner.setdefault(id(parameter), stage) != stage:
                text = f"block {i} shares a parameter with one of another stage"
                raise UnsupportedError(f"{text}: PyTorch's runtime keeps them apart")


def _vary(example: torch.Tensor, microbatch: int) -> torch.Tensor:
    """Inputs of a microbatch like the example: other numbers, or the same moved."""
    generator = torch.Generator().manual_seed(microbatch)
    if example.is_floating_point():
        noise = torch.randn(example.shape, generator=generator, dtype=example.dtype)
        return example + noise
    order = torch.randperm(example.numel(), generator=generator)
    return example.flatten()[order].reshape(example.shape)


def _gradients(
    job: Job,
    chain: Chain,
    whole: nn.Sequential,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> dict[str, torch.Tensor | None]:
    whole.zero_grad(set_to_none=True)
    count = job.microbatches
    for value, target in zip(inputs.chunk(count), targets.chunk(count), strict=True):
        (chain.loss(whole(value), target) / count).backward()
    found = {
        name: None if p.grad is None else p.grad.clone()
        for name, p in whole.named_parameters()
    }
    whole.zero_grad(set_to_none=True)
    return found


def greatest_error(
    job: Job, expected: Mapping[str, torch.Tensor | None]
) -> tuple[float, str]:
    """Compare what the ranks wrote with the gradients without a pipeline.

    Returns
    -------
    error : float
        Greatest difference of any gradient over the greatest entry of its parameter's;
        infinite if one is missing or is no number.
    name : str
        The parameter, as ``block.name``.
    """
    found: dict[str, torch.Tensor | None] = {}
    for rank in range(job.ranks):
        found |= torch.load(gradients_file(job.folder, rank), weights_only=True)
    return _error(expected, found)


def _error(
    expected: Mapping[str, torch.Tensor | None],
    found: Mapping[str, torch.Tensor | None],
) -> tuple[float, str]:
    errors = [
        (_difference(expected.get(name), found.get(name)), name)
        for name in expected.keys() | found.keys()
    ]
    return max(errors, default=(0.0, ""))


def _difference(one: torch.Tensor | None, two: torch.Tensor | None) -> float:
    if one is None or two is None:
        return 0.0 if one is two else math.inf
    difference = float((one - two).abs().max())
    scale = float(one.abs().max())
    if difference == 0.0:
        return 0.0
    # A quotient that is no number would be lost among the others' greatest.
    comparable = math.isfinite(difference) and scale > 0.0
    return difference / scale if comparable else math.inf
