"""Models given as MODULE:FUNCTION, as chains of blocks with an example input."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from lpsched.errors import Fault, InstanceError, UnsupportedError
from lpsched.network.readers.source import unique_names
from lpsched.replay.source import blaming, load_function

__all__ = ["Chain", "Model", "chain_of", "load_chain"]

#: Mean over the batch: the loss of a batch is the mean of those of its parts.
Loss = Callable[[Any, Any], Any]


@dataclass(frozen=True, kw_only=True)
class Model:
    """What a FUNCTION returns, unless a pair of model and example is enough.

    Attributes
    ----------
    model : nn.Sequential, sequence of nn.Module, or nn.Module
        Blocks of one input and one output each; or one module and its split points.
    example : torch.Tensor
        The input of one microbatch; its first axis is the batch.
    split : sequence of str
        For one module: the submodules before which it is cut.
    target : torch.Tensor or None
        What the loss compares one microbatch's output with; None for zeros.
    loss : callable
        Of output and target; its mean over microbatches must be that of the batch.
    """

    model: nn.Module | Sequence[nn.Module]
    example: torch.Tensor
    split: Sequence[str] = ()
    target: torch.Tensor | None = None
    loss: Loss = field(default=nn.functional.mse_loss)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Blocks that run one after the other, each with a name."""

    names: tuple[str, ...]
    blocks: tuple[nn.Module, ...]
    example: torch.Tensor
    target: torch.Tensor | None
    loss: Loss


def load_chain(spec: str, *, device: str = "cpu", seed: int = 0) -> Chain:
    """Call a MODULE:FUNCTION, or FILE.py:FUNCTION, and read what it returns.

    Parameters
    ----------
    device : str
        ``meta`` for shapes without data.
    seed : int
        Random numbers begin there: the same weights in every process.

    Raises
    ------
    InstanceError
        There is no such function, it fails, or it returns something else than a model.
    """
    function = load_function(spec)
    torch.manual_seed(seed)
    with blaming(f"{spec.rpartition(':')[2]}()", source=spec), torch.device(device):
        made = function()
    try:
        return chain_of(made, device=device)
    except InstanceError as error:
        raise InstanceError(error.faults, source=spec) from error


def chain_of(made: object, *, device: str = "cpu") -> Chain:
    """Read a `Model`, or a pair of model and example, as a chain.

    Raises
    ------
    InstanceError
        It is neither, or no chain.
    """
    if isinstance(made, tuple) and len(made) == 2:
        made = Model(model=made[0], example=made[1])
    if not isinstance(made, Model):
        text = f"expected a Model or a pair (model, example), got {type(made).__name__}"
        raise InstanceError([Fault("", text)])
    if not isinstance(made.example, torch.Tensor) or made.example.dim() == 0:
        text = "expected a tensor whose first axis is the batch"
        raise InstanceError([Fault("example", text)])
    names, blocks = _blocks(made)
    if not blocks:
        raise InstanceError([Fault("model", "has no blocks")])
    return Chain(
        names=tuple(names),
        blocks=tuple(block.to(device) for block in blocks),
        example=made.example.to(device),
        target=None if made.target is None else made.target.to(device),
        loss=made.loss,
    )


def _blocks(made: Model) -> tuple[list[str], list[nn.Module]]:
    model = made.model
    if isinstance(model, nn.Module) and made.split:
        return _split(model, made)
    if isinstance(model, nn.Sequential):
        # `named_children` would leave out a module that comes a second time.
        children = list(model._modules.items())  # noqa: SLF001 - see above
    elif isinstance(model, nn.Module):
        text = "a module that is no nn.Sequential needs split points (Model.split)"
        raise InstanceError([Fault("model", text)])
    else:
        children = [(str(i), block) for i, block in enumerate(model)]
        if not all(isinstance(block, nn.Module) for _, block in children):
            raise InstanceError([Fault("model", "expected modules only")])
    texts = [
        f"block{name}_{type(block).__name__}" if name.isdecimal() else name
        for name, block in children
    ]
    return unique_names(texts), [block for _, block in children]


def _split(model: nn.Module, made: Model) -> tuple[list[str], list[nn.Module]]:
    """Cut a module before each split point, by torch.export."""
    from torch.distributed.pipelining import SplitPoint, pipeline  # noqa: PLC0415 - slow to load

    known = {name for name, _ in model.named_modules()}
    unknown = [name for name in made.split if name not in known]
    if unknown:
        text = f"the model has no submodule {', '.join(map(repr, unknown))}"
        raise InstanceError([Fault("split", text)])
    points = dict.fromkeys(made.split, SplitPoint.BEGINNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch.export's own
        pipe = pipeline(model, (made.example,), split_spec=points)
    blocks = [pipe.get_stage_module(i) for i in range(pipe.num_stages)]
    for i, block in enumerate(blocks):
        inputs = [node for node in block.graph.nodes if node.op == "placeholder"]
        if len(inputs) != 1:
            text = f"block {i} reads {len(inputs)} tensors of earlier blocks: no chain"
            raise UnsupportedError(text)
    starts = ["start", *made.split]
    return unique_names(starts), blocks
