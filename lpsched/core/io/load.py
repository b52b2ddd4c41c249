"""Files in: networks and instances, or whatever document a file's schema names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lpsched.core.graph import Graph
from lpsched.core.instance import Instance
from lpsched.core.io.faults import shown
from lpsched.core.io.graph_document import graph_from_document
from lpsched.core.io.instance_document import Resolve, instance_from_document
from lpsched.core.io.network_document import network_from_document
from lpsched.core.io.network_references import unknown_name
from lpsched.core.io.parse import read_document
from lpsched.core.io.schedule_document import schedule_from_document
from lpsched.core.network import Network
from lpsched.core.schedule import Schedule
from lpsched.errors import Fault, FormatError

__all__ = ["AnyDocument", "load_any", "load_instance", "load_network"]

AnyDocument = Network | Instance | Graph | Schedule


def load_network(path: str | Path) -> Network:
    """Read a network file; see `network_from_document` for errors."""
    return _network(read_document(path), path)


def load_instance(path: str | Path, *, resolve: Resolve | None = None) -> Instance:
    """Read an instance file and what it names, relative to it.

    See `instance_from_document` for `resolve` and for errors.
    """
    return _instance(read_document(path), path, resolve)


def load_any(path: str | Path, *, resolve: Resolve | None = None) -> AnyDocument:
    """Read a file as the document that its `schema` key names.

    Parameters
    ----------
    resolve : callable, optional
        For an instance; see `instance_from_document`.

    Raises
    ------
    FormatError
        The file cannot be read, names no schema known here, or has faults.
    """
    raw = read_document(path)
    schema = raw.get("schema")
    reader = _READERS.get(schema) if isinstance(schema, str) else None
    if reader is None:
        raise FormatError([Fault("schema", _schema_fault(raw))], source=str(path))
    if reader is _instance:
        return _instance(raw, path, resolve)
    return reader(raw, path)


def _schema_fault(raw: Mapping[str, Any]) -> str:
    listed = ", ".join(_READERS)
    if "schema" not in raw:
        return f"required, but missing (one of {listed})"
    if not isinstance(raw["schema"], str):
        return f"expected one of {listed}, got {shown(raw['schema'])}"
    return unknown_name("schema", raw["schema"], _READERS)


def _network(raw: Mapping[str, Any], path: str | Path) -> Network:
    return network_from_document(raw, source=str(path))


def _instance(
    raw: Mapping[str, Any], path: str | Path, resolve: Resolve | None = None
) -> Instance:
    folder = Path(path).parent
    return instance_from_document(raw, source=str(path), folder=folder, resolve=resolve)


def _graph(raw: Mapping[str, Any], path: str | Path) -> Graph:
    return graph_from_document(raw, source=str(path))


def _schedule(raw: Mapping[str, Any], path: str | Path) -> Schedule:
    return schedule_from_document(raw, source=str(path))


_READERS: Mapping[str, Callable[[Mapping[str, Any], str | Path], AnyDocument]] = {
    "lpsched/network/1": _network,
    "lpsched/instance/1": _instance,
    "lpsched/graph/1": _graph,
    "lpsched/schedule/1": _schedule,
}
