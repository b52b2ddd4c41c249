"""Unfolding: a graph of J iterations, in which fractional periods can be had.

Iteration n of the graph is copy n mod J in iteration n div J of the unfolded graph. A
value used k iterations later goes from copy i to copy (i + k) mod J, with
⌊(i + k) / J⌋ delays. Source: Parhi, *VLSI Digital Signal Processing Systems* (1999),
ch. 5; Parhi and Messerschmitt, *Static rate-optimal scheduling of iterative data-flow
programs via optimum unfolding* (1991).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import overload

import networkx as nx

from lpsched.analysis.dataflow import (
    AnyGraph,
    MultiDiGraph,
    fixed_delay,
    flow_of,
    require_fixed_delays,
)
from lpsched.analysis.delays import fix_delays
from lpsched.core.graph import (
    Consumer,
    DelayName,
    Dependence,
    Graph,
    OpId,
    Tensor,
    TensorId,
)
from lpsched.core.io import graph_digest
from lpsched.core.limits import MAX_UNFOLDED_OPS
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import UnsupportedError

__all__ = [
    "copy_id",
    "fix_delays",
    "fold_schedule",
    "iteration_start",
    "unfold",
    "unfold_schedule",
]


def copy_id(op: OpId, index: int) -> OpId:
    """Id of a copy of an op: ``F1#0`` for iteration 0 of a block."""
    return OpId(f"{op}#{index}")


@overload
def unfold(graph: Graph, J: int) -> Graph: ...
@overload
def unfold(graph: MultiDiGraph, J: int) -> MultiDiGraph: ...
def unfold(graph: AnyGraph, J: int) -> AnyGraph:
    r"""Return the graph of J iterations.

    An edge u → v of delay k becomes, for i = 0 … J - 1,

    .. math:: u_i \to v_{(i + k) \bmod J} \text{ with delay }
       \Bigl\lfloor \frac{i + k}{J} \Bigr\rfloor,

    k delays over all J. The iteration bound becomes J times as large, so that per
    iteration it stays what it was; the period T of a schedule serves J iterations
    (``graph.unfolding`` times J), so that T / J need not be an integer.

    Parameters
    ----------
    graph : Graph or networkx.MultiDiGraph
        With fixed delays (see `fix_delays`).
    J : int
        Iterations, at least 1; with 1 the graph itself is returned.

    Returns
    -------
    Graph or networkx.MultiDiGraph
        Ops and tensors ``F1#0``, ``F1#1``, ...; nodes of a networkx graph become
        pairs (node, i). Colocate groups hold for each iteration on its own, residents
        for all copies together. With ``flush``, blocks of J iterations do not overlap.

    Raises
    ------
    InstanceError
        If the graph has named delays, naming each.
    UnsupportedError
        If there would be more than `MAX_UNFOLDED_OPS` ops.
    ValueError
        If J < 1.
    """
    if J < 1:
        raise ValueError(f"expected J >= 1, got {J}")
    require_fixed_delays(graph)
    if J == 1:
        return graph
    count = len(graph.ops) if isinstance(graph, Graph) else len(graph)
    if J * count > MAX_UNFOLDED_OPS:
        text = (
            f"{J:,} iterations of {count:,} ops are {J * count:,} ops; graphs are"
            f" unfolded to at most {MAX_UNFOLDED_OPS:,}"
        )
        raise UnsupportedError(text)
    return _graph(graph, J) if isinstance(graph, Graph) else _bare(graph, J)


def _graph(graph: Graph, J: int) -> Graph:
    return graph.replace(
        name=f"{graph.name}-x{J}",
        unfolding=graph.unfolding * J,
        ops=tuple(
            replace(op, id=copy_id(op.id, i)) for i in range(J) for op in graph.ops
        ),
        tensors=tuple(
            _tensor(tensor, i, J) for i in range(J) for tensor in graph.tensors
        ),
        dependences=tuple(
            _dependence(order, i, J) for i in range(J) for order in graph.dependences
        ),
        colocate=tuple(
            tuple(copy_id(op, i) for op in group)
            for i in range(J)
            for group in graph.colocate
        ),
        residents=tuple(
            replace(
                resident,
                ops=tuple(copy_id(op, i) for i in range(J) for op in resident.ops),
            )
            for resident in graph.residents
        ),
    )


def _tensor(tensor: Tensor, i: int, J: int) -> Tensor:
    return replace(
        tensor,
        id=TensorId(f"{tensor.id}#{i}"),
        producer=copy_id(tensor.producer, i),
        consumers=tuple(_consumer(use, i, J) for use in tensor.consumers),
    )


def _consumer(use: Consumer, i: int, J: int) -> Consumer:
    delay, copy = divmod(i + fixed_delay(use.delay), J)
    return replace(use, op=copy_id(use.op, copy), delay=delay)


def _dependence(order: Dependence, i: int, J: int) -> Dependence:
    delay, copy = divmod(i + fixed_delay(order.delay), J)
    return replace(
        order, src=copy_id(order.src, i), dst=copy_id(order.dst, copy), delay=delay
    )


def _bare(graph: MultiDiGraph, J: int) -> MultiDiGraph:
    flow_of(graph)  # names faulty attributes
    result: MultiDiGraph = nx.MultiDiGraph(**graph.graph)
    for i in range(J):
        for node, data in graph.nodes(data=True):
            result.add_node((node, i), **data)
    for u, v, data in graph.edges(data=True):
        for i in range(J):
            delay, copy = divmod(i + data["delay"], J)
            result.add_edge((u, i), (v, copy), **(data | {"delay": delay}))
    return result


def unfold_schedule(schedule: Schedule, graph: Graph, J: int) -> Schedule:
    """Repeat a schedule J times: a schedule of the unfolded graph, of period J·T.

    Parameters
    ----------
    schedule : Schedule
        Of the graph that was unfolded, or of one whose delays it fixes.
    graph : Graph
        The graph unfolded by J.
    """
    return Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=schedule.period * J,
        ops=_repeated(schedule, J),
        graph_document=graph,
    )


def _repeated(schedule: Schedule, J: int) -> dict[OpId, Placed]:
    """Copy i of each op a whole i periods later."""
    return {
        op if J == 1 else copy_id(op, i): Placed(
            placed.device, placed.start + i * schedule.period
        )
        for i in range(J)
        for op, placed in schedule.ops.items()
    }


def iteration_start(schedule: Schedule, op: OpId, iteration: int, J: int) -> int:
    """Start of an op of the graph in iteration n, by a schedule unfolded by J.

    Ticks: that of copy n mod J, n div J periods later.
    """
    if J == 1:
        return schedule.ops[op].start + iteration * schedule.period
    block, copy = divmod(iteration, J)
    return schedule.ops[copy_id(op, copy)].start + block * schedule.period


def fold_schedule(
    schedule: Schedule,
    graph: Graph,
    J: int,
    *,
    delays: Mapping[DelayName, int] | None = None,
) -> Schedule | None:
    """Fold a schedule of the graph unfolded by J back to one of the graph.

    Possible if it repeats itself within its period T: J divides T, and copy i of each
    op runs on the device of copy 0, i·T/J ticks later.

    Parameters
    ----------
    schedule : Schedule
        Of the unfolded graph.
    graph : Graph
        The graph that was unfolded, or the one whose delays were fixed before.
    delays : mapping, optional
        Values of the named delays of `graph`, if it has any.

    Returns
    -------
    Schedule or None
        Of period T / J; None if the copies differ. `iteration_start` reads any.
    """
    period, rest = divmod(schedule.period, J)
    first = {
        op.id: schedule.ops[op.id if J == 1 else copy_id(op.id, 0)] for op in graph.ops
    }
    folded = Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=period,
        delays=dict(delays or {}),
        ops=first,
        graph_document=graph,
    )
    repeated = rest == 0 and _repeated(folded, J) == dict(schedule.ops)
    return folded if repeated else None
