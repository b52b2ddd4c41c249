"""The report of `lpsched analyze --layerpipe`: the derivation and its delays."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import typer

from lpsched.analysis.layerpipe import Derivation, derive_layerpipe
from lpsched.cli.options import Manner, parse_devices
from lpsched.cli.output import (
    note,
    number,
    print_json,
    print_table,
    print_text,
    save_text,
)
from lpsched.cli.problem import load_problem
from lpsched.cli.running import run
from lpsched.core.graph import Graph
from lpsched.core.io import document_text, graph_to_document
from lpsched.plot import draw_graph
from lpsched.solve import Report, SolveParams
from lpsched.solve.least_delays import DelayTable, compare_delays

__all__ = ["report_layerpipe"]

#: Staleness in the order shown.
TOTALS = ("rule", "layerpipe", "same_period", "optimum", "bound")


def report_layerpipe(
    file: str,
    devices: str | None,
    manner: Manner,
    time_limit: float,
    *,
    output: Path | None,
    draw: Path | None,
) -> None:
    """Print LayerPipe's derivation and the table of delays, or a row a device count.

    `output` is the pipelined graph, `draw` its picture; each for one device count.
    """
    counts = [None] if devices is None else list(parse_devices(devices))
    if len(counts) > 1 and (output is not None or draw is not None):
        text = "-o and --draw take one device count"
        raise typer.BadParameter(text, param_hint="--devices")
    tables = []
    interrupted = False
    for count in counts:
        if not interrupted:
            graph = load_problem(file, count).graph
            table, interrupted = _compare(graph, manner, time_limit)
            tables.append(table)
    if len(counts) > 1:
        _many(tables, manner)
        return
    derivation = derive_layerpipe(tables[0].graph, tables[0].stages)
    if output is not None:
        graph_document = graph_to_document(derivation.pipelined)
        save_text(output, document_text(graph_document))
        note(f"{output} written", quiet=manner.quiet)
    if draw is not None:
        draw_graph(
            derivation.pipelined, draw, laps=derivation.laps, stages=derivation.stages
        )
        note(f"{draw} written", quiet=manner.quiet)
    _one(tables[0], derivation, manner)


def _compare(
    graph: Graph, manner: Manner, time_limit: float
) -> tuple[DelayTable, bool]:
    params = SolveParams(time_limit=time_limit)

    def work(report: Report, interrupt: threading.Event) -> DelayTable:
        return compare_delays(graph, params, report=report, interrupt=interrupt)

    return run(work, manner, title=f"{graph.name} on {len(graph.devices)}")


def _one(table: DelayTable, derivation: Derivation, manner: Manner) -> None:
    steps = [step.document() for step in derivation.steps]
    document = table.document()
    if manner.json:
        print_json({"graph": table.graph.name, "steps": steps, **document})
        return
    _steps(table.graph, steps)
    _delays(table.graph, document)


def _steps(graph: Graph, steps: list[dict[str, Any]]) -> None:
    columns = [
        ("step", "left"),
        ("iteration bound", "right"),
        ("clock period", "right"),
        ("registers", "right"),
        ("their size", "right"),
    ]
    rows = [
        [
            step["title"],
            _fraction(step["iteration_bound"]),
            number(step["clock_period"]),
            number(step["registers"]),
            number(step["register_size"]),
        ]
        for step in steps
    ]
    units = f"time in {graph.time_unit}, sizes in {graph.size_unit}"
    print_table(columns, rows, title=f"{graph.name}: from loop to pipeline ({units})")


def _fraction(text: str) -> str:
    whole, slash, rest = text.partition("/")
    return f"{int(whole):,}{slash}{rest}"


def _delays(graph: Graph, document: dict[str, Any]) -> None:
    columns = [
        ("delay", "left"),
        ("stage", "right"),
        ("rule 1 + 2 S", "right"),
        ("LayerPipe", "right"),
        ("its period", "right"),
        ("best period", "right"),
        ("at least", "right"),
    ]
    keys = ("stage", "rule", "layerpipe", "same_period", "optimum", "loops")
    rows = [
        [name, *(number(entry[key]) for key in keys)]
        for name, entry in document["delays"].items()
    ]
    total = document["staleness"]
    rows.append(["sum of (value - 1)", "", *(number(total[key]) for key in TOTALS)])
    print_table(columns, rows, title="Delays, in iterations")
    print_text(
        "LayerPipe: the least for its schedule; its period, best period: the least"
        " found for any schedule of this period; at least: no schedule of the best"
        " period has less."
    )
    print_text(
        f"LayerPipe repeats every {number(document['layerpipe_period'])}"
        f" {graph.time_unit}, the optimum every {number(document['period'])}"
        f" {graph.time_unit}{'' if document['period_proved'] else ' (not proved)'}."
    )


def _many(tables: list[DelayTable], manner: Manner) -> None:
    documents = [table.document() for table in tables]
    if manner.json:
        print_json(documents)
        return
    columns = [
        ("devices", "right"),
        ("LayerPipe's period", "right"),
        ("optimum", "right"),
        ("proved", "left"),
        ("rule", "right"),
        ("LayerPipe", "right"),
        ("its period", "right"),
        ("best period", "right"),
        ("bound", "right"),
    ]
    rows = []
    for document in documents:
        total = document["staleness"]
        rows.append(
            [
                str(document["devices"]),
                number(document["layerpipe_period"]),
                number(document["period"]),
                "yes" if document["period_proved"] else "no",
                *(number(total[key]) for key in TOTALS),
            ]
        )
    graph = tables[0].graph
    title = (
        f"{graph.name}: periods in {graph.time_unit}; staleness, the sum of"
        " (delay - 1), by the rule 1 + 2 S and as needed"
    )
    print_table(columns, rows, title=title)
