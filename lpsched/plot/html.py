"""Tables as HTML: every text escaped, whatever a file's author called things."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["html_table"]


def html_table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
) -> str:
    """Return a ``<table>``.

    Parameters
    ----------
    columns : sequence of (heading, justification)
        Justification is ``left`` or ``right``; rows are names in the first column.
    """
    sides = [side for _, side in columns]
    head = "".join(
        f'<th scope="col" style="text-align:{side}">{escape(text)}</th>'
        for text, side in columns
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{side}">{escape(text)}</td>'
            for text, side in zip(row, sides, strict=True)
        )
        + "</tr>\n"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f"<table>{title}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"
    )
