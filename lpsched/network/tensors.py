"""The tensors of a training graph: what each op makes and who needs it.

Follows formats.md, section "The training graph of a network": ``a{l}`` activations,
``g{l}->{j}`` gradients, ``w{l}`` weights and ``dw{l}`` their gradients, in the order
a, g, dw, w for each layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lpsched.core.graph import Consumer, DelayName, Op, OpId, Tensor, TensorId
from lpsched.network.blueprint import Blueprint, numbered
from lpsched.network.ticks import shares

__all__ = ["data_tensors", "learning_layers", "tensors_of"]


def learning_layers(plan: Blueprint) -> tuple[str, ...]:
    """Return the layers that own weights and learn: those with a delay ``d{l}``."""
    return tuple(
        layer.name
        for layer in plan.layers
        if layer.shares is None and plan.ops[layer.name].weight_grad
    )


def tensors_of(plan: Blueprint) -> tuple[Tensor, ...]:
    """Every tensor of the training graph."""
    return tuple(
        tensor
        for layer in plan.layers
        for tensor in (
            *_activations(plan, layer.name),
            *_gradients(plan, layer.name),
            *_weight_gradients(plan, layer.name, layer.shares),
            *_weights(plan, layer.name, layer.shares),
        )
    )


def data_tensors(plan: Blueprint) -> tuple[Tensor, ...]:
    """Tensors that an iteration makes and uses up: activations and their gradients."""
    return tuple(
        tensor
        for layer in plan.layers
        for tensor in (
            *_activations(plan, layer.name),
            *_gradients(plan, layer.name),
        )
    )


def _delay(layer: str) -> DelayName:
    return DelayName(f"d{layer}")


def _uses(ops: Iterable[Op], delay: int | DelayName = 0) -> list[Consumer]:
    return [Consumer(op=op.id, delay=delay) for op in ops]


def _made(
    names: Iterable[str],
    sizes: Iterable[int],
    producers: Iterable[OpId],
    consumers: Iterable[Consumer],
) -> Iterator[Tensor]:
    """Tensors with the same consumers, each named once (B is both I and W)."""
    uses = tuple(dict.fromkeys(consumers))
    for name, size, producer in zip(names, sizes, producers, strict=True):
        yield Tensor(id=TensorId(name), size=size, producer=producer, consumers=uses)


def _activations(plan: Blueprint, layer: str) -> Iterator[Tensor]:
    """``a{l}``: each next F and W; I and W of the layer where saved or at the loss."""
    own, after = plan.ops[layer], plan.successors[layer]
    uses = [use for k in after for use in _uses(plan.ops[k].forward)]
    uses += [use for k in after for use in _uses(plan.ops[k].weight_grad)]
    for k in after:
        if plan.saves[k] in ("input", "both"):
            uses += _uses(plan.ops[k].input_grad)
    if not after or plan.saves[layer] in ("output", "both"):
        uses += _uses((*own.input_grad, *own.weight_grad))
    parts = len(own.forward)
    return _made(
        numbered(f"a{layer}", parts),
        shares(plan.ticks[layer].output, parts),
        (op.id for op in own.forward),
        uses,
    )


def _gradients(plan: Blueprint, layer: str) -> Iterator[Tensor]:
    """``g{k}->{l}`` of each successor k, where the layer has a use for it."""
    own = plan.ops[layer]
    uses = _uses((*own.input_grad, *own.weight_grad))
    for k in plan.successors[layer] if uses else ():
        makers = plan.ops[k].input_grad
        yield from _made(
            numbered(f"g{k}->{layer}", len(makers)) if makers else (),
            shares(plan.ticks[layer].output, len(makers)) if makers else (),
            (op.id for op in makers),
            uses,
        )


def _weight_gradients(
    plan: Blueprint, layer: str, owner: str | None
) -> Iterator[Tensor]:
    """``dw{l}``: to U, if there is one, or to W of the layer that owns the weights."""
    own, of_owner = plan.ops[layer], plan.ops[owner or layer]
    if not own.weight_grad or (owner is None and own.update is None):
        return
    update = of_owner.update
    parts = len(own.weight_grad)
    yield from _made(
        numbered(f"dw{layer}", parts),
        shares(plan.ticks[layer].parameters, parts),
        (op.id for op in own.weight_grad),
        _uses(of_owner.weight_grad if update is None else (update,)),
    )


def _weights(plan: Blueprint, layer: str, owner: str | None) -> Iterator[Tensor]:
    """``w{l}.k.i``: part k of W (or U) makes a slice for each part i of I.

    F and I use them `d{l}` iterations later, of the layers that share them too; the
    part that made a slice needs it at the next iteration.
    """
    own = plan.ops[layer]
    if owner is not None or not own.weight_grad:
        return
    makers = own.weight_grad if own.update is None else (own.update,)
    slices = max(len(own.input_grad), 1)
    for maker, part, size in zip(
        makers,
        numbered(f"w{layer}", len(makers)),
        shares(plan.ticks[layer].parameters, len(makers)),
        strict=True,
    ):
        for i, (name, share) in enumerate(
            zip(numbered(part, slices), shares(size, slices), strict=True)
        ):
            uses = _readers(plan, layer, i, slices)
            uses.append(Consumer(op=maker.id, delay=1))
            yield from _made((name,), (share,), (maker.id,), uses)


def _readers(plan: Blueprint, layer: str, index: int, slices: int) -> list[Consumer]:
    """F and I of every layer that uses slice `index` of a layer's weights.

    Part i of I reads slice i where I has as many parts as there are slices, else
    every slice (its owner may have no I, and then one slice).
    """
    users = (layer, *plan.tied.get(layer, ()))
    delay = _delay(layer)
    uses = [use for name in users for use in _uses(plan.ops[name].forward, delay)]
    for name in users:
        parts = plan.ops[name].input_grad
        uses += _uses(
            parts[index : index + 1] if len(parts) == slices else parts, delay
        )
    return uses
