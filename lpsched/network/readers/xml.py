"""XML as its elements, one after the other, with their lines; nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from lpsched.errors import FormatError
from lpsched.network.readers.source import FaultLog

__all__ = ["Element", "elements"]


@dataclass(slots=True)
class Element:
    """An element with all that stands in it.

    Attributes
    ----------
    name : str
        Without its namespace.
    line : int
        Where it begins.
    text : str
        The text directly inside it.
    """

    name: str
    line: int
    attributes: Mapping[str, str]
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def named(self, name: str) -> Iterator[Element]:
        """Children of a name."""
        return (child for child in self.children if child.name == name)


def elements(
    text: str, *, source: str, most: Mapping[str, int] | None = None
) -> Element:
    """Parse an XML document of at most so many elements of a name; return its root.

    A document type declaration is refused: it could name other files or grow without
    bound.

    Raises
    ------
    FormatError
        If the text is no well-formed XML, or too long, with the line.
    """
    return _Builder(source, most or {}).parse(text)


class _Builder:
    """Keeps the open elements while expat walks through the text."""

    def __init__(self, source: str, most: Mapping[str, int]) -> None:
        self._log = FaultLog(source)
        self._left = dict(most)
        self._parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._open = [Element("", 0, {})]

    def parse(self, text: str) -> Element:
        try:
            self._parser.Parse(text.encode("utf-8"), True)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            raise self._log.fail(error.lineno, f"not XML: {what}") from error
        return self._open[0].children[0]

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        element = Element(name.rpartition(" ")[2], line, attributes)
        if element.name in self._left:
            self._left[element.name] -= 1
            if self._left[element.name] < 0:
                text = f"more elements <{element.name}> than are read"
                raise self._log.fail(line, f"{text}: taken for a mistake")
        self._open[-1].children.append(element)
        self._open.append(element)

    def _end(self, _name: str) -> None:
        self._open.pop()

    def _characters(self, text: str) -> None:
        self._open[-1].text += text

    def _doctype(self, *_: object) -> None:
        raise self._refusal()

    def _refusal(self) -> FormatError:
        line = self._parser.CurrentLineNumber
        return self._log.fail(line, "a document type declaration is not allowed")
