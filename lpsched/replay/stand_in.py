"""A stand-in for a model: stages whose passes sleep for their modelled duration."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from lpsched.replay.job import Naps
from lpsched.replay.model import Chain

__all__ = ["Sleeper", "stand_in"]

#: Samples of a microbatch and features of each; their numbers cost nothing.
_SHAPE = (1, 2)


class _Sleep(torch.autograd.Function):
    """The same numbers, after a nap; and another nap on the way back."""

    @staticmethod
    def forward(
        context: Any,  # noqa: ANN401 - PyTorch's
        value: torch.Tensor,
        ahead: float,
        back: float,
    ) -> torch.Tensor:
        context.back = back
        time.sleep(ahead)
        return value.clone()

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[Any, None, None]:  # noqa: ANN401 - the signature is PyTorch's
        time.sleep(context.back)
        return gradients[0], None, None


class Sleeper(nn.Module):
    """A stage of one parameter whose F, I and W take given times.

    I computes the gradients, and W only sleeps: PyTorch's runtime leaves the first
    stage's I to its W, which would make its times differ from the model's. A stage
    that has one op for both sleeps for it in I.
    """

    def __init__(self, stage: int, naps: Naps) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0 + stage / 10))
        self.microbatch = 0
        self._naps = {kind: naps.get((kind, stage), ()) for kind in "FIWB"}

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Multiply by the parameter and sleep."""
        back = self._nap("I") or self._nap("B")
        result: torch.Tensor = _Sleep.apply(value * self.scale, self._nap("F"), back)
        return result

    def weight_builder(self) -> Callable[[], None]:
        """Return what W runs for the microbatch at hand."""
        seconds = self._nap("W")
        return lambda: time.sleep(seconds)

    def _nap(self, kind: str) -> float:
        naps = self._naps[kind]
        return naps[self.microbatch] if naps else 0.0


def stand_in(stages: int, naps: Naps) -> Chain:
    """Build a chain of sleepers, one a stage."""
    return Chain(
        names=tuple(f"stage{s}" for s in range(stages)),
        blocks=tuple(Sleeper(s, naps) for s in range(stages)),
        example=torch.ones(_SHAPE),
        target=None,
        loss=nn.functional.mse_loss,
    )
