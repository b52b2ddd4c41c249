"""`lpsched bench`: stored instances, solved again, against their best known values."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lpsched import bench
from lpsched.bench import (
    Case,
    Row,
    Verdict,
    find_cases,
    judged,
    load_rows,
    run_cases,
    save_rows,
)
from lpsched.bench.results import row_document
from lpsched.cli.exits import ExitCode
from lpsched.cli.options import LimitOption, Manner, SeedOption, WorkersOption
from lpsched.cli.output import (
    complain,
    counted,
    note,
    number,
    percent,
    print_json,
    print_table,
    print_text,
    require_writable,
    save_text,
    table_csv,
)
from lpsched.cli.running import run_saying
from lpsched.core.result import INTEGER_OBJECTIVES, relative_gap
from lpsched.errors import Fault, InstanceError
from lpsched.solve import SolveParams

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched bench instances/ --jobs 2 -o results.json"

InstancesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="INSTANCES",
        help="Instance files, and folders of them.",
        show_default=False,
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        min=1,
        max=1024,
        metavar="N",
        help="How many to solve at once, in processes; default one a core.",
    ),
]
ResultsOption = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", help="Results file (JSON), written as each one finishes."
    ),
]
ResumeOption = Annotated[
    bool,
    typer.Option("--resume", help="Keep what the results file holds; do the rest."),
]
UpdateOption = Annotated[
    bool,
    typer.Option(
        "--update", help="Write better values and bounds back into the instances."
    ),
]
CsvOption = Annotated[Path | None, typer.Option("--csv", help="Write the rows as CSV.")]


def command(
    *,
    instances: InstancesArgument,
    output: ResultsOption = None,
    resume: ResumeOption = False,
    update: UpdateOption = False,
    csv: CsvOption = None,
    jobs: JobsOption = None,
    time_limit: LimitOption = 60.0,
    seed: SeedOption = 0,
    workers: WorkersOption = 1,
    manner: Manner,
) -> None:
    """Solve stored instances again and compare with the best values they state.

    Verdicts: better, equal, unproved (equal, without the stored proof), worse, none (no
    schedule in time), new (nothing stored). Exit 0: no value or proof is worse than
    stored. 4: some are. 5: some without a schedule. 1: a solver or a stored value is
    wrong. Ctrl-C keeps what is done; --resume goes on.
    """
    require_writable(output, csv)
    params = SolveParams(time_limit=time_limit, seed=seed, workers=workers)
    cases = find_cases(instances)
    done = _done(cases, params, output, resume=resume)
    rows, interrupted = run_saying(
        _work(cases, params, done, jobs or os.cpu_count() or 1, output, manner),
        manner,
        title="bench",
    )
    if output is not None and len(rows) > len(done):
        note(f"{output} written", quiet=manner.quiet)
    if csv is not None:
        save_text(csv, _csv(rows))
        note(f"{csv} written", quiet=manner.quiet)
    for row in rows if update else ():
        if bench.update(row):
            note(f"{row.file} updated", quiet=manner.quiet)
    _show(rows, len(cases), manner)
    raise typer.Exit(ExitCode.INTERRUPTED if interrupted else _code(rows))


def _done(
    cases: Sequence[Case], params: SolveParams, output: Path | None, *, resume: bool
) -> dict[str, Row]:
    """Return rows of an earlier run that this one would only repeat."""
    if resume and output is None:
        text = "says to go on from a results file, so name it with -o"
        raise typer.BadParameter(text, param_hint="--resume")
    if output is None or not output.exists() or not output.is_file():
        return {}
    if not resume:
        text = "holds results; go on from them with --resume, or remove it"
        raise InstanceError([Fault(str(output), text)])
    of = {case.file: case for case in cases}
    return {
        row.file: judged(row, of[row.file].instance.known)
        for row in load_rows(output)
        if row.file in of and row.digest == of[row.file].digest and row.is_of(params)
    }


def _work(
    cases: Sequence[Case],
    params: SolveParams,
    done: dict[str, Row],
    jobs: int,
    output: Path | None,
    manner: Manner,
) -> Callable[[Callable[[str], None], threading.Event], list[Row]]:
    """Solve what is not done, and write the results file after each."""
    rows = dict(done)

    def finished() -> list[Row]:
        return [rows[case.file] for case in cases if case.file in rows]

    def work(say: Callable[[str], None], interrupt: threading.Event) -> list[Row]:
        def keep(row: Row) -> None:
            rows[row.file] = row
            if output is not None:
                save_rows(finished(), output)
            say(f"{len(rows)} of {len(cases)} done, {_counts(finished())}")
            if manner.verbose:
                note(f"{row.file}: {row.verdict}, {row.seconds:.1f} s")

        say(f"{len(rows)} of {len(cases)} done")
        rest = [case for case in cases if case.file not in done]
        run_cases(rest, params, jobs=jobs, on_row=keep, interrupt=interrupt)
        return finished()

    return work


def _code(rows: Sequence[Row]) -> int:
    """Return the exit code of the gravest verdict."""
    grave = {
        Verdict.FAILED: ExitCode.FAILED,
        Verdict.REFUSED: ExitCode.BAD_INPUT,
        Verdict.INFEASIBLE: ExitCode.INFEASIBLE,
        Verdict.NONE: ExitCode.NO_SCHEDULE,
        Verdict.WORSE: ExitCode.UNPROVED,
        Verdict.UNPROVED: ExitCode.UNPROVED,
    }
    verdicts = {row.verdict for row in rows}
    found = [code for verdict, code in grave.items() if verdict in verdicts]
    return next(iter(found), ExitCode.DONE)


def _show(rows: Sequence[Row], total: int, manner: Manner) -> None:
    for row in rows:
        if row.reason is not None and not manner.quiet:
            for line in row.reason.split("\n"):
                complain(f"{row.file}: {line}")
    if manner.json:
        print_json([row_document(row) for row in rows])
        return
    columns = [
        ("instance", "left"),
        ("objective", "left"),
        ("value", "right"),
        ("stored", "right"),
        ("bound", "right"),
        ("gap", "right"),
        ("verdict", "left"),
        ("status", "left"),
        ("method", "left"),
        ("seconds", "right"),
        ("stored s", "right"),
    ]
    least = ("stored s", "method", "seconds", "gap")
    print_table(columns, [_cells(row) for row in rows], least=least)
    done = "" if len(rows) == total else f"{len(rows)} of "
    print_text(f"{done}{counted(total, 'instance')}: {_counts(rows) or 'none done'}")


def _counts(rows: Sequence[Row]) -> str:
    found = Counter(row.verdict for row in rows)
    return ", ".join(f"{found[v]} {v}" for v in Verdict if v in found)


def _cells(row: Row) -> list[str]:
    """Show the objective that decided the verdict, else the first."""
    name = row.decided_by or next(iter(row.objective or row.known), "")
    known = row.known.get(name)
    value, bound = row.objective.get(name), row.bound.get(name)
    seconds = None if known is None else known.seconds
    return [
        row.instance,
        name,
        number(value),
        number(None if known is None else known.value),
        number(bound),
        percent(relative_gap(value, bound), 2),
        str(row.verdict),
        row.status,
        row.method or "–",
        f"{row.seconds:.1f}",
        "–" if seconds is None else f"{seconds:.1f}",
    ]


def _csv(rows: Sequence[Row]) -> str:
    """One line an instance: of each objective its value, bound, and what is stored."""
    names = [n for n in INTEGER_OBJECTIVES if any(n in r.objective for r in rows)]
    header = ["instance", "file", "verdict", "status", "method", "seconds"]
    for name in names:
        header += [name, f"{name}_bound", f"{name}_stored", f"{name}_stored_bound"]
    lines = []
    for row in rows:
        line: list[Any] = [row.instance, row.file, row.verdict, row.status]
        line += [row.method, row.seconds]
        for name in names:
            known = row.known.get(name)
            stored = (None, None) if known is None else (known.value, known.bound)
            line += [row.objective.get(name), row.bound.get(name), *stored]
        lines.append(line)
    return table_csv(header, lines)
