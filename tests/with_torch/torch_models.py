"""Small models that the tests and their ranks build by name."""

from __future__ import annotations

import torch
from torch import nn

from lpsched.replay.model import Model

#: Blocks of the deepest model; as many as any schedule here has stages, and more.
BLOCKS = 9


def perceptron() -> tuple[nn.Sequential, torch.Tensor]:
    """Blocks of two layers each; the last ones without bias or parameters."""
    blocks: list[nn.Module] = [
        nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(BLOCKS - 2)
    ]
    blocks += [nn.Linear(6, 6, bias=False), nn.Linear(6, 3)]
    return nn.Sequential(*blocks), torch.randn(2, 6)


def transformer() -> tuple[list[nn.Module], torch.Tensor]:
    """An embedding, two encoder layers and a head whose output is a view."""
    layers = [
        nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        for _ in range(2)
    ]
    return [nn.Embedding(20, 16), *layers, nn.Linear(16, 20)], torch.randint(
        0, 20, (2, 5)
    )


def fallible() -> tuple[nn.Sequential, torch.Tensor]:
    """A model that a rank cannot build, but the parent can."""
    import os  # noqa: PLC0415 - the environment of the process that calls

    if "RANK" in os.environ:
        raise RuntimeError("no such weights on this rank")
    return nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 3)), torch.randn(2, 6)


def random() -> tuple[nn.Sequential, torch.Tensor]:
    """A model whose gradients differ from run to run."""
    return nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.Linear(6, 3)), torch.ones(
        2, 6
    )


def tied() -> tuple[nn.Sequential, torch.Tensor]:
    """Two blocks with the same parameters."""
    one = nn.Linear(6, 6)
    return nn.Sequential(one, nn.Linear(6, 6), one), torch.randn(2, 6)


class Branched(nn.Module):
    """A module of layers that no Sequential holds; `skip` leaps over the middle."""

    def __init__(self, *, skip: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.middle = nn.Linear(6, 6)
        self.last = nn.Linear(6, 3)
        self.skip = skip

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Run the three layers."""
        low = torch.relu(self.first(value))
        high = torch.relu(self.middle(low))
        result: torch.Tensor = self.last(high)
        return result + low[:, :3] if self.skip else result


def split() -> Model:
    """One module, cut before two of its layers."""
    return Model(model=Branched(), example=torch.randn(2, 6), split=["middle", "last"])


def skipping() -> Model:
    """The same where a tensor skips a block."""
    return Model(
        model=Branched(skip=True), example=torch.randn(2, 6), split=["middle", "last"]
    )


NOT_A_FUNCTION = 3


def nothing() -> int:
    """No model at all."""
    return 3
