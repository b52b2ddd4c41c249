"""From a network or an instance to the graph that is scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lpsched.core.graph import Device, DeviceId, Graph, Op
from lpsched.core.instance import Instance, Processor, Split, Training
from lpsched.core.limits import MAX_DEVICES, MAX_INTEGER
from lpsched.core.network import Network
from lpsched.errors import Fault, InstanceError, UnsupportedError
from lpsched.network.blueprint import blueprint, layer_ops
from lpsched.network.costs import MAC, cost_model_of, layer_costs, size_unit_of
from lpsched.network.placement import placed
from lpsched.network.shapes import layer_paths
from lpsched.network.stages import stage_lists
from lpsched.network.staleness import delay_ranges
from lpsched.network.tensors import learning_layers, tensors_of
from lpsched.network.ticks import Rounding, ticks_of

__all__ = ["Compiled", "compile_instance", "compile_network"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A graph and how its integers came about.

    `rounding` is None for an instance of a graph, which has its integers already.
    """

    graph: Graph
    rounding: Rounding | None = None


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
    graph, faults = placed(instance.graph, instance.placement)
    if faults:
        raise InstanceError(faults)
    return Compiled(graph=graph)


def _compile(instance: Instance, network: Network, *, prefix: str) -> Compiled:
    """Compile, gathering faults; `prefix` leads from the file to its network."""
    _check_supported(instance, network)
    model, training = instance.costs, instance.training
    ids = tuple(device.id for device in instance.devices)
    costs, cost_faults = layer_costs(network, model, ids)
    counted = cost_model_of(network, model) == "macs"
    ticks, rounding = ticks_of(
        costs,
        model,
        time_unit=MAC if counted else network.time_unit or "tick",
        size_unit=size_unit_of(network),
    )
    split = training.split or Split()
    ops = layer_ops(network, ticks, split=split, fuse_backward=training.fuse_backward)
    plan = blueprint(network, ops, ticks, saves=model.saves)
    learning = learning_layers(plan)
    stages = stage_lists(instance.placement)
    delays, delay_faults = delay_ranges(
        training.staleness, plan.layers, learning, stages
    )
    graph = Graph(
        name=instance.name,
        devices=tuple(Device(id=d.id, memory=d.memory) for d in instance.devices),
        ops=tuple(_on(op, instance.devices) for x in ops.values() for op in x.ops),
        tensors=tensors_of(plan),
        delays=delays,
        link=instance.link,
        links=instance.links,
        flush=training.flush,
        time_unit=rounding.time.text,
        size_unit=rounding.size.text,
    )
    graph, placement_faults = placed(graph, instance.placement)
    inner = [*cost_faults, *_tie_faults(network, training), *_size_faults(graph)]
    faults = [Fault(prefix + fault.path, fault.message) for fault in inner]
    faults += [*delay_faults, *placement_faults, *_total_faults(graph)]
    if faults:
        raise InstanceError(faults)
    return Compiled(graph=graph, rounding=rounding)


def _check_supported(instance: Instance, network: Network) -> None:
    if instance.training.mode == "synchronous":
        text = "training.mode: synchronous pipelines are not built yet"
        raise UnsupportedError(f"{text}; this version schedules asynchronous training")
    for layer in network.layers:
        if layer.memory is not None:
            text = f"layer {layer.name!r}: `memory` deltas go with synchronous"
            raise UnsupportedError(f"{text} pipelines, which are not built yet")


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
