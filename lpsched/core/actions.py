"""What PyTorch's pipelining runs: a row of cells for each rank, an action or more each.

The letters are PyTorch's: F forward, I gradient of the input, W gradient of the
weights, B both at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

__all__ = ["COMMUNICATION", "COMPUTE", "SHARDING", "Action", "Cell", "Table"]

#: Kinds that compute, that communicate, and that FSDP and data parallelism need.
COMPUTE = ("F", "I", "W", "B")
COMMUNICATION = ("SEND_F", "RECV_F", "SEND_B", "RECV_B")
SHARDING = ("UNSHARD", "RESHARD", "REDUCE_GRAD")


class Action(NamedTuple):
    """One step of a stage on a microbatch (None for those of `SHARDING`)."""

    stage: int
    kind: str
    microbatch: int | None = None

    def __str__(self) -> str:
        number = "" if self.microbatch is None else self.microbatch
        return f"{self.stage}{self.kind}{number}"


class Cell(NamedTuple):
    """A cell of the table: no action if it is blank, several if they overlap."""

    rank: int
    step: int
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        text = ";".join(map(str, self.actions))
        return text if len(self.actions) < 2 else f"({text})OVERLAP_F_B"

    @property
    def place(self) -> str:
        """Where the cell stands, for people."""
        return f"rank {self.rank}, step {self.step}"


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of all ranks, in the order of the ranks."""

    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, rows: Iterable[Iterable[tuple[Action, ...]]]) -> Table:
        """Build a table from the actions of each cell."""
        return cls(
            rows=tuple(
                tuple(Cell(rank, step, actions) for step, actions in enumerate(row))
                for rank, row in enumerate(rows)
            )
        )

    def placed(self) -> Iterator[tuple[Cell, Action]]:
        """Every action with its cell, rank after rank."""
        for row in self.rows:
            for cell in row:
                for action in cell.actions:
                    yield cell, action

    @cached_property
    def has_communication(self) -> bool:
        """Tell whether the table spells out what is sent (``compute_comms``)."""
        return any(action.kind not in COMPUTE for _, action in self.placed())

    @cached_property
    def stages(self) -> int:
        """Number of stages: one more than the greatest."""
        return 1 + max((action.stage for _, action in self.placed()), default=-1)

    @cached_property
    def microbatches(self) -> int:
        """Number of microbatches: one more than the greatest."""
        numbers = (action.microbatch for _, action in self.placed())
        return 1 + max((n for n in numbers if n is not None), default=-1)

    @cached_property
    def rank_of_stage(self) -> dict[int, int]:
        """The rank on which each stage first appears."""
        found: dict[int, int] = {}
        for cell, action in self.placed():
            found.setdefault(action.stage, cell.rank)
        return found
