"""The facade: bounds, incumbents, back ends, lexicographic order, proofs."""

from lpsched.solve.compare import (
    DEFAULT_METHODS,
    PIPELINE_METHODS,
    compare,
    compare_schedules,
    method_names,
)
from lpsched.solve.facade import pin, solve, solve_by_method
from lpsched.solve.params import BACKENDS, Report, Snapshot, SolveParams
from lpsched.solve.pareto import Front, Point, pareto_front
from lpsched.solve.relax import with_memory
from lpsched.solve.rows import OVER_MEMORY, Comparison, Row

__all__ = [
    "BACKENDS",
    "DEFAULT_METHODS",
    "OVER_MEMORY",
    "PIPELINE_METHODS",
    "Comparison",
    "Front",
    "Point",
    "Report",
    "Row",
    "Snapshot",
    "SolveParams",
    "compare",
    "compare_schedules",
    "method_names",
    "pareto_front",
    "pin",
    "solve",
    "solve_by_method",
    "with_memory",
]
