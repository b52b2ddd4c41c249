"""Where things stand on a static picture: all lengths in inches, y from the top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lpsched.plot.picture import Picture
from lpsched.plot.text import shorten, width, wrap

__all__ = ["SIZES", "Line", "Sheet", "sheet_of"]


@dataclass(frozen=True, slots=True)
class TextSizes:
    """Sizes of text, in points."""

    title: float = 12.0
    panel: float = 9.0
    note: float = 8.0
    lane: float = 7.5


SIZES = TextSizes()
WIDTH = 14.0
EDGE = 0.2
#: Room for the busy shares on the right of the lanes.
SHARES = 0.65
#: The longest lane name that is shown whole.
NAMES = 1.6
#: Room above the lanes of a panel for its title and its dimension line.
STRIP = 0.52
GAP = 0.18
AXIS = 0.5
NOTE_LEADING = 0.165
#: A lane is as high as reads well, less if there are many; a page has an end.
LANE, LEAST_LANE, USUAL_HEIGHT, GREATEST_HEIGHT = 0.55, 0.26, 9.0, 100.0


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the header, `y` its top."""

    text: str
    y: float
    size: float
    bold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The geometry of a picture.

    Attributes
    ----------
    left, right : float
        Ends of the time axis.
    lane : float
        Height of a lane, the gap to the next included.
    panels : tuple of (float, float)
        Top and bottom of each panel.
    """

    width: float
    height: float
    left: float
    right: float
    lane: float
    header: tuple[Line, ...]
    panels: tuple[tuple[float, float], ...]

    @property
    def axis_points(self) -> float:
        """Length of the time axis in points."""
        return 72 * (self.right - self.left)

    def box(self, panel: int) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of a panel as shares of the figure."""
        top, bottom = self.panels[panel]
        return (
            self.left / self.width,
            1 - bottom / self.height,
            (self.right - self.left) / self.width,
            (bottom - top) / self.height,
        )


def sheet_of(picture: Picture) -> Sheet:
    """Lay a picture out; it grows downwards with its lanes."""
    names = [lane.name for panel in picture.panels for lane in panel.lanes]
    widest = max((width(name, SIZES.lane) for name in names), default=0) / 72
    header, y = _header(picture)
    lanes = max(1, sum(len(panel.lanes) for panel in picture.panels))
    lane = min(LANE, max(LEAST_LANE, USUAL_HEIGHT / lanes), GREATEST_HEIGHT / lanes)
    panels = []
    for panel in picture.panels:
        bottom = y + STRIP + lane * len(panel.lanes)
        panels.append((y, bottom))
        y = bottom + GAP
    return Sheet(
        width=WIDTH,
        height=y - GAP + AXIS,
        left=EDGE + min(widest, NAMES) + 0.2,
        right=WIDTH - SHARES,
        lane=lane,
        header=header,
        panels=tuple(panels),
    )


def _header(picture: Picture) -> tuple[tuple[Line, ...], float]:
    """Title and notes with the y below them; the legend shares the title's line."""
    legend = sum(72 * 0.36 + width(k.name, SIZES.note) for k in picture.kinds)
    room = 72 * (WIDTH - 2 * EDGE)
    title = shorten(picture.title, SIZES.title, room - legend, bold=True)
    lines = [Line(title, EDGE, SIZES.title, bold=True)]
    y = EDGE + 0.27
    for text in _notes(picture.notes, room):
        lines.append(Line(text, y, SIZES.note))
        y += NOTE_LEADING
    return tuple(lines), y + 0.1


def _notes(notes: Sequence[str], room: float) -> list[str]:
    return [line for note in notes for line in wrap(note, SIZES.note, room)]
