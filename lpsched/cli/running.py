"""Long work: progress on stderr, and Ctrl-C that keeps what has been found."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from rich.console import Console
from rich.status import Status

from lpsched.cli.options import Manner
from lpsched.cli.output import complain, number, percent
from lpsched.core.result import relative_gap
from lpsched.solve import Report, Snapshot

__all__ = ["run", "run_saying"]

T = TypeVar("T")


def run(
    work: Callable[[Report, threading.Event], T], manner: Manner, *, title: str
) -> tuple[T, bool]:
    """Do a search; see `run_saying`, whose line shows where it stands."""

    def search(say: Callable[[str], None], interrupt: threading.Event) -> T:
        return work(lambda snapshot: say(_sentence(snapshot)), interrupt)

    return run_saying(search, manner, title=title)


def run_saying(
    work: Callable[[Callable[[str], None], threading.Event], T],
    manner: Manner,
    *,
    title: str,
) -> tuple[T, bool]:
    """Do `work` in a thread, so that Ctrl-C is heard while a solver runs.

    It is given what shows a text on the progress line. The first Ctrl-C sets the event
    that asks it to end with what it has; a second one gives up.

    Returns
    -------
    tuple
        What `work` returns, and whether it was interrupted.
    """
    interrupt = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []
    line = _Line(title, enabled=manner.progress and sys.stderr.isatty())

    def target() -> None:
        try:
            results.append(work(line.show, interrupt))
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    thread = threading.Thread(target=target, daemon=True)
    with line, _Interrupts(interrupt):
        thread.start()
        while thread.is_alive():
            thread.join(0.1)
    if errors:
        raise errors[0]
    return results[0], interrupt.is_set()


def _sentence(snapshot: Snapshot) -> str:
    """Say where a search stands: what is being done, incumbent, bound and gap."""
    gap = relative_gap(snapshot.incumbent, snapshot.bound)
    return (
        f"{snapshot.doing} · {snapshot.objective}"
        f" {number(snapshot.incumbent)}, bound {number(snapshot.bound)},"
        f" gap {percent(gap, 2)}"
    )


class _Interrupts:
    """SIGINT sets an event the first time and raises the second time."""

    def __init__(self, event: threading.Event) -> None:
        self._event = event
        self._main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if self._main:
            self._previous = signal.signal(signal.SIGINT, self._handle)

    def __exit__(self, *_: object) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._event.is_set():
            raise KeyboardInterrupt
        self._event.set()
        complain("stopping; what has been found is kept (Ctrl-C again gives up)")


class _Line:
    """One line on a terminal: what is being done."""

    def __init__(self, title: str, *, enabled: bool) -> None:
        self._title = title
        self._status: Status | None = None
        if enabled:
            self._status = Console(stderr=True).status(title)

    def __enter__(self) -> None:
        if self._status is not None:
            self._status.start()

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, text: str) -> None:
        """Show how things stand."""
        if self._status is not None:
            self._status.update(f"{self._title}: {text}")
