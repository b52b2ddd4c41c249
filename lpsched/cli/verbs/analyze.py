"""`lpsched analyze`: iteration bound, critical path, retiming, unfolding."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lpsched.analysis.critical_path import critical_path
from lpsched.analysis.dataflow import Node, to_networkx
from lpsched.analysis.iteration_bound import iteration_bound
from lpsched.analysis.registers import num_registers
from lpsched.analysis.retiming import apply_retiming
from lpsched.analysis.unfolding import unfold
from lpsched.cli.exits import ExitCode
from lpsched.cli.layerpipe import report_layerpipe
from lpsched.cli.options import (
    DevicesOption,
    FileArgument,
    LimitOption,
    Manner,
    OutputOption,
    one_count,
)
from lpsched.cli.output import (
    complain,
    note,
    number,
    print_json,
    print_table,
    print_text,
    save_text,
)
from lpsched.cli.problem import load_problem
from lpsched.cli.rewrites import (
    DelaysOption,
    NoRetimingError,
    Retimer,
    UnfoldOption,
    chosen_delays,
    fixed,
)
from lpsched.core.graph import Graph
from lpsched.core.io import document_text, graph_to_document
from lpsched.plot import check_graph_output, draw_graph

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched analyze graph.json --delays min --retime -o retimed.json"


RetimeOption = Annotated[
    bool,
    typer.Option(
        "--retime", help="Retime for the least clock period, with few registers."
    ),
]
ClockOption = Annotated[
    int | None,
    typer.Option(
        "--clock-period",
        metavar="C",
        min=0,
        help="Retime for this clock period, with the fewest registers.",
    ),
]
CutsetOption = Annotated[
    str | None,
    typer.Option(
        "--cutset", metavar="OPS", help="Let these ops run an iteration later."
    ),
]
LapsOption = Annotated[
    str | None,
    typer.Option(
        "--laps",
        metavar="SCHEDULE",
        help="Retime by a schedule's laps (and fix delays as it does).",
    ),
]
DrawOption = Annotated[
    Path | None,
    typer.Option("--draw", metavar="PICTURE", help="Draw it: .svg, .png, .pdf."),
]
LayerpipeOption = Annotated[
    bool,
    typer.Option(
        "--layerpipe",
        help="Derive LayerPipe's delays, and set them beside the least that the best"
        " period needs.",
    ),
]


def command(
    *,
    file: FileArgument,
    devices: DevicesOption = None,
    delays: DelaysOption = None,
    retime: RetimeOption = False,
    clock_period: ClockOption = None,
    cutset: CutsetOption = None,
    laps: LapsOption = None,
    unfold_by: UnfoldOption = None,
    output: OutputOption = None,
    draw: DrawOption = None,
    layerpipe: LayerpipeOption = False,
    time_limit: LimitOption = 60.0,
    manner: Manner,
) -> None:
    """Analyse a dataflow graph as signal-flow people do; retime it, unfold it.

    Prints the iteration bound with a critical cycle, and the critical path. Named
    delays need values first. What is asked for is done in this order: delays fixed,
    retimed, unfolded; -o writes the graph that comes of it.
    """
    if draw is not None:
        check_graph_output(draw)
    retimer = Retimer(least=retime, clock_period=clock_period, cutset=cutset, laps=laps)
    if layerpipe:
        report_layerpipe(file, devices, manner, time_limit, output=output, draw=draw)
        return
    plain = load_problem(file, one_count(devices)).graph
    before = fixed(plain, chosen_delays(plain, delays if delays is not None else laps))
    after, retiming = _rewritten(before, retimer, unfold_by or 1)
    document = _figures(after)
    if after is not before:
        document["before"] = _figures(before)
    if retiming is not None:
        document["retiming"] = retiming
    if output is not None:
        save_text(output, document_text(graph_to_document(after)))
        note(f"{output} written", quiet=manner.quiet)
    if draw is not None:
        draw_graph(after, draw, laps=None if unfold_by else retiming)
        note(f"{draw} written", quiet=manner.quiet)
    if manner.json:
        print_json(document)
    else:
        _show(after, document)


def _rewritten(
    before: Graph, retimer: Retimer, iterations: int
) -> tuple[Graph, dict[Node, int] | None]:
    """Retime, then unfold; exit 3 if no retiming has the clock period."""
    try:
        retiming = retimer.retiming(before)
    except NoRetimingError as error:
        complain(str(error))
        raise typer.Exit(ExitCode.INFEASIBLE) from error
    after = before if retiming is None else apply_retiming(before, retiming)
    return unfold(after, iterations), retiming


def _figures(graph: Graph) -> dict[str, Any]:
    """Figures of a graph as plain JSON data, in ticks and iterations."""
    bound = iteration_bound(graph)
    path = critical_path(graph)
    delay = sum(int(graph.edges[i].delay) for i in bound.edges)
    figures = {
        "graph": graph.name,
        "unfolding": graph.unfolding,
        "iteration_bound": str(bound.value),
        "critical_cycle": list(bound.loop),
        "critical_cycle_ticks": int(bound.value * delay),
        "critical_cycle_delay": delay,
        "critical_path": path.length,
        "critical_path_ops": list(path.nodes),
        "registers": num_registers(graph if graph.tensors else to_networkx(graph)),
        "register_size": num_registers(graph, by_size=True),
    }
    if graph.unfolding > 1:
        per_iteration = str(bound.value / graph.unfolding)
        figures["iteration_bound_per_iteration"] = per_iteration
    return figures


#: Rows of the table: key of `_figures`, what it is, and in which unit.
_ROWS = (
    ("unfolding", "iterations in the graph", ""),
    ("iteration_bound", "iteration bound", "time"),
    ("iteration_bound_per_iteration", "the same per iteration", "time"),
    ("critical_path", "critical path, clock period", "time"),
    ("registers", "registers", "values"),
    ("register_size", "size of the registers", "size"),
)


def _show(graph: Graph, document: dict[str, Any]) -> None:
    before = document.get("before")
    columns = [("figure", "left"), ("before", "right"), ("after", "right")]
    if before is None:
        columns = [("figure", "left"), ("value", "right")]
    units = {"time": graph.time_unit, "size": graph.size_unit}
    rows = [
        [
            text,
            *(_cell(figures, key) for figures in (before, document) if figures),
            units.get(unit, unit),
        ]
        for key, text, unit in _ROWS
        if key in document
    ]
    print_table([*columns, ("unit", "left")], rows, title=graph.name)
    loop = document["critical_cycle"]
    if loop:
        ticks = number(document["critical_cycle_ticks"])
        delay = document["critical_cycle_delay"]
        way = " -> ".join([*loop, loop[0]])
        print_text(f"critical cycle ({ticks} {graph.time_unit}, delay {delay}): {way}")
    else:
        print_text("no cycle takes time: the iteration bound is 0")
    path = " -> ".join(document["critical_path_ops"])
    print_text(f"critical path: {path}")
    moved = {op: lap for op, lap in document.get("retiming", {}).items() if lap}
    if "retiming" in document:
        laps = ", ".join(f"{op} {lap}" for op, lap in moved.items()) or "none"
        print_text(f"laps of the retiming (0 where not named): {laps}")


def _cell(figures: dict[str, Any], key: str) -> str:
    value = figures.get(key, "")
    if isinstance(value, int):
        return number(value)
    whole, slash, part = str(value).partition("/")
    return f"{int(whole):,}{slash}{part}" if whole.isdecimal() else str(value)
