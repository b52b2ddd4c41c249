"""Linear programs by HiGHS: floats in and out, for others to make exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import highspy
import numpy as np

from lpsched.errors import SolverError

__all__ = [
    "FAILED",
    "INFEASIBLE",
    "LinearProgram",
    "LinearSolution",
    "QuietHighs",
    "Row",
    "quiet_highs",
]

#: What HiGHS says of a program without a solution, if its objective is bounded.
INFEASIBLE = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
)
#: What it says where it has not solved anything.
FAILED = (
    highspy.HighsModelStatus.kNotset,
    highspy.HighsModelStatus.kLoadError,
    highspy.HighsModelStatus.kModelError,
    highspy.HighsModelStatus.kPresolveError,
    highspy.HighsModelStatus.kSolveError,
    highspy.HighsModelStatus.kPostsolveError,
)


class QuietHighs(highspy.Highs):
    """HiGHS without its banner.

    The constructor enables callbacks, which is the first call to write to stdout;
    the switch for that has to come before.
    """

    def enableCallbacks(self) -> None:  # noqa: N802 - the name is HiGHS's
        """Be silent; callbacks are set where they are needed."""
        self.setOptionValue("output_flag", False)


#: HiGHS's own constructor has no types.
_make: Callable[[], QuietHighs] = QuietHighs


def quiet_highs(**options: float | str) -> QuietHighs:
    """Make a silent HiGHS that computes on one thread.

    Its option `threads` is left alone: all of a process share one pool, and HiGHS
    refuses to run where somebody else's first run has made it of another size.
    """
    handle = _make()
    for name, value in {"parallel": "off", **options}.items():
        handle.setOptionValue(name, value)
    return handle


class Row(NamedTuple):
    """``lower <= sum(value * x[column]) <= upper``."""

    columns: Sequence[int]
    values: Sequence[float]
    lower: float
    upper: float = highspy.kHighsInf


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSolution:
    """An optimal vertex: variables, duals of the rows, and the value."""

    x: tuple[float, ...]
    duals: tuple[float, ...]
    value: float


class LinearProgram:
    """Minimise ``cost · x`` under rows that may be added between solutions.

    Solved by the simplex method, so that solutions are vertices and later ones start
    from earlier ones.

    Parameters
    ----------
    cost : sequence of float
        One per variable.
    lower : float, optional
        The least value of every variable.
    """

    def __init__(self, cost: Sequence[float], *, lower: float = 0.0) -> None:
        self._solver = quiet_highs(solver="simplex")
        model = highspy.HighsLp()
        model.num_col_ = len(cost)
        model.col_cost_ = np.array(cost, dtype=np.double)
        model.col_lower_ = np.full(len(cost), lower)
        model.col_upper_ = np.full(len(cost), highspy.kHighsInf)
        self._solver.passModel(model)

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows at the end."""
        for row in rows:
            self._solver.addRow(
                row.lower,
                row.upper,
                len(row.columns),
                np.array(row.columns, dtype=np.int32),
                np.array(row.values, dtype=np.double),
            )

    def free(self, rows: Sequence[int]) -> None:
        """Lift the limits of some rows, by number in the order of adding."""
        for row in rows:
            self._solver.changeRowBounds(row, -highspy.kHighsInf, highspy.kHighsInf)

    def minimise(self) -> LinearSolution | None:
        """Solve; None if the program is infeasible.

        Raises
        ------
        SolverError
            If HiGHS neither solves the program nor finds it infeasible.
        """
        self._solver.run()
        status = self._solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            text = self._solver.modelStatusToString(status)
            raise SolverError(f"HiGHS left a linear program unsolved: {text}")
        solution = self._solver.getSolution()
        return LinearSolution(
            x=tuple(solution.col_value),
            duals=tuple(solution.row_dual),
            value=float(self._solver.getInfo().objective_function_value),
        )
