"""`lpsched build`: compile a network or an instance to a graph."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from lpsched.cli.options import (
    DevicesOption,
    FileArgument,
    Manner,
    OutputOption,
    one_count,
)
from lpsched.cli.output import (
    note,
    note_all,
    print_document,
    require_writable,
    save_text,
    wrote,
)
from lpsched.cli.problem import load_problem
from lpsched.core.io import document_text, graph_to_document

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched build models/vgg16.yaml --devices 8 -o vgg16-8.json"


def command(
    *,
    file: FileArgument,
    devices: DevicesOption = None,
    output: OutputOption = None,
    manner: Manner,
) -> None:
    """Compile a network or an instance to the graph that is scheduled.

    Without -o the graph goes to stdout.
    """
    require_writable(output)
    problem = load_problem(file, one_count(devices))
    note_all(problem.notes, quiet=manner.quiet)
    graph = problem.graph
    text = document_text(graph_to_document(graph))
    if output is None:
        print_document(text)
        return
    save_text(output, text)
    counts = {
        "ops": len(graph.ops),
        "tensors": len(graph.tensors),
        "devices": len(graph.devices),
    }
    summary = ", ".join(f"{count} {name}" for name, count in counts.items())
    units = f"time in {graph.time_unit}, sizes in {graph.size_unit}"
    wrote(output, manner, f"{summary}, {units}", **counts, rounding=problem.rounding)
    if problem.rounding is not None:
        note(rounding_sentence(problem.rounding), quiet=manner.quiet)


def rounding_sentence(rounding: Mapping[str, Any]) -> str:
    """Say what a tick is and what rounding to ticks cost."""
    parts = []
    for name in ("time", "size"):
        scale = rounding[name]
        lost = Fraction(scale["greatest_error"])
        error = f"rounded by at most {lost} {scale['unit']}" if lost else "exact"
        parts.append(f"{name}: 1 tick = {scale['tick']} {scale['unit']}, {error}")
    return "; ".join(parts)
