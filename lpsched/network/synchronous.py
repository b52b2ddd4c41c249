"""The training graph of a synchronous pipeline: M microbatches, then one update.

Follows formats.md, section "The training graph of a network (synchronous)". A layer,
or a stage where stages are given, is a *unit*: each op of a unit runs those of its
layers in a row, so that the graph's tensors are those of the layers seen from outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from lpsched.core.graph import (
    Consumer,
    Dependence,
    Graph,
    Op,
    OpId,
    Resident,
    Tensor,
    TensorId,
)
from lpsched.core.instance import Processor
from lpsched.core.order import topological_order
from lpsched.network.blueprint import Blueprint
from lpsched.network.tensors import data_tensors
from lpsched.network.ticks import Ticks

__all__ = ["Unit", "order_cycle", "synchronous_graph", "units_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What has one F, I and W a microbatch: a layer, or a stage of several.

    Attributes
    ----------
    name : str
        The layer's name or the stage's number, as the ids of the ops have it.
    layers : tuple of str
        Its layers, in topological order.
    stage : int or None
        The stage's number; None for a layer.
    """

    name: str
    layers: tuple[str, ...]
    stage: int | None = None


class _Step(NamedTuple):
    """An op of a unit, whatever the microbatch."""

    kind: str
    unit: str

    @property
    def name(self) -> str:
        return self.kind + self.unit

    def at(self, microbatch: int) -> OpId:
        return OpId(f"{self.name}@{microbatch}")


class _Flow(NamedTuple):
    """A tensor of each microbatch, by the steps that make and use it."""

    name: str
    size: int
    maker: _Step
    users: tuple[_Step, ...]


def units_of(
    plan: Blueprint, stages: Sequence[Sequence[str]] | None
) -> tuple[Unit, ...]:
    """Return the stages as units; without stages, the layers."""
    order = [layer.name for layer in plan.layers]
    if stages is None:
        return tuple(Unit(name=name, layers=(name,)) for name in order)
    return tuple(
        Unit(name=str(s), layers=tuple(n for n in order if n in names), stage=s)
        for s, names in enumerate(map(set, stages))
    )


def order_cycle(plan: Blueprint, units: Sequence[Unit]) -> tuple[str, ...]:
    """Steps of a microbatch that wait for each other in a cycle; empty if none."""
    draft = _Draft([plan], units, (), 0)
    before: dict[str, list[str]] = {
        _Step(kind, unit.name).name: [] for unit in units for kind in draft.kinds(unit)
    }
    for flow in draft.flows:
        for user in flow.users:
            before[user.name].append(flow.maker.name)
    return topological_order(before)[1]


def synchronous_graph(
    frame: Graph,
    plans: Sequence[Blueprint],
    units: Sequence[Unit],
    processors: Sequence[Processor],
    *,
    microbatches: int,
) -> tuple[Graph, Mapping[str, tuple[Op, ...]]]:
    """Draw the graph of one iteration of M microbatches.

    Within a unit I follows F and W follows I where stages are given or deltas of
    memory are stated (both mean this order), even if no tensor says so. The gradient
    of weights that another unit owns is accumulated at home and sent once, by the
    last microbatch's W.

    Parameters
    ----------
    frame : Graph
        The platform and the units of measurement, without ops.
    plans : sequence of Blueprint
        One for each microbatch, or a single one for all; no op is in parts.
    units : sequence of Unit
        Hold every layer once and have no `order_cycle`.
    processors : sequence of Processor
        Their speeds divide durations, rounded up once an op.

    Returns
    -------
    graph : Graph
    ops_of_layer : mapping of str to tuple of Op
        The ops that hold each layer's work.
    """
    draft = _Draft(plans, units, processors, microbatches)
    ops = {unit.name: tuple(draft.ops(unit)) for unit in units}
    graph = frame.replace(
        ops=tuple(op for unit in units for op in ops[unit.name]),
        tensors=(*draft.tensors(), *draft.weights()),
        dependences=(*draft.order_within(), *draft.order_before_update()),
        colocate=tuple(draft.colocate()),
        residents=tuple(draft.accumulators()),
    )
    return graph, {name: ops[unit.name] for unit in units for name in unit.layers}


class _Draft:
    """The steps of every unit, and what is drawn between them."""

    def __init__(
        self,
        plans: Sequence[Blueprint],
        units: Sequence[Unit],
        processors: Sequence[Processor],
        microbatches: int,
    ) -> None:
        self._plans = plans
        self._plan = plans[0]
        self._units = units
        self._processors = processors
        self._microbatches = range(microbatches)
        self._unit_of = {name: unit.name for unit in units for name in unit.layers}
        self.flows = (*self._data(), *self._deltas())

    # -- ops -------------------------------------------------------------------
    def kinds(self, unit: Unit) -> tuple[str, ...]:
        """F, and I and W (or B for both) where a layer of the unit has them."""
        found = {op.kind for n in unit.layers for op in self._plan.ops[n].ops}
        return tuple(kind for kind in "FIWB" if kind in found)

    def ops(self, unit: Unit) -> Iterator[Op]:
        """All ops of a unit: its F, its I, its W (or its B) and its U."""
        for kind in self.kinds(unit):
            durations = [self._duration(unit, kind, plan) for plan in self._plans]
            for m in self._microbatches:
                ticks = durations[m] if len(durations) > 1 else durations[0]
                yield self._op(unit, _Step(kind, unit.name).at(m), kind, ticks, m)
        if self._learning(unit):
            ticks = self._duration(unit, "U", self._plan)
            yield self._op(unit, self._update(unit.name), "U", ticks, None)

    @staticmethod
    def _op(unit: Unit, name: OpId, kind: str, ticks: Ticks, m: int | None) -> Op:
        return Op(
            id=name,
            kind=kind,
            duration=ticks,
            layer=unit.name if unit.stage is None else None,
            stage=unit.stage,
            microbatch=m,
        )

    def _duration(self, unit: Unit, kind: str, plan: Blueprint) -> Ticks:
        """Sum the ticks of the layers; those measured on a device stand as they are."""
        ticks = [
            op.duration
            for n in unit.layers
            for op in plan.ops[n].ops
            if op.kind == kind
        ]
        common = sum(t for t in ticks if isinstance(t, int))
        measured = [t for t in ticks if not isinstance(t, int)]
        if not measured and all(p.speed == 1 for p in self._processors):
            return common
        on_device = {
            p.id: -int(-common / p.speed // 1) + sum(t[p.id] for t in measured)
            for p in self._processors
        }
        alike = len(set(on_device.values())) == 1
        return next(iter(on_device.values())) if alike else on_device

    def _learning(self, unit: Unit) -> tuple[str, ...]:
        """Layers of a unit that own weights and learn."""
        layers = [layer for layer in self._plan.layers if layer.name in unit.layers]
        return tuple(
            layer.name
            for layer in layers
            if layer.shares is None and self._plan.ops[layer.name].weight_grad
        )

    @staticmethod
    def _update(unit: str) -> OpId:
        return OpId(f"U{unit}")

    # -- tensors of a microbatch -----------------------------------------------
    def _step(self, op: Op) -> _Step:
        return _Step(op.kind, self._unit_of[op.layer or ""])

    def _role(self, ops: Sequence[Op]) -> _Step | None:
        return self._step(ops[0]) if ops else None

    def _data(self) -> Iterator[_Flow]:
        """Activations and gradients, as far as they leave the op that makes them.

        What a layer with stated deltas saves is counted there, and not here.
        """
        ops = {op.id: op for x in self._plan.ops.values() for op in x.ops}
        for tensor in data_tensors(self._plan):
            maker = ops[tensor.producer]
            users = [ops[use.op] for use in tensor.consumers]
            steps = [self._step(u) for u in users if not self._is_counted(maker, u)]
            outside = dict.fromkeys(s for s in steps if s != self._step(maker))
            if outside or not users:
                step = self._step(maker)
                yield _Flow(tensor.id, tensor.size, step, tuple(outside))

    def _is_counted(self, maker: Op, user: Op) -> bool:
        """Whether a use only saves something that the user's deltas count."""
        name = user.layer or ""
        if user.kind == "F" or self._plan.ticks[name].memory is None:
            return False
        saved = maker.kind == "F"
        return saved or (user.kind == "W" and bool(self._plan.ops[name].input_grad))

    def _deltas(self) -> Iterator[_Flow]:
        """Stated deltas F +a, I +b, W -(a + b) as tensors.

        b < 0: -b from F to I and a + b from F to W; else a from F to W and b from I
        to W. Without I, W gives all of a back.
        """
        for layer in self._plan.layers:
            memory = self._plan.ticks[layer.name].memory
            if memory is None:
                continue
            own = self._plan.ops[layer.name]
            forward = self._step(own.forward[0])
            back, weight = self._role(own.input_grad), self._role(own.weight_grad)
            a, b = memory.forward, memory.input_grad if back else 0
            yield from self._held(f"h{layer.name}.I", -b, forward, back)
            yield from self._held(f"h{layer.name}.W", a + min(b, 0), forward, weight)
            if back is not None:
                yield from self._held(f"h{layer.name}.IW", b, back, weight)

    @staticmethod
    def _held(
        name: str, size: int, maker: _Step, user: _Step | None
    ) -> Iterator[_Flow]:
        if size > 0:
            users = () if user is None or user == maker else (user,)
            yield _Flow(name, size, maker, users)

    def tensors(self) -> Iterator[Tensor]:
        """Draw every flow once for each microbatch."""
        for flow in self.flows:
            for m in self._microbatches:
                yield Tensor(
                    id=TensorId(f"{flow.name}@{m}"),
                    size=flow.size,
                    producer=flow.maker.at(m),
                    consumers=tuple(Consumer(op=user.at(m)) for user in flow.users),
                )

    def order_within(self) -> Iterator[Dependence]:
        """F, I, W of a unit in this order, where no tensor says so."""
        told = {(flow.maker, user) for flow in self.flows for user in flow.users}
        ticks = self._plan.ticks
        for unit in self._units:
            if unit.stage is None and ticks[unit.name].memory is None:
                continue
            steps = [_Step(kind, unit.name) for kind in self.kinds(unit)]
            for pair in pairwise(steps):
                if pair not in told:
                    yield from self._dependences(*pair)

    def _dependences(self, before: _Step, after: _Step) -> Iterator[Dependence]:
        for m in self._microbatches:
            yield Dependence(src=before.at(m), dst=after.at(m))

    # -- weights ---------------------------------------------------------------
    def _gradients(self) -> Iterator[tuple[str, _Step, str]]:
        """Each layer with a W: its name, that step, and the owner of its weights."""
        for layer in self._plan.layers:
            weight = self._role(self._plan.ops[layer.name].weight_grad)
            if weight is not None:
                yield layer.name, weight, layer.shares or layer.name

    def order_before_update(self) -> Iterator[Dependence]:
        """U after every W; the last W of another unit sends its sum (`weights`)."""
        pairs = [(w, self._unit_of[owner]) for _, w, owner in self._gradients()]
        for weight, unit in dict.fromkeys(pairs):
            told = self._microbatches[-1:] if weight.unit != unit else ()
            for m in self._microbatches:
                if m not in told:
                    yield Dependence(src=weight.at(m), dst=self._update(unit))

    def weights(self) -> Iterator[Tensor]:
        """``w{l}`` for the next iteration, and ``dw{l}`` where U is elsewhere."""
        for name, weight, owner in self._gradients():
            home = self._unit_of[owner]
            if weight.unit != home:
                yield Tensor(
                    id=TensorId(f"dw{name}"),
                    size=self._plan.ticks[name].parameters,
                    producer=weight.at(self._microbatches[-1]),
                    consumers=(Consumer(op=self._update(home)),),
                )
        for unit in self._units:
            for name in self._learning(unit):
                yield self._weight(name, self._update(unit.name))

    def _weight(self, layer: str, update: OpId) -> Tensor:
        """``w{l}``: made by U; every F and I that uses it does so one iteration on."""
        layers = (layer, *self._plan.tied.get(layer, ()))
        users = [self._plan.ops[name] for name in layers]
        steps = [self._step(op) for x in users for op in (*x.forward, *x.input_grad)]
        readers = [s.at(m) for s in dict.fromkeys(steps) for m in self._microbatches]
        return Tensor(
            id=TensorId(f"w{layer}"),
            size=self._plan.ticks[layer].parameters,
            producer=update,
            consumers=tuple(Consumer(op=op, delay=1) for op in (*readers, update)),
        )

    def accumulators(self) -> Iterator[Resident]:
        """Room for the sum of each layer's weight gradients, where its W runs."""
        seen = set()
        for name, weight, owner in self._gradients():
            size = self._plan.ticks[name].parameters
            if size > 0 and (weight, owner) not in seen:
                seen.add((weight, owner))
                ops = tuple(weight.at(m) for m in self._microbatches)
                yield Resident(size=size, ops=ops)

    def colocate(self) -> Iterator[tuple[OpId, ...]]:
        """A stage's ops share a device; else every microbatch of an op does.

        The gradients of W are summed where they are used, so U goes with W.
        """
        for unit in self._units:
            steps = [_Step(kind, unit.name) for kind in self.kinds(unit)]
            groups = [tuple(s.at(m) for m in self._microbatches) for s in steps]
            if self._learning(unit):
                groups[-1] = (*groups[-1], self._update(unit.name))
            if unit.stage is not None:
                groups = [tuple(op for group in groups for op in group)]
            yield from (group for group in groups if len(group) > 1)
