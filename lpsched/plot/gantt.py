"""Gantt charts of schedules as files: png, svg, pdf and interactive html."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path

from lpsched.core.graph import Graph
from lpsched.core.io import write_bytes
from lpsched.core.schedule import Schedule
from lpsched.errors import MissingExtraError, UnsupportedError
from lpsched.plot import interactive, static
from lpsched.plot.picture import picture_of

__all__ = ["SUFFIXES", "check_output", "draw", "gantt_picture"]

#: What each kind of file is drawn with.
SUFFIXES = {
    ".png": "matplotlib",
    ".svg": "matplotlib",
    ".pdf": "matplotlib",
    ".html": "plotly",
}


def check_output(path: str | Path) -> str:
    """Return the suffix of a file that `draw` can write; for checks before long work.

    Raises
    ------
    UnsupportedError
        If the suffix is none of `SUFFIXES`.
    MissingExtraError
        If the package that draws it is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise UnsupportedError(
            f"{path}: cannot draw {suffix or 'a file without extension'}; "
            f"use {', '.join(SUFFIXES)}"
        )
    package = SUFFIXES[suffix]
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(package=package, extra="plot") from error
    return suffix


def draw(
    schedules: Sequence[tuple[str, Graph, Schedule]],
    path: str | Path,
    *,
    iterations: int | None = None,
) -> None:
    """Draw named schedules below each other on one time axis, one lane a device.

    Parameters
    ----------
    schedules
        Name, graph and schedule of each panel; schedules that the verifier accepts.
    path
        The file; its extension says what is drawn. Written whole or not at all.
    iterations
        None for one period of the steady state; N for a run of N iterations from
        prologue to epilogue.

    Raises
    ------
    UnsupportedError
        For an unknown extension, no schedules, too many bars or different time
        units.
    MissingExtraError
        If matplotlib or plotly is missing.
    """
    suffix = check_output(path)
    write_bytes(path, gantt_picture(schedules, suffix, iterations=iterations))


def gantt_picture(
    schedules: Sequence[tuple[str, Graph, Schedule]],
    suffix: str = ".png",
    *,
    iterations: int | None = None,
) -> bytes:
    """Return the chart as the bytes of a file of the kind `suffix`.

    Arguments and errors as those of `draw`.
    """
    check_output(f"gantt{suffix}")
    picture = picture_of(schedules, iterations=iterations)
    if SUFFIXES[suffix] == "plotly":
        return interactive.render(picture)
    return static.render(picture, suffix)
