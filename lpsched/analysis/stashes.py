"""What a schedule keeps: versions of activations, gradients and weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lpsched.analysis.metrics import Copy, copies, level_curve
from lpsched.core.graph import DeviceId, Graph, Op, OpId, TensorId
from lpsched.core.schedule import Schedule

__all__ = ["SORTS", "Stash", "stashes"]

#: Sorts of values, in the order shown.
SORTS = ("activations", "gradients", "weights", "values")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stash:
    """Values of one sort that a device holds for a layer.

    Attributes
    ----------
    layer : str
        The layer (or stage) whose ops make the values; the op where it has no label.
    sort : str
        ``activations`` (made by F), ``weights`` (made by W, B or U, read by an F),
        ``gradients`` (all else that I, W, B make), ``values`` (of general graphs).
    versions : int
        Copies of one value alive at once, at most: successive iterations, or
        microbatches.
    size : int
        The most that is alive at once, in the graph's size unit.
    """

    layer: str
    device: DeviceId
    sort: str
    versions: int
    size: int

    def document(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "layer": self.layer,
            "device": self.device,
            "sort": self.sort,
            "versions": self.versions,
            "size": self.size,
        }


class _Maker(NamedTuple):
    """What the tensors of a family have in common besides the microbatch."""

    layer: str
    sort: str
    kind: str
    part: int | None
    rank: int  # among the tensors of its producer


def stashes(graph: Graph, schedule: Schedule) -> tuple[Stash, ...]:
    r"""Measure what each device holds for each layer.

    A value born at b and last used at d is there in
    :math:`\lceil (d - b) / T \rceil` versions at most; those of several microbatches of
    one op count together. Sizes are exact peaks over the phases of the period, so that
    a device's peak memory is at most the sum of its rows and its residents.

    Parameters
    ----------
    graph, schedule
        A schedule that covers all ops and named delays of the graph.

    Returns
    -------
    tuple of Stash
        In the graph's order of layers, then by device and sort; without those whose
        values live no tick.
    """
    makers = _makers(graph)
    families: defaultdict[tuple[_Maker, DeviceId], list[Copy]] = defaultdict(list)
    for copy in copies(graph, schedule):
        families[makers[copy.tensor.id], copy.device].append(copy)
    rows: defaultdict[tuple[str, DeviceId, str], list[list[Copy]]] = defaultdict(list)
    for (maker, device), members in families.items():
        rows[maker.layer, device, maker.sort].append(members)
    layers = {layer: i for i, layer in enumerate(map(_label, graph.ops))}
    devices = {device: i for i, device in enumerate(graph.device_ids)}
    found = [
        Stash(
            layer=layer,
            device=device,
            sort=sort,
            versions=max(_peak(schedule, members, each=1) for members in parts),
            size=_peak(schedule, [copy for members in parts for copy in members]),
        )
        for (layer, device, sort), parts in rows.items()
    ]
    found.sort(key=lambda s: (layers[s.layer], devices[s.device], SORTS.index(s.sort)))
    return tuple(stash for stash in found if stash.versions)


def _peak(
    schedule: Schedule, members: Sequence[Copy], *, each: int | None = None
) -> int:
    """Most units alive at once; a copy counts its tensor's size, or `each`."""
    spans = [
        (copy.birth, copy.death, copy.tensor.size if each is None else each)
        for copy in members
    ]
    return max(units for _, units in level_curve(schedule.period, spans))


def _makers(graph: Graph) -> Mapping[TensorId, _Maker]:
    made: defaultdict[OpId, int] = defaultdict(int)
    found = {}
    for tensor in graph.tensors:
        op = graph.op_by_id[tensor.producer]
        read_by = {graph.op_by_id[use.op].kind for use in tensor.consumers}
        found[tensor.id] = _Maker(
            layer=_label(op),
            sort=_sort(op.kind, read_by),
            kind=op.kind,
            part=op.part,
            rank=made[op.id],
        )
        made[op.id] += 1
    return found


def _sort(kind: str, read_by: set[str]) -> str:
    if kind == "F":
        return "activations"
    if kind not in ("I", "W", "B", "U"):
        return "values"
    return "weights" if "F" in read_by else "gradients"


def _label(op: Op) -> str:
    if op.layer is not None:
        return op.layer
    return op.id if op.stage is None else f"stage {op.stage}"
