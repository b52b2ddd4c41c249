"""Which of PyTorch's actions each op of a synchronous graph is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lpsched.analysis.precedence import topological_order
from lpsched.core.actions import Action
from lpsched.core.graph import Graph, OpId, Tensor
from lpsched.errors import Fault

__all__ = ["Steps", "steps_of"]


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The actions of a graph's ops; the ops of the update have none.

    Attributes
    ----------
    actions : mapping of OpId to Action
    stage_of : mapping of OpId to int
        Of every op, those of the update included.
    """

    actions: Mapping[OpId, Action]
    stage_of: Mapping[OpId, int]
    stages: int
    microbatches: int


def steps_of(graph: Graph) -> tuple[Steps, list[Fault]]:
    """Read a graph as PyTorch's pipeline runtime would run it.

    Stages are those of the labels; without any, each layer is a stage, in the order
    of the layers' forwards. A stage that has only an I, or the first one with only a
    W, runs it as B: PyTorch wants both or the whole.

    Returns
    -------
    steps : Steps
        Of use only if there are no faults.
    faults : list of Fault
        All that PyTorch's runtime has no word for.
    """
    faults = list(_label_faults(graph))
    if faults:
        return Steps(actions={}, stage_of={}, stages=0, microbatches=0), faults
    stage_of = _stages(graph)
    numbers = [op.microbatch for op in graph.ops if op.microbatch is not None]
    kinds: defaultdict[int, set[str]] = defaultdict(set)
    for op in graph.ops:
        kinds[stage_of[op.id]].add(op.kind)
    steps = Steps(
        actions={
            op.id: Action(stage, _letter(op.kind, kinds[stage]), op.microbatch)
            for op in graph.ops
            if op.kind != "U"
            for stage in (stage_of[op.id],)
        },
        stage_of=stage_of,
        stages=1 + max(stage_of.values(), default=-1),
        microbatches=1 + max(numbers, default=-1),
    )
    faults += _stage_faults(steps, kinds)
    faults += (f for tensor in graph.tensors for f in _tensor_faults(tensor, steps))
    return steps, faults


def _label_faults(graph: Graph) -> Iterator[Fault]:
    if graph.delays:
        text = "named delays are asynchronous training; PyTorch runs synchronous"
        yield Fault("delays", f"{text} pipelines only (training.mode: synchronous)")
        return
    staged = all(op.stage is not None for op in graph.ops)
    for op in graph.ops:
        place = f"op {op.id}"
        if op.kind not in ("F", "I", "W", "B", "U"):
            yield Fault(place, f"expected kind F, I, W, B or U, got {op.kind!r}")
        elif op.kind != "U" and op.microbatch is None:
            yield Fault(place, "belongs to no microbatch: PyTorch runs those only")
        elif not staged and op.layer is None:
            yield Fault(place, "belongs to no stage")
        elif op.part is not None:
            yield Fault(place, "is a part: PyTorch runs F, I and W whole")


def _stages(graph: Graph) -> dict[OpId, int]:
    """Stage of every op: its label, or the place of its layer in the forward pass."""
    labels = [op.stage for op in graph.ops if op.stage is not None]
    if len(labels) == len(graph.ops):
        return {op.id: stage for op, stage in zip(graph.ops, labels, strict=True)}
    ops = [graph.op_by_id[name] for name in topological_order(graph)]
    layers = dict.fromkeys(op.layer for op in ops if op.kind == "F")
    place = {layer: i for i, layer in enumerate(layers)}
    return {op.id: place.get(op.layer, len(place)) for op in graph.ops}


def _letter(kind: str, kinds: set[str]) -> str:
    """PyTorch's letter of a kind in a stage that has `kinds`."""
    return kind if kind == "F" or {"I", "W"} <= kinds else "B"


def _stage_faults(steps: Steps, kinds: Mapping[int, set[str]]) -> Iterator[Fault]:
    for stage, found in sorted(kinds.items()):
        place = f"stage {stage}"
        if "F" not in found:
            yield Fault(place, "has no forward pass")
        if found.isdisjoint("IWB"):
            yield Fault(place, "has no backward pass; PyTorch runs one on every stage")
        elif stage and found.isdisjoint("IB"):
            text = "has no I, and PyTorch sends a gradient to every earlier stage"
            yield Fault(place, text)
    if set(kinds) != set(range(steps.stages)):
        yield Fault("", "stages must be numbered from 0 without gaps")


def _tensor_faults(tensor: Tensor, steps: Steps) -> Iterator[Fault]:
    """Complain of uses that no message between neighbours can serve."""
    home = steps.stage_of[tensor.producer]
    action = steps.actions.get(tensor.producer)
    way = 0 if action is None or action.kind == "W" else 1 if action.kind == "F" else -1
    for use in tensor.consumers:
        stage = steps.stage_of[use.op]
        if stage not in (home, home + way):
            what = "weights" if way == 0 else "activations" if way > 0 else "gradients"
            yield Fault(
                f"tensor {tensor.id}",
                f"takes {what} of stage {home} to {use.op} of stage {stage}; "
                + (
                    "PyTorch shares no weights between stages"
                    if way == 0
                    else "PyTorch sends between adjacent stages only"
                ),
            )
