"""Which label of a bar fits into it: measured, so that no two ever overlap."""

from __future__ import annotations

from dataclasses import dataclass

from lpsched.plot.bars import Bar
from lpsched.plot.text import width

__all__ = ["LEADING", "MARGIN", "SIZES", "Label", "label_that_fits"]

#: Sizes of labels in points, the first that fits.
SIZES = (7.0, 5.5)
#: Distance of lines as a multiple of their size.
LEADING = 1.2
#: Points kept free between a label and each end of its bar.
MARGIN = 1.5


@dataclass(frozen=True, slots=True)
class Label:
    """A text of one or two lines, its size in points, its rotation in degrees."""

    text: str
    size: float
    rotation: int

    @property
    def extent(self) -> tuple[float, float]:
        """Points across and up the page."""
        lines = self.text.split("\n")
        along = max(width(line, self.size) for line in lines)
        across = len(lines) * self.size * LEADING
        return (across, along) if self.rotation else (along, across)


def label_that_fits(bar: Bar, when: str, room: float, height: float) -> Label | None:
    """Return the richest label that fits in `room` by `height` points, if any.

    The op above its iteration, both on one line, the op alone, and for narrow bars
    of a synchronous pipeline the microbatch alone, as is the custom there; each
    level if it fits so, else upright.
    """
    if room < SIZES[-1] / 2:
        return None
    forms = [f"{bar.op}\n{when}", f"{bar.op} {when}", bar.op]
    if bar.microbatch is not None:
        forms.append(str(bar.microbatch))
    for form in forms:
        for rotation in (0, 90):
            for size in SIZES:
                label = Label(form, size, rotation)
                across, up = label.extent
                if across <= room and up <= height:
                    return label
    return None
