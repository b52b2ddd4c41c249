"""The three passes of a block apart: forward, gradient of input, of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.distributed.pipelining._backward import (
    stage_backward_input,
    stage_backward_weight,
)

from lpsched.errors import UnsupportedError
from lpsched.replay.whole import Whole

__all__ = ["Gauge", "Shapes", "passes", "saved_bytes"]

#: Runs a pass and notes what it takes, under the pass's letter.
Gauge = Callable[[str, Callable[[], Any]], Any]


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """What comes out of a block, and which of its gradients there are."""

    output: torch.Tensor
    has_input_grad: bool
    has_weight_grad: bool


def passes(
    block: nn.Module, value: torch.Tensor, gauge: Gauge, *, is_first: bool
) -> Shapes:
    """Run a block's F, I and W once, as PyTorch's pipeline runtime does.

    I is ``autograd.grad`` with respect to the input, and keeps the gradients in front
    of the parameters; W is ``autograd.grad`` from there with respect to the
    parameters. The first block has no I: its W is the gradient with respect to its
    parameters from the end.

    Raises
    ------
    UnsupportedError
        The block does not make one tensor of one.
    """
    given = value.detach()
    given.requires_grad_(not is_first and given.is_floating_point())
    made = gauge("F", lambda: block(given))
    if not isinstance(made, torch.Tensor):
        kind = type(made).__name__
        raise UnsupportedError(f"expected a block to return one tensor, got {kind}")
    output = Whole()(made)
    result = output.detach()
    parameters = [p for p in block.parameters() if p.requires_grad]
    if not output.requires_grad:
        return Shapes(output=result, has_input_grad=False, has_weight_grad=False)
    gradient = torch.ones_like(result)
    if given.requires_grad:
        held = gauge(
            "I",
            lambda: stage_backward_input(
                [output], [gradient], [given], iter(parameters)
            ),
        )
        if parameters:
            gauge("W", lambda: stage_backward_weight(iter(parameters), held[1]))
    elif parameters:
        gauge("W", lambda: torch.autograd.grad(output, parameters, gradient))
    block.zero_grad(set_to_none=True)
    return Shapes(
        output=result,
        has_input_grad=given.requires_grad,
        has_weight_grad=bool(parameters),
    )


@dataclass(slots=True)
class _Saved:
    """Storages that autograd keeps, by address."""

    sizes: dict[int, int] = field(default_factory=dict)

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        self.sizes[storage.data_ptr()] = storage.nbytes()
        return tensor


@contextmanager
def _saving() -> Iterator[_Saved]:
    saved = _Saved()
    with torch.autograd.graph.saved_tensors_hooks(saved.add, lambda tensor: tensor):
        yield saved


def saved_bytes(block: nn.Module, value: torch.Tensor) -> tuple[frozenset[str], int]:
    """Run a block forward and see what it keeps for its backward pass.

    Returns
    -------
    ends : frozenset of str
        ``input`` and ``output`` where it keeps those.
    inside : int
        Bytes of all else but its parameters.
    """
    given = value.detach()
    given.requires_grad_(given.is_floating_point())
    with _saving() as saved:
        output = block(given)
    ends = {"input": given, "output": output}
    places = {
        name: tensor.untyped_storage().data_ptr() for name, tensor in ends.items()
    }
    own = {
        t.untyped_storage().data_ptr() for t in (*block.parameters(), *block.buffers())
    }
    inside = sum(
        size
        for place, size in saved.sizes.items()
        if place not in own and place not in places.values()
    )
    kept = (name for name, place in places.items() if place in saved.sizes)
    return frozenset(kept), inside
