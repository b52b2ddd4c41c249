"""`lpsched bound`: lower bounds with their certificates."""

from __future__ import annotations

import json as json_text

import typer

from lpsched.analysis.bounds import Bound, objective_bounds, period_bounds
from lpsched.analysis.iteration_bound import LoopWithoutDelayError
from lpsched.cli.exits import ExitCode
from lpsched.cli.options import DevicesOption, FileArgument, Manner, one_count
from lpsched.cli.output import complain, number, print_json, print_table
from lpsched.cli.problem import load_problem
from lpsched.core.graph import Graph
from lpsched.core.result import INTEGER_OBJECTIVES

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched bound models/vgg16.yaml --devices 8"


def command(
    *, file: FileArgument, devices: DevicesOption = None, manner: Manner
) -> None:
    """Print lower bounds of every objective, each with a certificate to check.

    Bounds of objectives other than the period hold at any period.
    """
    graph = load_problem(file, one_count(devices)).graph
    try:
        found = _all_bounds(graph)
    except LoopWithoutDelayError as error:
        complain(f"{file}: infeasible: {error}")
        raise typer.Exit(ExitCode.INFEASIBLE) from error
    if manner.json:
        print_json(
            {
                objective: {
                    "value": bounds[0].value,
                    "kind": bounds[0].proof.kind,
                    "certificate": bounds[0].proof.certificate,
                }
                for objective, bounds in found.items()
            }
        )
        return
    rows = [
        [objective, number(b.value), b.proof.kind, _short(b)]
        for objective, bounds in found.items()
        for b in bounds
    ]
    columns = [
        ("objective", "left"),
        ("bound", "right"),
        ("kind", "left"),
        ("certificate", "left"),
    ]
    print_table(columns, rows, title=f"{graph.name}: lower bounds")


def _all_bounds(graph: Graph) -> dict[str, list[Bound]]:
    """Bounds by objective, the best first."""
    found: dict[str, list[Bound]] = {}
    for objective in INTEGER_OBJECTIVES:
        bounds = (
            period_bounds(graph)
            if objective == "period"
            else objective_bounds(graph, objective, period=None)
        )
        if bounds:
            found[objective] = sorted(bounds, key=lambda b: -b.value)
    return found


def _short(bound: Bound) -> str:
    text = json_text.dumps(bound.proof.certificate, ensure_ascii=False)
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 3] + "..."


#: Longer certificates are cut in the table; ``--json`` has them whole.
MOST_TEXT = 100
