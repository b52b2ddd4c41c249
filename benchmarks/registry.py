"""The families of the benchmark, each a function that prints its own table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

__all__ = ["FAMILIES", "family", "table"]

#: Name to function; filled by the modules that define families.
FAMILIES: dict[str, Callable[[float], None]] = {}


def family(
    name: str,
) -> Callable[[Callable[[float], None]], Callable[[float], None]]:
    """Register a family; it gets the seconds that one search may take."""

    def register(function: Callable[[float], None]) -> Callable[[float], None]:
        FAMILIES[name] = function
        return function

    return register


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table in plain text."""
    cells = [list(heads), *([str(c) for c in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    lines = [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells
    ]
    sys.stdout.write("\n".join(["", title, *lines, ""]))
    sys.stdout.flush()
