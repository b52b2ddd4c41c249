"""The report of `--pareto`: the front as a table, CSV and picture."""

from __future__ import annotations

import threading
from pathlib import Path

from lpsched.cli.exits import ExitCode, code_of_status
from lpsched.cli.options import Manner, parse_list
from lpsched.cli.output import (
    complain,
    complain_of,
    keys_of,
    note,
    number,
    percent,
    print_table,
    save_text,
    table_csv,
)
from lpsched.cli.running import run
from lpsched.core.graph import Graph
from lpsched.core.result import INTEGER_OBJECTIVES, relative_gap
from lpsched.plot import draw_front
from lpsched.solve import Front, Report, SolveParams, pareto_front

__all__ = ["find_front", "save_front", "show_front"]


def find_front(
    graph: Graph, names: str, params: SolveParams, manner: Manner
) -> tuple[Front, int]:
    """Search the front of two objectives; return it with the exit code it means."""

    def work(report: Report, interrupt: threading.Event) -> Front:
        return pareto_front(
            graph, parse_list(names), params, report=report, interrupt=interrupt
        )

    front, interrupted = run(work, manner, title=graph.name)
    if not manner.quiet:
        complain_of(front.conflict)
    code = ExitCode.INTERRUPTED if interrupted else code_of_status(str(front.status))
    return front, code


def show_front(front: Front) -> None:
    """Print the points: both objectives with their gaps, then the other figures."""
    if not front.points:
        complain(f"no schedule: {front.status}")
        return
    others = [name for name in INTEGER_OBJECTIVES if name not in front.objectives]
    columns = [
        column
        for name in front.objectives
        for column in ((name, "right"), ("gap", "right"))
    ]
    columns += [("status", "left"), *((name, "right") for name in others)]
    rows = []
    for point in front.points:
        row = []
        for name in front.objectives:
            value = point.objective[name]
            row.append(number(value))
            row.append(percent(relative_gap(value, point.bound[name]), 2))
        row.append("optimal" if point.proved else "feasible")
        rows.append([*row, *(number(point.objective[name]) for name in others)])
    graph = front.graph
    whole = "the whole front" if front.complete else "there may be more points"
    title = (
        f"{graph.name}: {' against '.join(front.objectives)}, {whole}, in"
        f" {front.seconds:.1f} s (time in {graph.time_unit}, sizes in"
        f" {graph.size_unit})"
    )
    print_table(columns, rows, title=title, least=others[::-1])


def save_front(
    front: Front, manner: Manner, *, csv: Path | None, plot: Path | None
) -> None:
    """Write the front as CSV and picture."""
    if csv is not None:
        points = [
            {
                "status": "optimal" if point.proved else "feasible",
                **point.objective,
                **{f"{name}_bound": value for name, value in point.bound.items()},
            }
            for point in front.points
        ]
        keys = keys_of(points)
        save_text(csv, table_csv(keys, [[p.get(k) for k in keys] for p in points]))
        note(f"{csv} written", quiet=manner.quiet)
    if plot is not None and front.points:
        draw_front(front, plot)
        note(f"{plot} written", quiet=manner.quiet)
