"""What a rank needs to run a schedule, and what it tells: plain data, no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Job", "Naps", "Span"]

#: Seconds that each pass of a stand-in sleeps: by kind and stage, then microbatch.
Naps = Mapping[tuple[str, int], Sequence[float]]


class Span(NamedTuple):
    """One pass as it ran; times in nanoseconds of the machine's clock."""

    iteration: int
    kind: str
    stage: int
    microbatch: int | None
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Job:
    """One schedule to run on some ranks.

    Attributes
    ----------
    communication : bool
        If true, the table says what is sent.
    homes : tuple of int
        Rank of each stage.
    blocks : tuple of int
        How many blocks of the model each stage has, in order.
    model : str or None
        MODULE:FUNCTION; None for a stand-in whose passes sleep for `naps`.
    updates : frozenset of int
        Stages that run an optimizer's step after their gradients.
    flush : bool
        If true, ranks wait for each other before each iteration.
    iterations : int
        Measured ones; one more runs before them.
    folder : str
        Where the table of actions, inputs and weights are read and gradients written.
    """

    communication: bool
    homes: tuple[int, ...]
    microbatches: int
    blocks: tuple[int, ...]
    model: str | None
    naps: Naps
    updates: frozenset[int]
    flush: bool
    iterations: int
    seed: int
    folder: str

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return 1 + max(self.homes)
