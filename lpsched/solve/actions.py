"""From a table of PyTorch's actions to a verified schedule with times."""

from __future__ import annotations

from collections.abc import Iterator

from lpsched.analysis.actions import check_actions
from lpsched.analysis.bounds import period_bound
from lpsched.analysis.pipeline import Pipeline, Slot, pipeline_of
from lpsched.core.actions import COMPUTE, Cell, Table
from lpsched.core.answer import Answer
from lpsched.core.graph import Graph
from lpsched.core.io import instance_from_document
from lpsched.core.result import Stop
from lpsched.errors import Fault, InstanceError, VerificationError
from lpsched.heuristics.synchronous.scheduled import timed
from lpsched.network import compile_instance
from lpsched.solve.params import SolveParams
from lpsched.solve.search import Search
from lpsched.verify import verify

__all__ = ["schedule_actions", "unit_graph"]


def schedule_actions(table: Table, graph: Graph, *, source: str) -> Answer:
    """Check a table against a graph, give it the least times, and verify them.

    Each rank is the device of the same number and runs its actions in their order, one
    iteration after the other. Where a graph has I and W, B stands for both, one after
    the other. What the table says of communication is checked, and timed as the graph
    has it.

    Raises
    ------
    FormatError
        With all that PyTorch could not run.
    InstanceError
        With all in which the table is not of this graph.
    UnsupportedError
        The graph is no synchronous pipeline on fixed stages.
    VerificationError
        The graph forbids the schedule, for its memory.
    """
    pipeline = pipeline_of(graph)
    check_actions(table, source=source, microbatches=pipeline.microbatches)
    faults = list(_graph_faults(table, pipeline))
    if faults:
        raise InstanceError(faults, source=source)
    orders = {
        graph.device_ids[rank]: [slot for cell in row for slot in _slots(cell)]
        for rank, row in enumerate(table.rows)
    }
    schedule = timed(pipeline, orders)
    violations = verify(graph, schedule)
    if violations:
        raise VerificationError(violations)
    search = Search(graph, SolveParams())
    bound = period_bound(graph)
    search.raise_bound("period", bound.value, bound.proof)
    search.offer(schedule, by="torch-csv")
    return search.answer(stop=Stop.METHOD)


def _graph_faults(table: Table, pipeline: Pipeline) -> Iterator[Fault]:
    """Complain of stages elsewhere, and of I and W that the graph has in one."""
    ids = pipeline.graph.device_ids
    if len(table.rows) > len(ids):
        text = f"there are {len(table.rows)} rows, and {len(ids)} devices in the graph"
        yield Fault("", text)
        return
    if table.stages != pipeline.num_stages:
        text = (
            f"there are {table.stages} stages, and {pipeline.num_stages} in the graph"
        )
        yield Fault("", text)
        return
    for stage, rank in sorted(table.rank_of_stage.items()):
        if (home := pipeline.devices[stage]) != ids[rank]:
            text = f"this is {ids[rank]}, and the graph has stage {stage} on {home}"
            yield Fault(f"rank {rank}", text)
    for cell, action in table.placed():
        op = pipeline.ops["I"][action.stage][0]
        fused = op is not None and pipeline.graph.op_by_id[op].kind == "B"
        if fused and action.kind in ("I", "W"):
            yield Fault(cell.place, f"{action}: the graph has I and W in one, as B")


def _slots(cell: Cell) -> Iterator[Slot]:
    for stage, kind, m in cell.actions:
        if kind in COMPUTE and m is not None:
            yield Slot("I" if kind == "B" else kind, stage, m)
            if kind == "B":
                yield Slot("W", stage, m)


def unit_graph(table: Table, *, name: str) -> Graph:
    """Build the pipeline of a table with F, I and W of one tick and free transfers.

    If the table has no I, B is one op of two ticks.
    """
    kinds = {action.kind for _, action in table.placed()}
    layer = {"forward": 1, "input_grad": 1, "weight_grad": 1}
    document = {
        "schema": "lpsched/instance/1",
        "name": name,
        "network": {
            "schema": "lpsched/network/1",
            "name": name,
            "layers": [{"name": f"s{s}", **layer} for s in range(table.stages)],
        },
        "devices": len(table.rows),
        "training": {
            "mode": "synchronous",
            "microbatches": table.microbatches,
            "fuse_backward": "I" not in kinds,
        },
        "placement": {
            "rule": "stages",
            "stages": [[f"s{s}"] for s in range(table.stages)],
            "pins": {str(s): f"d{r}" for s, r in table.rank_of_stage.items()},
        },
    }
    return compile_instance(instance_from_document(document)).graph
