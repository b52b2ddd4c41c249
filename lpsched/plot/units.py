"""Large integers in engineering notation: 5,797,052,416 MAC as 5.797 G MAC."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Scale", "scale_of"]

PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")
#: Below this a number is short enough as it is.
PLAIN_BELOW = 10_000


@dataclass(frozen=True, slots=True)
class Scale:
    """A power of 1000 and its SI prefix."""

    factor: int
    prefix: str

    def unit(self, unit: str) -> str:
        """Return the scaled unit, such as ``G MAC``."""
        return f"{self.prefix} {unit}".strip()

    def number(self, value: int) -> float:
        """Return `value` in scaled units."""
        return value / self.factor

    def text(self, value: int, unit: str) -> str:
        """Return `value` to four digits with its unit; exact if not scaled."""
        if self.factor == 1:
            return f"{value} {unit}".strip()
        return f"{self.number(value):.4g} {self.unit(unit)}"


def scale_of(value: int) -> Scale:
    """Return the scale in which `value` has one to three digits before the point."""
    size = abs(value)
    if size < PLAIN_BELOW:
        return Scale(1, "")
    power = min((len(str(size)) - 1) // 3, len(PREFIXES) - 1)
    return Scale(1000**power, PREFIXES[power])
