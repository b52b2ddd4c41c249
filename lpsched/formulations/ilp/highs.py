"""Running HiGHS on a PuLP model: silent, interruptible, and read from its handle."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any

import highspy
import numpy as np
import pulp
from highspy import HighsModelStatus, cb

from lpsched.analysis.linear import FAILED, INFEASIBLE, QuietHighs, quiet_highs
from lpsched.errors import SolverError
from lpsched.formulations.ilp.solved import ABSOLUTE_GAP, INTEGRALITY, Solved, Watch

__all__ = ["run_highs"]

#: Relative difference at which two values of an objective are not the same.
TOLERANCE = 1e-6

#: Seconds that HiGHS gets to notice that it should stop.
GRACE = 5.0

_INTERRUPTS = (
    cb.HighsCallbackType.kCallbackSimplexInterrupt,
    cb.HighsCallbackType.kCallbackIpmInterrupt,
    cb.HighsCallbackType.kCallbackMipInterrupt,
)
_COMPLETE = (HighsModelStatus.kOptimal, HighsModelStatus.kModelEmpty)


class _Run:
    """One run in a thread of its own, with the best seen so far at hand."""

    def __init__(self, handle: QuietHighs, watch: Watch) -> None:
        self.handle = handle
        self.watch = watch
        self.values: np.ndarray[Any, Any] | None = None
        self.primal = math.inf
        self.dual = -math.inf
        self.failure: BaseException | None = None
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True, name="highs")
        handle.setCallback(self._called, None)
        for kind in (*_INTERRUPTS, cb.HighsCallbackType.kCallbackMipImprovingSolution):
            handle.startCallback(kind)

    def _called(
        self,
        kind: cb.HighsCallbackType,
        _message: str,
        out: cb.HighsCallbackOutput,
        into: cb.HighsCallbackInput | None,
        _data: object,
    ) -> None:
        if int(kind) == int(cb.HighsCallbackType.kCallbackMipImprovingSolution):
            self.values = np.array(out.mip_solution)
            self.primal = out.objective_function_value
        if int(kind) == int(cb.HighsCallbackType.kCallbackMipInterrupt):
            self.dual = max(self.dual, out.mip_dual_bound)
        if self.watch.is_over and into is not None:
            into.user_interrupt = True

    def _run(self) -> None:
        try:
            self.handle.run()
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            self.failure = error
        finally:
            self.done.set()

    def wait(self) -> bool:
        """Wait for the end, passing on progress; False if HiGHS does not stop."""
        self.thread.start()
        told: tuple[float, float] = (math.inf, -math.inf)
        while not self.done.wait(0.05):
            seen = self.primal, self.dual
            if seen != told:
                told = seen
                self.watch.tell(_finite(seen[0]), _finite(seen[1]))
            if self.watch.is_over:
                return self.done.wait(GRACE)
        return True


def run_highs(
    problem: pulp.LpProblem, watch: Watch, *, seed: int, begin: Mapping[str, int]
) -> Solved:
    """Solve a PuLP problem with HiGHS, on one thread.

    PuLP translates the model; the answer is read from the handle, since PuLP calls a
    time-limited incumbent optimal and an interrupted search without one feasible. A
    run that does not stop in time is left to end by itself (its next callback stops
    it), and what its callbacks have shown so far counts.

    Parameters
    ----------
    begin : mapping of str to int
        Values of some variables, by name, to start from.

    Raises
    ------
    SolverError
        HiGHS reports an error, or a status that says nothing.
    """
    handle = quiet_highs(
        random_seed=seed,
        time_limit=watch.seconds,
        mip_feasibility_tolerance=INTEGRALITY,
        mip_rel_gap=0.0,
        mip_abs_gap=ABSOLUTE_GAP,
    )
    problem.solverModel = handle
    pulp.HiGHS().buildSolverModel(problem)
    given = {x.index: begin[x.name] for x in problem.variables() if x.name in begin}
    if given:
        numbers = np.fromiter(given.keys(), dtype=np.int32)
        handle.setSolution(
            len(given), numbers, np.fromiter(given.values(), dtype=np.float64)
        )
    run = _Run(handle, watch)
    if not run.wait():
        seen = None if run.values is None else run.values.tolist()
        return Solved(is_complete=False, values=seen, bound=_finite(run.dual))
    if run.failure is not None:
        raise SolverError(f"HiGHS failed: {run.failure}") from run.failure
    if given and not _is_consistent(handle):
        return run_highs(problem, watch, seed=seed, begin={})
    return _read(handle)


def _is_consistent(handle: QuietHighs) -> bool:
    """Tell whether the values are those of the objective that HiGHS reports.

    HiGHS 1.16, given values to start from, can prove the optimum and then hand back
    the start instead of the optimal values.
    """
    info, values = handle.getInfo(), handle.getSolution().col_value
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return True
    lp = handle.getLp()
    seen = lp.offset_ + math.fsum(
        c * x for c, x in zip(lp.col_cost_, values, strict=True)
    )
    reported = float(info.objective_function_value)
    return abs(seen - reported) <= TOLERANCE * max(1.0, abs(reported))


def _read(handle: QuietHighs) -> Solved:
    """Read a run's end from HiGHS itself."""
    status, info = handle.getModelStatus(), handle.getInfo()
    if status in FAILED:
        raise SolverError(f"HiGHS ended with status {status.name}")
    nodes = int(info.mip_node_count)
    if status in INFEASIBLE:
        return Solved(is_complete=True, nodes=nodes)
    is_complete = status in _COMPLETE
    feasible = highspy.SolutionStatus.kSolutionStatusFeasible
    has_values = is_complete or info.primal_solution_status == feasible
    return Solved(
        is_complete=is_complete,
        values=list(handle.getSolution().col_value) if has_values else None,
        bound=_finite(info.mip_dual_bound),
        nodes=nodes,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
