"""The least sum of named delays for given phases: laps by linear programming."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lpsched.analysis.linear import LinearProgram, Row
from lpsched.analysis.precedence import PlacedGraph
from lpsched.core.graph import DelayName
from lpsched.errors import SolverError

__all__ = ["least_delay_sum"]

#: Far above HiGHS's feasibility tolerance, far below the least step of a vertex.
_TOLERANCE = 1e-4


def least_delay_sum(
    placed: PlacedGraph, period: int, phases: Sequence[int]
) -> dict[DelayName, int]:
    r"""Named delays of least sum with which some laps keep every precedence.

    With phases φ given, an arc u → v needs
    :math:`n_{uv} = \lceil (\varphi_u + t_u + c + lag - \varphi_v) / T \rceil` laps:

    .. math:: \min \sum_d \delta_d \quad\text{s.t.}\quad
        r_v - r_u + \delta_d \ge n_{uv},\; r_v - r_u + k \ge n_{uv},\;
        \delta_d^{min} \le \delta_d \le \delta_d^{max}

    If all uses of each delay have one producer in common (the weights of a layer whose
    W is whole), δ = r_u - σ turns all rows into differences: the matrix is totally
    unimodular and the vertex found is integral, hence exact. Otherwise a delay may
    come out fractional and is rounded up: still valid, since differences bounded by
    integers have an integer solution if any.

    Parameters
    ----------
    placed : PlacedGraph
        Some laps must exist for the greatest delays.
    phases : sequence of int
        A phase for every op, in the order of ``placed.ops``, in ticks.
    """
    ranges = placed.graph.delays
    first = len(placed.ops)
    column = {name: first + i for i, name in enumerate(ranges)}
    needs: dict[tuple[int, int, int | DelayName], int] = {}
    for arc in (*placed.arcs, *placed.ties):
        late = phases[arc.src] + arc.ticks - phases[arc.dst]
        key, need = (arc.src, arc.dst, arc.delay), -(-late // period)
        needs[key] = max(needs.get(key, need), need)
    rows = [_row(key, need, column) for key, need in needs.items()]
    rows += [
        Row([column[name]], [1], d.min, math.inf if d.max is None else d.max)
        for name, d in ranges.items()
    ]
    program = LinearProgram([0] * first + [1] * len(ranges))
    program.add(row for row in rows if row.columns)
    solution = program.minimise()
    if solution is None:
        raise SolverError("HiGHS finds no laps where longest paths gave some")
    return {name: math.ceil(solution.x[i] - _TOLERANCE) for name, i in column.items()}


def _row(
    key: tuple[int, int, int | DelayName], need: int, column: dict[DelayName, int]
) -> Row:
    """Write the row of an arc; without columns for a self-loop of plain delay."""
    u, v, delay = key
    columns, values = ([], []) if u == v else ([v, u], [1, -1])
    if isinstance(delay, int):
        return Row(columns, values, need - delay)
    return Row([*columns, column[delay]], [*values, 1], need)
