"""`lpsched plot`: a Gantt chart of a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lpsched.cli.options import QuietOption
from lpsched.cli.output import note
from lpsched.cli.problem import load_graph_file, load_schedule_file
from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import Fault, InstanceError, VerificationError
from lpsched.plot import check_output, draw
from lpsched.verify import verify

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched plot best.json -o gantt.svg"


def command(
    schedule: Annotated[str, typer.Argument(metavar="SCHEDULE")],
    *,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="A .png, .svg, .pdf or .html to write."),
    ],
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
    quiet: QuietOption = False,
) -> None:
    """Draw a schedule as a Gantt chart: one lane a device, one period or more."""
    check_output(output)
    answer = load_schedule_file(schedule)
    problem = graph_of(answer, graph, schedule)
    name = answer.result.method if answer.result else answer.graph
    draw([(name, problem, answer)], output, iterations=iterations)
    note(f"{output} written", quiet=quiet)


def graph_of(schedule: Schedule, override: str | None, source: str) -> Graph:
    """Return the schedule's graph, verified to be its own (exit 6 if not)."""
    graph = schedule.graph_document
    if override is not None:
        graph = load_graph_file(override)
    if graph is None:
        text = "the schedule holds no graph; give it with --graph"
        raise InstanceError([Fault("graph_document", text)], source=source)
    violations = verify(graph, schedule)
    if violations:
        raise VerificationError(violations)
    return graph
