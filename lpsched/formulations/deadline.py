"""When a search has to end: a time limit and an interrupt, looked at together."""

from __future__ import annotations

import math
import threading
import time

from lpsched.core.result import Stop
from lpsched.errors import OutOfTimeError

__all__ = ["UNLIMITED", "Deadline"]

#: Seconds before its limit at which a solver may already have given up.
_GRACE = 0.1


class Deadline:
    """A time limit and an interrupt, looked at together."""

    def __init__(
        self, seconds: float, interrupt: threading.Event | None = None
    ) -> None:
        self._begin = time.monotonic()
        self._seconds = seconds
        self._interrupt = interrupt

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self._begin

    @property
    def left(self) -> float:
        """Seconds until the search has to end; 0 once it is interrupted."""
        return 0.0 if self._interrupted else max(0.0, self._seconds - self.elapsed)

    @property
    def over(self) -> bool:
        """Whether the search has to end."""
        return self.left == 0.0

    def check(self) -> None:
        """Give up work that is half done once the search has to end.

        Raises
        ------
        OutOfTimeError
            It has.
        """
        if self.over:
            raise OutOfTimeError("the search has to end")

    @property
    def stop(self) -> Stop:
        """Why a search without a proof ended."""
        if self._interrupted:
            return Stop.INTERRUPTED
        return Stop.TIME_LIMIT if self.left < _GRACE else Stop.METHOD

    @property
    def _interrupted(self) -> bool:
        return self._interrupt is not None and self._interrupt.is_set()

    def within(self, seconds: float) -> Deadline:
        """Return a deadline of so many seconds from now that ends with this one."""
        return Deadline(min(seconds, self.left), self._interrupt)


#: For work that may take the time it takes.
UNLIMITED = Deadline(math.inf)
