"""Lines of a JSON document at which the entries of its lists begin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from lpsched.errors import Fault

__all__ = ["with_lines"]

_PATH = re.compile(r"(\w+)\[(\d+)\]")


def with_lines(faults: list[Fault], text: str) -> list[Fault]:
    """Name the line beside the path: ``line 14, nodes[3].size``.

    Parameters
    ----------
    text : str
        The document, a JSON mapping.
    """
    matches = [_PATH.match(fault.path) for fault in faults]
    keys = {found.group(1) for found in matches if found}
    lines = {key: list(_lines(text, key)) for key in keys}
    told = []
    for fault, found in zip(faults, matches, strict=True):
        path = fault.path
        if found and int(found.group(2)) < len(lines[found.group(1)]):
            line = lines[found.group(1)][int(found.group(2))]
            path = f"line {line}, {path}"
        told.append(Fault(path, fault.message))
    return told


def _lines(text: str, wanted: str) -> Iterator[int]:
    """Lines of the entries of one list, if the text is a JSON mapping with it."""
    decode = json.JSONDecoder().raw_decode
    place = _skip(text, _skip(text, 0) + 1)
    while text[place] != "}":
        key, place = decode(text, place)
        place = _skip(text, place, ":")
        if key == wanted and text[place] == "[":
            yield from _entry_lines(text, place)
        _, place = decode(text, place)
        place = _skip(text, place)


def _entry_lines(text: str, place: int) -> Iterator[int]:
    """Lines of the entries of the list that begins at a place."""
    decode = json.JSONDecoder().raw_decode
    line, before, place = 1, 0, _skip(text, place + 1)
    while text[place] != "]":
        line += text.count("\n", before, place)
        before = place
        yield line
        _, place = decode(text, place)
        place = _skip(text, place)


def _skip(text: str, place: int, mark: str = ",") -> int:
    """Pass over white space and one kind of mark."""
    while text[place].isspace() or text[place] == mark:
        place += 1
    return place
