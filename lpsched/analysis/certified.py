"""A lower bound of an objective together with the proof that it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lpsched.core.result import Proof

__all__ = ["Bound", "ceil_div", "certified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """No valid schedule has a value of `objective` below `value`.

    Attributes
    ----------
    objective : str
        ``period``, ``communication``, ``staleness``, ``peak_memory`` or ``makespan``.
    value : int
        In the objective's unit.
    proof : Proof
        Its certificate is plain JSON data that can be checked without a solver.
    """

    objective: str
    value: int
    proof: Proof


def certified(
    objective: str, kind: str, value: int, certificate: Mapping[str, Any]
) -> Bound:
    """Make a bound whose proof is a certificate of some kind."""
    proof = Proof(kind=kind, value=value, certificate=certificate)
    return Bound(objective=objective, value=value, proof=proof)


def ceil_div(value: int, by: int) -> int:
    """``ceil(value / by)`` for by > 0."""
    return -(-value // by)
