"""The ops of a training graph: which there are, of which part and how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lpsched.core.graph import DeviceId, Op, OpId
from lpsched.core.instance import Split
from lpsched.core.network import Layer, Network, Saves
from lpsched.network.ticks import LayerTicks, Ticks, shares

__all__ = ["Blueprint", "LayerOps", "blueprint", "layer_ops", "numbered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerOps:
    """The ops of one layer by role; with a fused backward B plays both I and W."""

    forward: tuple[Op, ...]
    input_grad: tuple[Op, ...] = ()
    weight_grad: tuple[Op, ...] = ()
    update: Op | None = None

    @property
    def ops(self) -> tuple[Op, ...]:
        """Every op once, in the order F, I, W, U."""
        update = () if self.update is None else (self.update,)
        listed = (*self.forward, *self.input_grad, *self.weight_grad, *update)
        return tuple({op.id: op for op in listed}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """Everything a training graph is drawn from.

    Attributes
    ----------
    layers : tuple of Layer
        In topological order.
    successors, tied : mapping of str to tuple of str
        The layers that read a layer's output; those that share its weights.
    ticks : mapping of str to LayerTicks
        Durations and sizes.
    ops : mapping of str to LayerOps
        The ops of each layer.
    saves : mapping of str to str
        What each layer's activation gradient needs back.
    """

    layers: tuple[Layer, ...]
    successors: Mapping[str, tuple[str, ...]]
    tied: Mapping[str, tuple[str, ...]]
    ticks: Mapping[str, LayerTicks]
    ops: Mapping[str, LayerOps]
    saves: Mapping[str, Saves]


def blueprint(
    network: Network,
    ops: Mapping[str, LayerOps],
    ticks: Mapping[str, LayerTicks],
    *,
    saves: Saves,
) -> Blueprint:
    """Gather a network's relations; `saves` where a layer does not say."""
    tied: dict[str, list[str]] = {}
    for layer in network.ordered_layers:
        if layer.shares is not None:
            tied.setdefault(layer.shares, []).append(layer.name)
    return Blueprint(
        layers=network.ordered_layers,
        successors=network.successors,
        tied={owner: tuple(names) for owner, names in tied.items()},
        ticks=ticks,
        ops=ops,
        saves={layer.name: layer.saves or saves for layer in network.layers},
    )


def numbered(name: str, parts: int) -> tuple[str, ...]:
    """Names of the parts of something; a lone part keeps the plain name."""
    return (name,) if parts == 1 else tuple(f"{name}.{i}" for i in range(parts))


def layer_ops(
    network: Network,
    ticks: Mapping[str, LayerTicks],
    *,
    split: Split,
    fuse_backward: bool,
) -> dict[str, LayerOps]:
    """Name the ops of every layer and share its durations among their parts."""
    found = {}
    for layer in network.ordered_layers:
        costs = ticks[layer.name]
        forward = _parts("F", layer, costs.forward, split.forward)
        if fuse_backward:
            input_grad, weight_grad = _fused(layer, costs)
        else:
            input_grad = _parts("I", layer, costs.input_grad, split.input_grad)
            weight_grad = _parts("W", layer, costs.weight_grad, split.weight_grad)
        update = _parts("U", layer, costs.update, 1)
        found[layer.name] = LayerOps(
            forward=forward,
            input_grad=input_grad,
            weight_grad=weight_grad,
            update=update[0] if update else None,
        )
    return found


def _parts(
    kind: str, layer: Layer, duration: Ticks | None, parts: int
) -> tuple[Op, ...]:
    if duration is None:
        return ()
    return tuple(
        Op(
            id=OpId(name),
            kind=kind,
            layer=layer.name,
            part=None if parts == 1 else i,
            duration=_share(duration, parts, i),
        )
        for i, name in enumerate(numbered(f"{kind}{layer.name}", parts))
    )


def _share(duration: Ticks, parts: int, index: int) -> Ticks:
    if isinstance(duration, int):
        return shares(duration, parts)[index]
    return {device: shares(t, parts)[index] for device, t in duration.items()}


def _fused(layer: Layer, costs: LayerTicks) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
    """Return B in the role of I and of W, where the layer has them."""
    roles = [d for d in (costs.input_grad, costs.weight_grad) if d is not None]
    backward = _parts("B", layer, _sum(roles), 1) if roles else ()
    return (
        backward if costs.input_grad is not None else (),
        backward if costs.weight_grad is not None else (),
    )


def _sum(durations: list[Ticks]) -> Ticks:
    """Add durations; one that is the same everywhere counts on every device."""
    devices: dict[DeviceId, None] = {}
    for duration in durations:
        if not isinstance(duration, int):
            devices.update(dict.fromkeys(duration))
    if not devices:
        return sum(d for d in durations if isinstance(d, int))
    return {
        device: sum(d if isinstance(d, int) else d[device] for d in durations)
        for device in devices
    }
