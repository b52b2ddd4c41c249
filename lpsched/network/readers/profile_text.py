"""The text format of PipeDream's profiles: node lines and edge lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lpsched.core.limits import MAX_INTEGER
from lpsched.core.order import topological_order
from lpsched.network.readers.source import MAX_NODES, FaultLog, fraction, seen

__all__ = ["Profile", "ProfileNode", "parse_profile"]

#: The greatest time or size of a node: in thousandths a file may still state it.
LIMIT = MAX_INTEGER // 1000
#: More edges than this are taken for a mistake.
MAX_EDGES = 1_000_000

_SEPARATOR = " -- "
_KEYS = (
    "forward_compute_time",
    "backward_compute_time",
    "activation_size",
    "parameter_size",
)
_FORM = "ID -- DESCRIPTION -- forward_compute_time=..., ..."


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileNode:
    """A node line: times in milliseconds, sizes in bytes.

    `stage` is that of an optimizer's output, None in a profile.
    """

    description: str
    forward: Fraction
    backward: Fraction
    activation: Fraction
    parameters: Fraction
    stage: int | None = None

    @property
    def module(self) -> str:
        """The word that the description begins with: ``Conv2d``."""
        found = re.match(r"\w+", self.description)
        return found.group() if found else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Nodes by id, and the predecessors of each: no cycle."""

    nodes: Mapping[str, ProfileNode]
    before: Mapping[str, tuple[str, ...]]


def parse_profile(text: str, log: FaultLog) -> Profile:
    """Read the lines of a profile.

    An edge may stand before its nodes, and more than once.

    Raises
    ------
    FormatError
        With every fault and its line; too large a file at the line that is too many.
    """
    lines = text.split("\n")
    _refuse_too_many(lines, log)
    reader = _Reader(log)
    for number, line in enumerate(lines, start=1):
        reader.line(number, line)
    return reader.profile()


def _refuse_too_many(lines: Sequence[str], log: FaultLog) -> None:
    """Stop at the line that is too many, before any is read for what it says."""
    nodes = edges = 0
    for number, line in enumerate(lines, start=1):
        if line.startswith("\t"):
            edges += 1
        elif line.strip():
            nodes += 1
        if nodes > MAX_NODES or edges > MAX_EDGES:
            limit = f"{MAX_NODES:,} nodes or {MAX_EDGES:,} edges"
            raise log.fail(number, f"more than {limit}: taken for a mistake")


class _Reader:
    """Takes in line by line and notes faults."""

    def __init__(self, log: FaultLog) -> None:
        self._log = log
        self._lines: dict[str, int] = {}
        self._nodes: dict[str, ProfileNode] = {}
        self._edges: dict[tuple[str, str], int] = {}

    def line(self, number: int, line: str) -> None:
        """Read a node or an edge."""
        if line.startswith("\t"):
            self._edge(number, line)
        elif line.strip():
            self._node(number, line)

    def profile(self) -> Profile:
        """Join edges and nodes, or raise every fault."""
        if not self._lines and not self._log.faults:
            raise self._log.fail("", f"no node; expected lines `{_FORM}`")
        before: dict[str, list[str]] = {name: [] for name in self._lines}
        for (src, dst), number in self._edges.items():
            unknown = [name for name in (src, dst) if name not in before]
            for name in unknown:
                self._log.add(number, f"an edge of the unknown node {seen(name)}")
            if not unknown:
                before[dst].append(src)
        _, cycle = topological_order(before)
        if cycle:
            self._log.add(*self._told(cycle))
        self._log.check()
        return Profile(
            nodes=self._nodes,
            before={name: tuple(others) for name, others in before.items()},
        )

    def _told(self, cycle: Sequence[str]) -> tuple[int, str]:
        """Line of one edge of a cycle, and the cycle; a long one only in part."""
        names = [*cycle, cycle[0]]
        if len(names) > 8:
            names = [*names[:6], "...", names[-1]]
        line = self._edges[cycle[0], cycle[1 % len(cycle)]]
        return line, f"the edges form a cycle: {' -> '.join(names)}"

    def _edge(self, number: int, line: str) -> None:
        ends = line.strip().split(_SEPARATOR)
        if len(ends) != 2 or not all(ends):
            self._log.add(number, f"expected an edge `ID -- ID`, got {seen(line)}")
            return
        self._edges.setdefault((ends[0], ends[1]), number)

    def _node(self, number: int, line: str) -> None:
        parts = line.rstrip().split(_SEPARATOR)
        if line[0].isspace() or len(parts) not in (3, 4) or not parts[0]:
            hint = " (an edge begins with a tab)" if line[0] == " " else ""
            text = f"expected a node `{_FORM}`{hint}, got {seen(line)}"
            self._log.add(number, text)
        else:
            name, description, meta = parts[:3]
            first = self._lines.setdefault(name, number)
            if first != number:
                text = f"the node {seen(name)} stands in line {first} already"
                self._log.add(number, text)
            values = self._values(number, meta)
            stage = self._stage(number, parts[3]) if len(parts) == 4 else None
            if values is not None:
                self._nodes[name] = ProfileNode(
                    description=description,
                    forward=values["forward_compute_time"],
                    backward=values["backward_compute_time"],
                    activation=values["activation_size"],
                    parameters=values["parameter_size"],
                    stage=stage,
                )

    def _values(self, number: int, meta: str) -> dict[str, Fraction] | None:
        """Times and sizes by key; None if there is a fault."""
        found: dict[str, Fraction | None] = {}
        for item in meta.split(", "):
            key, _, text = item.partition("=")
            if key not in _KEYS or key in found:
                text = f"expected each of {', '.join(_KEYS)} once, got {seen(item)}"
                self._log.add(number, text)
                continue
            found[key] = _number(key, text)
            if found[key] is None:
                text = f"{key}: expected a number from 0 to {LIMIT}, got {seen(text)}"
                self._log.add(number, text)
        missing = [key for key in _KEYS if key not in found]
        if missing:
            self._log.add(number, f"required, but missing: {', '.join(missing)}")
        values = {key: value for key, value in found.items() if value is not None}
        return values if len(values) == len(_KEYS) else None

    def _stage(self, number: int, text: str) -> int | None:
        key, _, value = text.partition("=")
        whole = value.isascii() and value.isdigit() and len(value) < 10
        if key == "stage_id" and whole:
            return int(value)
        self._log.add(number, f"expected stage_id=INTEGER, got {seen(text)}")
        return None


def _number(key: str, text: str) -> Fraction | None:
    """One number; of a list of activation sizes the sum."""
    if key == "activation_size" and text.startswith("[") and text.endswith("]"):
        found = [fraction(item) for item in text[1:-1].split("; ")]
        known = [number for number in found if number is not None]
        value = sum(known, Fraction(0)) if len(known) == len(found) else None
    else:
        value = fraction(text)
    return value if value is not None and value <= LIMIT else None
