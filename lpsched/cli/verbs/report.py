"""`lpsched report`: the whole comparison as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lpsched.cli.comparing import (
    BaselineOption,
    ObjectiveOption,
    cases_of,
    code_of_rows,
    compare_problems,
    search_params,
    with_fronts,
)
from lpsched.cli.exits import ExitCode
from lpsched.cli.options import (
    DevicesOption,
    LimitOption,
    Manner,
    ParetoOption,
    SeedOption,
    WorkersOption,
    parse_devices,
)
from lpsched.cli.output import require_writable, save_text, wrote
from lpsched.cli.problem import (
    graph_of,
    is_schedule,
    load_problem,
    load_schedule_file,
)
from lpsched.core.graph import Graph
from lpsched.core.io import graph_digest
from lpsched.core.schedule import Schedule
from lpsched.errors import VerificationError
from lpsched.report import Case, check_report, render
from lpsched.solve import compare_schedules
from lpsched.verify import check_agreement

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched report vgg16 --devices 8 -o report.html"


def command(
    *,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Schedules; or networks, instances and graphs, on which the methods"
            " are compared first.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The .html file to write.")
    ],
    devices: DevicesOption = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help="Comma list, as `compare` takes it."),
    ] = None,
    baseline: BaselineOption = None,
    objective: ObjectiveOption = "period",
    iterations: Annotated[
        int | None,
        typer.Option(
            "--iterations",
            min=1,
            help="Iterations that the charts unroll; default: prologue, four periods"
            " and epilogue.",
        ),
    ] = None,
    pareto: ParetoOption = None,
    time_limit: LimitOption = 60.0,
    seed: SeedOption = 0,
    workers: WorkersOption = 1,
    manner: Manner,
) -> None:
    """Write one page that needs no network: tables, interactive charts, proofs.

    Schedules of one graph are compared with each other. The page can be sorted,
    zoomed from prologue to epilogue, printed, and read in light and dark.
    """
    require_writable(output)
    check_report(output)
    schedules = [file for file in files if is_schedule(file)]
    cases = _cases_of_schedules(schedules, baseline)
    counts: Sequence[int | None] = [None] if devices is None else parse_devices(devices)
    problems = [
        load_problem(file, count)
        for file in files
        if file not in schedules
        for count in counts
    ]
    params = search_params(objective, time_limit=time_limit, seed=seed, workers=workers)
    interrupted = False
    if problems:
        found, interrupted = compare_problems(
            problems, methods=methods, baseline=baseline, params=params, manner=manner
        )
        cases += cases_of(problems, found)
        _require_agreement_of(cases)
    if not interrupted:
        cases, interrupted = with_fronts(cases, pareto, params, manner)
    save_text(output, render(cases, iterations=iterations))
    wrote(output, manner)
    rows = [row for case in cases for row in case.rows]
    raise typer.Exit(ExitCode.INTERRUPTED if interrupted else code_of_rows(rows))


def _cases_of_schedules(files: Sequence[str], baseline: str | None) -> list[Case]:
    """One case a graph; schedules go by their methods, or by their files' names."""
    graphs: dict[str, Graph] = {}
    named: dict[str, list[tuple[str, Schedule]]] = {}
    read: dict[str, list[tuple[str, Schedule]]] = {}
    for file in files:
        schedule = load_schedule_file(file)
        graph = graph_of(schedule, None, file)
        digest = graph_digest(graph)
        name = schedule.result.method if schedule.result else Path(file).stem
        entries = named.setdefault(digest, [])
        if name in {taken for taken, _ in entries}:
            name = f"{name} ({Path(file).stem})"
        graphs.setdefault(digest, graph)
        entries.append((name, schedule))
        read.setdefault(digest, []).append((file, schedule))
    for digest, schedules in read.items():
        _require_agreement(graphs[digest], schedules)
    return [
        Case(
            graph=graphs[digest],
            rows=compare_schedules(graphs[digest], entries, baseline=baseline),
            rounding=next(
                (s.result.rounding for _, s in entries if s.result is not None), None
            ),
        )
        for digest, entries in named.items()
    ]


def _require_agreement(graph: Graph, named: Sequence[tuple[str, Schedule]]) -> None:
    """Refuse schedules of one graph of which one refutes what another claims."""
    refuted = check_agreement(graph, named)
    if refuted:
        raise VerificationError(refuted)


def _require_agreement_of(cases: Sequence[Case]) -> None:
    """Hold schedules that were given against those found of the same graph."""
    graphs = {graph_digest(case.graph): case.graph for case in cases}
    if len(graphs) == len(cases):
        return
    for digest, graph in graphs.items():
        named = [
            (row.method, row.schedule)
            for case in cases
            if graph_digest(case.graph) == digest
            for row in case.rows
            if row.schedule is not None
        ]
        _require_agreement(graph, named)
