"""`lpsched export`: files that other tools read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from lpsched.cli.options import DevicesOption, Manner, one_count
from lpsched.cli.output import require_writable, save_text, wrote
from lpsched.cli.partitions import load_partition
from lpsched.cli.problem import graph_of, load_problem, load_schedule_file
from lpsched.cli.verbs.plot import load_flow
from lpsched.core.result import INTEGER_OBJECTIVES
from lpsched.errors import InstanceError
from lpsched.export import (
    dot_text,
    graphml_text,
    megatron_layout,
    model_text,
    perfetto_text,
    torch_csv_text,
)
from lpsched.plot.colours import KINDS

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched export best.json --to torch-csv -o schedule.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the command line says of what to write, and of how."""

    file: str
    devices: int | None = None
    graph: str | None = None
    period: int | None = None
    objective: str | None = None
    iterations: int | None = None
    communication: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A format that can be written, and the options that mean something for it."""

    text: Callable[[Wishes], str]
    options: frozenset[str]


def _model(kind: Literal["lp", "mps"]) -> Callable[[Wishes], str]:
    def text(wishes: Wishes) -> str:
        graph = load_problem(wishes.file, wishes.devices).graph
        return model_text(graph, kind, period=wishes.period, minimise=wishes.objective)

    return text


def _dot(wishes: Wishes) -> str:
    graph, laps = load_flow(wishes.file, wishes.devices, override=wishes.graph)
    colours = {kind: style.colour for kind, style in KINDS.items()}
    return dot_text(graph, laps=laps, colours=colours)


def _graphml(wishes: Wishes) -> str:
    graph, laps = load_flow(wishes.file, wishes.devices, override=wishes.graph)
    return graphml_text(graph, laps=laps)


def _torch_csv(wishes: Wishes) -> str:
    schedule = load_schedule_file(wishes.file)
    graph = graph_of(schedule, wishes.graph, wishes.file)
    try:
        return torch_csv_text(graph, schedule, communication=wishes.communication)
    except InstanceError as error:
        raise InstanceError(error.faults, source=wishes.file) from error


def _perfetto(wishes: Wishes) -> str:
    schedule = load_schedule_file(wishes.file)
    graph = graph_of(schedule, wishes.graph, wishes.file)
    name = schedule.result.method if schedule.result else schedule.graph
    return perfetto_text([(name, graph, schedule)], iterations=wishes.iterations)


def _megatron_layout(wishes: Wishes) -> str:
    stages, ranks = load_partition(wishes.file, wishes.devices, wishes.graph)
    try:
        return megatron_layout(stages, ranks) + "\n"
    except InstanceError as error:
        raise InstanceError(error.faults, source=wishes.file) from error


_MODEL = frozenset({"--devices", "--period", "--objective"})
_TARGETS: Mapping[str, Target] = {
    "torch-csv": Target(
        text=_torch_csv, options=frozenset({"--graph", "--communication"})
    ),
    "perfetto": Target(text=_perfetto, options=frozenset({"--graph", "--iterations"})),
    "megatron-layout": Target(
        text=_megatron_layout, options=frozenset({"--graph", "--devices"})
    ),
    "lp": Target(text=_model("lp"), options=_MODEL),
    "mps": Target(text=_model("mps"), options=_MODEL),
    "dot": Target(text=_dot, options=frozenset({"--graph", "--devices"})),
    "graphml": Target(text=_graphml, options=frozenset({"--graph", "--devices"})),
}


def command(
    *,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A schedule for torch-csv and perfetto; a graph, instance or network"
            " for lp and mps; any of them for dot and graphml; a schedule or instance"
            " for megatron-layout.",
        ),
    ],
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT", help=f"One of {', '.join(_TARGETS)}."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.")],
    devices: DevicesOption = None,
    graph: Annotated[
        str | None,
        typer.Option("--graph", help="A graph file, instead of a schedule's own."),
    ] = None,
    communication: Annotated[
        bool,
        typer.Option(
            "--communication",
            help="torch-csv: spell out SEND, RECV and REDUCE_GRAD (compute_comms).",
        ),
    ] = False,
    iterations: Annotated[
        int | None,
        typer.Option(
            "--iterations",
            min=1,
            help="perfetto: how many run, from first to last; default: enough to see"
            " the pipeline fill and two periods.",
        ),
    ] = None,
    period: Annotated[
        int | None,
        typer.Option(
            "--period",
            min=1,
            help="lp, mps: the period of the model, in ticks; default the best bound.",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option("--objective", help="lp, mps: what the model minimises."),
    ] = None,
    manner: Manner,
) -> None:
    """Write a file that another tool reads.

    torch-csv: what PyTorch's pipeline runtime loads, after a check of all that would
    keep it from running. perfetto: a trace with devices, links, flows and memory.
    megatron-layout: the stages as Megatron's layout string. lp, mps: the integer
    program of a graph. dot, graphml: a graph with its delays; of a schedule with the
    delays that it chose and its laps.
    """
    require_writable(output)
    said = {
        "--devices": devices is not None,
        "--graph": graph is not None,
        "--communication": communication,
        "--iterations": iterations is not None,
        "--period": period is not None,
        "--objective": objective is not None,
    }
    target = _target(to, [option for option, given in said.items() if given])
    _check_objective(objective)
    wishes = Wishes(
        file=file,
        devices=one_count(devices),
        graph=graph,
        period=period,
        objective=objective,
        iterations=iterations,
        communication=communication,
    )
    save_text(output, target.text(wishes))
    wrote(output, manner, format=to)


def _check_objective(name: str | None) -> None:
    """Refuse what a model at a given period cannot minimise."""
    known = [known for known in INTEGER_OBJECTIVES if known != "period"]
    if name is not None and name not in known:
        raise typer.BadParameter(
            f"expected one of {', '.join(known)}, got {name!r}",
            param_hint="--objective",
        )


def _target(name: str, options: list[str]) -> Target:
    """Return a format by name; options that mean nothing to it are usage errors."""
    chosen = _TARGETS.get(name)
    if chosen is None:
        expected = ", ".join(_TARGETS)
        raise typer.BadParameter(
            f"expected one of {expected}, got {name!r}", param_hint="--to"
        )
    for option in options:
        if option not in chosen.options:
            text = f"does not go with --to {name}"
            raise typer.BadParameter(text, param_hint=option)
    return chosen
