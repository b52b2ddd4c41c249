"""Comparisons and schedules as pandas tables, the numbers exact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lpsched.core.schedule import Schedule
from lpsched.errors import MissingExtraError, UnsupportedError
from lpsched.solve import Row

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["to_pandas"]


def to_pandas(thing: Schedule | Iterable[Row]) -> DataFrame:
    """Return a schedule (one row an op) or a comparison (one row a method).

    Ops have the columns op, kind, layer, part, microbatch, device, start, end,
    duration, lap and phase, times in ticks; methods have those of
    ``lpsched compare --csv``.

    Raises
    ------
    UnsupportedError
        If a schedule does not hold its graph.
    MissingExtraError
        If pandas is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtraError(package="pandas", extra="notebook") from error

    if isinstance(thing, Schedule):
        return pd.DataFrame(_ops(thing))
    rows = [row.document() for row in thing]
    return pd.DataFrame([{k: v for k, v in r.items() if k != "bound"} for r in rows])


def _ops(schedule: Schedule) -> list[dict[str, Any]]:
    graph = schedule.graph_document
    if graph is None:
        text = "the schedule holds no graph: set its graph_document"
        raise UnsupportedError(text)
    rows = []
    for op in graph.ops:
        placed = schedule.ops[op.id]
        duration = graph.duration(op.id, placed.device)
        rows.append(
            {
                "op": op.id,
                "kind": op.kind,
                "layer": op.layer,
                "part": op.part,
                "microbatch": op.microbatch,
                "device": placed.device,
                "start": placed.start,
                "end": placed.start + duration,
                "duration": duration,
                "lap": schedule.lap(op.id),
                "phase": schedule.phase(op.id),
            }
        )
    return rows
