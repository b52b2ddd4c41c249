"""`lpsched export`: files that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lpsched.cli.options import DevicesOption, Manner, one_count
from lpsched.cli.output import require_writable, save_text, wrote
from lpsched.cli.problem import load_problem
from lpsched.cli.verbs.plot import load_flow
from lpsched.core.graph import Graph, OpId
from lpsched.core.result import INTEGER_OBJECTIVES
from lpsched.export import dot_text, graphml_text, model_text
from lpsched.plot.colours import KINDS

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched export graph.json --to lp -o model.lp"

#: What --to takes, and what each is made of.
TARGETS = ("lp", "mps", "dot", "graphml")


def command(
    *,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A graph, instance or network; for dot and graphml a schedule, too.",
        ),
    ],
    to: Annotated[str, typer.Option("--to", help=f"One of {', '.join(TARGETS)}.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.")],
    devices: DevicesOption = None,
    period: Annotated[
        int | None,
        typer.Option(
            "--period",
            min=1,
            help="lp, mps: the period of the model, in ticks; default the best bound.",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option("--objective", help="lp, mps: what the model minimises."),
    ] = None,
    manner: Manner,
) -> None:
    """Write a file that another tool reads: lp and mps, the integer program of a graph.

    dot and graphml, the graph with its delays; of a schedule with the delays that it
    chose and its laps.
    """
    require_writable(output)
    if to not in TARGETS:
        expected = ", ".join(TARGETS)
        raise typer.BadParameter(f"expected one of {expected}, got {to!r}")
    known = [name for name in INTEGER_OBJECTIVES if name != "period"]
    if objective is not None and objective not in known:
        raise typer.BadParameter(
            f"expected one of {', '.join(known)}, got {objective!r}",
            param_hint="--objective",
        )
    if to in ("dot", "graphml"):
        graph, laps = load_flow(file, one_count(devices))
        save_text(output, _flow_text(graph, laps, to))
        wrote(output, manner, format=to)
        return
    graph = load_problem(file, one_count(devices)).graph
    kind: Literal["lp", "mps"] = "lp" if to == "lp" else "mps"
    save_text(output, model_text(graph, kind, period=period, minimise=objective))
    wrote(output, manner, format=to)


def _flow_text(graph: Graph, laps: dict[OpId, int] | None, to: str) -> str:
    if to == "graphml":
        return graphml_text(graph, laps=laps)
    colours = {kind: style.colour for kind, style in KINDS.items()}
    return dot_text(graph, laps=laps, colours=colours)
