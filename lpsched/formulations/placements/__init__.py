"""Placements listed by communication; each refuted, or timed by another back end."""

from lpsched.formulations.placements.solve import solve_by_placements

__all__ = ["solve_by_placements"]
