"""`lpsched compare`: every method on one problem, side by side."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lpsched.cli.exits import ExitCode, code_of_status
from lpsched.cli.options import (
    DevicesOption,
    FileArgument,
    LimitOption,
    Manner,
    SeedOption,
    WorkersOption,
    parse_devices,
    parse_list,
)
from lpsched.cli.output import (
    complain,
    keys_of,
    note,
    print_json,
    print_table,
    require_writable,
    save_text,
    table_csv,
)
from lpsched.cli.problem import Problem, load_problem
from lpsched.cli.running import run
from lpsched.cli.verbs.build import rounding_sentence
from lpsched.export import perfetto_text
from lpsched.plot import check_output, draw
from lpsched.plot.comparison import cells, columns
from lpsched.solve import (
    DEFAULT_METHODS,
    Report,
    Row,
    SolveParams,
    compare,
    method_names,
)

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched compare models/vgg16.yaml --devices 8 --plot gantt.png"


def command(
    *,
    file: FileArgument,
    devices: DevicesOption = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help=f"Comma list of {', '.join(method_names())}. Default:"
            f" {', '.join(DEFAULT_METHODS)}, as far as they apply.",
        ),
    ] = None,
    baseline: Annotated[
        str, typer.Option("--baseline", help="The method that speed-ups refer to.")
    ] = "pipedream",
    objective: Annotated[
        str, typer.Option("--objective", help="What `optimal` minimises, in order.")
    ] = "period",
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help="Gantt chart to write: .png, .svg, .pdf, .html; of the most devices.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", help="Write every schedule as a trace for Perfetto."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write the table as CSV.")
    ] = None,
    time_limit: LimitOption = 60.0,
    seed: SeedOption = 0,
    workers: WorkersOption = 1,
    manner: Manner,
) -> None:
    """Set every method's schedule beside the proved optimum, each verified.

    The speed-up is over the baseline; the gap is that of the period to the best
    lower bound proved. The time limit holds for each solve.
    """
    require_writable(plot, trace, csv)
    if plot is not None:
        check_output(plot)
    names = DEFAULT_METHODS if methods is None else parse_list(methods)
    counts: Sequence[int | None] = [None] if devices is None else parse_devices(devices)
    problems = [load_problem(file, count) for count in counts]
    params = SolveParams(
        objective=parse_list(objective),
        time_limit=time_limit,
        seed=seed,
        workers=workers,
    )

    def work(report: Report, interrupt: threading.Event) -> list[Row]:
        rows: list[Row] = []
        for problem in problems:
            rows += compare(
                problem.graph,
                methods=names,
                baseline=baseline,
                params=params,
                report=report,
                interrupt=interrupt,
            )
        return rows

    rows, interrupted = run(work, manner, title=problems[0].graph.name)
    for row in rows:
        if row.reason is not None and not manner.quiet:
            complain(f"{row.method} on {row.devices} devices: {row.reason}")
    if methods is None:  # the usual methods, as far as they apply
        rows = [row for row in rows if row.status != "none"]
    _show(rows, problems, manner, baseline)
    if csv is not None:
        documents = [row.document() for row in rows]
        keys = [key for key in keys_of(documents) if key not in ("bound", "reason")]
        values = [[document.get(key) for key in keys] for document in documents]
        save_text(csv, table_csv(keys, values))
        note(f"{csv} written", quiet=manner.quiet)
    if plot is not None:
        drawn = _plot(rows, plot)
        note(f"{plot} written, of {drawn} devices", quiet=manner.quiet)
    if trace is not None:
        _trace(rows, trace)
        note(f"{trace} written", quiet=manner.quiet)
    raise typer.Exit(ExitCode.INTERRUPTED if interrupted else _code(rows))


def _code(rows: Sequence[Row]) -> int:
    """0 if every row is verified; else the solver's own code, or "no schedule"."""
    statuses = [row.status for row in rows if row.schedule is None]
    codes = [
        ExitCode.NO_SCHEDULE if s == "none" else code_of_status(s) for s in statuses
    ]
    return max(codes, default=ExitCode.DONE)


def _plot(rows: Sequence[Row], path: Path) -> int:
    """Draw PipeDream, the better LayerPipe and the optimum, or else whatever is there.

    Several device counts would not fit one picture: the greatest is drawn, and
    returned.
    """
    devices = max(row.devices for row in rows)
    drawn = [r for r in rows if r.schedule is not None and r.devices == devices]
    layerpipe = [r for r in drawn if r.method.startswith("layerpipe")]
    best = min(layerpipe, key=lambda r: r.objective["period"], default=None)
    chosen = [
        r for r in drawn if r is best or r.method in ("pipedream", "optimal")
    ] or drawn
    draw([(r.method, r.graph, r.schedule) for r in chosen if r.schedule], path)
    return devices


def _trace(rows: Sequence[Row], path: Path) -> None:
    """Write every schedule found, in the order of the table."""
    found = [
        (f"{row.method} on {row.devices} devices", row.graph, row.schedule)
        for row in rows
        if row.schedule is not None
    ]
    save_text(path, perfetto_text(found))


def _show(
    rows: Sequence[Row], problems: Sequence[Problem], manner: Manner, baseline: str
) -> None:
    if manner.json:
        print_json([row.document() for row in rows])
        return
    graph = problems[0].graph
    title = f"{graph.name}: time in {graph.time_unit}, sizes in {graph.size_unit}"
    print_table(
        columns(baseline),
        [cells(row) for row in rows],
        title=title,
        least=(
            "seconds",
            "utilisation",
            "peak memory",
            "staleness",
            "communication",
            f"vs {baseline}",
            "devices",
        ),
    )
    if problems[0].rounding is not None and manner.verbose:
        note(rounding_sentence(problems[0].rounding))
