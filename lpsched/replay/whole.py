"""Outputs that PyTorch's pipeline runtime can detach in place: no views."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

__all__ = ["Whole"]


class _Whole(torch.autograd.Function):
    """The same numbers in the same place, as a tensor that is no view of another."""

    @staticmethod
    def forward(_context: Any, value: torch.Tensor) -> torch.Tensor:  # noqa: ANN401 - the signature is PyTorch's
        return value.detach()

    @staticmethod
    def backward(_context: Any, *gradients: torch.Tensor) -> torch.Tensor:  # noqa: ANN401 - the signature is PyTorch's
        return gradients[0]


class Whole(nn.Module):
    """The last module of a stage.

    The runtime detaches the outputs of a stage in place once their gradient is known,
    which PyTorch forbids for views; a linear layer of three axes returns one.
    """

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Return `value` without a copy."""
        result: torch.Tensor = _Whole.apply(value)
        return result
