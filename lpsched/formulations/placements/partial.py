"""Partial placements held against loops first, then against all paths and turns."""

from __future__ import annotations

import numpy as np

from lpsched.analysis.at_period import Bools, Ints
from lpsched.formulations.placements.closure import Closure
from lpsched.formulations.placements.loops import Homes, Loops
from lpsched.formulations.placements.problem import Problem

__all__ = ["Partial"]


class Partial:
    """Refutes partial placements; what it learns from some serves for others."""

    def __init__(self, problem: Problem, closure: Closure) -> None:
        self._problem, self._closure = problem, closure
        self._loops: dict[tuple[int, ...], Loops] = {}

    def unrefuted(self, homes: Ints, rest: tuple[int, ...]) -> Bools:
        """Tell which placements are not refuted.

        Parameters
        ----------
        homes : array (m, units) of int
            Device of each unit; P + 1 if it has none yet.
        rest : tuple of int
            Devices left to those, one of each class.
        """
        codes = self._closure.partial_codes(rest)
        if rest not in self._loops:
            self._loops[rest] = Loops(self._closure.weighed(codes.homes))
        unit = self._problem.unit_of
        nowhere = self._problem.at.num_devices
        of_ops = np.where(unit < 0, nowhere, homes[:, np.maximum(unit, 0)])
        alive = self._loops[rest].unrefuted(Homes(homes=of_ops.T.astype(np.uint8)))
        alive[alive] = self._closure.survivors(codes, of_ops[alive])
        return alive
