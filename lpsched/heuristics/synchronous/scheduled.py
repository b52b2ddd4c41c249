"""From the order in which devices run a pipeline's slots to a verified schedule."""

from __future__ import annotations

from collections.abc import Mapping

from lpsched.analysis.order_timing import time_in_order
from lpsched.analysis.pipeline import Order, Pipeline
from lpsched.core.graph import DeviceId, OpId
from lpsched.core.schedule import Placed, Schedule
from lpsched.heuristics.method import verified

__all__ = ["scheduled", "timed"]


def timed(pipeline: Pipeline, orders: Mapping[DeviceId, Order]) -> Schedule:
    """Time the orders exactly, every U after all else of its device; not verified.

    Raises
    ------
    NoScheduleError
        The devices wait for each other.
    """
    ops: dict[DeviceId, list[OpId]] = {}
    for device, stages in pipeline.stages_on.items():
        found = [pipeline.op(slot) for slot in orders[device]]
        found += [pipeline.updates[s] for s in stages]
        ops[device] = [op for op in found if op is not None]
    placed = pipeline.placed
    period, starts = time_in_order(placed, list(ops.values()))
    at = dict(zip(placed.ops, starts, strict=True))
    homes = dict(zip(placed.ops, placed.devices, strict=True))
    graph = pipeline.graph
    return Schedule(
        graph=graph.name,
        graph_digest=pipeline.digest,
        period=period,
        ops={op.id: Placed(homes[op.id], at[op.id]) for op in graph.ops},
        graph_document=graph,
    )


def scheduled(pipeline: Pipeline, orders: Mapping[DeviceId, Order]) -> Schedule:
    """Time the orders exactly and verify the schedule.

    Raises
    ------
    NoScheduleError
        The devices wait for each other, or a device's memory is exceeded.
    """
    return verified(pipeline.graph, timed(pipeline, orders))
