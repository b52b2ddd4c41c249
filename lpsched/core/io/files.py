"""Files in and out: dispatch by schema, whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lpsched.core.graph import Graph
from lpsched.core.io.graph_document import (
    digest,
    graph_from_document,
    graph_to_document,
)
from lpsched.core.io.parse import read_document
from lpsched.core.io.schedule_document import (
    schedule_from_document,
    schedule_to_document,
)
from lpsched.core.schedule import Schedule

__all__ = [
    "document_text",
    "graph_digest",
    "load_graph",
    "load_schedule",
    "save_graph",
    "save_schedule",
    "write_bytes",
    "write_text",
]


def graph_digest(graph: Graph) -> str:
    """Digest of the graph's document, as read or as it would be written.

    Computed once a graph and kept with it: graphs never change.
    """
    kept = vars(graph)
    if "_digest" not in kept:
        kept["_digest"] = digest(graph_to_document(graph))
    return str(kept["_digest"])


def load_graph(path: str | Path) -> Graph:
    """Read a graph file (JSON or YAML); see `graph_from_document` for errors."""
    return graph_from_document(read_document(path), source=str(path))


def load_schedule(path: str | Path) -> Schedule:
    """Read a schedule file; see `schedule_from_document` for errors."""
    return schedule_from_document(read_document(path), source=str(path))


def document_text(document: Mapping[str, Any]) -> str:
    """JSON of a document: one line per entry of a list, so that diffs can be read."""
    lines = []
    for key, value in document.items():
        name = json.dumps(key, ensure_ascii=False)
        if isinstance(value, list) and value:
            inner = ",\n".join(
                "    " + json.dumps(item, ensure_ascii=False) for item in value
            )
            lines.append(f"  {name}: [\n{inner}\n  ]")
        elif isinstance(value, Mapping) and key == "ops":
            inner = ",\n".join(
                f"    {json.dumps(k, ensure_ascii=False)}: {json.dumps(v)}"
                for k, v in value.items()
            )
            lines.append(f"  {name}: {{\n{inner}\n  }}")
        else:
            lines.append(f"  {name}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def save_graph(graph: Graph, path: str | Path) -> None:
    """Write a graph file, whole or not at all."""
    write_text(path, document_text(graph_to_document(graph)))


def save_schedule(
    schedule: Schedule, path: str | Path, *, with_graph: bool = True
) -> None:
    """Write a schedule file, whole or not at all."""
    document = schedule_to_document(schedule, with_graph=with_graph)
    write_text(path, document_text(document))


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole or not at all (a temporary file, then a rename)."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file whole or not at all; a device such as /dev/stdout directly."""
    target = Path(path)
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    if target.is_symlink():
        target = target.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
