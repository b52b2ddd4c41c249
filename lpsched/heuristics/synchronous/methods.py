"""The published synchronous schedules: from a graph to a verified schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lpsched.analysis.pipeline import Pipeline, pipeline_of
from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import NoScheduleError
from lpsched.heuristics.method import Method
from lpsched.heuristics.synchronous.automatic import automatic_orders
from lpsched.heuristics.synchronous.fold import fold_orders
from lpsched.heuristics.synchronous.orders import (
    Orders,
    dualpipe_v_order,
    folded,
    gpipe_order,
    interleaved_order,
    one_f_one_b_order,
    single,
    zero_bubble_order,
)
from lpsched.heuristics.synchronous.scheduled import scheduled

__all__ = [
    "SYNCHRONOUS_METHODS",
    "dualpipe_v",
    "gpipe",
    "interleaved",
    "one_f_one_b",
    "zb_auto",
    "zb_h1",
    "zb_h2",
    "zb_v",
]


def gpipe(graph: Graph) -> Schedule:
    """All forwards, then all backwards; see `gpipe_order`.

    Raises
    ------
    UnsupportedError
        This and the others: the graph is no synchronous pipeline, or its placement is
        not the one of the method.
    NoScheduleError
        This and the others: a device's memory is exceeded.
    """
    pipeline = pipeline_of(graph)
    return scheduled(pipeline, gpipe_order(pipeline))


def one_f_one_b(graph: Graph) -> Schedule:
    """One forward and one backward in turn; see `one_f_one_b_order`."""
    pipeline = pipeline_of(graph)
    single(pipeline, "1f1b")
    return scheduled(pipeline, one_f_one_b_order(pipeline))


def interleaved(graph: Graph) -> Schedule:
    """1F1B over several stages a device in a loop; see `interleaved_order`."""
    pipeline = pipeline_of(graph)
    return scheduled(pipeline, interleaved_order(pipeline))


def zb_h1(graph: Graph) -> Schedule:
    """ZB-H1, in the memory of 1F1B; see `zero_bubble_order`."""
    return _zero_bubble(graph, 1)


def zb_h2(graph: Graph) -> Schedule:
    """ZB-H2, in about twice the memory of 1F1B; see `zero_bubble_order`."""
    return _zero_bubble(graph, 2)


def _zero_bubble(graph: Graph, depth: int) -> Schedule:
    pipeline = pipeline_of(graph)
    single(pipeline, f"zb-h{depth}")
    return scheduled(pipeline, zero_bubble_order(pipeline, depth=depth))


def zb_auto(graph: Graph) -> Schedule:
    """Zero bubble's automatic schedule under the memory limits; see `automatic_orders`.

    Without limits it warms up as far as time allows.
    """
    pipeline = pipeline_of(graph)
    single(pipeline, "zb-auto")
    return _best(pipeline, automatic_orders)


def zb_v(graph: Graph) -> Schedule:
    """ZB-V, on two stages a device in a V; see `fold_orders`."""
    pipeline = pipeline_of(graph)
    folded(pipeline, "zb-v")
    return _best(pipeline, fold_orders)


def dualpipe_v(graph: Graph) -> Schedule:
    """DualPipeV, on two stages a device in a V; see `dualpipe_v_order`."""
    pipeline = pipeline_of(graph)
    return scheduled(pipeline, dualpipe_v_order(pipeline))


def _best(
    pipeline: Pipeline, runs: Callable[[Pipeline], Iterable[tuple[int, Orders]]]
) -> Schedule:
    """Schedule the best of several runs by what each says of itself."""
    found = min(runs(pipeline), key=lambda run: run[0], default=None)
    if found is None:
        raise NoScheduleError("no setting of this method fits into the memory")
    return scheduled(pipeline, found[1])


SYNCHRONOUS_METHODS: tuple[Method, ...] = (
    Method(
        name="gpipe",
        function=gpipe,
        summary="synchronous: all forwards, then all backwards",
    ),
    Method(
        name="1f1b",
        function=one_f_one_b,
        summary="synchronous: one forward and one backward in turn",
    ),
    Method(
        name="interleaved",
        function=interleaved,
        summary="synchronous: 1f1b over several stages a device in a loop",
    ),
    Method(
        name="zb-h1",
        function=zb_h1,
        summary="synchronous: I and W parted, in the memory of 1f1b",
    ),
    Method(
        name="zb-h2",
        function=zb_h2,
        summary="synchronous: I and W parted, in about twice that memory",
    ),
    Method(
        name="zb-auto",
        function=zb_auto,
        summary="synchronous: I and W parted, greedy under the memory limit",
    ),
    Method(
        name="zb-v",
        function=zb_v,
        summary="synchronous: the same on two stages a device in a V",
    ),
    Method(
        name="dualpipe-v",
        function=dualpipe_v,
        summary="synchronous: a V, forwards in turn with backwards of the other stage",
    ),
)
