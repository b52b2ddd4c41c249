"""Every method on every problem, for the verbs `compare` and `report`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from lpsched.cli.exits import ExitCode, code_of_status
from lpsched.cli.front import find_front
from lpsched.cli.options import Manner, parse_list
from lpsched.cli.output import complain
from lpsched.cli.problem import Problem
from lpsched.cli.running import run
from lpsched.core.result import Status
from lpsched.report import Case
from lpsched.solve import (
    OVER_MEMORY,
    Comparison,
    Report,
    Row,
    SolveParams,
    compare,
)

__all__ = [
    "BaselineOption",
    "ObjectiveOption",
    "cases_of",
    "code_of_rows",
    "compare_problems",
    "search_params",
    "with_fronts",
]

BaselineOption = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        help="The method that speed-ups refer to. Default: pipedream; of pipelines of"
        " microbatches 1f1b or, where that does not apply, gpipe.",
        show_default=False,
    ),
]
ObjectiveOption = Annotated[
    str, typer.Option("--objective", help="What `optimal` minimises, in order.")
]


def search_params(
    objective: str, *, time_limit: float, seed: int, workers: int
) -> SolveParams:
    """Read what the command line says of the searches for the optimum."""
    return SolveParams(
        objective=parse_list(objective),
        time_limit=time_limit,
        seed=seed,
        workers=workers,
    )


def compare_problems(
    problems: Sequence[Problem],
    *,
    methods: str | None,
    baseline: str | None,
    params: SolveParams,
    manner: Manner,
) -> tuple[list[Comparison], bool]:
    """Compare methods on each problem; say on stderr where one does not apply.

    Parameters
    ----------
    methods : str or None
        A comma list; None for the usual methods, those left out that do not apply.
    baseline : str or None
        None for the usual one.

    Returns
    -------
    tuple
        A comparison for each problem, one or more and the last one incomplete if
        interrupted, and whether it was.
    """
    names = None if methods is None else parse_list(methods)

    def work(report: Report, interrupt: threading.Event) -> list[Comparison]:
        done: list[Comparison] = []
        for problem in problems:
            rows = compare(
                problem.graph,
                methods=names,
                baseline=baseline,
                params=params,
                report=report,
                interrupt=interrupt,
            )
            if rows or not done:
                done.append(rows)
            if interrupt.is_set():
                break
        return done

    found, interrupted = run(work, manner, title=problems[0].graph.name)
    for row in (row for rows in found for row in rows):
        if row.reason is not None and not manner.quiet:
            complain(f"{row.method} on {row.devices} devices: {row.reason}")
    return found, interrupted


def cases_of(problems: Sequence[Problem], found: Sequence[Comparison]) -> list[Case]:
    """Pair problems with their comparisons, as far as these got."""
    return [
        Case(graph=problem.graph, rows=rows, rounding=problem.rounding)
        for problem, rows in zip(problems, found, strict=False)
    ]


def with_fronts(
    cases: Sequence[Case], names: str | None, params: SolveParams, manner: Manner
) -> tuple[list[Case], bool]:
    """Add to each case the front of two objectives; nothing without their names.

    Returns
    -------
    tuple
        The cases, the last ones without a front if interrupted, and whether it was.
    """
    found = list(cases)
    for i, case in enumerate(cases if names is not None else ()):
        front, code = find_front(case.graph, names or "", params, manner)
        found[i] = replace(case, front=front)
        if code == ExitCode.INTERRUPTED:
            return found, True
    return found, False


def code_of_rows(rows: Iterable[Row]) -> int:
    """0 if every row is verified; else the solver's own code, or "no schedule".

    That a method does not fit into the memory is an answer beside others, not alone.
    Where it is proved that there is no schedule, no method can have one.
    """
    rows = list(rows)
    statuses = {row.status for row in rows if row.schedule is None}
    if any(row.schedule is not None for row in rows):
        statuses.discard(OVER_MEMORY)
    elif Status.INFEASIBLE in statuses:
        statuses -= {OVER_MEMORY, "none"}
    codes = [
        ExitCode.NO_SCHEDULE if s in ("none", OVER_MEMORY) else code_of_status(s)
        for s in statuses
    ]
    return max(codes, default=ExitCode.DONE)
