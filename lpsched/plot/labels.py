"""Which label of a bar fits into it: measured, so that no two ever overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lpsched.plot.bars import Bar
from lpsched.plot.text import width

__all__ = ["LEADING", "MARGIN", "SIZES", "Label", "first_that_fits", "forms"]

#: Sizes of labels in points, the first that fits.
SIZES = (7.0, 5.5)
#: Height of a line and distance of lines, as multiples of their size.
HEIGHT, LEADING = 1.03, 1.2
#: Points kept free between a label and each end of its bar.
MARGIN = 1.5
#: Where a long name may be broken: behind one of these.
JOINTS = "_-./:@"


@dataclass(frozen=True, slots=True)
class Label:
    """A text of some lines, its size in points, its rotation in degrees."""

    text: str
    size: float
    rotation: int

    @property
    def extent(self) -> tuple[float, float]:
        """Points across and up the page."""
        lines = self.text.split("\n")
        along = max(width(line, self.size) for line in lines)
        across = (HEIGHT + LEADING * (len(lines) - 1)) * self.size
        return (across, along) if self.rotation else (along, across)


def forms(bar: Bar, when: str, *, unrolled: bool) -> Iterator[str]:
    """Yield the texts that a bar may carry, richest first.

    The op above its iteration; where that is too much, the op alone, or in an
    unrolled run, which repeats every op, the iteration alone. Narrow bars of a
    synchronous pipeline carry their microbatch, as is the custom there.
    """
    yield f"{bar.op}\n{when}"
    halves = _halves(bar.op)
    if halves is not None:
        yield f"{halves}\n{when}"
    if bar.microbatch is None and unrolled:
        yield when
        return
    yield f"{bar.op} {when}"
    yield bar.op
    if bar.microbatch is not None:
        yield str(bar.microbatch)


def _halves(name: str) -> str | None:
    """Break a name in two lines at the joint nearest to its middle."""
    joints = [i + 1 for i, c in enumerate(name[:-1]) if c in JOINTS and i > 1]
    if not joints:
        return None
    best = min(joints, key=lambda i: abs(2 * i - len(name)))
    return f"{name[:best]}\n{name[best:]}"


def first_that_fits(
    texts: Iterator[str] | Sequence[str], room: float, height: float
) -> Label | None:
    """Return the first text that fits in `room` by `height` points, if any.

    Each is tried level and then upright, large and then small.
    """
    if room < SIZES[-1] / 2:
        return None
    for text in texts:
        for rotation in (0, 90):
            for size in SIZES:
                label = Label(text, size, rotation)
                across, up = label.extent
                if across <= room and up <= height:
                    return label
    return None
