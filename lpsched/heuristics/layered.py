"""PipeDream and LayerPipe: a network's layers cut into pieces, one a device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from lpsched.analysis.layers import Layer, layers_of
from lpsched.analysis.packing import earliest_phases, pack_phases
from lpsched.analysis.precedence import Block
from lpsched.core.graph import Graph, OpId
from lpsched.core.schedule import Schedule
from lpsched.errors import NoScheduleError, UnsupportedError
from lpsched.heuristics.cuts import Cut, Work, cut, down_sets, prefixes
from lpsched.heuristics.periods import scheduled_order

__all__ = ["layerpipe", "layerpipe_inter", "layerpipe_intra", "pipedream"]


def pipedream(graph: Graph) -> Schedule:
    """Layers in contiguous stages, one a device, the backward of a layer in one piece.

    The stages have the least maximum of load and twice the transfer of the activations
    that enter them; of several such cuts that with the fewest stages, then with the
    earliest cuts. On a DAG a stage is a difference of down-sets (of the prefixes of a
    topological order if there are more than `MAX_STATES`). Each device runs its
    forwards in layer order, then its backwards in reverse, each as early as it can.

    Source: Harlap et al., *PipeDream* (SOSP 2019).

    Raises
    ------
    UnsupportedError
        If the graph has no layers, or the devices allowed or the colocation leave no
        cut with stage s on the s-th device that is used.
    NoScheduleError
        If limits of delays, flush or memory forbid this order.
    """
    layers = layers_of(graph)
    items = [layer.ops for layer in layers]
    best = _cut(graph, items, prefixes(len(items)), layers)
    states = down_sets([layer.predecessors for layer in layers])
    if states is not None and len(states) > len(items) + 1:
        at_most = None if best is None else best.maximum
        best = _cut(graph, items, states, layers, at_most=at_most)
    order = [
        *(layer.forward for layer in layers),
        *(
            block
            for layer in reversed(layers)
            for block in (
                (*layer.activation, *layer.weight, *layer.fused),
                *((op,) for op in layer.update),
            )
        ),
    ]
    return _scheduled(graph, items, best, order, staggered=True)


def layerpipe_intra(graph: Graph) -> Schedule:
    """F, I and W of the layers in order, cut into pieces of least maximum load.

    A layer's ops may sit on two neighbouring devices. Each device runs its F in layer
    order, then I and W in reverse; laps are longest paths. Without transfers the delay
    is at most 1 + 2·S(l), with S(l) the devices after that of F(l). On a DAG the layers
    are in topological order.

    Source: Unnikrishnan and Parhi, *LayerPipe* (ICCAD 2021), our reading. Errors as in
    `pipedream`.
    """
    layers = layers_of(graph)
    items = [item for layer in layers for item in _intra_items(layer)]
    order = [
        *(layer.forward for layer in layers),
        *(block for layer in reversed(layers) for block in _intra_items(layer)[1:]),
    ]
    best = _cut(graph, items, prefixes(len(items)))
    return _scheduled(graph, items, best, order)


def _intra_items(layer: Layer) -> list[Block]:
    weights = (*layer.weight, *layer.fused)
    return [
        layer.forward,
        *([layer.activation] if layer.activation else []),
        *([weights] if weights else []),
        *((op,) for op in layer.update),
    ]


def layerpipe_inter(graph: Graph) -> Schedule:
    """Like `layerpipe_intra`, with the second part of each I placed a layer earlier.

    I in two parts: the second goes with the layer that consumes it, the latest
    predecessor on a DAG (F1 W1 I2.1 | F2 W2 I2.0 I3.1 | ...).

    Source: Unnikrishnan and Parhi, *LayerPipe* (ICCAD 2021), our reading.

    Raises
    ------
    UnsupportedError
        Also if some layer's I is not in two parts.
    """
    layers = layers_of(graph)
    for layer in layers:
        if layer.fused:
            text = "has a fused backward; layerpipe-inter divides I"
            raise UnsupportedError(f"layer {layer.name!r} {text}")
        if layer.activation and len(layer.activation) != 2:
            text = f"has I in {len(layer.activation)} parts; layerpipe-inter needs 2"
            raise UnsupportedError(f"layer {layer.name!r} {text}")
    items = [item for item in _inter_items(layers) if item]
    order = [
        *(layer.forward for layer in layers),
        *(
            block
            for layer in reversed(layers)
            for block in (
                *((op,) for op in layer.activation),
                *([layer.weight] if layer.weight else []),
                *((op,) for op in layer.update),
            )
        ),
    ]
    best = _cut(graph, items, prefixes(len(items)))
    return _scheduled(graph, items, best, order)


def _inter_items(layers: Sequence[Layer]) -> Iterator[Block]:
    second: defaultdict[int, list[OpId]] = defaultdict(list)
    for i, layer in enumerate(layers):
        second[max(layer.predecessors, default=i)] += layer.activation[1:]
    for i, layer in enumerate(layers):
        yield layer.forward
        yield layer.weight
        yield from ((op,) for op in layer.update)
        yield layer.activation[:1]
        yield from ((op,) for op in second[i])


def layerpipe(graph: Graph) -> Schedule:
    """The better of `layerpipe_intra` and `layerpipe_inter`: period, then staleness.

    Errors as those of `layerpipe_intra` if neither gives a schedule.
    """
    found: list[Schedule] = []
    reasons: list[UnsupportedError | NoScheduleError] = []
    for method in (layerpipe_intra, layerpipe_inter):
        try:
            found.append(method(graph))
        except (UnsupportedError, NoScheduleError) as reason:
            reasons.append(reason)
    if not found:
        raise reasons[0]
    return min(found, key=lambda s: (s.period, sum(s.delays.values())))


def _cut(
    graph: Graph,
    items: Sequence[Block],
    states: Sequence[int],
    layers: Sequence[Layer] = (),
    *,
    at_most: int | None = None,
) -> Cut | None:
    """Cut items at the states that part no colocated ops; charge activations if asked.

    With `layers`, which are then the items, a cut costs twice the transfer of the
    activations that cross it.
    """
    item_of = {op: i for i, item in enumerate(items) for op in item}
    groups = [
        sum(1 << i for i in {item_of[op] for op in group}) for group in graph.colocate
    ]
    kept = [s for s in states if all(s & group in (0, group) for group in groups)]
    work = Work(
        loads=list(zip(*(_loads(graph, item) for item in items), strict=True)),
        states=kept,
        transfers=_transfers(graph, layers, kept) if layers else (),
    )
    return cut(work, at_most=at_most)


def _loads(graph: Graph, item: Block) -> list[int | None]:
    """Ticks of an item on each device; None where some op may not run."""
    ops = [graph.op_by_id[op] for op in item if graph.occupies_device(op)]
    if all(op.devices is None and isinstance(op.duration, int) for op in ops):
        return [sum(graph.duration(op.id, None) for op in ops)] * len(graph.devices)
    return [
        sum(graph.duration(op.id, device) for op in ops)
        if all(device in graph.allowed(op.id) for op in ops)
        else None
        for device in graph.device_ids
    ]


def _transfers(
    graph: Graph, layers: Sequence[Layer], states: Sequence[int]
) -> list[list[int]]:
    """Twice the ticks of the activations that enter a device's piece at each state."""
    layer_of = {op: i for i, layer in enumerate(layers) for op in layer.forward}
    sent: list[tuple[int, int, int]] = []
    for tensor in graph.tensors:
        uses = [use.op for use in tensor.consumers if use.delay == 0]
        readers = {layer_of[op] for op in uses if op in layer_of}
        if tensor.producer in layer_of and readers:
            source = 1 << layer_of[tensor.producer]
            sent.append((source, sum(1 << i for i in readers), tensor.size))
    crossing = [
        [size for src, dst, size in sent if src & state and dst & ~state]
        for state in states
    ]
    links = [graph.link_between(p, q) for p, q in pairwise(graph.device_ids)]
    return [
        [0] * len(states),
        *(
            [2 * link.transfer_ticks(sum(sizes)) if sizes else 0 for sizes in crossing]
            for link in links
        ),
    ]


def _scheduled(
    graph: Graph,
    items: Sequence[Block],
    best: Cut | None,
    order: Sequence[Block],
    *,
    staggered: bool = False,
) -> Schedule:
    """Place the pieces and time the order: packed, or `staggered` by `earliest_phases`.

    The other way is tried where limits of delays forbid the first.
    """
    if best is None:
        text = "no cut into pieces, in the order of the devices, has every op on a"
        raise UnsupportedError(f"{text} device allowed to it")
    placement = {
        op: graph.device_ids[best.device_of(i)]
        for i, item in enumerate(items)
        for op in item
        if graph.occupies_device(op)
    }
    packers = (pack_phases, earliest_phases)
    return scheduled_order(
        graph,
        placement,
        [block for block in order if block],
        packers[::-1] if staggered else packers,
    )
