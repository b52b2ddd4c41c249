"""Running CP-SAT so that it can be watched, stopped and timed."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import CpModel, CpSolver, CpSolverSolutionCallback

from lpsched.core.result import Status, Stop
from lpsched.errors import SolverError
from lpsched.formulations.api import Limits

__all__ = ["Listener", "Run", "run"]

#: Seconds between two looks at the clock and the interrupt.
_TICK = 0.02

#: Strategies that take turns: clause learning for schedules and easy proofs, cores of
#: the objective for bounds where the first stalls. Linear relaxations of this model
#: are worth nothing and cost most of the time.
_STRATEGIES = ("no_lp", "core")

#: Called with a new incumbent's value or a new bound, in the model's units.
Listener = Callable[[int | None, int | None], None]

_STATUS = {
    cp_model.OPTIMAL: Status.OPTIMAL,
    cp_model.FEASIBLE: Status.FEASIBLE,
    cp_model.INFEASIBLE: Status.INFEASIBLE,
    cp_model.UNKNOWN: Status.UNKNOWN,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """How a search ended.

    Attributes
    ----------
    values : sequence of int or None
        Value of each variable, by number; None without a solution.
    bound : int or None
        Proved lower bound of the objective, in the model's units.
    work : float
        CP-SAT's deterministic time, the same on every machine.
    """

    status: Status
    stop: Stop
    values: Sequence[int] | None
    bound: int | None
    seconds: float
    work: float
    branches: int
    conflicts: int


class _Listening(CpSolverSolutionCallback):
    """Reports every new incumbent's value."""

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self._listener = listener

    def on_solution_callback(self) -> None:
        """Pass on what CP-SAT found."""
        bound = _rounded_up(self.best_objective_bound)
        self._listener(round(self.objective_value), bound)


def run(
    cp: CpModel,
    limits: Limits,
    *,
    seconds: float,
    fixed: bool = False,
    listener: Listener | None = None,
    interrupt: threading.Event | None = None,
) -> Run:
    """Solve in a thread of its own, while this one watches clock and interrupt.

    The calling thread stays responsive: signal handlers run in it, and whatever they
    raise stops the search first. The strategies are interleaved in a fixed order, so
    a run that ends by itself is the same each time, with any one number of workers.

    Parameters
    ----------
    seconds : float
        Wall-clock limit of this run.
    fixed : bool
        Whether to fix hinted variables to their hints: completes a hint or refutes it.

    Raises
    ------
    SolverError
        CP-SAT refuses the model.
    """
    solver = _solver(limits, fixed=fixed)
    begin = time.monotonic()
    callback = None
    if listener is not None and cp.has_objective():
        callback = _Listening(listener)
        solver.best_bound_callback = lambda b: listener(None, _rounded_up(b))
    with ThreadPoolExecutor(max_workers=1) as thread:
        future = thread.submit(solver.solve, cp, callback)
        try:
            while wait([future], timeout=_TICK).not_done:
                late = time.monotonic() - begin > seconds
                if late or (interrupt is not None and interrupt.is_set()):
                    solver.stop_search()
        finally:
            while not future.done():  # a search that is only starting ignores a stop
                solver.stop_search()
                wait([future], timeout=_TICK)
    code = future.result()
    if code not in _STATUS:
        raise SolverError(f"CP-SAT refuses the model: {cp.validate()}", model=str(cp))
    interrupted = interrupt is not None and interrupt.is_set()
    return _ended(
        cp,
        solver,
        _STATUS[code],
        interrupted=interrupted,
        seconds=time.monotonic() - begin,
    )


def _solver(limits: Limits, *, fixed: bool) -> CpSolver:
    """Set the parameters; no time limit, for near one CP-SAT would not go on."""
    solver = CpSolver()
    parameters = solver.parameters
    parameters.random_seed = limits.seed
    parameters.num_workers = limits.workers
    parameters.interleave_search = True
    parameters.subsolvers.extend(_STRATEGIES)
    parameters.use_lns = False
    parameters.use_feasibility_jump = False
    parameters.num_violation_ls = 0
    parameters.catch_sigint_signal = False
    parameters.fix_variables_to_their_hinted_value = fixed
    if limits.work is not None:
        parameters.max_deterministic_time = limits.work
    return solver


def _ended(
    cp: CpModel, solver: CpSolver, status: Status, *, interrupted: bool, seconds: float
) -> Run:
    if status is Status.FEASIBLE and not cp.has_objective():
        status = Status.OPTIMAL
    solved = status in (Status.OPTIMAL, Status.FEASIBLE)
    if status in (Status.OPTIMAL, Status.INFEASIBLE):
        stop = Stop.PROVED
    else:
        stop = Stop.INTERRUPTED if interrupted else Stop.TIME_LIMIT
    bound = None
    if cp.has_objective() and status is not Status.INFEASIBLE:
        bound = _rounded_up(solver.best_objective_bound)
    return Run(
        status=status,
        stop=stop,
        values=tuple(solver.response_proto.solution) if solved else None,
        bound=bound,
        seconds=seconds,
        work=solver.deterministic_time,
        branches=solver.num_branches,
        conflicts=solver.num_conflicts,
    )


def _rounded_up(bound: float) -> int | None:
    """Round a bound of an integer objective up; objectives stay exact in a float."""
    return math.ceil(bound - 1e-6) if math.isfinite(bound) else None
