"""How things show themselves in a notebook: one way, found when it is wanted."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Shown"]


class Shown:
    """Shows itself as a table and a chart where a notebook displays it.

    Pictures belong to a higher floor, `lpsched.plot.notebook`, which is looked up at
    that moment: nobody who does not display anything loads it.
    """

    __slots__ = ()

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        bundle: dict[str, Any] = import_module("lpsched.plot.notebook").bundle(self)
        return bundle
