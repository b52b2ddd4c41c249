"""Arguments and options that several verbs share, and how their texts are read."""

from __future__ import annotations

import functools
import inspect
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from lpsched._version import __version__
from lpsched.core.limits import MAX_INTEGER

__all__ = [
    "DevicesOption",
    "FileArgument",
    "JsonOption",
    "LimitOption",
    "Manner",
    "MaxPeriodOption",
    "MaxReceivedOption",
    "NoProgressOption",
    "OutputOption",
    "ParetoOption",
    "QuietOption",
    "SeedOption",
    "SlackOption",
    "VerboseOption",
    "VersionOption",
    "WorkersOption",
    "one_count",
    "parse_devices",
    "parse_list",
    "parse_number",
    "with_manner",
]

FileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A network, an instance or a graph; or the name of a shipped network.",
        show_default=False,
    ),
]
DevicesOption = Annotated[
    str | None,
    typer.Option(
        "--devices",
        metavar="N",
        help="Number of devices for a network: 8, or 2..9, or 2,4,8 in compare.",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of a table.")
]
QuietOption = Annotated[
    bool, typer.Option("-q", "--quiet", help="No remarks on stderr.")
]
VerboseOption = Annotated[
    bool, typer.Option("-v", "--verbose", help="More remarks on stderr.")
]
NoProgressOption = Annotated[
    bool, typer.Option("--no-progress", help="No progress line on stderr.")
]
LimitOption = Annotated[
    float,
    typer.Option("--time-limit", metavar="S", help="Seconds for the solver."),
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of the solver.")
]
WorkersOption = Annotated[
    int,
    typer.Option(
        "--workers",
        min=1,
        max=1024,
        help="Threads of the solver; 1 gives the same answer every time.",
    ),
]
SlackOption = Annotated[
    str,
    typer.Option(
        "--period-slack",
        metavar="F",
        help="Share by which later objectives may lengthen the least period.",
    ),
]
MaxPeriodOption = Annotated[
    int | None,
    typer.Option(
        "--max-period",
        metavar="T",
        help="Any period up to T will do, in ticks; of equals the shortest wins.",
    ),
]
MaxReceivedOption = Annotated[
    int | None,
    typer.Option(
        "--max-received",
        metavar="N",
        help="Most that a device may receive per period, in size units.",
    ),
]
ParetoOption = Annotated[
    str | None,
    typer.Option(
        "--pareto",
        metavar="A,B",
        help="The front of two objectives, such as period,communication: all that no"
        " schedule beats in both.",
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", help="File to write.")
]


@dataclass(frozen=True, slots=True)
class Manner:
    """How a verb speaks: to people or programs, loud or quiet."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    progress: bool = True


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        typer.echo(f"lpsched {__version__}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option(
        "--version",
        callback=_show_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
]

#: The options that every verb has, by the names of their parameters.
_COMMON = {
    "json": JsonOption,
    "quiet": QuietOption,
    "verbose": VerboseOption,
    "no_progress": NoProgressOption,
    "version": VersionOption,
}


def with_manner(command: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options that every verb has; it is told of them as `manner`."""
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def verb(**given: object) -> None:
        common = {name: bool(given.pop(name)) for name in _COMMON}
        manner = Manner(
            json=common["json"],
            quiet=common["quiet"],
            verbose=common["verbose"],
            progress=not common["no_progress"],
        )
        started = time.perf_counter()
        try:
            command(manner=manner, **given)
        finally:
            if manner.verbose:
                seconds = time.perf_counter() - started
                typer.echo(f"lpsched {__version__}: {seconds:.2f} s", err=True)

    own = [p for name, p in signature.parameters.items() if name != "manner"]
    common = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option
        )
        for name, option in _COMMON.items()
    ]
    # Typer reads it; the type of a function knows no such attribute.
    verb.__signature__ = signature.replace(parameters=[*own, *common])  # type: ignore[attr-defined]
    return verb


def parse_devices(text: str) -> tuple[int, ...]:
    """Read ``8``, ``2..9`` or ``2,4,8``; a usage error otherwise."""
    counts: list[int] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        try:
            low = int(first)
            high = int(last) if dots else low
        except ValueError:
            low, high = 1, 0
        if not 1 <= low <= high or high > MOST_DEVICES:
            expected = (
                f"a count from 1 to {MOST_DEVICES}, a range such as 2..9, or a list"
            )
            raise typer.BadParameter(
                f"expected {expected}, got {text!r}", param_hint="--devices"
            )
        counts.extend(range(low, high + 1))
    return tuple(dict.fromkeys(counts))


#: No pipeline has more; a typing mistake does.
MOST_DEVICES = 4096


def parse_list(text: str) -> tuple[str, ...]:
    """Read a comma list."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


#: Decimals and fractions of so few digits that their exact values are small.
_NUMBER = re.compile(
    r"(\d{1,20}(\.\d{0,20})?|\.\d{1,20})(e[+-]?\d{1,2})?|\d{1,20}/\d{1,20}"
)


def parse_number(text: str, *, option: str, most: int = MAX_INTEGER) -> Fraction:
    """Read a number from 0 to `most` exactly: ``0.02`` is 1/50, and so is ``1/50``."""
    try:
        value = Fraction(text) if _NUMBER.fullmatch(text) else Fraction(-1)
    except ZeroDivisionError:
        value = Fraction(-1)
    if not 0 <= value <= most:
        limits = ">= 0" if most == MAX_INTEGER else f"from 0 to {most}"
        expected = f"expected a number {limits} such as 0.02"
        raise typer.BadParameter(f"{expected}, got {text!r}", param_hint=option)
    return value


def one_count(text: str | None) -> int | None:
    """Read --devices where only one count makes sense."""
    if text is None:
        return None
    counts = parse_devices(text)
    if len(counts) != 1:
        raise typer.BadParameter(
            f"expected one count here, got {text!r}", param_hint="--devices"
        )
    return counts[0]
