"""Rows in a file, so that a run can go on where it was interrupted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from lpsched.bench.row import Row
from lpsched.core.io import read_text, write_text
from lpsched.errors import Fault, FormatError

__all__ = ["load_rows", "row_document", "save_rows"]


@dataclass(frozen=True, kw_only=True)
class _Results:
    """The document of a results file."""

    schema: Literal["lpsched/bench/1"] = "lpsched/bench/1"
    rows: list[Row]


_RESULTS = TypeAdapter(_Results)
_ROW = TypeAdapter(Row)


def row_document(row: Row) -> dict[str, Any]:
    """Return a row as plain JSON data."""
    document: dict[str, Any] = _ROW.dump_python(row, mode="json")
    return document


def save_rows(rows: Iterable[Row], path: str | Path) -> None:
    """Write rows to a results file, whole or not at all."""
    results = _Results(rows=list(rows))
    write_text(path, _RESULTS.dump_json(results, indent=2).decode() + "\n")


def load_rows(path: str | Path) -> list[Row]:
    """Read the rows of `save_rows`.

    Raises
    ------
    FormatError
        The file cannot be read or holds something else.
    """
    try:
        return _RESULTS.validate_json(read_text(path)).rows
    except ValidationError as error:
        where = [".".join(map(str, e["loc"])) for e in error.errors()]
        faults = [
            Fault(place, e["msg"])
            for place, e in zip(where, error.errors(), strict=True)
        ]
        raise FormatError(faults, source=str(path)) from error
