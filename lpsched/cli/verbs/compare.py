"""`lpsched compare`: every method on one problem, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from lpsched.cli.front import show_front
from lpsched.cli.options import (
    DevicesOption,
    FileArgument,
    LimitOption,
    Manner,
    ParetoOption,
    SeedOption,
    WorkersOption,
    parse_devices,
)
from lpsched.cli.output import (
    keys_of,
    note,
    note_all,
    print_json,
    print_table,
    require_writable,
    save_text,
    table_csv,
)
from lpsched.cli.problem import Problem, load_problem
from lpsched.cli.verbs.build import rounding_sentence
from lpsched.export import perfetto_text
from lpsched.plot import check_front_output, check_output, draw, draw_front
from lpsched.plot.comparison import cells, columns
from lpsched.report import Case, check_report, render
from lpsched.solve import (
    DEFAULT_METHODS,
    PIPELINE_METHODS,
    Row,
    method_names,
    with_memory,
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
            f" {', '.join(DEFAULT_METHODS)}; of pipelines of microbatches"
            f" {', '.join(PIPELINE_METHODS)}; as far as they apply.",
        ),
    ] = None,
    baseline: BaselineOption = None,
    objective: ObjectiveOption = "period",
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="LIMIT",
            help="Memory of every device instead of the file's, or none: without a"
            " limit each method's peak is what it needs.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help="Gantt chart to write: .png, .svg, .pdf, .html; of the most devices."
            " With --pareto: the front and the methods, .png, .svg or .pdf.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", help="Write every schedule as a trace for Perfetto."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write the table as CSV.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write all of it as one page, as `report` does."),
    ] = None,
    pareto: ParetoOption = None,
    time_limit: LimitOption = 60.0,
    seed: SeedOption = 0,
    workers: WorkersOption = 1,
    manner: Manner,
) -> None:
    """Set every method's schedule beside the proved optimum, each verified.

    The speed-up is over the baseline; the gap is that of the period to the best
    lower bound proved. The time limit holds for each solve. A method that does not fit
    into the memory shows what it needs.
    """
    require_writable(plot, trace, csv, html)
    if html is not None:
        check_report(html)
    _check_plot(plot, pareto)
    problems = _problems(file, devices, memory)
    for problem in problems:
        note_all(problem.notes, quiet=manner.quiet)
    params = search_params(objective, time_limit=time_limit, seed=seed, workers=workers)
    found, interrupted = compare_problems(
        problems, methods=methods, baseline=baseline, params=params, manner=manner
    )
    rows = [row for comparison in found for row in comparison]
    cases = cases_of(problems, found)
    if not interrupted:
        cases, interrupted = with_fronts(cases, pareto, params, manner)
    _show(cases, manner, found[0].baseline)
    if csv is not None:
        save_text(csv, _csv(rows))
        note(f"{csv} written", quiet=manner.quiet)
    if plot is not None:
        note(_plot(cases, plot, found[0].baseline), quiet=manner.quiet)
    if trace is not None:
        _trace(rows, trace)
        note(f"{trace} written", quiet=manner.quiet)
    if html is not None:
        save_text(html, render(cases))
        note(f"{html} written", quiet=manner.quiet)
    raise typer.Exit(ExitCode.INTERRUPTED if interrupted else code_of_rows(rows))


def _check_plot(plot: Path | None, pareto: str | None) -> None:
    if plot is not None and pareto is None:
        check_output(plot)
    elif plot is not None:
        check_front_output(plot)


def _problems(file: str, devices: str | None, memory: str | None) -> list[Problem]:
    """Load the problem of each device count, with the memory asked for."""
    counts: Sequence[int | None] = [None] if devices is None else parse_devices(devices)
    problems = [load_problem(file, count) for count in counts]
    if memory is None:
        return problems
    limit = _limit(memory)
    return [replace(p, graph=with_memory(p.graph, limit)) for p in problems]


def _limit(text: str) -> int | None:
    """Read --memory."""
    if text == "none":
        return None
    if not text.isascii() or not text.isdigit():
        raise typer.BadParameter(
            f"expected an integer >= 0 or none, got {text!r}", param_hint="--memory"
        )
    return int(text)


def _csv(rows: Sequence[Row]) -> str:
    documents = [row.document() for row in rows]
    keys = [key for key in keys_of(documents) if key not in ("bound", "reason")]
    values = [[document.get(key) for key in keys] for document in documents]
    return table_csv(keys, values)


def _plot(cases: Sequence[Case], path: Path, baseline: str) -> str:
    """Draw the baseline, the better LayerPipe and the optimum, or else all there are.

    With a front, draw that and the methods. Several device counts would not fit one
    picture: the greatest that has a schedule is drawn, and told in what is returned.
    """
    able = [case for case in cases if any(row.schedule for row in case.rows)]
    if not able:
        return f"{path} not written: there is no schedule to draw"
    case = max(able, key=lambda case: len(case.graph.devices))
    written = f"{path} written, of {len(case.graph.devices)} devices"
    if case.front is not None and case.front.points:
        draw_front(case.front, path, rows=case.rows)
        return written
    drawn = [row for row in case.rows if row.schedule is not None]
    layerpipe = [r for r in drawn if r.method.startswith("layerpipe")]
    best = min(layerpipe, key=lambda r: r.objective["period"], default=None)
    chosen = [
        r for r in drawn if r is best or r.method in (baseline, "optimal")
    ] or drawn
    draw([(r.method, r.graph, r.schedule) for r in chosen if r.schedule], path)
    return written


def _trace(rows: Sequence[Row], path: Path) -> None:
    """Write every schedule found, in the order of the table."""
    found = [
        (f"{row.method} on {row.devices} devices", row.graph, row.schedule)
        for row in rows
        if row.schedule is not None
    ]
    save_text(path, perfetto_text(found))


def _show(cases: Sequence[Case], manner: Manner, baseline: str) -> None:
    """Print the rows of all cases, then their fronts."""
    rows = [row for case in cases for row in case.rows]
    fronts = [case.front for case in cases if case.front is not None]
    if manner.json:
        documents = [row.document() for row in rows]
        both = {"rows": documents, "fronts": [front.document() for front in fronts]}
        print_json(both if fronts else documents)
        return
    graph = cases[0].graph
    title = f"{graph.name}: time in {graph.time_unit}, sizes in {graph.size_unit}"
    print_table(
        columns(baseline),
        [cells(row) for row in rows],
        title=title,
        least=(
            "seconds",
            "idle/work",
            "idle/period",
            "makespan",
            "peak memory",
            "staleness",
            "communication",
            f"vs {baseline}",
            "devices",
        ),
    )
    if cases[0].rounding is not None and manner.verbose:
        note(rounding_sentence(cases[0].rounding))
    for front in fronts:
        show_front(front)
