"""Placements listed by communication; each refuted, or timed by another back end."""

from lpsched.formulations.placements.solve import ByPlacements

__all__ = ["ByPlacements"]
