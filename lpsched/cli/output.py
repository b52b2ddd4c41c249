"""What people and programs see: tables and JSON on stdout, the rest on stderr."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lpsched.core.io import write_text
from lpsched.errors import Fault, InstanceError

__all__ = [
    "complain",
    "keys_of",
    "note",
    "number",
    "percent",
    "print_json",
    "print_table",
    "print_text",
    "save_text",
    "table_csv",
]


def complain(text: str) -> None:
    """Write a line to stderr, with the program's name."""
    print(f"lpsched: {text}", file=sys.stderr)  # noqa: T201 - the command line


def note(text: str, *, quiet: bool = False) -> None:
    """Write a remark to stderr unless told to be quiet."""
    if not quiet:
        print(text, file=sys.stderr)  # noqa: T201 - the command line


def print_text(text: str) -> None:
    """Write text to stdout."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def print_json(document: object) -> None:
    """Write one JSON document to stdout."""
    print_text(json.dumps(document, indent=2, ensure_ascii=False))


def print_table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[str]],
    *,
    title: str | None = None,
) -> None:
    """Write a table to stdout.

    Parameters
    ----------
    columns : sequence of (heading, justification)
        Justification is ``left`` or ``right``.
    """
    table = Table(title=title, title_justify="left")
    for heading, justify in columns:
        table.add_column(
            heading,
            justify="right" if justify == "right" else "left",
            no_wrap=justify == "right",
        )
    for row in rows:
        table.add_row(*row)
    terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout, width=None if terminal else 200, markup=False, highlight=False
    )
    console.print(table)
    sys.stdout.flush()


def table_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as CSV text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()


def save_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; a path that cannot be written is bad input."""
    try:
        write_text(path, text)
    except OSError as error:
        fault = Fault(str(path), f"cannot be written: {error.strerror}")
        raise InstanceError([fault]) from error


def number(value: float | None) -> str:
    """Show an integer with thousands separators; a dash for nothing."""
    return "–" if value is None else f"{value:,}"


def percent(value: float | None, digits: int = 1) -> str:
    """Show a share as a percentage; a dash for nothing."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def keys_of(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Keys of all rows, in order of first appearance."""
    return list(dict.fromkeys(key for row in rows for key in row))
