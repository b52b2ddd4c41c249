"""Whether work has to end: what everything that may take long is given to ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Over", "never"]

#: Says whether to come to an end now, by a clock or an interrupt.
Over: TypeAlias = Callable[[], bool]


def never() -> bool:
    """Let work take the time that it takes."""
    return False
