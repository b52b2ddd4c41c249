"""The ranges of the named delays: a delay is 1 + staleness."""

from __future__ import annotations

from collections.abc import Sequence

from lpsched.core.graph import Delay, DelayName
from lpsched.core.instance import Staleness
from lpsched.core.network import Layer
from lpsched.errors import Fault
from lpsched.network.stages import membership

__all__ = ["delay_ranges"]

Groups = Sequence[Sequence[str]]


def delay_ranges(
    staleness: Staleness,
    layers: Sequence[Layer],
    learning: Sequence[str],
    stages: Groups | None,
) -> tuple[dict[DelayName, Delay], list[Fault]]:
    r"""Range of ``d{l}`` for every layer that learns weights of its own.

    With LayerPipe2's rule (arXiv 2512.08160),

    .. math:: d_l = 1 + 2 S(l),

    where S(l) counts the groups after that of layer l; the layers of a group share
    its value.

    Parameters
    ----------
    layers : sequence of Layer
        All layers of the network.
    learning : sequence of str
        The layers whose delay is wanted.
    stages : sequence of sequence of str or None
        The placement's stages, which groups default to.
    """
    if not staleness.layerpipe2:
        most = None if staleness.most is None else 1 + staleness.most
        delay = Delay(min=1 + staleness.least, max=most)
        return {DelayName(f"d{name}"): delay for name in learning}, []
    path = "training.staleness.groups"
    groups = staleness.groups
    if groups is None:
        groups = None if stages is None else tuple(map(tuple, stages))
    if groups is None:
        text = "required by `rule: layerpipe2` where the placement lists no stages"
        return {}, [Fault(path, text)]
    group_of, faults = membership(groups, [layer.name for layer in layers], path)
    faults += [
        Fault(path, f"the layer {name!r} is in no group")
        for name in learning
        if name not in group_of
    ]
    values = {n: 1 + 2 * (len(groups) - 1 - group_of.get(n, 0)) for n in learning}
    return {DelayName(f"d{n}"): Delay(min=v, max=v) for n, v in values.items()}, faults
