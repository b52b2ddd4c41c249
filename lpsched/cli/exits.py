"""Exit codes, and what each kind of trouble means in them (see docs: cli)."""

from __future__ import annotations

from enum import IntEnum

from lpsched.core.result import Status
from lpsched.errors import (
    FormatError,
    InstanceError,
    LpschedError,
    NoScheduleError,
    SolverError,
    SolverUnavailableError,
    UnsupportedError,
    VerificationError,
)

__all__ = ["ExitCode", "code_of_error", "code_of_status"]


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    UNPROVED = 4
    NO_SCHEDULE = 5
    NOT_VERIFIED = 6
    INTERRUPTED = 130


def code_of_error(error: LpschedError) -> ExitCode:
    """Return the exit code of an exception."""
    if isinstance(error, VerificationError):
        return ExitCode.NOT_VERIFIED
    if isinstance(error, NoScheduleError):
        return ExitCode.NO_SCHEDULE
    if isinstance(
        error, FormatError | InstanceError | UnsupportedError | SolverUnavailableError
    ):
        return ExitCode.BAD_INPUT
    if isinstance(error, SolverError):
        return ExitCode.FAILED
    return ExitCode.FAILED


def code_of_status(status: str) -> ExitCode:
    """Return the exit code of a search's status."""
    return {
        Status.OPTIMAL.value: ExitCode.DONE,
        Status.FEASIBLE.value: ExitCode.UNPROVED,
        Status.INFEASIBLE.value: ExitCode.INFEASIBLE,
        Status.UNKNOWN.value: ExitCode.NO_SCHEDULE,
    }[status]
