"""Running CP-SAT so that a deadline or an interrupt stops it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import CpModel, CpSolver, CpSolverSolutionCallback

from lpsched.core.result import Status
from lpsched.errors import SolverError
from lpsched.formulations.api import Limits
from lpsched.formulations.deadline import Deadline

__all__ = ["Run", "run"]

#: Seconds between two looks at the deadline.
_TICK = 0.02

_STATUS = {
    cp_model.OPTIMAL: Status.OPTIMAL,
    cp_model.FEASIBLE: Status.FEASIBLE,
    cp_model.INFEASIBLE: Status.INFEASIBLE,
    cp_model.UNKNOWN: Status.UNKNOWN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a run ended: values by variable number, and the bound of the objective."""

    status: Status
    values: Sequence[int] | None
    bound: int | None


class _Listening(CpSolverSolutionCallback):
    """Passes on the values of every new solution."""

    def __init__(self, listener: Callable[[Sequence[int]], object]) -> None:
        super().__init__()
        self._listener = listener

    def on_solution_callback(self) -> None:
        """Pass on what CP-SAT found."""
        self._listener(tuple(self.response_proto.solution))


def run(
    model: CpModel,
    limits: Limits,
    deadline: Deadline,
    *,
    seconds: float = math.inf,
    work: float = math.inf,
    listener: Callable[[Sequence[int]], object] | None = None,
) -> Run:
    """Solve in a thread of its own while this one watches the deadline.

    Reproducible unless a limit is hit: one worker, or several that take turns.

    Parameters
    ----------
    seconds : float
        Wall-clock limit of this run, within the deadline.
    work : float
        Limit of CP-SAT's deterministic time, the same on every machine.
    listener : callable, optional
        Called with the values of each solution as it is found.

    Raises
    ------
    SolverError
        CP-SAT refuses the model.
    """
    solver = CpSolver()
    parameters = solver.parameters
    parameters.max_time_in_seconds = max(0.0, min(seconds, deadline.left))
    parameters.max_deterministic_time = work
    parameters.random_seed = limits.seed
    parameters.linearization_level = 2  # packing is proved by linear programs
    parameters.num_workers = limits.workers
    parameters.interleave_search = limits.workers > 1
    parameters.catch_sigint_signal = False
    callback = None if listener is None else _Listening(listener)
    with ThreadPoolExecutor(max_workers=1) as thread:
        future = thread.submit(solver.solve, model, callback)
        try:
            while wait([future], timeout=_TICK).not_done:
                if deadline.over:
                    solver.stop_search()
        finally:  # whatever a signal handler raised; a search may miss one stop
            while not future.done():
                solver.stop_search()
                wait([future], timeout=_TICK)
    code = future.result()
    if code not in _STATUS:
        text = f"CP-SAT refuses the model: {model.validate()}"
        raise SolverError(text, model=str(model))
    return _read(model, solver, _STATUS[code])


def _read(model: CpModel, solver: CpSolver, status: Status) -> Run:
    solved = status in (Status.OPTIMAL, Status.FEASIBLE)
    bound = None
    if model.has_objective() and status is not Status.INFEASIBLE:
        least = solver.best_objective_bound
        bound = math.ceil(least - 1e-6) if math.isfinite(least) else None
    return Run(
        status=status,
        values=tuple(solver.response_proto.solution) if solved else None,
        bound=bound,
    )
