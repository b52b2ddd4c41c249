"""A comparison as people read it: the columns of its table and the cells of a row."""

from __future__ import annotations

from lpsched.plot.figures import factor, number, percent
from lpsched.solve import Row

__all__ = ["cells", "columns"]


def columns(baseline: str) -> list[tuple[str, str]]:
    """Return headings with ``left`` or ``right``."""
    return [
        ("devices", "right"),
        ("method", "left"),
        ("period", "right"),
        (f"vs {baseline}", "right"),
        ("gap to bound", "right"),
        ("communication", "right"),
        ("staleness", "right"),
        ("peak memory", "right"),
        ("utilisation", "right"),
        ("status", "left"),
        ("seconds", "right"),
        ("verified", "left"),
    ]


def cells(row: Row) -> list[str]:
    """Return a row's texts, one for each of the `columns`."""
    value = row.objective.get
    return [
        str(row.devices),
        row.method,
        number(value("period")),
        factor(row.speedup),
        percent(row.gap, 2),
        number(value("communication")),
        number(value("staleness")),
        number(value("peak_memory")),
        percent(None if row.utilisation is None else float(row.utilisation)),
        row.status,
        f"{row.seconds:.1f}",
        "yes" if row.verified else "–",
    ]
