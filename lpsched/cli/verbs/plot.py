"""`lpsched plot`: a Gantt chart of a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lpsched.cli.options import DevicesOption, Manner, one_count
from lpsched.cli.output import require_writable, wrote
from lpsched.cli.problem import (
    graph_of,
    is_schedule,
    load_problem,
    load_schedule_file,
)
from lpsched.cli.rewrites import fixed
from lpsched.core.graph import Graph, OpId
from lpsched.plot import check_graph_output, check_output, draw, draw_graph

__all__ = ["EXAMPLE", "command", "load_flow"]

EXAMPLE = "lpsched plot best.json -o gantt.svg"


def command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="SCHEDULE",
            help="A schedule; or a graph, instance or network to draw as a graph.",
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="A .png, .svg, .pdf or .html to write."),
    ],
    devices: DevicesOption = None,
    dataflow: Annotated[
        bool,
        typer.Option(
            "--dataflow", help="Draw the schedule's graph with its delays and laps."
        ),
    ] = False,
    graph: Annotated[
        str | None,
        typer.Option("--graph", help="A graph file, instead of the one inside."),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(
            "--iterations", min=1, help="Draw so many iterations from first to last."
        ),
    ] = None,
    manner: Manner,
) -> None:
    """Draw a schedule as a Gantt chart, or a graph with its delays (and laps).

    The chart has one lane a device, one period or more.
    """
    as_graph = dataflow or not is_schedule(file)
    (check_graph_output if as_graph else check_output)(output)
    require_writable(output)
    if as_graph:
        drawn, laps = load_flow(file, one_count(devices), override=graph)
        draw_graph(drawn, output, laps=laps)
    else:
        answer = load_schedule_file(file)
        problem = graph_of(answer, graph, file)
        name = answer.result.method if answer.result else answer.graph
        draw([(name, problem, answer)], output, iterations=iterations)
    wrote(output, manner)


def load_flow(
    file: str, devices: int | None, *, override: str | None = None
) -> tuple[Graph, dict[OpId, int] | None]:
    """Read a graph to show; of a schedule its graph, delays as it has them, and laps.

    The least lap is 0.
    """
    if not is_schedule(file):
        return load_problem(file, devices).graph, None
    answer = load_schedule_file(file)
    graph = graph_of(answer, override, file)
    laps = {op.id: answer.lap(op.id) for op in graph.ops}
    least = min(laps.values(), default=0)
    return (
        fixed(graph, answer.delays),
        {op: lap - least for op, lap in laps.items()},
    )
