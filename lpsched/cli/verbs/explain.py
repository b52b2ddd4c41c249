"""`lpsched explain`: why the period is what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from lpsched.analysis.explain import CAUSES, Explanation, explain, total_time
from lpsched.analysis.stashes import SORTS, Stash, stashes
from lpsched.cli.options import Manner
from lpsched.cli.output import number, percent, print_json, print_table, print_text
from lpsched.cli.problem import graph_of, load_schedule_file
from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched explain best.json --iterations 1000"


def command(
    schedule: Annotated[str, typer.Argument(metavar="SCHEDULE")],
    *,
    graph: Annotated[
        str | None,
        typer.Option("--graph", help="A graph file, instead of the one inside."),
    ] = None,
    iterations: Annotated[
        int,
        typer.Option("--iterations", min=1, help="Iterations for the total time."),
    ] = 100,
    manner: Manner,
) -> None:
    """Say what binds the period, each op's slack, why devices idle, what they keep."""
    answer = load_schedule_file(schedule)
    problem = graph_of(answer, graph, schedule)
    explanation = explain(problem, answer)
    total = total_time(answer.period, explanation.makespan, iterations)
    kept = stashes(problem, answer)
    if manner.json:
        document = explanation.document()
        document |= {"iterations": iterations, "total_time": total}
        print_json({**document, "stashes": [stash.document() for stash in kept]})
        return
    print_text(
        f"{problem.name}: period {number(answer.period)} {problem.time_unit}."
        f" {explanation.binding.sentence()}."
    )
    print_text(
        f"{iterations} iterations take {number(total)} {problem.time_unit}"
        f" (one alone {number(explanation.makespan)})."
        f" Bubble ratio {percent(float(explanation.bubble_ratio), 2)}."
    )
    _show_idle(answer, explanation)
    _show_slack(problem, answer, explanation)
    _show_stashes(problem, kept)


def _show_idle(schedule: Schedule, explanation: Explanation) -> None:
    heads = {
        "data": "waits for data",
        "delay": "waits for a delay",
        "transfer": "waits for a transfer",
        "nothing": "nothing to do",
    }
    columns = [("device", "left"), ("idle", "right")]
    columns += [(heads[cause], "right") for cause in CAUSES]
    rows = []
    for device, causes in explanation.idle().items():
        idle = sum(causes.values())
        share = percent(idle / schedule.period)
        cells = [number(causes[cause]) for cause in CAUSES]
        rows.append([device, f"{number(idle)} ({share})", *cells])
    print_table(columns, rows, title="Idle ticks a period, by cause")


def _show_slack(graph: Graph, schedule: Schedule, explanation: Explanation) -> None:
    bound = {wait.src for wait in explanation.binding.waits}
    columns = [
        ("op", "left"),
        ("device", "left"),
        ("lap", "right"),
        ("phase", "right"),
        ("may move earlier", "right"),
        ("later", "right"),
        ("binds", "left"),
    ]
    rows = [
        [
            op.id,
            str(schedule.ops[op.id].device or ""),
            str(schedule.lap(op.id)),
            number(schedule.phase(op.id)),
            number(explanation.slack[op.id].earlier),
            number(explanation.slack[op.id].later),
            "yes" if op.id in bound else "",
        ]
        for op in graph.ops
    ]
    print_table(columns, rows, title="Slack of each op, all others fixed, in ticks")


def _show_stashes(graph: Graph, kept: Sequence[Stash]) -> None:
    """One row a layer and device: versions and size of each sort of values."""
    sorts = [sort for sort in SORTS if any(stash.sort == sort for stash in kept)]
    cells: dict[tuple[str, str], dict[str, Stash]] = {}
    for stash in kept:
        cells.setdefault((stash.layer, stash.device), {})[stash.sort] = stash
    columns = [("layer", "left"), ("device", "left")]
    for sort in sorts:
        columns += [(sort, "right"), ("size", "right")]
    rows = []
    for (layer, device), found in cells.items():
        row = [layer, device]
        for sort in sorts:
            cell = found.get(sort)
            row += [f"{cell.versions}×", number(cell.size)] if cell else ["", ""]
        rows.append(row)
    title = f"Stashes: most versions held at once, and most {graph.size_unit}s"
    print_table(columns, rows, title=title)
