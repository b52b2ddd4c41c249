"""Stages, pins and colocation as allowed devices and groups of a graph's ops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lpsched.core.graph import DeviceId, Graph, Op, OpId
from lpsched.core.instance import Placement
from lpsched.errors import Fault
from lpsched.network.stages import arranged, membership, stage_lists

__all__ = ["placed"]


def placed(
    graph: Graph,
    placement: Placement,
    *,
    layers: Mapping[str, Iterable[Op]] | None = None,
) -> tuple[Graph, list[Fault]]:
    """Restrict the ops of a graph to the devices that a placement allows.

    Pins and groups name layers, else ops; a pin may name a stage by its number. With
    ``rule: stages`` every stage runs on its pinned device, else on that of the
    arrangement. Ops that occupy no device are passed over.

    Parameters
    ----------
    placement : Placement
        Its stages, if any, are listed.
    layers : mapping of str to iterable of Op, optional
        The ops of each layer; by default those that bear its name.
    """
    placer = _Placer(graph, placement, _by_layer(graph) if layers is None else layers)
    placer.pin_stages()
    placer.pin_names()
    placer.group()
    return placer.placed_graph(), placer.faults


def _by_layer(graph: Graph) -> dict[str, list[Op]]:
    found: dict[str, list[Op]] = {}
    for op in graph.ops:
        if op.layer is not None:
            found.setdefault(op.layer, []).append(op)
    return found


class _Placer:
    """Resolves names to ops, and keeps what each op is told and every fault."""

    def __init__(
        self, graph: Graph, placement: Placement, layers: Mapping[str, Iterable[Op]]
    ) -> None:
        self.faults: list[Fault] = []
        self._graph = graph
        self._placement = placement
        self._layers = {name: tuple(ops) for name, ops in layers.items()}
        self._lists = stage_lists(placement) or ()
        self._stage_of, faults = membership(
            self._lists, self._layers, "placement.stages"
        )
        self.faults += faults
        self._device_of: dict[OpId, DeviceId] = {}
        self._groups: list[tuple[OpId, ...]] = []

    def pin_stages(self) -> None:
        """Put every stage on one device, where the rule says so."""
        if self._placement.rule != "stages":
            return
        for name in self._layers:
            if name not in self._stage_of:
                text = f"the layer {name!r} is in no stage"
                self.faults.append(Fault("placement.stages", text))
        count, ids = len(self._lists), self._graph.device_ids
        devices = arranged(count, ids, self._placement.arrangement)
        for stage, (names, device) in enumerate(zip(self._lists, devices, strict=True)):
            pinned = self._placement.pins.get(str(stage))
            mine = device if pinned is None or self._is_layer(stage) else pinned
            ops = [op for name in names for op in self._layers.get(name, ())]
            self._pin(ops, mine, f"placement.pins.{stage}")

    def pin_names(self) -> None:
        """Put the layers and ops that are pinned by name on their devices."""
        stages = {str(i) for i in range(len(self._lists)) if not self._is_layer(i)}
        for name, device in self._placement.pins.items():
            if name not in stages or self._placement.rule != "stages":
                path = f"placement.pins.{name}"
                self._pin(self._ops(name, path), device, path)

    def group(self) -> None:
        """Gather the ops of each group."""
        for i, names in enumerate(self._placement.colocate):
            path = f"placement.colocate[{i}]"
            ops = [
                op.id
                for j, name in enumerate(names)
                for op in self._ops(name, f"{path}[{j}]")
                if self._graph.occupies_device(op.id)
            ]
            self._groups.append(tuple(dict.fromkeys(ops)))

    def placed_graph(self) -> Graph:
        """Return the graph with all of it."""
        ops = tuple(self._placed_op(op) for op in self._graph.ops)
        colocate = (*self._graph.colocate, *(g for g in self._groups if len(g) > 1))
        if ops == self._graph.ops and colocate == self._graph.colocate:
            return self._graph
        return self._graph.replace(ops=ops, colocate=colocate)

    def _placed_op(self, op: Op) -> Op:
        device = self._device_of.get(op.id)
        return replace(
            op,
            devices=op.devices if device is None else (device,),
            stage=self._stage_of.get(op.layer or "", op.stage),
        )

    def _is_layer(self, stage: int) -> bool:
        return str(stage) in self._layers

    def _ops(self, name: str, path: str) -> Sequence[Op]:
        if name in self._layers:
            return self._layers[name]
        op = self._graph.op_by_id.get(OpId(name))
        if op is not None:
            return (op,)
        self.faults.append(Fault(path, f"no layer, op or stage has the name {name!r}"))
        return ()

    def _pin(self, ops: Sequence[Op], device: DeviceId, path: str) -> None:
        """Tell ops their device; complain once if they cannot be there."""
        if device not in self._graph.device_ids:
            known = ", ".join(self._graph.device_ids[:8])
            text = f"unknown device {device!r}; known: {known}"
            self.faults.append(Fault(path, text))
            return
        for op in ops:
            allowed = self._graph.allowed(op.id)
            before = self._device_of.setdefault(op.id, device)
            if not allowed:
                del self._device_of[op.id]
            elif device not in allowed:
                text = f"the op {op.id!r} may not run on {device!r}"
                self.faults.append(Fault(path, text))
                return
            elif before != device:
                text = f"the op {op.id!r} is on {before!r} by its stage or another pin"
                self.faults.append(Fault(path, text))
                return
