"""Write what follows from the code: `formats.md` and `formulations.md`."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lpsched.core.io import (
    GraphDocument,
    InstanceDocument,
    NetworkDocument,
    ScheduleDocument,
)

__all__ = ["FILES", "formats", "formulations"]

HERE = Path(__file__).parent
GENERATED = "<!-- Written by `make docs` from the code: change it there. -->"

# -- file formats ----------------------------------------------------------------

FORMATS: tuple[tuple[type[BaseModel], str], ...] = (
    (NetworkDocument, "network"),
    (InstanceDocument, "instance"),
    (GraphDocument, "graph"),
    (ScheduleDocument, "schedule"),
)
FORMATS_HEAD = """# File formats

Four documents, each a JSON or YAML mapping with a `schema` key. Unknown keys are
refused; every fault is told at once, each with its path. JSON is what lpsched writes;
YAML is for people. Paths inside a file are relative to it. Times, sizes and delays are
integers: real costs become whole ticks once, on the way in. `lpsched schema NAME`
prints the JSON Schemas from which these tables are made; what makes a schedule valid is
told in [the problem](problem.md).
"""


#: Documents whose keys others have as well.
BASES = {"LayerDocument": "every layer", "CostsDocument": "every cost model"}
NOTHING: Mapping[str, Any] = {}


def formats() -> str:
    """Return the tables of all keys of all documents."""
    parts = [GENERATED, FORMATS_HEAD]
    told: set[str] = set()
    for model, name in FORMATS:
        schema = model.model_json_schema(by_alias=True)
        definitions = schema.get("$defs", {})
        parts.append(
            f"## `lpsched/{name}/1`\n\n{_first_line(schema)}\n\n{_keys(schema)}"
        )
        for title, definition in definitions.items():
            if "properties" not in definition or title in told:
                continue
            told.add(title)
            head = f'### <a id="{title.lower()}"></a>{_plain_title(title)}'
            parts.append(f"{head}\n\n{_first_line(definition)}\n")
            parts.append(_keys(definition, definitions))
    return "\n".join(parts)


def _first_line(schema: Mapping[str, Any]) -> str:
    return str(schema.get("description", "")).split("\n\n", 1)[0].replace("\n", " ")


def _plain_title(title: str) -> str:
    words = re.findall("[A-Z][a-z0-9]*", title.removesuffix("Document"))
    return " ".join(words).capitalize()


def _keys(schema: Mapping[str, Any], others: Mapping[str, Any] = NOTHING) -> str:
    """Return the table of a document's keys, without those that stand with its base."""
    keys: dict[str, Any] = schema["properties"]
    note = ""
    for base, text in BASES.items():
        common = others.get(base, {}).get("properties", {})
        if common and common.keys() < keys.keys():
            keys = {k: v for k, v in keys.items() if common.get(k) != v}
            note = f"\nAnd what [{text}](#{base.lower()}) may say.\n"
    required = schema.get("required", ())
    meanings = _meanings(str(schema.get("description", "")))
    rows = ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
    for key, value in keys.items():
        default = "required" if key in required else _default(value)
        meaning = meanings.get(key, "")
        rows.append(f"| `{key}` | {_type(value)} | {default} | {meaning} |")
    return "\n".join(rows) + "\n" + note


def _meanings(description: str) -> dict[str, str]:
    """Read the section `Attributes` of a docstring."""
    _, _, section = description.partition("Attributes\n----------\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(",")]
        elif names and line.strip():
            for name in names:
                found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return found


def _default(value: Mapping[str, Any]) -> str:
    if "default" not in value or value["default"] is None:
        return ""
    default = value["default"]
    if isinstance(default, dict | list):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _type(value: Mapping[str, Any]) -> str:  # noqa: PLR0911 - one a kind of type
    """Say in words what a key takes."""
    if "$ref" in value:
        title = value["$ref"].rsplit("/", 1)[1]
        return f"[{_plain_title(title).lower()}](#{title.lower()})"
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return " or ".join(f"`{choice}`" for choice in value["enum"])
    options = value.get("anyOf") or value.get("oneOf")
    if options:
        names = [_type(option) for option in options if option.get("type") != "null"]
        names = [
            n
            for n in names
            if n.replace("integer", "number") not in names
            or not n.startswith("integer")
        ]
        return " or ".join(dict.fromkeys(names))
    kind = value.get("type", "anything")
    if kind == "array":
        inner = value.get("items") or {}
        if "prefixItems" in value:
            return f"list of {len(value['prefixItems'])}"
        return f"list of {_type(inner)}" if inner else "list"
    if kind == "object":
        inner = value.get("additionalProperties")
        return f"map to {_type(inner)}" if isinstance(inner, dict) else "mapping"
    return f"{kind}{_range(value)}"


def _range(value: Mapping[str, Any]) -> str:
    if "exclusiveMinimum" in value:
        return f" > {value['exclusiveMinimum']}"
    return f" ≥ {value['minimum']}" if "minimum" in value else ""


# -- formulations ----------------------------------------------------------------

#: Heading, what to know before, and (module, names; none for every `add_`).
FORMULATIONS: tuple[tuple[str, str, tuple[tuple[str, tuple[str, ...]], ...]], ...] = (
    (
        "CP-SAT: the modulo model",
        (
            "A model at one period T, tried upwards from the best bound: the first that"
            " is feasible is the least. Other objectives follow at that period."
        ),
        (
            ("cpsat.variables", ("Variables",)),
            ("cpsat.constraints", ()),
            ("cpsat.memory", ("add_memory", "add_peak")),
            ("cpsat.objective", ("add_communication", "add_staleness", "add_cap")),
            ("cpsat.symmetry", ("add_symmetry",)),
        ),
    ),
    (
        "ILP: periodic event scheduling",
        "The second opinion, derived anew, with PuLP and HiGHS or CBC.",
        (
            ("ilp.variables", ("Variables",)),
            ("ilp.constraints", ()),
            ("ilp.memory", ("add_memory", "longest_life")),
            ("ilp.objective", ()),
            ("ilp.tightening", ()),
        ),
    ),
    (
        "Load balancing, where delays are free",
        "There the least period is the least greatest load.",
        (
            ("balance.items", ("Problem",)),
            ("balance.bounds", ("raise_to_unit",)),
            ("balance.chains", ("",)),
        ),
    ),
    (
        "Set partitioning: least communication, where delays are free",
        "A column is the set of ops of one device, its cost what that device receives.",
        (
            ("partition.problem", ("Problem",)),
            ("partition.master", ("Master",)),
            ("partition.columns", ("lagrangian",)),
            ("partition.machines", ("message_machine",)),
            ("partition.dynamic", ("Table",)),
            ("partition.subset_rows", ("Cut",)),
            ("partition.contraction", ("contract",)),
            ("partition.diving", ("dive_deep",)),
        ),
    ),
    (
        "Listing placements, where delays bind",
        (
            "Every placement within a limit on communication is listed, refuted by"
            " paths, or timed by CP-SAT, and the limit rises. A column is a set of ops"
            " as the bits of one word, so that this ends at 62 ops that may sit apart."
            " Beyond, set partitioning looks for placements by loads alone, one after"
            " the other by communication, until CP-SAT can time one: its bound holds"
            " there, too, and is met if one of the first can be timed."
        ),
        (
            ("placements.relaxation", ("Prices",)),
            ("placements.loops", ("Loops",)),
            ("placements.closure", ("Closure",)),
            ("placements.covers", ("Covers",)),
        ),
    ),
    (
        "Counting: synchronous pipelines",
        "For chains of stages on devices of their own.",
        (("pipeline.variables", ("Variables",)), ("pipeline.constraints", ())),
    ),
)
FORMULATIONS_HEAD = """# Formulations

The exact models, one heading a rule, in the symbols of the code. Throughout: T is the
period, s the start of iteration 0, t the duration on the device chosen, c the transfer
(0 on one device), k a delay, P the number of devices; u, v are ops, p, q devices.
"""


def formulations() -> str:
    """Return the mathematics of every rule, as the code states it."""
    parts = [GENERATED, FORMULATIONS_HEAD]
    for title, text, modules in FORMULATIONS:
        parts.append(f"## {title}\n\n{text}\n")
        for path, names in modules:
            module = import_module(f"lpsched.formulations.{path}")
            every = [n for n in module.__all__ if n.startswith("add_")]
            for name in names or every:
                thing = getattr(module, name) if name else module
                heading = name or path.rsplit(".", 1)[1]
                where = f"`formulations/{path.replace('.', '/')}.py`"
                parts.append(f"### `{heading}` ({where})\n\n{_markdown(thing)}\n")
    return "\n".join(parts)


def _markdown(thing: object) -> str:
    """Return a docstring as Markdown: its text and formulas, without its parameters."""
    doc = inspect.getdoc(thing) or ""
    text = re.split(r"\n(?:Parameters|Returns|Attributes|Raises)\n-+\n", doc)[0]
    found = "\n".join(_converted(text.splitlines())).strip()
    return re.sub(r":math:`([^`]+)`", r"$`\1`$", found)


def _converted(lines: list[str]) -> Iterator[str]:
    i = 0
    while i < len(lines):
        line = lines[i]
        i += 1
        if line.startswith(".. math::"):
            block = [line.removeprefix(".. math::").strip()]
            while i < len(lines) and (not lines[i] or lines[i].startswith(" ")):
                block.append(lines[i])
                i += 1
            yield "```math"
            body = textwrap.dedent("\n".join(block[1:])).strip("\n")
            yield "\n".join(part for part in (block[0], body) if part)
            yield "```"
            yield ""
        elif line.startswith("==="):
            table = [line]
            while i < len(lines) and lines[i]:
                table.append(lines[i])
                i += 1
            yield "\n".join(["```text", *table, "```"])
        else:
            yield line if ":math:" in line else line.replace("``", "`")


FILES = {"formats.md": formats, "formulations.md": formulations}

if __name__ == "__main__":
    for name, make in FILES.items():
        (HERE / name).write_text(make(), "utf-8")
