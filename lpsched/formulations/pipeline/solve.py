"""Searching the counting model, so that it can be stopped and timed."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import CpSolver

from lpsched.analysis.chain import Chain
from lpsched.core.result import Status
from lpsched.errors import SolverError
from lpsched.formulations.api import Limits
from lpsched.formulations.pipeline.build import LaneOrder, add_hint, build, orders_of

__all__ = ["MAX_ORDERS", "PipelineOutcome", "num_orders", "solve_chain_at_period"]

#: A model of more orders than this is too large to be of use.
MAX_ORDERS = 180_000

#: Seconds between two looks at the clock and the interrupt.
_TICK = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOutcome:
    """Whether a period is possible.

    Attributes
    ----------
    status : Status
        ``optimal``: it is, in these orders; ``infeasible``: proved that it is not.
    orders : tuple of LaneOrder or None
        What each device runs, in order.
    """

    status: Status
    orders: tuple[LaneOrder, ...] | None = None
    seconds: float = 0.0


def num_orders(chain: Chain) -> int:
    """About how many orders of two ops a model leaves open."""
    m = chain.microbatches
    rows = [3 * len(stages) for stages in chain.lanes]
    return sum(n * (n - 1) for n in rows) * m * m // 4


def solve_chain_at_period(
    chain: Chain,
    period: int,
    limits: Limits,
    *,
    hint: Sequence[LaneOrder] | None = None,
    interrupt: threading.Event | None = None,
) -> PipelineOutcome:
    """Decide whether a chain of stages can keep a period.

    Index order is assumed within a kind, which costs nothing as a chain's
    microbatches are alike.

    Raises
    ------
    SolverError
        CP-SAT refuses the model.
    """
    begin = time.monotonic()
    x = build(chain, period)
    if x is None:
        return PipelineOutcome(status=Status.INFEASIBLE)
    if hint is not None:
        add_hint(x, hint)
    solver = CpSolver()
    solver.parameters.max_time_in_seconds = max(0.0, limits.seconds)
    solver.parameters.random_seed = limits.seed
    solver.parameters.num_workers = limits.workers
    solver.parameters.interleave_search = limits.workers > 1
    solver.parameters.linearization_level = 2
    solver.parameters.catch_sigint_signal = False
    with ThreadPoolExecutor(max_workers=1) as thread:
        future = thread.submit(solver.solve, x.cp)
        try:
            while wait([future], timeout=_TICK).not_done:
                late = time.monotonic() - begin > limits.seconds + 1
                if late or (interrupt is not None and interrupt.is_set()):
                    solver.stop_search()
        finally:
            while not future.done():  # a search that is only starting ignores a stop
                solver.stop_search()
                wait([future], timeout=_TICK)
    seconds = time.monotonic() - begin
    code = future.result()
    if code == cp_model.INFEASIBLE:
        return PipelineOutcome(status=Status.INFEASIBLE, seconds=seconds)
    if code in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        orders = orders_of(x, solver.value)
        return PipelineOutcome(status=Status.OPTIMAL, orders=orders, seconds=seconds)
    if code == cp_model.UNKNOWN:
        return PipelineOutcome(status=Status.UNKNOWN, seconds=seconds)
    raise SolverError(f"CP-SAT refuses the model: {x.cp.validate()}", model=str(x.cp))
