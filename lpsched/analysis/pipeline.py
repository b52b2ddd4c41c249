"""A synchronous pipeline read back from a graph: stages, microbatches, times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from lpsched.analysis.precedence import PlacedGraph
from lpsched.core.graph import DeviceId, Edge, Graph, Op, OpId
from lpsched.core.io import graph_digest
from lpsched.errors import UnsupportedError

__all__ = ["Order", "Pipeline", "Slot", "pipeline_of"]

#: By stage, then by microbatch.
_Ids: TypeAlias = tuple[tuple[OpId | None, ...], ...]
_Ticks: TypeAlias = tuple[tuple[int, ...], ...]


class Slot(NamedTuple):
    """One op of the pipeline: kind F, I (also a fused B) or W, stage, microbatch."""

    kind: str
    stage: int
    microbatch: int


#: What a device runs in an iteration, in order.
Order: TypeAlias = Sequence[Slot]


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """The stages of a synchronous pipeline in a row, each on the device it is given.

    A stage without an I or W (or with a fused B, which stands under I) has slots of
    no duration and without an op there, so that every method can speak of all three.

    Attributes
    ----------
    devices : tuple of DeviceId
        The device of each stage.
    ops, ticks : mapping of kind to tuples
        Ids and durations by kind F, I, W, then stage, then microbatch.
    updates : tuple of OpId or None
        U of each stage.
    down, up : tuple of int
        Least ticks from the end of F at stage s to F at s + 1, and from the end of I
        at stage s + 1 to I at s.
    """

    graph: Graph
    microbatches: int
    devices: tuple[DeviceId, ...]
    ops: Mapping[str, _Ids]
    ticks: Mapping[str, _Ticks]
    updates: tuple[OpId | None, ...]
    down: tuple[int, ...]
    up: tuple[int, ...]

    @property
    def num_stages(self) -> int:
        """Stages, several of which may share a device."""
        return len(self.devices)

    @cached_property
    def stages_on(self) -> Mapping[DeviceId, tuple[int, ...]]:
        """Stages of each device that has any, in the order of first use."""
        found: dict[DeviceId, tuple[int, ...]] = {}
        for stage, device in enumerate(self.devices):
            found[device] = (*found.get(device, ()), stage)
        return found

    @cached_property
    def placed(self) -> PlacedGraph:
        """The graph as numbered arcs, every op on the device of its stage."""
        homes = {op.id: self.graph.allowed(op.id)[0] for op in self.graph.ops}
        return PlacedGraph.of(self.graph, homes)

    @cached_property
    def digest(self) -> str:
        """Digest of the graph's document."""
        return graph_digest(self.graph)

    def op(self, slot: Slot) -> OpId | None:
        """Return the op of a slot; None if the stage has none of that kind."""
        return self.ops[slot.kind][slot.stage][slot.microbatch]

    def duration(self, slot: Slot) -> int:
        """Ticks of a slot, 0 without an op."""
        return self.ticks[slot.kind][slot.stage][slot.microbatch]

    def update_ticks(self, stage: int) -> int:
        """Ticks of a stage's U, 0 without one."""
        update = self.updates[stage]
        if update is None:
            return 0
        return self.graph.duration(update, self.devices[stage])

    def source(self, slot: Slot) -> Slot | None:
        """Return what a slot waits for: the same microbatch's step before it."""
        kind, stage, m = slot
        if kind == "F":
            return Slot("F", stage - 1, m) if stage else None
        if kind == "W":
            return Slot("I", stage, m)
        last = stage == self.num_stages - 1
        return Slot("F", stage, m) if last else Slot("I", stage + 1, m)

    def wait(self, slot: Slot) -> int:
        """Least ticks from the end of a slot's source to its start."""
        if slot.kind == "F":
            return self.down[slot.stage - 1] if slot.stage else 0
        if slot.kind == "I" and slot.stage < self.num_stages - 1:
            return self.up[slot.stage]
        return 0


def pipeline_of(graph: Graph) -> Pipeline:
    """Read the pipeline from labels, devices and edges.

    Raises
    ------
    UnsupportedError
        The graph is no synchronous pipeline: ops without stage, microbatch or device
        of their own, stages that are not chained, or named delays.
    """
    if graph.delays:
        raise _refusal("its delays are not fixed")
    reader = _Reader(graph)
    stages = range(reader.num_stages)
    return Pipeline(
        graph=graph,
        microbatches=reader.microbatches,
        devices=tuple(reader.device(s) for s in stages),
        ops={kind: tuple(reader.row(kind, s) for s in stages) for kind in "FIW"},
        ticks={kind: tuple(reader.ticks(kind, s) for s in stages) for kind in "FIW"},
        updates=tuple(reader.updates.get(s) for s in stages),
        down=tuple(reader.down(s) for s in stages[:-1]),
        up=tuple(reader.up(s) for s in stages[:-1]),
    )


def _refusal(reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"this is no synchronous pipeline on fixed stages: {reason}"
    )


class _Reader:
    """Sorts ops by kind, stage and microbatch, and edges by the steps they join."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.updates: dict[int, OpId] = {}
        self._devices: dict[int, DeviceId] = {}
        self._found: dict[Slot, OpId] = {}
        for op in graph.ops:
            self._sort(op)
        if not self._found:
            raise _refusal("it has no ops of stages and microbatches")
        self.num_stages = 1 + max(slot.stage for slot in self._found)
        self.microbatches = 1 + max(slot.microbatch for slot in self._found)
        self._kinds: defaultdict[int, set[str]] = defaultdict(set)
        for slot in self._found:
            self._kinds[slot.stage].add(slot.kind)
        self._check_whole()
        self._links = self._read_links()
        self._check_turn()

    def _sort(self, op: Op) -> None:
        if op.kind not in ("F", "I", "W", "B", "U") or op.stage is None:
            raise _refusal(f"op {op.id!r} is no F, I, W, B or U of a stage")
        allowed = self._graph.allowed(op.id)
        if len(allowed) != 1:
            raise _refusal(f"op {op.id!r} may choose its device")
        if self._devices.setdefault(op.stage, allowed[0]) != allowed[0]:
            raise _refusal(f"stage {op.stage} is on several devices")
        if op.kind == "U":
            taken = self.updates.setdefault(op.stage, op.id)
        elif op.microbatch is None:
            raise _refusal(f"op {op.id!r} belongs to no microbatch")
        else:
            kind = "I" if op.kind == "B" else op.kind
            taken = self._found.setdefault(Slot(kind, op.stage, op.microbatch), op.id)
        if taken != op.id:
            raise _refusal(f"ops {taken!r} and {op.id!r} are the same step")

    def _check_whole(self) -> None:
        for stage in range(self.num_stages):
            kinds = self._kinds[stage]
            if "F" not in kinds:
                raise _refusal(f"stage {stage} has no F")
            for kind in kinds:
                for m in range(self.microbatches):
                    if Slot(kind, stage, m) not in self._found:
                        raise _refusal(f"{kind} of stage {stage} lacks microbatch {m}")

    def _check_turn(self) -> None:
        """Check that the last stage's backward pass follows its F."""
        last = self.num_stages - 1
        kind = self._backward(last)
        if kind is not None:
            self._least("F", last, kind, last)

    def device(self, stage: int) -> DeviceId:
        return self._devices[stage]

    def row(self, kind: str, stage: int) -> tuple[OpId | None, ...]:
        slots = (Slot(kind, stage, m) for m in range(self.microbatches))
        return tuple(self._found.get(slot) for slot in slots)

    def ticks(self, kind: str, stage: int) -> tuple[int, ...]:
        device = self._devices[stage]
        ops = self.row(kind, stage)
        return tuple(0 if o is None else self._graph.duration(o, device) for o in ops)

    # -- edges -----------------------------------------------------------------
    def _read_links(self) -> dict[tuple[Slot, Slot], int]:
        """Ticks between steps that are joined, from end to start, the most of each."""
        slot_of = {op: slot for slot, op in self._found.items()}
        links: dict[tuple[Slot, Slot], int] = {}
        for edge in self._graph.edges:
            src, dst = slot_of.get(edge.src), slot_of.get(edge.dst)
            if src is None or dst is None or edge.delay != 0:
                continue
            pair = (src, dst)
            links[pair] = max(links.get(pair, 0), self._wait(edge, src, dst))
        return links

    def _wait(self, edge: Edge, src: Slot, dst: Slot) -> int:
        home, away = self._devices[src.stage], self._devices[dst.stage]
        return edge.lag + self._graph.transfer_ticks(edge.tensor, home, away)

    def _backward(self, stage: int) -> str | None:
        """First step of a stage's backward pass; None if it has none."""
        kinds = self._kinds[stage]
        return next((kind for kind in "IW" if kind in kinds), None)

    def down(self, stage: int) -> int:
        return self._least("F", stage, "F", stage + 1)

    def up(self, stage: int) -> int:
        kind = self._backward(stage)
        if kind is None:
            return 0
        if "I" not in self._kinds[stage + 1]:
            raise _refusal(f"stage {stage + 1} has no I for stage {stage}")
        return self._least("I", stage + 1, kind, stage)

    def _least(self, kind: str, stage: int, next_kind: str, next_stage: int) -> int:
        return min(
            self._link(Slot(kind, stage, m), Slot(next_kind, next_stage, m))
            for m in range(self.microbatches)
        )

    def _link(self, src: Slot, dst: Slot) -> int:
        if (src, dst) not in self._links:
            text = f"no edge from {self._found[src]!r} to {self._found[dst]!r}"
            raise _refusal(text)
        return self._links[src, dst]
