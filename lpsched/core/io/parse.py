"""Text to plain data: JSON and YAML, with nothing that JSON cannot say."""

from __future__ import annotations

import json
import math
import re
import reprlib
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from lpsched.core.io.faults import path_text
from lpsched.errors import Fault, FormatError

__all__ = ["parse_json", "parse_text", "read_bytes", "read_document", "read_text"]


#: More of a file is not read: a device such as /dev/zero never ends.
_MAX_MEBIBYTES = 256
_CHUNK = 2**20

#: A few aliases of aliases can stand for more values than memory holds.
_MAX_VALUES = 5_000_000
_CHARACTERS_A_VALUE = 64  # long text counts as several values


def read_text(path: str | Path) -> str:
    """Read a UTF-8 file; one that cannot be read or is too large: `FormatError`."""
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        fault = Fault("", f"not UTF-8 text (byte {error.start})")
        raise FormatError([fault], source=str(path)) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: str | Path) -> bytes:
    """Read a file or pipe; one that cannot be read or is too large: `FormatError`."""
    data = bytearray()
    try:
        with Path(path).open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                data += chunk
                if len(data) > _MAX_MEBIBYTES * 2**20:
                    fault = Fault("", f"larger than {_MAX_MEBIBYTES} MiB")
                    raise FormatError([fault], source=str(path))
    except OSError as error:
        fault = Fault("", f"cannot be read: {error.strerror}")
        raise FormatError([fault], source=str(path)) from error
    return bytes(data)


#: What every document is.
_DOCUMENT = "a mapping with a `schema` key"


def read_document(path: str | Path, *, expected: str = _DOCUMENT) -> dict[str, Any]:
    """Read a JSON or YAML mapping from a file; tell what is expected otherwise.

    Raises
    ------
    FormatError
        The file cannot be read or parsed, or holds something else.
    """
    return parse_text(read_text(path), source=str(path), expected=expected)


def parse_text(text: str, *, source: str, expected: str = _DOCUMENT) -> dict[str, Any]:
    """Parse JSON (text that begins with a brace and parses as such) or YAML."""
    if _looks_like_json(text, source):
        return parse_json(text, source=source)
    return _mapping(_yaml(text, source), text, source, expected)


def parse_json(text: str, *, source: str) -> dict[str, Any]:
    """Parse a JSON mapping; faults of the text name their line."""
    return _mapping(_json(text, source), text, source)


def _mapping(
    data: Any,  # noqa: ANN401 - plain data
    text: str,
    source: str,
    expected: str = _DOCUMENT,
) -> dict[str, Any]:
    """Return the data if it is a mapping whose text can be encoded."""
    if not isinstance(data, dict):
        what = "nothing" if data is None else f"a {type(data).__name__}"
        fault = Fault("", f"expected {expected}, got {what}")
        raise FormatError([fault], source=source)
    if ("\\u" in text or "\\U" in text) and not _is_unicode(data):
        fault = Fault("", "text with a lone surrogate (\\ud800 to \\udfff)")
        raise FormatError([fault], source=source)
    return data


def _is_unicode(data: dict[str, Any]) -> bool:
    """Tell whether all text can be encoded: an escape can name half a character."""
    try:
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _looks_like_json(text: str, source: str) -> bool:
    if source.endswith((".yaml", ".yml")):
        return False
    return source.endswith(".json") or text.lstrip()[:1] in ("{", "[")


def _json(text: str, source: str) -> Any:  # noqa: ANN401 - plain data
    try:
        return json.loads(
            text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant
        )
    except json.JSONDecodeError as error:
        fault = Fault(f"line {error.lineno}", f"not JSON: {error.msg}")
        raise FormatError([fault], source=source) from error
    except RecursionError as error:
        raise FormatError([Fault("", "nested too deeply")], source=source) from error
    except _NoNumberError as error:
        fault = Fault(f"line {_constant_line(text)}", f"not JSON: {error}")
        raise FormatError([fault], source=source) from error
    except _DuplicateKeyError as error:
        raise FormatError([_duplicate(text)], source=source) from error
    except ValueError as error:
        raise FormatError([Fault("", f"not JSON: {error}")], source=source) from error


class _DuplicateKeyError(ValueError):
    """A mapping of a JSON text has a key twice."""


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise _DuplicateKeyError
    return data


def _duplicate(text: str) -> Fault:
    """Name the first key that stands twice; the text is JSON up to there at least."""
    above: list[set[str]] = []
    for token in re.finditer(r'("(?:[^"\\]|\\.)*+")(\s*:)?|[{}]', text):
        if token.group() == "{":
            above.append(set())
        elif token.group() == "}":
            above.pop()
        elif token.group(2):
            key = json.loads(token.group(1))
            if key in above[-1]:
                line = text.count("\n", 0, token.start()) + 1
                what = f"the key {reprlib.repr(key)} stands twice in one mapping"
                return Fault(f"line {line}", f"not JSON: {what}")
            above[-1].add(key)
    return Fault("", "not JSON: a key stands twice in one mapping")


class _NoNumberError(ValueError):
    """A constant that Python reads as a number and JSON does not know."""


def _no_constant(text: str) -> float:
    raise _NoNumberError(f"{text} is no number")


def _constant_line(text: str) -> int:
    """Line of the first NaN or Infinity outside a string."""
    tokens = re.finditer(r'"(?:[^"\\]|\\.)*"|NaN|Infinity', text)
    places = (token.start() for token in tokens if token.group()[0] != '"')
    return text.count("\n", 0, next(places, 0)) + 1


class _TooManyValuesError(Exception):
    """Aliases stand for more values than one may mean."""


class _Constructor(SafeConstructor):
    """Builds data from YAML nodes unless aliases in them multiply beyond measure."""

    def construct_document(self, node: Node) -> Any:  # noqa: ANN401 - plain data
        """Build the data; here, since merge keys multiply while they are built."""
        if _expanded(node, {}) > _MAX_VALUES:
            raise _TooManyValuesError
        return super().construct_document(node)


def _expanded(node: Node, known: dict[Node, int]) -> int:
    """Count the values that a node stands for, each alias as all it repeats."""
    if node not in known:
        known[node] = 0  # an alias within itself is refused later
        if isinstance(node, ScalarNode):
            inner = len(node.value) // _CHARACTERS_A_VALUE
        elif isinstance(node, MappingNode):
            inner = sum(_expanded(n, known) for pair in node.value for n in pair)
        else:
            inner = sum(_expanded(n, known) for n in node.value)
        known[node] = 1 + inner
    return known[node]


def _yaml(text: str, source: str) -> Any:  # noqa: ANN401 - plain data
    reader = YAML(typ="safe", pure=True)
    reader.Constructor = _Constructor
    try:
        data = reader.load(text)
    except _TooManyValuesError as error:
        fault = Fault("", f"expands to more than {_MAX_VALUES:,} values (aliases?)")
        raise FormatError([fault], source=source) from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}" if mark else ""
        problem = error.problem or error.context or "broken"
        raise FormatError(
            [Fault(where, f"not YAML: {problem}")], source=source
        ) from error
    except RecursionError as error:
        raise FormatError([Fault("", "nested too deeply")], source=source) from error
    except (YAMLError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise FormatError([Fault("", f"not YAML: {first}")], source=source) from error
    faults: list[Fault] = []
    plain = _plain(data, (), faults, set())
    if faults:
        raise FormatError(faults, source=source)
    return plain


def _plain(
    value: Any,  # noqa: ANN401 - whatever YAML holds
    path: tuple[str | int, ...],
    faults: list[Fault],
    above: set[int],
) -> Any:  # noqa: ANN401 - plain data
    """Return `value` if JSON can say it; note what it cannot (dates, cycles, NaN)."""
    if isinstance(value, float) and not math.isfinite(value):
        faults.append(Fault(path_text(path), f"{value} is no finite number"))
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict | list) and id(value) in above:
        faults.append(Fault(path_text(path), "an alias that contains itself"))
        return None
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                seen = reprlib.repr(key)
                text = f"expected a key of text, got {seen}; put it in quotes"
                faults.append(Fault(path_text(path), text))
        inner = above | {id(value)}
        return {
            str(k): _plain(v, (*path, str(k)), faults, inner) for k, v in value.items()
        }
    if isinstance(value, list):
        inner = above | {id(value)}
        return [_plain(v, (*path, i), faults, inner) for i, v in enumerate(value)]
    kind = type(value).__name__
    faults.append(Fault(path_text(path), f"a {kind} is not allowed; put it in quotes"))
    return None
