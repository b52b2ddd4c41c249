"""The figures of a schedule as data; who computes them, and how, is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from lpsched.core.graph import DeviceId

__all__ = ["Measures"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What formats.md measures of a schedule.

    `lpsched.verify.measure` and `lpsched.analysis.metrics.measure` each compute
    this, sharing no code; the tests hold them against each other.

    Attributes
    ----------
    period : int
        T, in ticks.
    iteration_period : Fraction
        T / unfolding, in ticks.
    communication : int
        Size of all tensors sent in a period, in the graph's size unit.
    staleness : int
        Sum over named delays of (value - 1), in iterations.
    makespan : int
        Last end - first start of one iteration, in ticks.
    peak_memory : int
        The highest peak of a device, in the graph's size unit.
    bubble_ratio : Fraction
        1 - total load / (devices * T); 0 for a graph without devices.
    utilisation : mapping of DeviceId to Fraction
        Load / T of each device.
    """

    period: int
    iteration_period: Fraction
    communication: int
    staleness: int
    makespan: int
    peak_memory: int
    bubble_ratio: Fraction
    utilisation: Mapping[DeviceId, Fraction]

    def figures(self) -> dict[str, int | str]:
        """Return them as `result.objective` states them: fractions as ``"7/2"``."""
        return {
            "period": self.period,
            "iteration_period": str(self.iteration_period),
            "communication": self.communication,
            "staleness": self.staleness,
            "makespan": self.makespan,
            "peak_memory": self.peak_memory,
            "bubble_ratio": str(self.bubble_ratio),
        }
