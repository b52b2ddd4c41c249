"""Chrome trace events, the JSON that Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any

from lpsched._version import __version__

__all__ = ["Slice", "Trace", "lanes", "microseconds", "tick_ns"]

_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_UNIT = re.compile(r"(?:(\d{1,18}(?:\.\d{1,9})?) )?([a-zµ]{1,2})")


def tick_ns(time_unit: str) -> int | None:
    """Nanoseconds of one tick; None if the unit is no whole number of them.

    >>> tick_ns("us"), tick_ns("0.5 us"), tick_ns("MAC")
    (1000, 500, None)
    """
    match = _UNIT.fullmatch(time_unit)
    if match is None or match[2] not in _UNITS:
        return None
    length = Fraction(match[1] or 1) * _UNITS[match[2]]
    return int(length) if length.denominator == 1 and length > 0 else None


def microseconds(nanoseconds: int) -> int | float:
    """Time stamp of an event: whole microseconds as integers."""
    whole, rest = divmod(nanoseconds, 1_000)
    return whole if rest == 0 else nanoseconds / 1_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slice:
    """Something that takes time, in nanoseconds; one is no other, even if alike."""

    name: str
    kind: str
    start: int
    length: int
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The last moment that lies inside."""
        return self.start + max(0, self.length - 1)


def lanes(slices: Sequence[Slice]) -> list[list[Slice]]:
    """Share slices out to as few lanes as keep those of a lane apart."""
    found: list[list[Slice]] = []
    for piece in sorted(slices, key=lambda s: (s.start, s.start + s.length)):
        for lane in found:
            if lane[-1].start + lane[-1].length <= piece.start:
                lane.append(piece)
                break
        else:
            found.append([piece])
    return found


class Trace:
    """Events of one file; processes, tracks and flows are numbered as they come."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._numbers = count(1)
        self._flows = count(1)

    def process(self, name: str) -> int:
        """Begin a process; return its number."""
        pid = next(self._numbers)
        self._name("process", pid, pid, name)
        return pid

    def track(self, pid: int, name: str) -> int:
        """Begin a track of a process; tracks stand in the order in which they begin."""
        tid = next(self._numbers)
        self._name("thread", pid, tid, name)
        return tid

    def _name(self, what: str, pid: int, tid: int, name: str) -> None:
        head = {"ph": "M", "pid": pid, "tid": tid}
        sort = {"sort_index": tid}
        self.events.append(head | {"name": f"{what}_name", "args": {"name": name}})
        self.events.append(head | {"name": f"{what}_sort_index", "args": sort})

    def slice(self, pid: int, tid: int, piece: Slice) -> None:
        """Add a slice; those of a track must not overlap."""
        event = {"ph": "X", "name": piece.name, "cat": piece.kind, "pid": pid}
        times = {"ts": microseconds(piece.start), "dur": microseconds(piece.length)}
        self.events.append(event | {"tid": tid} | times | {"args": dict(piece.details)})

    def flow(self, name: str, pid: int, stops: Sequence[tuple[int, int]]) -> None:
        """Add arrows from stop to stop: tracks and moments inside slices there."""
        number = next(self._flows)
        for i, (tid, moment) in enumerate(stops):
            phase = "s" if i == 0 else "f" if i == len(stops) - 1 else "t"
            event = {"ph": phase, "name": name, "cat": "flow", "id": number}
            event |= {"pid": pid, "tid": tid, "ts": microseconds(moment)}
            self.events.append(event | ({"bp": "e"} if phase == "f" else {}))

    def counter(
        self, pid: int, name: str, unit: str, levels: Sequence[tuple[int, int]]
    ) -> None:
        """Add a counter by its levels, each from a moment on."""
        for moment, level in levels:
            event = {"ph": "C", "name": name, "pid": pid, "ts": microseconds(moment)}
            self.events.append(event | {"args": {unit: level}})

    def text(self, **other: object) -> str:
        """Return the file, an event a line; `other` says what it is of."""
        events = ",\n".join(json.dumps(e, ensure_ascii=False) for e in self.events)
        about = json.dumps({"lpsched": __version__, **other}, ensure_ascii=False)
        head = f'"displayTimeUnit":"ms","otherData":{about}'
        return f'{{{head},"traceEvents":[\n{events}\n]}}\n'
