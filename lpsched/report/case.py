"""What a report is made of: problems, and the methods' answers to each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lpsched.core.graph import Graph
from lpsched.core.result import Proof
from lpsched.solve import Comparison, Front

__all__ = ["Case"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem and the answers to it.

    Attributes
    ----------
    rows : Comparison
        One row a method, all of the same graph.
    rounding : mapping or None
        What scaling real costs to ticks did, as files state it.
    """

    graph: Graph
    rows: Comparison
    rounding: Mapping[str, Any] | None = None
    front: Front | None = None

    @property
    def title(self) -> str:
        """Name of the problem and number of its devices."""
        count = len(self.graph.devices)
        return f"{self.graph.name} on {count} device{'' if count == 1 else 's'}"

    @property
    def proof(self) -> Mapping[str, Proof]:
        """Return the proofs of the best row that has some."""
        return next((row.proof for row in self.rows if row.proof), {})
