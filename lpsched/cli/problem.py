"""From the FILE on the command line to a graph with its rounding and its wishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from lpsched.core.graph import DeviceId, Graph
from lpsched.core.instance import Instance
from lpsched.core.io import load_any, read_document
from lpsched.core.network import Network
from lpsched.core.schedule import Schedule
from lpsched.errors import Fault, FormatError, InstanceError, VerificationError
from lpsched.network import (
    Compiled,
    compile_instance,
    compile_network,
    find_shipped,
    shipped_names,
)
from lpsched.verify import verify

__all__ = [
    "Problem",
    "graph_of",
    "is_schedule",
    "load_graph_file",
    "load_network_file",
    "load_problem",
    "load_schedule_file",
]

#: What files with these endings usually are, and the reader that `import` has for them.
_FOREIGN = {
    ".onnx": ("an ONNX model", "onnx"),
    ".graphml": ("GraphML", "graphml"),
    ".csv": ("a PyTorch schedule", "torch-csv"),
    ".txt": ("a PipeDream profile", "pipedream"),
}

T = TypeVar("T", Graph, Schedule, Network)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A graph to schedule, and what its file says of how.

    Attributes
    ----------
    rounding : mapping or None
        How real costs became ticks, for `result.rounding`.
    stages : tuple of tuple of str, or None
        The layers of each stage, for `result.stats`.
    notes : tuple of str
        What people should know of the stages that were found.
    """

    graph: Graph
    rounding: Mapping[str, Any] | None = None
    stages: tuple[tuple[str, ...], ...] | None = None
    objective: tuple[str, ...] | None = None
    period_slack: Fraction | None = None
    max_period: int | None = None
    notes: tuple[str, ...] = ()


def load_problem(file: str, devices: int | None) -> Problem:
    """Read a network, instance or graph; a name that is no file may be a shipped one.

    Raises
    ------
    FormatError, InstanceError
        The file cannot be read or scheduled, or the device count does not fit it.
    """
    try:
        return _problem(_load(file), file, devices)
    except InstanceError as error:
        if error.source is not None or type(error) is not InstanceError:
            raise
        raise InstanceError(error.faults, source=file) from error


def _problem(
    loaded: Network | Instance | Graph | Schedule, file: str, devices: int | None
) -> Problem:
    """Compile what a file held; the faults of compiling do not name the file."""
    if isinstance(loaded, Network):
        if devices is None:
            text = "a network says nothing of devices; give their number with --devices"
            raise InstanceError([Fault("", text)], source=file)
        compiled = compile_network(loaded, devices=devices)
        return Problem(graph=compiled.graph, rounding=_rounding(compiled))
    if isinstance(loaded, Instance):
        if devices is not None:
            loaded = _with_devices(loaded, devices, file)
        compiled = compile_instance(loaded)
        return Problem(
            graph=compiled.graph,
            rounding=_rounding(compiled),
            stages=compiled.stages,
            notes=compiled.notes,
            objective=loaded.objective,
            period_slack=loaded.period_slack,
            max_period=loaded.max_period,
        )
    if isinstance(loaded, Schedule):
        text = "this is a schedule; a network, an instance or a graph is wanted"
        raise InstanceError([Fault("schema", text)], source=file)
    if devices is not None and devices != len(loaded.devices):
        text = (
            f"the graph has {len(loaded.devices)} devices; --devices cannot change it"
        )
        raise InstanceError([Fault("devices", text)], source=file)
    return Problem(graph=loaded)


def _load(file: str) -> Network | Instance | Graph | Schedule:
    path = Path(file)
    is_name = path.name == file and not path.suffix and not path.exists()
    if not is_name:
        return _load_ours(path)
    shipped = find_shipped(file)
    if shipped is None:
        names = ", ".join(shipped_names())
        text = (
            f"no such file, and no network of this name is shipped; there are {names}"
        )
        raise FormatError([Fault("", text)], source=file)
    return shipped


def _load_ours(path: Path) -> Network | Instance | Graph | Schedule:
    """Read a document of ours; say of other programs' files which verb reads them."""
    try:
        return load_any(path, resolve=find_shipped)
    except FormatError as error:
        what, name = _FOREIGN.get(path.suffix.lower(), ("", ""))
        if not name or not path.is_file():
            raise
        text = (
            f"no document of lpsched; if this is {what}, read it first with"
            f" `lpsched import {path} --from {name} -o FILE`"
        )
        raise FormatError([Fault("", text)], source=str(path)) from error


def _rounding(compiled: Compiled) -> dict[str, Any] | None:
    return None if compiled.rounding is None else compiled.rounding.as_document()


def _with_devices(instance: Instance, count: int, source: str) -> Instance:
    """Give an instance with devices all alike another number of them."""
    alike = {replace(device, id=DeviceId("")) for device in instance.devices}
    if instance.graph is not None or instance.links or len(alike) > 1:
        text = (
            "the instance states its devices one by one; --devices cannot change them"
        )
        raise InstanceError([Fault("devices", text)], source=source)
    first = instance.devices[0]
    devices = tuple(replace(first, id=DeviceId(f"d{i}")) for i in range(count))
    return replace(instance, devices=devices)


def load_graph_file(file: str) -> Graph:
    """Read a file that must hold a graph."""
    return _load_a(Graph, file)


def load_schedule_file(file: str) -> Schedule:
    """Read a file that must hold a schedule."""
    return _load_a(Schedule, file)


def load_network_file(file: str) -> Network:
    """Read a file that must hold a network; a shipped one by its name."""
    return _load_a(Network, file)


def _load_a(kind: type[T], file: str) -> T:
    loaded = _load(file)
    if not isinstance(loaded, kind):
        name = kind.__name__.lower()
        text = f"a {name} (lpsched/{name}/1) is wanted, not {_what(loaded)}"
        raise InstanceError([Fault("schema", text)], source=file)
    return loaded


def _what(loaded: object) -> str:
    name = type(loaded).__name__.lower()
    return f"{'an' if name == 'instance' else 'a'} {name}"


def graph_of(schedule: Schedule, override: str | None, source: str) -> Graph:
    """Return the schedule's graph, verified to be its own (exit 6 if not)."""
    graph = schedule.graph_document
    if override is not None:
        graph = load_graph_file(override)
    if graph is None:
        text = "the schedule holds no graph; give it with --graph"
        raise InstanceError([Fault("graph_document", text)], source=source)
    violations = verify(graph, schedule)
    if violations:
        raise VerificationError(violations)
    return graph


def is_schedule(file: str) -> bool:
    """Tell whether a file says that it is a schedule."""
    path = Path(file)
    return path.exists() and read_document(path).get("schema") == "lpsched/schedule/1"
