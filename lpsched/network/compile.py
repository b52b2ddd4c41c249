"""From a network or an instance to the graph that is scheduled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from lpsched.core.graph import Device, DeviceId, Graph, Op
from lpsched.core.instance import (
    Instance,
    Processor,
    Split,
    Staleness,
    Training,
)
from lpsched.core.limits import MAX_DEVICES, MAX_INTEGER
from lpsched.core.network import Network
from lpsched.errors import Fault, InstanceError
from lpsched.network.blueprint import Blueprint, blueprint, layer_ops
from lpsched.network.costs import layer_costs, size_unit_of, time_unit_of
from lpsched.network.placement import placed
from lpsched.network.shapes import layer_paths
from lpsched.network.stages import found_stages, membership, stage_lists
from lpsched.network.staleness import delay_ranges
from lpsched.network.synchronous import order_cycle, synchronous_graph, units_of
from lpsched.network.tensors import learning_layers, tensors_of
from lpsched.network.ticks import Rounding, ticks_of

__all__ = ["Compiled", "compile_instance", "compile_network"]

#: More ops than this are taken for a mistake.
MAX_OPS = 1_000_000

_WHOLE = Split(input_grad=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A graph and how its integers came about.

    Attributes
    ----------
    rounding : Rounding or None
        None for an instance of a graph, which has its integers already.
    notes : tuple of str
        What people should know of stages that were found, in sentences.
    stages : tuple of tuple of str, or None
        The layers of each stage, given or found, in topological order.
    """

    graph: Graph
    rounding: Rounding | None = None
    notes: tuple[str, ...] = ()
    stages: tuple[tuple[str, ...], ...] | None = None


def compile_network(network: Network, *, devices: int) -> Compiled:
    """Compile a bare network for so many devices alike.

    Asynchronous training, I in two parts, F and W whole, delays without upper limit,
    no transfer limits; MACs as cost where the layers have types (see
    `lpsched.network.costs.cost_model_of`).

    Raises
    ------
    InstanceError
        With every fault of the shapes and costs.
    UnsupportedError
        The network needs something that this version does not build.

    Examples
    --------
    >>> from lpsched.network import load_shipped
    >>> compile_network(load_shipped("tiny-mlp"), devices=2).graph.time_unit
    'MAC'
    """
    if not 1 <= devices <= MAX_DEVICES:
        text = f"expected an integer from 1 to {MAX_DEVICES}, got {devices}"
        raise InstanceError([Fault("devices", text)])
    processors = tuple(Processor(id=DeviceId(f"d{i}")) for i in range(devices))
    instance = Instance(name=network.name, network=network, devices=processors)
    return _compile(instance, network, prefix="")


def compile_instance(instance: Instance) -> Compiled:
    """Compile an instance: its network under its regime, or its graph as placed.

    Raises
    ------
    InstanceError
        With every fault of shapes, costs, staleness and placement.
    UnsupportedError
        The instance needs something that this version does not build.
    """
    if instance.network is not None:
        return _compile(instance, instance.network, prefix="network.")
    if instance.graph is None:
        raise InstanceError([Fault("", "expected either `network` or `graph`")])
    given = instance.graph
    placement, notes, stage_faults = found_stages(
        instance.placement, ((op, 1) for op in given.ops), given.device_ids
    )
    graph, faults = placed(given, placement)
    if stage_faults or faults:
        raise InstanceError([*stage_faults, *faults])
    return Compiled(graph=graph, notes=tuple(notes))


def _compile(instance: Instance, network: Network, *, prefix: str) -> Compiled:
    """Compile, gathering faults; `prefix` leads from the file to its network."""
    training = instance.training
    regime_faults = list(_regime_faults(training))
    if regime_faults:
        raise InstanceError(regime_faults)
    plans, rounding, faults = _plans(instance, network)
    faults += _tie_faults(network, training)
    faults += _delta_faults(network, plans[0], training)
    placement, notes, stage_faults = found_stages(
        instance.placement,
        _iteration(plans, instance),
        [device.id for device in instance.devices],
    )
    if placement.stages != instance.placement.stages and _branches(network):
        notes.append(
            "the layers branch, and stages were cut in the file's order of them; in"
            " another one their loads may come out more even"
        )
    frame = Graph(
        name=instance.name,
        devices=tuple(Device(id=d.id, memory=d.memory) for d in instance.devices),
        ops=(),
        link=instance.link,
        links=instance.links,
        flush=training.flush,
        time_unit=rounding.time.text,
        size_unit=rounding.size.text,
    )
    instance = replace(instance, placement=placement)
    if training.mode == "synchronous":
        graph, graph_faults = _synchronous(frame, plans, instance)
    else:
        graph, graph_faults = _asynchronous(frame, plans[0], instance)
    faults += _size_faults(graph)
    faults = [Fault(prefix + fault.path, fault.message) for fault in faults]
    faults += [*stage_faults, *graph_faults, *_total_faults(graph)]
    if faults:
        raise InstanceError(faults)
    return Compiled(
        graph=graph,
        rounding=rounding,
        notes=tuple(notes),
        stages=_ordered_stages(network, stage_lists(placement)),
    )


def _branches(network: Network) -> bool:
    """Whether a layer has another predecessor than the layer above it."""
    layers = network.ordered_layers
    return any(set(b.inputs) - {a.name} for a, b in pairwise(layers))


def _ordered_stages(
    network: Network, lists: Sequence[Sequence[str]] | None
) -> tuple[tuple[str, ...], ...] | None:
    if lists is None:
        return None
    order = [layer.name for layer in network.ordered_layers]
    return tuple(tuple(n for n in order if n in names) for names in map(set, lists))


def _regime_faults(training: Training) -> Iterator[Fault]:
    """What a synchronous regime needs, and what it has no use for."""
    if training.mode != "synchronous":
        return
    if training.microbatches is None:
        text = "required by `mode: synchronous`, but missing"
        yield Fault("training.microbatches", text)
    if training.split not in (None, _WHOLE):
        text = "a synchronous pipeline runs F, I and W whole: expected 1 part each"
        yield Fault("training.split", text)
    if training.staleness != Staleness():
        text = "goes with `mode: asynchronous`; a synchronous update is never late"
        yield Fault("training.staleness", text)


def _plans(
    instance: Instance, network: Network
) -> tuple[list[Blueprint], Rounding, list[Fault]]:
    """Blueprint of each microbatch, or one for all if none of them differs."""
    model, training = instance.costs, instance.training
    ids = tuple(device.id for device in instance.devices)
    count = training.microbatches if _has_lists(network) else None
    counted = [
        layer_costs(
            network, model, ids, microbatches=training.microbatches, microbatch=m
        )
        for m in range(count or 1)
    ]
    flat = {(m, n): c for m, (costs, _) in enumerate(counted) for n, c in costs.items()}
    ticks, rounding = ticks_of(
        flat,
        model,
        time_unit=time_unit_of(network, model),
        size_unit=size_unit_of(network),
    )
    whole = _WHOLE if training.mode == "synchronous" else Split()
    split, fused = training.split or whole, training.fuse_backward
    plans = []
    for m, (costs, _) in enumerate(counted):
        own = {name: ticks[m, name] for name in costs}
        ops = layer_ops(network, own, split=split, fuse_backward=fused)
        plans.append(blueprint(network, ops, own, saves=model.saves))
    return plans, rounding, list(counted[0][1])


def _has_lists(network: Network) -> bool:
    return any(
        isinstance(cost, tuple)
        for x in network.layers
        for cost in (x.forward, x.input_grad, x.weight_grad)
    )


def _ops(plan: Blueprint) -> list[Op]:
    return [op for x in plan.ops.values() for op in x.ops]


def _iteration(
    plans: Sequence[Blueprint], instance: Instance
) -> Iterator[tuple[Op, int]]:
    """Ops of an iteration, layer after layer, and for how many each stands."""
    times = (instance.training.microbatches or 1) // len(plans)
    for plan in plans:
        for op in map(partial(_on, devices=instance.devices), _ops(plan)):
            yield op, 1 if op.kind == "U" else times


def _asynchronous(
    frame: Graph, plan: Blueprint, instance: Instance
) -> tuple[Graph, list[Fault]]:
    """Draw the graph of one iteration of a minibatch."""
    delays, delay_faults = delay_ranges(
        instance.training.staleness,
        plan.layers,
        learning_layers(plan),
        stage_lists(instance.placement),
    )
    ops = tuple(_on(op, instance.devices) for op in _ops(plan))
    graph = frame.replace(ops=ops, tensors=tensors_of(plan), delays=delays)
    graph, faults = placed(graph, instance.placement)
    return graph, [*delay_faults, *faults]


def _synchronous(
    frame: Graph, plans: Sequence[Blueprint], instance: Instance
) -> tuple[Graph, list[Fault]]:
    """Draw the graph of an iteration of M microbatches; without ops if it cannot be."""
    placement, count = instance.placement, instance.training.microbatches or 1
    layers = [layer.name for layer in plans[0].layers]
    stages = stage_lists(placement)
    if stages is not None:
        stage_of, faults = membership(stages, layers, "placement.stages")
        faults += [
            Fault("placement.stages", f"the layer {name!r} is in no stage")
            for name in layers
            if name not in stage_of
        ]
        if faults:
            return frame, faults
    units = units_of(plans[0], stages)
    if 3 * len(units) * count > MAX_OPS:
        text = f"expected at most {MAX_OPS // (3 * len(units))}, got {count}"
        return frame, [Fault("training.microbatches", text)]
    cycle = order_cycle(plans[0], units)
    if cycle:
        text = f"the stages wait for each other: {' -> '.join((*cycle, cycle[0]))}"
        return frame, [Fault("placement.stages", text)]
    graph, of_layer = synchronous_graph(
        frame, plans, units, instance.devices, microbatches=count
    )
    return placed(graph, placement, layers=of_layer)


def _delta_faults(
    network: Network, plan: Blueprint, training: Training
) -> Iterator[Fault]:
    """Deltas of memory that W cannot make up for, or that nothing would use."""
    paths = layer_paths(network)
    for layer in network.layers:
        memory, ops = plan.ticks[layer.name].memory, plan.ops[layer.name]
        if memory is None:
            continue
        path = f"{paths[layer.name]}.memory"
        left = memory.forward + (memory.input_grad if ops.input_grad else 0)
        if training.mode != "synchronous":
            yield Fault(path, "deltas go with `training.mode: synchronous`")
        elif left < 0:
            text = f"I gives back {-memory.input_grad}, F takes {memory.forward}"
            yield Fault(path, text)
        elif left > 0 and not ops.weight_grad:
            text = f"W would give back {left}, but the layer has no W"
            yield Fault(path, text)


def _on(op: Op, devices: Sequence[Processor]) -> Op:
    """Divide an op's duration by each device's speed, rounded up.

    A duration per device is taken as measured there: no speed divides it.
    """
    ticks = op.duration
    if not isinstance(ticks, int) or all(device.speed == 1 for device in devices):
        return op
    on_device = {device.id: -int(-ticks / device.speed // 1) for device in devices}
    same = len(set(on_device.values())) == 1
    return replace(op, duration=on_device[devices[0].id] if same else on_device)


def _tie_faults(network: Network, training: Training) -> list[Fault]:
    """Refuse a B that waits for a weight gradient which waits for its own result.

    B of a layer makes the gradient for its ancestors; if one of these shares its
    weights, B would also wait for that ancestor's B.
    """
    if not training.fuse_backward:
        return []
    faults = []
    for layer in network.layers:
        owner = network.layer_by_name[layer.shares or layer.name]
        if owner is layer or owner.update is not None:
            continue
        if owner.name in _descendants(network, layer.name):
            text = (
                f"with `fuse_backward`, {owner.name!r} cannot own the weights of a "
                "layer before it; let the earlier layer own them or give an `update`"
            )
            faults.append(Fault(f"{layer_paths(network)[layer.name]}.shares", text))
    return faults


def _descendants(network: Network, name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = set(network.successors[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def _size_faults(graph: Graph) -> list[Fault]:
    """Refuse a tensor that no file may state."""
    largest = max((t.size for t in graph.tensors), default=0)
    if largest <= MAX_INTEGER:
        return []
    text = f"a tensor has the size {largest}, more than {MAX_INTEGER}"
    return [Fault("layers", f"{text}; use a larger `costs.size_tick`")]


def _total_faults(graph: Graph) -> list[Fault]:
    """Sums must stay exact in 64 bits, as in a graph that is read."""
    durations = [op.duration for op in graph.ops]
    total = sum(d if isinstance(d, int) else max(d.values()) for d in durations)
    if total <= MAX_INTEGER:
        return []
    text = f"the durations sum to {total} ticks, more than {MAX_INTEGER}"
    return [Fault("costs.tick", f"{text}; use a longer tick")]
