"""Stored instances, solved again and set against their best known values."""

from lpsched.bench.cases import Case, find_cases
from lpsched.bench.known import improved, store_known, update
from lpsched.bench.results import load_rows, save_rows
from lpsched.bench.row import Row, Verdict, judged
from lpsched.bench.run import run_case, run_cases

__all__ = [
    "Case",
    "Row",
    "Verdict",
    "find_cases",
    "improved",
    "judged",
    "load_rows",
    "run_case",
    "run_cases",
    "save_rows",
    "store_known",
    "update",
]
