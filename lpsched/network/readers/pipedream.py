"""PipeDream's profiles (`graph.txt`) as networks: measured times and sizes per node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import PurePath
from typing import Literal

from lpsched.core.network import Layer, Network, Saves
from lpsched.core.order import topological_order
from lpsched.network.readers.profile_text import Profile, ProfileNode, parse_profile
from lpsched.network.readers.source import (
    FaultLog,
    Imported,
    nearest,
    network_name,
    unique_names,
)

__all__ = ["BackwardSplit", "read_pipedream"]

#: The share of a backward time that is I; or by the bytes that I and W write.
BackwardSplit = Fraction | Literal["parameters"]

#: Ticks of the network in a millisecond of the file.
TICKS = 1000

#: What PyTorch's modules keep for their activation gradient; others as the regime says.
_SAVES: Mapping[str, Saves] = {
    **dict.fromkeys(("Conv2d", "Linear", "Embedding", "Dropout"), "none"),
    **dict.fromkeys(("Add", "Concat", "View", "Size", "__getitem__"), "none"),
    **dict.fromkeys(("AvgPool2d", "AdaptiveAvgPool2d"), "none"),
    **dict.fromkeys(("ReLU", "ReLU6", "Sigmoid", "Tanh", "Softmax"), "output"),
    **dict.fromkeys(("BatchNorm2d", "LayerNorm", "GELU"), "input"),
    "MaxPool2d": "both",
}


def read_pipedream(
    text: str, *, source: str, split_backward: BackwardSplit = Fraction(1, 2)
) -> Imported[Network]:
    """Read a profile in the text format of PipeDream (and DAPPLE) as a network.

    - The DAG is kept. Sources described as ``Input...`` and sinks described as
      ``__getitem__`` are no work and are left out, as PipeDream's own partitioner does.
    - Milliseconds become whole microseconds, bytes whole bytes: nearest, halves up.
      A list of activation sizes is summed.
    - There is one backward time. An op without parameters has no W: all of it is I. An
      op none of whose inputs needs a gradient has no I: all of it is W. Of the others I
      gets the share `split_backward` (nearest, halves up) and W the rest; or, with
      ``"parameters"``, each its share of the bytes written: the inputs' activations by
      I and the parameters by W. An op with neither keeps a backward time as I.
    - What the activation gradient needs back follows from the module (a convolution
      nothing, a ReLU its output, a normalisation its input, a maximum both).

    Source: Harlap et al., *PipeDream* (SOSP 2019), repository msr-fiddle/pipedream.

    Parameters
    ----------
    text : str
        The file's contents.
    source : str
        Its name, for messages and for the network's name.
    split_backward : Fraction or "parameters"
        How a backward time is divided; from 0 (all W) to 1 (all I).

    Raises
    ------
    FormatError
        With every fault and its line.
    """
    log = FaultLog(source)
    profile = parse_profile(text, log)
    order, _ = topological_order(profile.before)
    kept = _work(profile, order)
    if not kept.nodes:
        raise log.fail("", "no node is left that does any work")
    rule = (
        "divided by the bytes that I and W write"
        if split_backward == "parameters"
        else f"of which I gets {float(split_backward):g} where there are both I and W"
    )
    network = Network(
        name=network_name(source),
        layers=_layers(kept, split_backward),
        origin=(
            f"PipeDream profile {PurePath(source).name}: milliseconds rounded to "
            f"microseconds; one backward time, {rule} (an assumption)"
        ),
        time_unit="us",
        size_unit="byte",
    )
    return Imported(document=network, remarks=tuple(_remarks(profile, kept)))


def _work(profile: Profile, order: tuple[str, ...]) -> Profile:
    """Leave out inputs, and sinks that only pick an entry, one behind another too."""
    nodes, before = profile.nodes, profile.before
    idle = {
        name
        for name in order
        if nodes[name].description.startswith("Input") and not before[name]
    }
    readers = dict.fromkeys(order, 0)
    for name in order:
        for other in before[name]:
            readers[other] += 1
    for name in reversed(order):
        if nodes[name].module == "__getitem__" and not readers[name]:
            idle.add(name)
            for other in before[name]:
                readers[other] -= 1
    return Profile(
        nodes={name: nodes[name] for name in order if name not in idle},
        before={
            name: tuple(other for other in before[name] if other not in idle)
            for name in order
            if name not in idle
        },
    )


def _layers(profile: Profile, split: BackwardSplit) -> tuple[Layer, ...]:
    """Layers in topological order, I and W where they are."""
    nodes = profile.nodes
    kinds = [node.module.strip("_") for node in nodes.values()]
    texts = [f"{name}_{kind}" for name, kind in zip(nodes, kinds, strict=True)]
    names = dict(zip(nodes, unique_names(texts), strict=True))
    learning: set[str] = set()
    layers = []
    for name, node in nodes.items():
        inputs = profile.before[name]
        needed = not learning.isdisjoint(inputs)
        written = sum((nodes[other].activation for other in inputs), Fraction(0))
        input_grad, weight_grad = _backward(
            node, split, input_bytes=written, needed=needed
        )
        if needed or node.parameters:
            learning.add(name)
        layers.append(
            Layer(
                name=names[name],
                inputs=tuple(names[other] for other in inputs),
                forward=Fraction(nearest(node.forward * TICKS)),
                input_grad=input_grad,
                weight_grad=weight_grad,
                output=Fraction(nearest(node.activation)),
                parameters=Fraction(nearest(node.parameters)),
                saves=_SAVES.get(node.module),
            )
        )
    return tuple(layers)


def _backward(
    node: ProfileNode, split: BackwardSplit, *, input_bytes: Fraction, needed: bool
) -> tuple[Fraction | None, Fraction | None]:
    """Times of I and W, None where there is none; their sum is the backward time."""
    total = Fraction(nearest(node.backward * TICKS))
    if nearest(node.parameters) == 0:
        return (total if needed or total else None), None
    if not needed:
        return None, total
    if split == "parameters":
        split = input_bytes / (input_bytes + node.parameters)
    share = Fraction(nearest(split * total))
    return share, total - share


def _remarks(profile: Profile, kept: Profile) -> Iterator[str]:
    yield f"{len(profile.nodes)} nodes read, {len(kept.nodes)} layers kept"
    for name, node in profile.nodes.items():
        if name not in kept.nodes and (node.forward or node.backward):
            time = float(node.forward + node.backward)
            text = f"{name} ({node.description}) is no work"
            yield f"{text}: its {time:g} ms are left out"
    times = [t for n in kept.nodes.values() for t in (n.forward, n.backward)]
    errors = [abs(nearest(t * TICKS) - t * TICKS) for t in times]
    if any(errors):
        worst, total = float(max(errors)), float(sum(errors))
        yield f"rounding to microseconds: at most {worst:g} a time, {total:g} in all"
    if any(node.stage is not None for node in profile.nodes.values()):
        yield "the file's stage_id are left out: a network has no stages"
