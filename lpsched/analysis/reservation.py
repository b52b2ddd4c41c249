"""What a device does in a period: busy slots on a circle of T ticks."""

from __future__ import annotations

from bisect import bisect_right, insort

__all__ = ["Reservation"]


class Reservation:
    """Slots ``[phase, phase + duration)`` modulo T that do not overlap."""

    def __init__(self, period: int) -> None:
        self._period = period
        self._slots: list[tuple[int, int, int]] = []  # phase, duration, op
        self._gaps: list[tuple[int, int]] | None = None  # from, to; None if outdated

    def earliest(self, ready: int, duration: int) -> int | None:
        """Return the least start >= `ready` at which `duration` ticks are free.

        None if no gap is long enough. Starts are absolute; only their phase counts.
        """
        if duration > self._period:
            return None
        if not self._slots or duration == 0:
            return ready
        if self._gaps is None:
            self._gaps = self._free()
        gaps, count = self._gaps, len(self._gaps)
        phase = ready % self._period
        first = bisect_right(gaps, (phase, 2 * self._period)) - 1
        for i in range(first, first + count + 1) if count else ():
            begin, end = gaps[i % count]
            turn = i // count * self._period
            start = max(phase, begin + turn)
            if start + duration <= end + turn:
                return ready - phase + start
        return None

    def _free(self) -> list[tuple[int, int]]:
        """Gaps between neighbouring slots, the last one past the end of the period."""
        first = self._slots[0]
        following = [*self._slots[1:], (first[0] + self._period, 0, 0)]
        gaps = []
        for (phase, duration, _), (then, _, _) in zip(
            self._slots, following, strict=True
        ):
            if phase + duration < then:
                gaps.append((phase + duration, then))
        return gaps

    def reserve(self, start: int, duration: int, op: int) -> None:
        """Take the slot at `start` for an op; it must be free."""
        if duration:
            insort(self._slots, (start % self._period, duration, op))
            self._gaps = None

    def release(self, start: int, duration: int, op: int) -> None:
        """Give back what `reserve` took."""
        if duration:
            self._slots.remove((start % self._period, duration, op))
            self._gaps = None

    def conflicts(self, start: int, duration: int) -> list[int]:
        """Ops whose slots overlap the one at `start`."""
        phase = start % self._period
        return [
            op
            for begin, length, op in self._slots
            if duration
            and (
                (begin - phase) % self._period < duration
                or (phase - begin) % self._period < length
            )
        ]
