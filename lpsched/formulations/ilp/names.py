"""Names of variables and rows: readable, legal in LP and MPS files, unique."""

from __future__ import annotations

import re

__all__ = ["Names"]

_ILLEGAL = re.compile(r"[^A-Za-z0-9_.]+")

#: PuLP refuses longer names in LP files at 100 characters; a suffix must fit.
LONGEST = 90


class Names:
    """Gives out names; the only place where an id becomes part of one.

    PuLP silently replaces what its files cannot hold, so that distinct ids may
    collide (``a-b`` and ``a_b``); here a second taker gets a number.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def make(self, *parts: str | None) -> str:
        """Return ``rule_part_part``; None stands for no device."""
        words = "_".join("none" if part is None else part for part in parts)
        stem = _ILLEGAL.sub("_", words)[:LONGEST]
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}.{number}"
        self._taken.add(name)
        return name
