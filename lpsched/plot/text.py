"""Widths of text in points, and what fits: measured, never guessed."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["FAMILY", "shorten", "width", "wrap"]

#: The family that matplotlib brings along, so that a width holds on every machine.
FAMILY = "DejaVu Sans"


@lru_cache(maxsize=20_000)
def width(text: str, size: float, *, bold: bool = False) -> float:
    """Width of a line of text in points."""
    from matplotlib.font_manager import FontProperties  # noqa: PLC0415 - optional
    from matplotlib.textpath import TextToPath  # noqa: PLC0415 - optional

    weight = "bold" if bold else "normal"
    font = FontProperties(family=FAMILY, size=size, weight=weight)
    measured, _, _ = TextToPath().get_text_width_height_descent(
        text, font, ismath=False
    )
    return float(measured)


def shorten(text: str, size: float, limit: float, *, bold: bool = False) -> str:
    """Return `text`, its end cut off (``…``) if it is wider than `limit` points."""
    if width(text, size, bold=bold) <= limit:
        return text
    kept = len(text)
    while kept and width(text[:kept] + "…", size, bold=bold) > limit:
        kept -= 1
    return text[:kept] + "…"


def wrap(text: str, size: float, limit: float) -> list[str]:
    """Break `text` at spaces into lines of at most `limit` points."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width(longer, size) <= limit:
            lines[-1] = longer
        else:
            lines.append(shorten(word, size, limit))
    return lines
