"""The best placement and the best bound so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lpsched.analysis.certified import ceil_div
from lpsched.analysis.sites import Sites
from lpsched.core.graph import DeviceId, OpId
from lpsched.core.result import Proof
from lpsched.errors import SolverError
from lpsched.formulations.api import Limits, Progress
from lpsched.formulations.balance.items import Problem, Where
from lpsched.formulations.deadline import Deadline

__all__ = ["State"]


class State:
    """What the steps of one search share and improve.

    Attributes
    ----------
    lower : int
        A lower bound of the period proved elsewhere, in ticks.
    proof : Proof
        Of the best bound found here.
    weights : tuple of int
        Weights of the devices that bound the work best, y in `patterns`.
    """

    def __init__(
        self,
        sites: Sites,
        problem: Problem,
        *,
        limits: Limits,
        deadline: Deadline,
        lower: int,
        progress: Progress | None,
    ) -> None:
        self.sites = sites
        self.problem = problem
        self.limits = limits
        self.deadline = deadline
        self.lower = lower
        self.proof = Proof(kind="trivial", value=1)
        self.weights = (1,) * len(problem.devices)
        self.stats: dict[str, Any] = {}
        self.placement: Mapping[OpId, DeviceId] = {}
        self._progress = progress
        self._where: Where | None = None
        self._loads: list[int] = []

    # -- placements ------------------------------------------------------------
    @property
    def where(self) -> Where:
        """The best placement; there must be one."""
        if self._where is None:
            raise ValueError("no placement has been offered yet")
        return self._where

    @property
    def highest(self) -> int:
        """The highest load of the best placement, in units."""
        return self._loads[0] if self._loads else 0

    @property
    def period(self) -> int:
        """The least period that the best placement allows, in ticks."""
        return max(self.highest * self.problem.unit, self.lower, 1)

    def offer(
        self, where: Where, *, given: Mapping[OpId, DeviceId] | None = None
    ) -> bool:
        """Keep a placement if it is the first or better; tell whether it was.

        Better is the one of lower loads, the highest compared first.

        Parameters
        ----------
        given : mapping, optional
            The same placement by ids, kept as it is.
        """
        loads = sorted(self.problem.loads(where), reverse=True)
        if self._where is not None and loads >= self._loads:
            return False
        shorter = self._where is None or loads[:1] < self._loads[:1]
        self._where, self._loads = where, loads
        if shorter:
            self.placement = given or self.problem.placement(where)
            self._check()
            self._report()
        return True

    # -- bounds ----------------------------------------------------------------
    @property
    def bound(self) -> int:
        """The best lower bound of the period, in ticks."""
        return max(self.proof.value or 1, self.lower)

    @property
    def goal(self) -> int:
        """The highest load that may be least, in units: none below is of use."""
        unit = self.problem.unit
        return max(ceil_div(self.proof.value or 1, unit), self.lower // unit)

    def raise_bound(self, proof: Proof) -> None:
        """Keep a proof if its bound is better than all known."""
        if (proof.value or 0) > self.bound:
            self.proof = proof
            self._check()
            self._report()

    def raise_by_exhaustion(self, load: int, **by: object) -> None:
        """Note that a search left no placement of highest load below `load` units."""
        value = load * self.problem.unit
        certificate = {**by, "refuted": value - 1}
        self.raise_bound(Proof(kind="exhaustion", value=value, certificate=certificate))

    # -- end -------------------------------------------------------------------
    @property
    def is_proved(self) -> bool:
        """Whether the best placement has the least period."""
        return self._where is not None and self.period == self.bound

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to do, or no time."""
        return self.is_proved or self.deadline.over

    def is_on(self, option: str) -> bool:
        """Whether a strengthening is on."""
        return self.limits.options.get(option, True)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a statistic."""
        self.stats[name] = self.stats.get(name, 0) + number

    def _report(self) -> None:
        if self._progress is not None and self._where is not None:
            self._progress(self.period, self.bound)

    def _check(self) -> None:
        if self._where is not None and self.bound > self.period:
            raise SolverError(
                f"a bound of {self.bound} on the period ({self.proof.kind}) contradicts"
                f" a placement of {self.period}"
            )
