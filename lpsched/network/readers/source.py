"""What every reader of another tool's file needs: faults, names, numbers, result."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import PurePath
from typing import Generic, TypeVar

from lpsched.errors import Fault, FormatError

__all__ = [
    "MAX_NODES",
    "FaultLog",
    "Imported",
    "fraction",
    "nearest",
    "network_name",
    "seen",
    "unique_names",
]

#: A file with more nodes is taken for a mistake: no network is scheduled so finely.
MAX_NODES = 100_000
#: The first faults of a file; more of them help nobody.
MAX_FAULTS = 50

_NUMBER = re.compile(r"(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?")

Document_co = TypeVar("Document_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported(Generic[Document_co]):
    """What was read, and what people should know of how.

    Attributes
    ----------
    document : Network or Graph
        What the file holds.
    remarks : tuple of str
        What was left out, assumed or rounded, in sentences.
    """

    document: Document_co
    remarks: tuple[str, ...] = ()


@dataclass(slots=True)
class FaultLog:
    """The faults of one file, each with its line or path; the first ones only."""

    source: str
    faults: list[Fault] = field(default_factory=list)
    untold: int = 0

    def add(self, where: int | str, message: str) -> None:
        """Note a fault at a line (a number) or a path."""
        if len(self.faults) >= MAX_FAULTS:
            self.untold += 1
            return
        path = f"line {where}" if isinstance(where, int) else where
        self.faults.append(Fault(path, message))

    def fail(self, where: int | str, message: str) -> FormatError:
        """Note a fault after which nothing more can be read; return the error."""
        self.add(where, message)
        return self.error()

    def error(self) -> FormatError:
        """Return all of it as an error."""
        more = [Fault("", f"and {self.untold} faults more")] if self.untold else []
        return FormatError([*self.faults, *more], source=self.source)

    def check(self) -> None:
        """Raise what has been noted, if anything.

        Raises
        ------
        FormatError
            With every fault noted so far.
        """
        if self.faults:
            raise self.error()


def fraction(text: str) -> Fraction | None:
    """Read a decimal number >= 0 exactly; None if the text is no such number."""
    return Fraction(text) if _NUMBER.fullmatch(text) else None


def nearest(number: Fraction) -> int:
    """Round to the nearest integer, halves up.

    >>> nearest(Fraction(5, 2))
    3
    """
    return int((2 * number + 1) // 2)


def seen(text: str) -> str:
    """Quote what stands in a file; a long text only in part."""
    return repr(text) if len(text) <= 60 else repr(text[:57] + "...")


def network_name(source: str) -> str:
    """Name a network after its file; after its folder where the file is `graph.txt`."""
    path = PurePath(source)
    stem = path.parent.name if path.stem == "graph" and path.parent.name else path.stem
    return _clean(stem) or "network"


def unique_names(texts: Iterable[str]) -> list[str]:
    """Names of layers that files may use, as near to the texts as they can be.

    Characters other than letters, digits, ``_`` and ``-`` become ``_``; a name that
    is taken gets a number.

    >>> unique_names(["conv/1", "conv.1", ""])
    ['conv_1', 'conv_1_2', 'layer']
    """
    taken: set[str] = set()
    count: dict[str, int] = {}
    names = []
    for text in texts:
        plain = _clean(text) or "layer"
        name = plain
        while name in taken:
            count[plain] = count.get(plain, 1) + 1
            name = f"{plain}_{count[plain]}"
        taken.add(name)
        names.append(name)
    return names


def _clean(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")
