"""PyTorch's pipeline schedules (CSV, a row a rank) as tables of actions."""

from __future__ import annotations

import csv
import io
import re

from lpsched.core.actions import COMMUNICATION, COMPUTE, SHARDING, Action, Table
from lpsched.network.readers.source import FaultLog, seen

__all__ = ["read_torch_csv"]

#: A stage, a kind and a microbatch; more digits are taken for a mistake.
_ACTION = re.compile(r"(\d{1,6})([A-Z]+(?:_[A-Z]+)?)(\d{0,6})", re.ASCII)
_OVERLAP = re.compile(r"\(([^()]*)\)OVERLAP_F_B")
_EXPECTED = "expected a stage, a kind and a microbatch such as 2F0"


def read_torch_csv(text: str, *, source: str) -> Table:
    """Read a table; cells must match the grammar to their last character.

    Parameters
    ----------
    text : str
        A line for each rank; cells are actions in the order in which they run.
    source : str
        The file's name, for messages.

    Raises
    ------
    FormatError
        With the rank and step of every cell that is no action.
    """
    log = FaultLog(source)
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise log.fail("", f"no CSV: {error}") from error
    rows = [
        [_cell(cell.strip(), f"rank {rank}, step {step}", log) for step, cell in row]
        for rank, row in enumerate(map(enumerate, lines))
    ]
    if not rows:
        log.add("", "expected a line for each rank, got an empty file")
    log.check()
    return Table.of(rows)


def _cell(text: str, place: str, log: FaultLog) -> tuple[Action, ...]:
    overlap = _OVERLAP.fullmatch(text)
    if overlap is None:
        return () if text == "" else (_action(text, place, log),)
    parts = [part.strip() for part in overlap[1].split(";")]
    if len(parts) < 2:
        log.add(place, f"expected two actions or more to overlap, got {seen(text)}")
    actions = tuple(_action(part, place, log) for part in parts)
    if any(action.kind not in COMPUTE for action in actions):
        log.add(place, f"only {', '.join(COMPUTE)} can overlap, got {seen(text)}")
    return actions


def _action(text: str, place: str, log: FaultLog) -> Action:
    match = _ACTION.fullmatch(text)
    if match is None:
        log.add(place, f"{_EXPECTED}, got {seen(text)}")
        return Action(0, "F", 0)
    stage, kind, number = match.groups()
    if kind not in (*COMPUTE, *COMMUNICATION, *SHARDING):
        known = ", ".join((*COMPUTE, *COMMUNICATION, *SHARDING))
        log.add(place, f"expected one of {known}, got {seen(kind)} in {seen(text)}")
    elif kind in SHARDING and number:
        log.add(place, f"{kind} takes no microbatch, got {seen(text)}")
    elif kind not in SHARDING and not number:
        log.add(place, f"{kind} lacks a microbatch: got {seen(text)}")
    return Action(int(stage), kind, int(number) if number else None)
