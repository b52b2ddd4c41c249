"""LayerPipe's delays derived: delayed gradients, then one cut after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lpsched.analysis.critical_path import clock_period
from lpsched.analysis.delays import fix_delays
from lpsched.analysis.iteration_bound import iteration_bound
from lpsched.analysis.layers import Layer, layers_of
from lpsched.analysis.registers import num_registers
from lpsched.analysis.retiming import apply_retiming, cutset_retiming
from lpsched.core.graph import Delay, DelayName, Graph, OpId
from lpsched.core.schedule import Schedule
from lpsched.errors import Fault, InstanceError, UnsupportedError

__all__ = [
    "Derivation",
    "Step",
    "derive_layerpipe",
    "layerpipe_delays",
    "stages_of_groups",
    "stages_of_schedule",
]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One graph of the derivation and how it follows from the one before.

    Attributes
    ----------
    title : str
        What has been done.
    graph : Graph
        With fixed delays.
    moved : mapping of OpId to int
        The retiming that leads here from the step before; empty for the first two
        steps: the loop itself, and the delays that are put into it.
    """

    title: str
    graph: Graph
    moved: Mapping[OpId, int]

    def document(self) -> dict[str, Any]:
        """Plain JSON data: the figures that change from step to step.

        Iteration bound in ticks per iteration, as a fraction string; clock period in
        ticks; registers in tensors and in the graph's size unit.
        """
        return {
            "title": self.title,
            "iteration_bound": str(iteration_bound(self.graph).value),
            "clock_period": clock_period(self.graph),
            "registers": num_registers(self.graph),
            "register_size": num_registers(self.graph, by_size=True),
            "moved": sorted(self.moved),
        }


@dataclass(frozen=True, kw_only=True)
class Derivation:
    """From the plain training loop to the pipelined graph.

    Attributes
    ----------
    stages : mapping of OpId to int
        Stage of each op, from 0.
    delays : mapping of DelayName to int
        1 + 2·S(l), in iterations.
    steps : tuple of Step
        The plain loop, the loop of delayed gradients, then two cuts for each boundary
        of stages: forward and backward.
    """

    stages: Mapping[OpId, int]
    delays: Mapping[DelayName, int]
    steps: tuple[Step, ...]

    @property
    def pipelined(self) -> Graph:
        """The graph that the last cut leaves."""
        return self.steps[-1].graph

    @property
    def laps(self) -> dict[OpId, int]:
        """The whole retiming, from delayed gradients to the pipelined graph."""
        return {
            op: sum(step.moved.get(op, 0) for step in self.steps) for op in self.stages
        }


def derive_layerpipe(graph: Graph, stages: Mapping[OpId, int]) -> Derivation:
    r"""Derive the pipelined training graph from the plain loop, step by step.

    1. The plain loop: every weight is used one iteration after it was made.
    2. Delayed gradients: the weights of layer l get 2·S(l) delays more,
       :math:`d_l = 1 + 2 S(l)`, with S(l) the stages after that of F(l). This, and
       nothing else, changes what is computed.
    3. For each boundary b between stages two cutset retimings, which change nothing
       that is computed: *forward*, all but the forwards before b run an iteration
       later; *backward*, the backwards before b run yet another one later.

    Each cut takes a delay from the weights of every layer before b, F's, and leaves
    one on each edge that crosses the boundary forward, one on each that crosses it
    backward. In the end F(l) runs in lap s(l) and I(l), W(l) in lap 2(P - 1) - s(l) of
    P stages, and one delay of d is left between W(l) and F(l).

    Parameters
    ----------
    graph : Graph
        An asynchronous training graph with named delays; their ranges do not matter.
    stages : mapping of OpId to int
        See `stages_of_groups` and `stages_of_schedule`.

    Raises
    ------
    InstanceError
        If the stages do not follow the flow, naming each edge: forwards never lead to
        an earlier stage, backwards never to a later one.
    UnsupportedError
        If the graph is no training graph of layers or has no named delays.

    Notes
    -----
    Source: Unnikrishnan and Parhi, *LayerPipe2* (arXiv 2512.08160), our reading.
    """
    backward = _backward(layers_of(graph))
    _check_flow(graph, stages, backward)
    delays = layerpipe_delays(graph, stages)
    steps = [
        Step(title="plain training loop", graph=_plain(graph), moved={}),
        Step(title="delayed gradients", graph=_fixed(graph, delays), moved={}),
    ]
    last = max(stages.values())
    for boundary in range(1, last + 1):
        steps.append(
            _cut(
                steps[-1].graph,
                f"forward cut {boundary} of {last}",
                [op for op, s in stages.items() if op in backward or s >= boundary],
            )
        )
        steps.append(
            _cut(
                steps[-1].graph,
                f"backward cut {boundary} of {last}",
                [op for op, s in stages.items() if op in backward and s < boundary],
            )
        )
    return Derivation(stages=dict(stages), delays=delays, steps=tuple(steps))


def layerpipe_delays(graph: Graph, stages: Mapping[OpId, int]) -> dict[DelayName, int]:
    r"""Delays by LayerPipe2's rule, in iterations.

    .. math:: d_l = 1 + 2 S(l)

    with S(l) the stages after that of F(l); of forwards that share a delay (parts, tied
    weights) the earliest counts. A delay that no forward reads is 1.

    Raises
    ------
    UnsupportedError
        If the graph has no named delays.
    """
    if not graph.delays:
        raise UnsupportedError("the graph has no named delays to choose")
    last = max(stages.values())
    behind = dict.fromkeys(graph.delays, 0)
    for edge in graph.edges:
        if isinstance(edge.delay, str) and graph.op_by_id[edge.dst].kind == "F":
            stage = stages[edge.dst]
            behind[edge.delay] = max(behind[edge.delay], last - stage)
    return {name: 1 + 2 * count for name, count in behind.items()}


def stages_of_groups(graph: Graph, groups: Sequence[Sequence[str]]) -> dict[OpId, int]:
    """Put all ops of a layer in the stage that its group is.

    Parameters
    ----------
    groups : sequence of sequence of str
        Names of layers, every layer in exactly one group; the first group is stage 0.

    Raises
    ------
    InstanceError
        If a layer is in no group, in two, or unknown; naming each.
    UnsupportedError
        If the graph is no training graph of layers.
    """
    layers = {layer.name: layer for layer in layers_of(graph)}
    listed = [name for group in groups for name in group]
    faults = [
        Fault("groups", f"the graph has no layer {name!r}")
        for name in dict.fromkeys(listed)
        if name not in layers
    ]
    faults += [
        Fault("groups", f"layer {name!r} is in {times} groups")
        for name in layers
        if (times := listed.count(name)) != 1
    ]
    if faults:
        raise InstanceError(faults)
    return {
        op: stage
        for stage, group in enumerate(groups)
        for name in group
        for op in layers[name].ops
    }


def stages_of_schedule(graph: Graph, schedule: Schedule) -> dict[OpId, int]:
    """Take the device of each op for its stage, in the order of the graph's devices.

    Devices that run nothing are left out. An op without a device is in the stage of its
    layer's forward.

    Raises
    ------
    UnsupportedError
        If the graph is no training graph of layers, or some layer has no op on a
        device.
    """
    used = {placed.device for placed in schedule.ops.values()}
    order = [device for device in graph.device_ids if device in used]
    stages: dict[OpId, int] = {}
    for layer in layers_of(graph):
        placed = [schedule.ops[op].device for op in layer.ops]
        known = [order.index(device) for device in placed if device is not None]
        if not known:
            raise UnsupportedError(f"layer {layer.name!r} runs on no device")
        for op, device in zip(layer.ops, placed, strict=True):
            stages[op] = known[0] if device is None else order.index(device)
    return stages


def _backward(layers: Iterable[Layer]) -> set[OpId]:
    return {op for layer in layers for op in layer.backward}


def _check_flow(graph: Graph, stages: Mapping[OpId, int], backward: set[OpId]) -> None:
    faults = [
        Fault("stages", f"op {op.id!r} has none")
        for op in graph.ops
        if op.id not in stages
    ]
    if not faults:
        faults = list(_flow_faults(graph, stages, backward))
    if faults:
        raise InstanceError(faults)


def _flow_faults(
    graph: Graph, stages: Mapping[OpId, int], backward: set[OpId]
) -> Iterator[Fault]:
    for edge in graph.edges:
        src, dst = stages[edge.src], stages[edge.dst]
        back = (edge.src in backward, edge.dst in backward)
        if edge.delay != 0 or back == (False, True):
            continue
        if back == (True, False):
            text = "a forward waits for a backward of its own iteration"
        elif back == (False, False) and src > dst:
            text = f"leads from stage {src} back to stage {dst}"
        elif back == (True, True) and src < dst:
            text = f"leads backward, yet from stage {src} to stage {dst}"
        else:
            continue
        yield Fault(f"edge {edge.src} -> {edge.dst}", text)


def _plain(graph: Graph) -> Graph:
    return _fixed(graph, dict.fromkeys(graph.delays, 1))


def _fixed(graph: Graph, delays: Mapping[DelayName, int]) -> Graph:
    """Fix delays whatever their ranges: the derivation speaks of the bare loop."""
    free = {name: Delay() for name in graph.delays}
    return fix_delays(graph.replace(delays=free), delays)


def _cut(graph: Graph, title: str, later: Iterable[OpId]) -> Step:
    moved = cutset_retiming(graph, list(later))
    return Step(title=title, graph=apply_retiming(graph, moved), moved=moved)
