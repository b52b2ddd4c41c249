"""`lpsched explain`: why the period is what it is."""

from __future__ import annotations

from typing import Annotated

import typer

from lpsched.analysis.explain import CAUSES, Explanation, explain, total_time
from lpsched.cli.options import JsonOption
from lpsched.cli.output import number, percent, print_json, print_table, print_text
from lpsched.cli.problem import load_schedule_file
from lpsched.cli.verbs.plot import graph_of
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
    json: JsonOption = False,
) -> None:
    """Say what binds the period, each op's slack, and why devices are idle."""
    answer = load_schedule_file(schedule)
    problem = graph_of(answer, graph, schedule)
    explanation = explain(problem, answer)
    total = total_time(answer.period, explanation.makespan, iterations)
    if json:
        document = explanation.document()
        print_json({**document, "iterations": iterations, "total_time": total})
        return
    print_text(
        f"{problem.name}: period {number(answer.period)} {problem.time_unit}."
        f" {explanation.binding.sentence()}."
    )
    print_text(
        f"{iterations} iterations take {number(total)} {problem.time_unit}"
        f" (one alone {number(explanation.makespan)})."
    )
    _show_idle(answer, explanation)
    _show_slack(problem, answer, explanation)


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
