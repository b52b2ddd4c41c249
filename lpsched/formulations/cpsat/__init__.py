"""Exact back end: the modulo model at a fixed period in CP-SAT."""

from lpsched.formulations.cpsat.build import Model, build
from lpsched.formulations.cpsat.extract import extract
from lpsched.formulations.cpsat.solve import solve_at_period

__all__ = ["Model", "build", "extract", "solve_at_period"]
