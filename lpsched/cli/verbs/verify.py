"""`lpsched verify`: every rule, by the independent verifier."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from lpsched.cli.exits import ExitCode
from lpsched.cli.options import Manner
from lpsched.cli.output import counted, print_json, print_table, print_text
from lpsched.cli.problem import load_graph_file, load_schedule_file
from lpsched.core.graph import Graph
from lpsched.core.result import Status
from lpsched.core.schedule import Schedule
from lpsched.errors import Violation
from lpsched.verify import Verdict, proof_verdicts, verify

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched verify vgg16-8.json best.json"


def command(
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help="A graph file.")],
    schedule: Annotated[
        str, typer.Argument(metavar="SCHEDULE", help="A schedule of it.")
    ],
    *,
    manner: Manner,
) -> None:
    """Check a schedule against every rule of its graph; exit 6 if one is broken."""
    loaded = load_graph_file(graph)
    answer = load_schedule_file(schedule)
    violations = verify(loaded, answer)
    if manner.json:
        print_json([asdict(violation) for violation in violations])
    elif violations:
        _show(violations)
    else:
        print_text(
            f"valid: {len(loaded.ops)} ops, period {answer.period:,} {loaded.time_unit}"
        )
        if grounds := _grounds(loaded, answer):
            print_text(grounds)
    if violations:
        raise typer.Exit(ExitCode.NOT_VERIFIED)


def _grounds(graph: Graph, schedule: Schedule) -> str:
    """Say what each bound rests on: a checked certificate, a solver's word, nothing."""
    result = schedule.result
    if result is None:
        return ""
    found: dict[str, list[str]] = {}
    for name, verdict in proof_verdicts(graph, schedule).items():
        kind = result.proof[name].kind
        if verdict.status is Verdict.ACCEPTED:
            found.setdefault("checked", []).append(f"{name} ({kind})")
        elif kind == "exhaustion":
            found.setdefault("on a solver's word", []).append(name)
        else:
            found.setdefault("not checked", []).append(f"{name} ({kind})")
    bare = [name for name in result.bound if name not in result.proof]
    if bare:
        found["without a proof"] = bare
    if result.status is Status.OPTIMAL and not result.bound:
        found["without a bound"] = ["the status 'optimal'"]
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in found.items())


def _show(violations: tuple[Violation, ...]) -> None:
    columns = [
        ("rule", "left"),
        ("ops", "left"),
        ("device", "left"),
        ("time", "right"),
        ("excess", "right"),
        ("what", "left"),
    ]
    rows = [
        [
            v.rule,
            ", ".join(v.ops),
            v.device or "",
            "" if v.time is None else f"{v.time:,}",
            "" if v.excess is None else f"{v.excess:,}",
            v.message,
        ]
        for v in violations
    ]
    print_table(columns, rows, title=counted(len(violations), "violation"))
