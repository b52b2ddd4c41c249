"""The command line: parses, calls, prints, sets the exit code."""

from lpsched.cli.main import main

__all__ = ["main"]
