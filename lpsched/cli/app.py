"""`run_command`: runs the app and turns every outcome into an exit code."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from lpsched._version import __version__
from lpsched.cli import verbs
from lpsched.cli.exits import ExitCode, code_of_error
from lpsched.cli.options import VersionOption
from lpsched.cli.output import complain
from lpsched.errors import LpschedError, SolverError

__all__ = ["run_command"]


class _Verbs(TyperGroup):
    """The verbs; a usage error of theirs shows the value that was given."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - a class that typer keeps
        """Run a verb; typer's own checks (pydantic's) do not say what they saw."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from pydantic import ValidationError  # noqa: PLC0415 - rarely needed

            if isinstance(error.__cause__, ValidationError):
                error.message += f"; got {error.__cause__.errors()[0]['input']!r}"
            raise


app = typer.Typer(
    name="lpsched",
    cls=_Verbs,
    help="Find, prove and explain the best schedule for pipelined training.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
verbs.register(app)


@app.callback()
def _root(
    *,
    version: VersionOption = False,
) -> None:
    """Find, prove and explain the best schedule for pipelined training."""


def run_command(argv: Sequence[str] | None = None) -> int:  # noqa: PLR0911 - one an outcome
    """Run the command line; return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; default: the process's.
    """
    if sys.stdout is None:
        complain("standard output is closed")
        return ExitCode.BAD_INPUT
    try:
        app(args=None if argv is None else list(argv), prog_name="lpsched")
        sys.stdout.flush()
    except SystemExit as stop:
        return _code(stop)
    except BrokenPipeError:
        _drop_stdout()
        return ExitCode.DONE
    except OSError as error:
        _drop_stdout()
        complain(f"{error.filename or 'output'}: {error.strerror}")
        return ExitCode.BAD_INPUT
    except LpschedError as error:
        for line in str(error).split("\n"):
            complain(line)
        if isinstance(error, SolverError):
            _report_bug(error)
        return code_of_error(error)
    except KeyboardInterrupt:
        complain("interrupted")
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last door: a bug, told as such
        traceback.print_exception(error)
        _report_bug(error)
        return ExitCode.FAILED
    return ExitCode.DONE


def _drop_stdout() -> None:
    """Nobody reads on; keep the interpreter's own flush from complaining."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _code(stop: SystemExit) -> int:
    if stop.code is None:
        return ExitCode.DONE
    return stop.code if isinstance(stop.code, int) else ExitCode.FAILED


def _report_bug(error: Exception) -> None:
    """Say that this is a bug and keep the solver's model for the report."""
    complain(
        "this is a bug in lpsched or in a solver: please report it on the project's"
        f" issue tracker with the command, the input files and lpsched {__version__}"
    )
    model = error.model if isinstance(error, SolverError) else None
    if model is not None:
        with tempfile.NamedTemporaryFile(
            "w", suffix=".model.txt", prefix="lpsched-", delete=False
        ) as stream:
            stream.write(model)
        complain(f"the model is kept in {Path(stream.name)}")
