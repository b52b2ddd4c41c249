"""Exceptions, faults in input and violations of a schedule: all errors as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "Fault",
    "FormatError",
    "InstanceError",
    "LpschedError",
    "MissingExtraError",
    "NoScheduleError",
    "OutOfTimeError",
    "RunError",
    "SolverError",
    "SolverUnavailableError",
    "UnsupportedError",
    "VerificationError",
    "Violation",
]

_MAX_SHOWN = 100  # more faults than these help nobody; `faults` holds all


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an input: where it stands and what would be right."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule of a schedule.

    Attributes
    ----------
    rule : str
        The rule family of formats.md: coverage, exclusive, precedence, delay,
        colocate, flush, memory or claims.
    message : str
        A sentence for people, with the values seen.
    ops : tuple of str
        The ops concerned, in the order of the rule.
    device : str or None
        The device concerned.
    time : int or None
        The phase or start at which the rule breaks, in ticks.
    excess : int or None
        By how much (ticks, units of memory, or the claim's difference).
    """

    rule: str
    message: str
    ops: tuple[str, ...] = ()
    device: str | None = None
    time: int | None = None
    excess: int | None = None

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


class LpschedError(Exception):
    """Anything lpsched raises on purpose."""


class _FaultyError(LpschedError, ValueError):
    """Input with faults, all of them, each with its path."""

    def __init__(self, faults: Iterable[Fault], *, source: str | None = None) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        self.source = source
        super().__init__(self._text())

    def _text(self) -> str:
        prefix = f"{self.source}: " if self.source else ""
        lines = [_one_line(f"{prefix}{fault}") for fault in self.faults[:_MAX_SHOWN]]
        more = len(self.faults) - len(lines)
        return "\n".join([*lines, f"{prefix}... and {more:,} more"] if more else lines)


def _one_line(text: str) -> str:
    """Keep a line feed in some name from making two faults of one."""
    return text.replace("\n", "\\n")


class FormatError(_FaultyError):
    """A file or document that does not follow its format."""


class InstanceError(_FaultyError):
    """Data that follow the format and yet cannot be meant (a cyclic network)."""


class UnsupportedError(LpschedError):
    """A legal request that this version or this back end cannot serve."""


class MissingExtraError(UnsupportedError):
    """A request that needs an optional package which is not installed."""

    def __init__(self, *, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f"{package} is not installed; get it with: pip install 'lpsched[{extra}]'"
        )


class SolverUnavailableError(LpschedError):
    """A back end whose package is missing; the message names the extra to install."""


class SolverError(LpschedError):
    """A solver crashed or contradicted what has been proved; keeps its model.

    Attributes
    ----------
    model : str or None
        The solver's model as text, kept for the bug report.
    """

    def __init__(self, message: str, *, model: str | None = None) -> None:
        super().__init__(message)
        self.model = model


class NoScheduleError(LpschedError):
    """A schedule was demanded and there is none."""


class OutOfTimeError(LpschedError):
    """Work was given up half done, as it was asked to; for callers to catch."""


class RunError(LpschedError):
    """A schedule was run and a rank failed; names the rank and what it said."""


class VerificationError(LpschedError):
    """A schedule breaks rules; never shown to anyone as an answer."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations: tuple[Violation, ...] = tuple(violations)
        super().__init__("\n".join(str(v) for v in self.violations))
