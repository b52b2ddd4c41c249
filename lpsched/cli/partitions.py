"""The stages of a file: the layers of each and the rank that runs it."""

from __future__ import annotations

from itertools import groupby

from lpsched.analysis.precedence import topological_order
from lpsched.cli.problem import (
    graph_of,
    is_schedule,
    load_problem,
    load_schedule_file,
)
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.schedule import Schedule
from lpsched.errors import Fault, InstanceError

__all__ = ["load_partition", "stages_in"]


def load_partition(
    file: str, devices: int | None, override: str | None = None
) -> tuple[list[list[str]], list[int]]:
    """Read the layers of each stage, and its rank: the number of its device.

    Of an instance, the stages of its placement. Of a schedule, those that it was solved
    with; without any, layers in a row whose F is on one device.

    Raises
    ------
    InstanceError
        The file says nothing of stages.
    """
    if is_schedule(file):
        schedule = load_schedule_file(file)
        graph = graph_of(schedule, override, file)
        stages = stages_in(schedule)
        homes: dict[OpId, DeviceId | None] = {
            op: placed.device for op, placed in schedule.ops.items()
        }
        if stages is None:
            rows = _rows_of_layers(graph, homes)
            stages = [[str(graph.op_by_id[op].layer) for op in row] for row in rows]
            ranks = [_rank(graph, homes[row[0]]) for row in rows]
            return _some(stages, file), ranks
    else:
        problem = load_problem(file, devices)
        graph = problem.graph
        stages = None if problem.stages is None else [list(x) for x in problem.stages]
        homes = {
            op.id: graph.allowed(op.id)[0]
            for op in graph.ops
            if len(graph.allowed(op.id)) == 1
        }
    return _some(stages, file), [
        _rank(graph, _home(graph, homes, s, layers))
        for s, layers in enumerate(stages or [])
    ]


def stages_in(schedule: Schedule) -> list[list[str]] | None:
    """Return the layers of each stage that a schedule was solved with, if it tells."""
    result = schedule.result
    found = (
        None if result is None or result.stats is None else result.stats.get("stages")
    )
    if not isinstance(found, list | tuple):
        return None
    return [[str(name) for name in layers] for layers in found]


def _some(stages: list[list[str]] | None, file: str) -> list[list[str]]:
    if not stages:
        text = (
            "says nothing of the layers of its stages; give an instance with "
            "placement.stages, or a schedule that was solved from one"
        )
        raise InstanceError([Fault("", text)], source=file)
    return stages


def _rows_of_layers(
    graph: Graph, homes: dict[OpId, DeviceId | None]
) -> list[list[OpId]]:
    """F of each layer in topological order, grouped by device."""
    ops = [graph.op_by_id[name] for name in topological_order(graph)]
    forwards = [
        op.id
        for op in ops
        if op.kind == "F" and op.layer and not op.microbatch and not op.part
    ]
    return [list(row) for _, row in groupby(forwards, key=lambda op: homes[op])]


def _home(
    graph: Graph,
    homes: dict[OpId, DeviceId | None],
    stage: int,
    layers: list[str],
) -> DeviceId | None:
    """Device of the first op of a stage, or of its first layer, that has one."""
    ops = (op for op in graph.ops if op.stage == stage or op.layer in layers)
    return next((homes[op.id] for op in ops if op.id in homes), None)


def _rank(graph: Graph, device: DeviceId | None) -> int:
    return 0 if device is None else graph.device_ids.index(device)
