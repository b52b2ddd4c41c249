"""Synchronous pipelines in a few numbers, for every test folder."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lpsched.core.graph import Graph
from lpsched.core.io import instance_from_document
from lpsched.network import compile_instance

__all__ = ["Times", "ZeroBubbleRow", "pipeline", "zero_bubble_rows"]

#: One value for every stage, or one for each.
PerStage = int | Sequence[int]


class Times(NamedTuple):
    """Ticks of F, I, W and of a transfer, of every stage or of each."""

    forward: PerStage
    input_grad: PerStage
    weight_grad: PerStage
    transfer: int = 0


def _of(value: PerStage, stage: int) -> int:
    return value if isinstance(value, int) else value[stage]


def pipeline(
    devices: int,
    microbatches: int,
    times: Times,
    *,
    stages: int | None = None,
    memory: int | Sequence[int | None] | None = None,
    deltas: tuple[PerStage, PerStage] = (2, -1),
    arrangement: str = "loop",
    update: int = 0,
    **training: Any,  # noqa: ANN401 - plain data
) -> Graph:
    """Compile a pipeline of costs given outright; `deltas` are those of F and I."""
    count = stages or devices
    layers = [
        {
            "name": f"s{s}",
            "forward": _of(times.forward, s),
            "input_grad": _of(times.input_grad, s),
            "weight_grad": _of(times.weight_grad, s),
            "memory": {"F": _of(deltas[0], s), "I": _of(deltas[1], s)},
            "update": update,
        }
        for s in range(count)
    ]
    limits = memory if isinstance(memory, Sequence) else [memory] * devices
    document = {
        "schema": "lpsched/instance/1",
        "network": {"schema": "lpsched/network/1", "name": "made", "layers": layers},
        "devices": [
            {"id": f"d{d}"} | ({} if limit is None else {"memory": limit})
            for d, limit in enumerate(limits)
        ],
        "link": {"latency": times.transfer},
        "training": {"mode": "synchronous", "microbatches": microbatches, **training},
        "placement": {"stages": count, "arrangement": arrangement},
    }
    return compile_instance(instance_from_document(document)).graph


class ZeroBubbleRow(NamedTuple):
    """A published result: its inputs in microseconds, and the spans found.

    A microbatch takes 34 h + 5 heads s units at F, with h = hidden and s = 1024; W
    gives back 32 h and I the rest.
    """

    stages: int
    microbatches: int
    times: Times
    taken: int
    given_back: int
    spans: dict[str, int]

    def graph(self, *, limit: int | None = None, **training: Any) -> Graph:  # noqa: ANN401
        """Compile it with room for `limit` microbatches on each device."""
        return pipeline(
            self.stages,
            self.microbatches,
            self.times,
            memory=None if limit is None else limit * self.taken,
            deltas=(self.taken, -self.given_back),
            **training,
        )


def zero_bubble_rows() -> list[ZeroBubbleRow]:
    """All rows of `data/zero_bubble_rows.csv`."""
    path = Path(__file__).parent / "data" / "zero_bubble_rows.csv"
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        ZeroBubbleRow(
            stages=int(row["p"]),
            microbatches=int(row["m"]),
            times=Times(*(int(row[k]) for k in ("T_F", "T_B", "T_W", "T_comm"))),
            taken=34 * int(row["hidden"]) + 5 * int(row["heads"]) * 1024,
            given_back=2 * int(row["hidden"]) + 5 * int(row["heads"]) * 1024,
            spans={
                key.removeprefix("span_"): int(value)
                for key, value in row.items()
                if key.startswith("span_") and value
            },
        )
        for row in rows
    ]
