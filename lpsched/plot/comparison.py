"""A comparison as people read it: the columns of its table and the cells of a row."""

from __future__ import annotations

from fractions import Fraction

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
        ("makespan", "right"),
        ("communication", "right"),
        ("staleness", "right"),
        ("peak memory", "right"),
        ("idle/period", "right"),
        ("idle/work", "right"),
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
        number(value("makespan")),
        number(value("communication")),
        number(value("staleness")),
        number(value("peak_memory")),
        _share(row.bubble_ratio),
        _share(row.bubble_to_work),
        row.status,
        f"{row.seconds:.1f}",
        "yes" if row.verified else "–",
    ]


def _share(value: Fraction | None) -> str:
    return percent(None if value is None else float(value))
