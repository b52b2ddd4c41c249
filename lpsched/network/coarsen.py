"""Coarser networks: layers merged into their readers, with a bound on the loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from lpsched.core.instance import CostModel
from lpsched.core.network import Cost, Layer, Network, Saves
from lpsched.errors import InstanceError
from lpsched.network.chains import Group, Piece, merged
from lpsched.network.costs import layer_costs, size_unit_of, time_unit_of

__all__ = ["Coarsening", "coarsened", "with_costs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coarsening:
    """A coarser network and what it differs in.

    Attributes
    ----------
    network : Network
        A merged layer has the name of the one that the others were moved to.
    groups : tuple of Group
        The layers merged, those of more than one member.
    loss : Fraction
        The least period is at most (1 + loss) times what it was, and never less;
        see `lpsched.network.chains`.
    hidden : Fraction
        Sizes of the activations inside merged layers, which are not seen any more.
    """

    network: Network
    groups: tuple[Group, ...]
    loss: Fraction
    hidden: Fraction


def coarsened(network: Network, *, epsilon: Fraction = Fraction(0)) -> Coarsening:
    """Merge layers whose merging lengthens the least period by no more than a share.

    A layer and its only reader become one where all but one of their times are 0 (a
    reshaping, a dropout that took no time), or together at most `epsilon` times those
    of the one, for F, I, W and U each. Merged layers add their times and parameters,
    make the last one's output, and need back what any of them needs of what is left to
    see. Activations inside a merged layer cost neither communication nor memory, and
    its W waits for the gradient that enters it: only for the period is the loss bounded
    (asynchronous training, free delays, no limit of memory; rounding apart).

    Layers without given times, with times per device or microbatch, with shared
    weights, deltas of memory or frozen parameters stay as they are; `with_costs` gives
    typed layers times.

    Parameters
    ----------
    epsilon : Fraction
        The loss allowed; 0 changes no optimum.
    """
    tied = {x.shares for x in network.layers} | {
        x.name for x in network.layers if x.shares is not None
    }
    layers = network.ordered_layers
    groups = merged(
        {x.name: _piece(x, apart=x.name in tied) for x in layers},
        {x.name: x.inputs for x in layers},
        epsilon=epsilon,
    )
    heart_of = {name: group.heart for group in groups for name in group.members}
    by_name = network.layer_by_name
    found = tuple(_layer(by_name, group, heart_of) for group in groups)
    inside = [by_name[name] for group in groups for name in group.members[:-1]]
    return Coarsening(
        network=replace(network, layers=found),
        groups=tuple(group for group in groups if len(group.members) > 1),
        loss=max((group.loss for group in groups), default=Fraction(0)),
        hidden=sum((x.output or Fraction(0) for x in inside), Fraction(0)),
    )


def with_costs(network: Network, costs: CostModel) -> Network:
    """Return the network with the times and sizes that a cost model gives its layers.

    The layers lose their types: no other model can count them again.

    Raises
    ------
    InstanceError
        With every fault of the shapes and costs.
    """
    found, faults = layer_costs(network, costs, ())
    if faults:
        raise InstanceError(faults, source=network.name)
    layers = []
    for layer in network.layers:
        known = found[layer.name]
        owned = layer.shares is None
        layers.append(
            replace(
                layer,
                type=None,
                activation=None,
                forward=known.forward,
                input_grad=known.input_grad,
                weight_grad=known.weight_grad,
                update=known.update,
                output=known.output,
                parameters=known.parameters if owned else None,
            )
        )
    return replace(
        network,
        layers=tuple(layers),
        input=None,
        time_unit=time_unit_of(network, costs),
        size_unit=size_unit_of(network),
    )


def _piece(layer: Layer, *, apart: bool) -> Piece:
    """A layer as merging sees it: its times of F, I, W and U."""
    times = (layer.forward, layer.input_grad, layer.weight_grad, layer.update)
    weights = tuple(t for t in map(_time, times) if t is not None)
    plain = (
        layer.type is None
        and len(weights) == len(times)
        and layer.memory is None
        and (layer.trainable or not layer.parameters)
    )
    if not plain:
        return Piece(weights=(Fraction(0),) * len(times), apart=True)
    return Piece(weights=weights, apart=apart)


def _time(cost: Cost | None) -> Fraction | None:
    """One time, 0 for an op that is not; None for a time per device or microbatch."""
    if cost is None:
        return Fraction(0)
    return cost if isinstance(cost, Fraction) else None


def _layer(
    by_name: Mapping[str, Layer], group: Group, heart_of: Mapping[str, str]
) -> Layer:
    """One layer of a group; a layer alone only follows its inputs' new names."""
    members = [by_name[name] for name in group.members]
    read = dict.fromkeys(name for layer in members for name in layer.inputs)
    outside = dict.fromkeys(
        heart_of[name] for name in read if heart_of[name] != group.heart
    )
    if len(members) == 1:
        return replace(members[0], inputs=tuple(outside))
    input_grad = _sum(x.input_grad for x in members)
    return Layer(
        name=group.heart,
        inputs=tuple(outside),
        forward=_sum(x.forward for x in members),
        input_grad=input_grad if outside or input_grad else None,
        weight_grad=_sum(x.weight_grad for x in members),
        update=_sum(x.update for x in members),
        output=members[-1].output,
        parameters=_parameters(members),
        saves=_saves(members),
    )


def _sum(costs: Iterable[Cost | None]) -> Fraction | None:
    """Sum of the times that are; None if there is none."""
    times = [cost for cost in costs if isinstance(cost, Fraction)]
    return sum(times, Fraction(0)) if times else None


def _parameters(members: list[Layer]) -> Fraction | None:
    """Sum of the sizes; None if W's time has to tell that there are parameters."""
    sizes = [x.parameters for x in members if x.parameters is not None]
    total = sum(sizes, Fraction(0))
    return total if total or len(sizes) == len(members) else None


def _saves(members: list[Layer]) -> Saves | None:
    """What is needed back: of what is inside, the output stands for it."""
    if all(layer.saves is None for layer in members):
        return None
    inside = {layer.name for layer in members}
    keeps_input = [x for x in members if x.saves in ("input", "both")]
    output = any(x.saves in ("output", "both", None) for x in members) or any(
        name in inside for x in keeps_input for name in x.inputs
    )
    if any(not inside.issuperset(x.inputs) for x in keeps_input):
        return "both" if output else "input"
    return "output" if output else "none"
