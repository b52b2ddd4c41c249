"""`lpsched run`: a schedule on PyTorch's runtime, predicted against measured."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpsched.cli.exits import ExitCode
from lpsched.cli.extras import require_torch
from lpsched.cli.options import Manner, SeedOption
from lpsched.cli.output import (
    complain,
    note,
    percent,
    print_json,
    print_table,
    print_text,
    require_writable,
    save_text,
)
from lpsched.cli.partitions import stages_in
from lpsched.cli.problem import graph_of, load_schedule_file
from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import InstanceError
from lpsched.export.torch_csv import torch_csv_text
from lpsched.export.trace import tick_ns
from lpsched.replay.source import require_source

if TYPE_CHECKING:
    from lpsched.replay.outcome import Outcome, Row

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched run best.json --model mymodel.py:build --trace run.json"


def command(
    schedule: Annotated[str, typer.Argument(metavar="SCHEDULE")],
    *,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODULE:FUNCTION",
            help="What makes the model: a chain of blocks and the input of a"
            " microbatch; or FILE.py:FUNCTION.",
        ),
    ] = None,
    stand_in: Annotated[
        bool,
        typer.Option(
            "--stand-in", help="No model: every op sleeps for its modelled duration."
        ),
    ] = False,
    stages: Annotated[
        str | None,
        typer.Option(
            "--stages",
            metavar="N,N,...",
            help="How many blocks of the model each stage has; default: as the"
            " schedule was solved, or one each.",
        ),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option("--graph", help="A graph file, instead of the one inside."),
    ] = None,
    iterations: Annotated[
        int,
        typer.Option("--iterations", min=2, help="Measured ones; one more warms up."),
    ] = 5,
    tick: Annotated[
        str | None,
        typer.Option(
            "--tick",
            metavar="TIME",
            help="How long a tick is, such as '2 ms', if the graph's unit is no time."
            " Default: as long as makes the work measured that of the schedule.",
        ),
    ] = None,
    communication: Annotated[
        bool,
        typer.Option("--communication", help="Say when to send and receive, too."),
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", help="A trace for Perfetto of both to write."),
    ] = None,
    seed: SeedOption = 0,
    manner: Manner,
) -> None:
    """Run a synchronous schedule on this machine's CPU and compare.

    A process for each device (as torchrun starts them, over gloo) runs the schedule on
    PyTorch's pipeline runtime. Its gradients are compared with those of the same model
    without a pipeline (exit 6 if they differ), its times with those predicted.
    """
    if (model is None) != stand_in:
        raise typer.BadParameter(
            "expected a model, or --stand-in and no model", param_hint="--model"
        )
    require_writable(trace)
    answer = load_schedule_file(schedule)
    problem = graph_of(answer, graph, schedule)
    blocks = _blocks(stages, answer, stand_in=stand_in)
    length = _tick(tick)
    require_torch()
    if model is not None:
        require_source(model)
    _require_runnable(problem, answer, communication=communication, source=schedule)
    from lpsched.replay.run import Case, replay  # noqa: PLC0415 - needs torch
    from lpsched.replay.trace import run_trace  # noqa: PLC0415 - needs torch

    _remark_start(problem, manner)
    outcome = replay(
        Case(
            graph=problem,
            schedule=answer,
            model=model,
            blocks=blocks,
            tick=length,
            communication=communication,
            iterations=iterations,
            seed=seed,
        )
    )
    if trace is not None:
        save_text(trace, run_trace(problem, answer, outcome))
        note(f"{trace} written", quiet=manner.quiet)
    _show(outcome, manner, has_model=model is not None)
    if not outcome.is_right:
        complain(f"the gradients are not those of the model: {_gradients(outcome)}")
        raise typer.Exit(ExitCode.NOT_VERIFIED)


def _require_runnable(
    graph: Graph, schedule: Schedule, *, communication: bool, source: str
) -> None:
    """Refuse a schedule that PyTorch cannot run before any rank starts."""
    try:
        torch_csv_text(graph, schedule, communication=communication)
    except InstanceError as error:
        raise InstanceError(error.faults, source=source) from error


def _remark_start(graph: Graph, manner: Manner) -> None:
    """Say how many ranks start, and what of the graph they do not imitate."""
    note(f"{len(graph.device_ids)} ranks start", quiet=manner.quiet)
    links = (graph.link, *graph.links.values())
    if any(link.latency or link.units_per_tick for link in links):
        text = "messages take what gloo takes, not what the links are modelled with"
        note(text, quiet=manner.quiet)


def _blocks(
    text: str | None, schedule: Schedule, *, stand_in: bool
) -> Sequence[int] | None:
    """Read how many blocks each stage has; None for one each."""
    if text is None:
        lists = None if stand_in else stages_in(schedule)
        return None if lists is None else [len(layers) for layers in lists]
    parts = [part.strip() for part in text.split(",")]
    if stand_in or not all(p.isdecimal() and 0 < int(p[:9]) < 10**6 for p in parts):
        expected = "expected numbers such as 2,3,2, for a model"
        raise typer.BadParameter(f"{expected}; got {text!r}", param_hint="--stages")
    return [int(part) for part in parts]


def _tick(text: str | None) -> Fraction | None:
    if text is None:
        return None
    ns = tick_ns(text)
    if ns is None:
        expected = "expected a time such as 'ms' or '0.5 us'"
        raise typer.BadParameter(f"{expected}, got {text!r}", param_hint="--tick")
    return Fraction(ns)


def _show(outcome: Outcome, manner: Manner, *, has_model: bool) -> None:
    if manner.json:
        print_json(outcome.document())
        return
    columns = [
        ("pass", "left"),
        ("in an iteration", "right"),
        ("predicted ms", "right"),
        ("measured ms", "right"),
        ("difference", "right"),
    ]
    rows = [_cells(row) for row in (*outcome.kinds, outcome.period)]
    title = "Predicted and measured, per iteration (median over iterations)"
    print_table(columns, rows, title=title)
    print_text(f"Gradients: {_gradients(outcome)}.")
    if outcome.calibrated:
        print_text(
            f"A tick is {float(outcome.tick):.4g} ns, so that all work together takes"
            " as long as was measured."
        )
    if has_model and not manner.quiet:
        note("the first stage's I is left to its W, as PyTorch does it")


def _cells(row: Row) -> list[str]:
    error = row.error
    return [
        row.name,
        str(row.passes),
        f"{float(row.predicted) / 1e6:,.2f}",
        f"{row.measured / 1e6:,.2f}",
        "–" if error is None else percent(float(error)),
    ]


def _gradients(outcome: Outcome) -> str:
    where = f" (at {outcome.parameter})" if outcome.gradient_error else ""
    return (
        f"at most {outcome.gradient_error:.1e} of a parameter's greatest from those"
        f" without a pipeline{where}; {outcome.tolerance:.0e} is tolerated"
    )
