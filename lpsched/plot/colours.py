"""The colour and the name of each kind of op, the same in every picture."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["INK", "KINDS", "OTHER", "PALE", "QUIET", "KindStyle", "style_of"]

#: Text and rules: black enough to read, grey for what is secondary, pale for paper.
INK, QUIET, PALE = "#1a1a1a", "#5f6368", "#f1f3f4"


@dataclass(frozen=True, slots=True)
class KindStyle:
    """How a kind of op is shown: `name` in legends, `colour` as ``#rrggbb``."""

    name: str
    colour: str


# Okabe and Ito (2008), "Color Universal Design": told apart with every common
# colour blindness. Black text on each has a contrast of at least 5.
KINDS = {
    "F": KindStyle("F forward", "#56b4e9"),
    "I": KindStyle("I input gradient", "#e69f00"),
    "W": KindStyle("W weight gradient", "#009e73"),
    "B": KindStyle("B backward (I and W)", "#d55e00"),
    "U": KindStyle("U update", "#cc79a7"),
}
OTHER = KindStyle("other", "#b0b0b0")


def style_of(kind: str) -> KindStyle:
    """Return the style of a kind; all kinds of general graphs share one."""
    return KINDS.get(kind, OTHER)
