"""The command line: parses, calls, prints, sets the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; default: the process's.
    """
    try:
        # Loaded here so that Ctrl-C while modules load is heard like any other.
        from lpsched.cli.app import run_command  # noqa: PLC0415 - within reach of Ctrl-C
    except KeyboardInterrupt:
        sys.stderr.write("lpsched: interrupted\n")
        return 130
    return run_command(argv)
