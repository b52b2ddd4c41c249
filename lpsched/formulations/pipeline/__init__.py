"""Synchronous pipelines at a fixed period: counts of what precedes what, in CP-SAT."""

from lpsched.formulations.pipeline.build import LaneOrder, add_hint, build, orders_of
from lpsched.formulations.pipeline.solve import (
    MAX_ORDERS,
    PipelineOutcome,
    num_orders,
    solve_chain_at_period,
)

__all__ = [
    "MAX_ORDERS",
    "LaneOrder",
    "PipelineOutcome",
    "add_hint",
    "build",
    "num_orders",
    "orders_of",
    "solve_chain_at_period",
]
