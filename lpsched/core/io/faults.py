"""From pydantic's errors to faults that name path, value and what would be right."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from lpsched.errors import Fault

__all__ = ["branch", "path_text", "shown", "validate"]

_EXPECTED = {
    "int_type": "expected an integer",
    "int_from_float": "expected an integer",
    "int_parsing": "expected an integer",
    "int_parsing_size": "expected an integer of fewer digits",
    "string_type": "expected a string",
    "string_too_short": "expected a string that is not empty",
    "string_unicode": "expected a string of valid Unicode",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "model_attributes_type": "expected a mapping",
    "finite_number": "expected a finite number",
}

_LIMITS = {
    "greater_than_equal": (">=", "ge"),
    "greater_than": (">", "gt"),
    "less_than_equal": ("<=", "le"),
    "less_than": ("<", "lt"),
}


def branch(name: str) -> str:
    """Tag of a union's branch; such tags are left out of paths."""
    return f"<{name}>"


def path_text(parts: Iterable[str | int]) -> str:
    """Write a path as people do: ``ops[3].duration``."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not (part.startswith("<") and part.endswith(">")) and part != "[key]":
            text += f".{part}" if text else part
    return text


def shown(value: object) -> str:
    """Write the beginning of a value; not more of it, for it may be huge."""
    text = ""
    for piece in json.JSONEncoder(default=str, ensure_ascii=False).iterencode(value):
        text += piece[:61]
        if len(text) > 60:
            return text[:57] + "..."
    return text


def _message(error: Any, model: type[BaseModel]) -> str:  # noqa: ANN401 - pydantic's
    kind, seen = error["type"], error["input"]
    if kind == "missing":
        return "required, but missing"
    if kind == "extra_forbidden":
        return _unknown_key(error["loc"], model)
    hint = "; put it in quotes" if kind == "string_type" and _is_number(seen) else ""
    return f"{_expectation(error)}, got {shown(seen)}{hint}"


def _expectation(error: Any) -> str:  # noqa: ANN401 - pydantic's
    kind, context = error["type"], error.get("ctx", {})
    if kind in _LIMITS:
        sign, name = _LIMITS[kind]
        limit = context[name]
        real = isinstance(limit, float) or error["loc"][-1] == branch("whole")
        what = "a number" if real else "an integer"
        text = f"expected {what} {sign} {int(limit) if limit == int(limit) else limit}"
    elif kind == "literal_error":
        text = f"expected {context['expected']}"
    elif kind == "string_pattern_mismatch":
        text = f"expected text that matches {context['pattern']}"
    elif kind == "too_long":
        text = f"expected at most {context['max_length']} entries"
    elif kind in ("value_error", "union_tag_invalid"):
        text = str(context.get("error", error["msg"]))
    else:
        text = _EXPECTED.get(kind, error["msg"])
    return text


def _unknown_key(location: Sequence[str | int], model: type[BaseModel]) -> str:
    known = _known_keys(model, location)
    close = difflib.get_close_matches(str(location[-1]), known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    listed = f" (known: {', '.join(known)})" if known else ""
    return f"unknown key{hint}{listed}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@cache
def _json_schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True)


def _known_keys(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Keys of the mapping in which an unknown key stood, from the JSON Schema."""
    schema = _json_schema(model)
    definitions = schema.get("$defs", {})
    node: Any = schema
    for part in location[:-1]:
        if isinstance(part, str) and part == branch(part[1:-1]):
            node = _branch_taken(node, part[1:-1], definitions)
            continue
        node = _step(node, part, definitions)
        if node is None:
            return []
    found = _objects(node, definitions)
    return sorted({key for item in found for key in item.get("properties", {})})


def _objects(node: Any, definitions: Any) -> list[Any]:  # noqa: ANN401 - JSON Schema
    if "$ref" in node:
        return _objects(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions)
    for key in ("anyOf", "oneOf"):
        if key in node:
            return [o for n in node[key] for o in _objects(n, definitions)]
    return [node]


def _branch_taken(node: Any, name: str, definitions: Any) -> Any:  # noqa: ANN401 - plain data
    """The alternative that is a model of this name; all of them if none is."""
    return next(
        (item for item in _objects(node, definitions) if item.get("title") == name),
        node,
    )


def _step(node: Any, part: str | int, definitions: Any) -> Any:  # noqa: ANN401 - plain data
    for item in _objects(node, definitions):
        if isinstance(part, int) and "items" in item:
            return item["items"]
        if isinstance(part, str) and part in item.get("properties", {}):
            return item["properties"][part]
        extra = item.get("additionalProperties")
        if isinstance(part, str) and isinstance(extra, dict):
            return extra
    return None


def validate(model: type[BaseModel], raw: object) -> tuple[Any, list[Fault]]:
    """Validate `raw`; return the model, or None with every fault found."""
    try:
        return model.model_validate(raw), []
    except ValidationError as error:
        faults = [
            Fault(path_text(e["loc"]), _message(e, model))
            for e in error.errors(include_url=False)
        ]
        return None, list(dict.fromkeys(faults))
