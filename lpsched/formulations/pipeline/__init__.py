"""Synchronous pipelines at a fixed period: counts of what precedes what, in CP-SAT."""

from lpsched.formulations.pipeline.build import StageOrder, add_hint, build, orders_of
from lpsched.formulations.pipeline.solve import (
    MAX_PAIRS,
    PipelineOutcome,
    solve_chain_at_period,
)

__all__ = [
    "MAX_PAIRS",
    "PipelineOutcome",
    "StageOrder",
    "add_hint",
    "build",
    "orders_of",
    "solve_chain_at_period",
]
