"""Integer programs over growing prefixes of a pool, sorted by reduced cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from highspy import cb
from numpy.typing import NDArray

from lpsched.analysis.linear import FAILED, INFEASIBLE, quiet_highs
from lpsched.errors import SolverError
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition.automaton import Ints
from lpsched.formulations.partition.columns import Columns
from lpsched.formulations.partition.pool import Pool

__all__ = ["Cover", "best_cover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """What an integer program over some columns found.

    Attributes
    ----------
    chosen : array of int or None
        Numbers of the columns of the best partition, one as often as it is used;
        None if none was found.
    bound : float
        Lower bound of partitions of these columns; infinite if there is none.
    """

    chosen: Ints | None
    bound: float


def best_cover(pool: Pool, which: Ints, deadline: Deadline) -> Cover:
    """Solve the partition problem over some of a pool's columns.

    Its cuts become rows: they raise the bound of the relaxation. So do partitions that
    are forbidden: not all of their sets can be chosen.

    Raises
    ------
    SolverError
        HiGHS fails.
    """
    columns = pool.columns.take(which)
    highs = quiet_highs(
        mip_rel_gap=0.0, mip_abs_gap=0.99, time_limit=max(0.01, deadline.left)
    )
    _fill(highs, pool, columns)
    _watch(highs, deadline)
    highs.run()
    status = highs.getModelStatus()
    if status in INFEASIBLE:
        return Cover(chosen=None, bound=math.inf)
    if status in FAILED:
        raise SolverError(f"HiGHS ended a cover with {status.name}")
    info = highs.getInfo()
    chosen = None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        values = np.array(highs.getSolution().col_value)
        chosen = np.repeat(which, np.rint(values).astype(np.int64))
    return Cover(chosen=chosen, bound=float(info.mip_dual_bound))


def _fill(highs: highspy.Highs, pool: Pool, columns: Columns) -> None:
    rows, lower, upper = _rows(pool, columns)
    exact = len(pool.problem.classes) + len(pool.problem.groups)
    # As often as its items are there, on devices of its group: mostly once.
    sides = np.array(upper[:exact])[:, None]
    most = np.where(rows[:exact] > 0, sides // np.maximum(rows[:exact], 1), np.inf)
    column, row = np.nonzero(rows.T)
    count = len(columns)
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = count, len(rows)
    program.col_cost_ = columns.costs.astype(np.float64)
    program.col_lower_, program.col_upper_ = np.zeros(count), most.min(axis=0)
    program.row_lower_, program.row_upper_ = np.array(lower), np.array(upper)
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    starts = np.searchsorted(column, np.arange(count + 1))
    program.a_matrix_.start_ = starts.astype(np.int32)
    program.a_matrix_.index_ = row.astype(np.int32)
    program.a_matrix_.value_ = rows[row, column].astype(np.float64)
    program.integrality_ = [highspy.HighsVarType.kInteger] * count
    highs.passModel(program)


def _rows(
    pool: Pool, columns: Columns
) -> tuple[NDArray[np.uint8], Sequence[float], Sequence[float]]:
    """Coefficients and sides of classes, groups and cuts."""
    classes, groups = pool.problem.classes, pool.problem.groups
    n, no_goods = len(classes), pool.problem.no_goods
    shape = n + len(groups) + len(pool.cuts) + len(no_goods), len(columns)
    rows = np.zeros(shape, dtype=np.uint8)
    rows[:n] = columns.sets.counts(np.array(pool.problem.class_of), n)
    rows[n + columns.groups, np.arange(len(columns))] = 1
    for t, cut in enumerate(pool.cuts):
        rows[n + len(groups) + t] = columns.sets.coefficients(cut)
    if no_goods:
        held = list(zip(columns.groups.tolist(), columns.sets.unpacked(), strict=True))
        for k, sets in enumerate(no_goods, n + len(groups) + len(pool.cuts)):
            rows[k] = [pair in sets for pair in held]
    exact = [float(len(members)) for members in classes]
    exact += [float(group.count) for group in groups]
    most = [float(cut.most) for cut in pool.cuts]
    most += [float(len(sets) - 1) for sets in no_goods]
    return rows, exact + [-highspy.kHighsInf] * len(most), exact + most


def _watch(highs: highspy.Highs, deadline: Deadline) -> None:
    """Stop HiGHS when the search has to end."""

    def look(
        _kind: cb.HighsCallbackType,
        _message: str,
        _out: cb.HighsCallbackOutput,
        into: cb.HighsCallbackInput | None,
        _data: object,
    ) -> None:
        if into is not None and deadline.over:
            into.user_interrupt = True

    highs.setCallback(look, None)
    for kind in (
        cb.HighsCallbackType.kCallbackMipInterrupt,
        cb.HighsCallbackType.kCallbackSimplexInterrupt,
    ):
        highs.startCallback(kind)
