"""Figures for people: thousands apart, shares in percent, a dash for nothing."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["factor", "number", "percent"]


def number(value: float | None) -> str:
    """Show an integer with thousands separators; a dash for nothing."""
    return "–" if value is None else f"{value:,}"


def percent(value: float | None, digits: int = 1) -> str:
    """Show a share as a percentage; a dash for nothing."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def factor(value: Fraction | None) -> str:
    """Show how many times as fast; a dash for nothing."""
    return "–" if value is None else f"{float(value):.3f}×"
