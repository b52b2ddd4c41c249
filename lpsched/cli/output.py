"""What people and programs see: tables and JSON on stdout, the rest on stderr."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from lpsched.cli.options import Manner
from lpsched.core.io import write_text
from lpsched.errors import Fault, InstanceError
from lpsched.plot.figures import number, percent

__all__ = [
    "complain",
    "counted",
    "keys_of",
    "note",
    "note_all",
    "number",
    "percent",
    "print_document",
    "print_json",
    "print_table",
    "print_text",
    "printable",
    "require_writable",
    "save_text",
    "table_csv",
    "wrote",
]


def complain(text: str) -> None:
    """Write one line to stderr, with the program's name."""
    line = _escaped(text).replace("\n", "\\n")
    print(f"lpsched: {line}", file=sys.stderr)  # noqa: T201 - the command line


def complain_of(conflict: Mapping[str, Any] | None) -> None:
    """Say why a problem has no schedule, and which rules conflict, if it is known."""
    if conflict is not None:
        complain(f"infeasible: {conflict['reason']}")
        complain(f"rules in conflict: {', '.join(conflict['rules'])}")


def _escaped(text: str) -> str:
    """Write out control characters, which could drive a terminal; keep line feeds."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode()
        for c in text
    )


def note(text: str, *, quiet: bool = False) -> None:
    """Write a remark to stderr unless told to be quiet."""
    if not quiet:
        print(_escaped(text), file=sys.stderr)  # noqa: T201 - the command line


def note_all(texts: Iterable[str], *, quiet: bool = False) -> None:
    """Write remarks to stderr, a line each."""
    for text in texts:
        note(text, quiet=quiet)


def wrote(
    path: Path, manner: Manner, summary: str = "written", **facts: object
) -> None:
    """Tell that a file was written, where that is all there is to tell.

    To people by a remark, to programs (``--json``) by the one document on stdout.
    """
    if manner.json:
        print_json({"output": str(path), **facts})
    note(f"{path}: {summary}", quiet=manner.quiet)


def print_text(text: str) -> None:
    """Write text for people to stdout."""
    print_document(printable(text))


def print_document(text: str) -> None:
    """Write a file's text to stdout, as it is."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def print_json(document: object) -> None:
    """Write one JSON document to stdout."""
    print_document(json.dumps(document, indent=2, ensure_ascii=False))


def print_table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[str]],
    *,
    title: str | None = None,
    least: Sequence[str] = (),
) -> None:
    """Write a table to stdout.

    Parameters
    ----------
    columns : sequence of (heading, justification)
        Justification is ``left`` or ``right``.
    least : sequence of str
        Headings that a narrow terminal may drop, the least important first.
    """
    terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout,
        width=None if terminal else WIDE,
        markup=False,
        highlight=False,
    )
    shown = [i for i, _ in enumerate(columns)]
    table = _table(columns, rows, shown)
    for heading in least:
        if Measurement.get(_WIDE, _WIDE.options, table).maximum <= console.width:
            break
        shown = [i for i in shown if columns[i][0] != heading]
        table = _table(columns, rows, shown)
    if title is not None:
        print_text(title)
    console.print(table)
    dropped = [heading for i, (heading, _) in enumerate(columns) if i not in shown]
    if dropped:
        print_text(f"(a wider terminal also shows {', '.join(dropped)})")
    sys.stdout.flush()


#: Columns of text where no terminal says otherwise.
WIDE = 200
_WIDE = Console(width=10 * WIDE)


def _table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[str]],
    shown: Sequence[int],
) -> Table:
    table = Table()
    for i in shown:
        heading, justify = columns[i]
        table.add_column(
            heading,
            justify="right" if justify == "right" else "left",
            no_wrap=justify == "right",
        )
    for row in rows:
        table.add_row(*(printable(row[i]) for i in shown))
    return table


def printable(text: str) -> str:
    """Return text without control characters, which could drive a terminal."""
    return "".join(
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


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


def require_writable(*paths: Path | None) -> None:
    """Refuse output paths that cannot be written, before any work is done."""
    faults = []
    for path in paths:
        if path is None:
            continue
        if path == Path("-"):
            text = "expected a file; what can go to standard output goes there anyway"
            faults.append(Fault("-", text))
            continue
        folder = path.parent
        if path == Path():  # what an empty text becomes
            text = "expected a file to write, got no name, or this folder's"
            faults.append(Fault("output", text))
        elif path.is_dir():
            faults.append(Fault(str(path), "cannot be written: it is a folder"))
        elif not folder.is_dir():
            faults.append(Fault(str(path), f"cannot be written: no folder {folder}"))
        elif not os.access(folder, os.W_OK):
            text = f"cannot be written: no permission in {folder}"
            faults.append(Fault(str(path), text))
    named = [path for path in paths if path is not None]
    if len(set(named)) < len(named):
        faults.append(Fault(str(named[0]), "named for two outputs"))
    if faults:
        raise InstanceError(faults)


def counted(count: int, noun: str) -> str:
    """Say how many there are: 1 violation, 2 violations."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def keys_of(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Keys of all rows, in order of first appearance."""
    return list(dict.fromkeys(key for row in rows for key in row))
