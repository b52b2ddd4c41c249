"""Points and smooth curves between boxes, in points of the page, y downwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

__all__ = ["Curve", "Frame", "Point", "bent", "through"]


class Point(NamedTuple):
    """A place on the page."""

    x: float
    y: float


class Frame(NamedTuple):
    """A box on the page: its centre and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> Point:
        """Its centre."""
        return Point(self.x, self.y)

    def edge_towards(self, target: Point) -> Point:
        """Return where the way from the centre towards `target` leaves the box."""
        dx, dy = target.x - self.x, target.y - self.y
        reach = max(abs(dx) / self.width, abs(dy) / self.height) * 2
        if reach == 0:
            return self.centre
        return Point(self.x + dx / reach, self.y + dy / reach)


@dataclass(frozen=True, slots=True)
class Curve:
    """Cubic Bézier pieces: a start, then (control, control, end) each."""

    start: Point
    pieces: tuple[tuple[Point, Point, Point], ...]

    @property
    def points(self) -> tuple[Point, ...]:
        """Start, controls and ends: the curve lies within their hull."""
        return (self.start, *(point for piece in self.pieces for point in piece))

    @property
    def middle(self) -> Point:
        """A point halfway, where a label may stand."""
        return self.at(0.5)

    def at(self, share: float) -> Point:
        """Return the point after a share of the pieces: 0 the start, 1 the end."""
        i = min(int(share * len(self.pieces)), len(self.pieces) - 1)
        t = share * len(self.pieces) - i
        a = self.start if i == 0 else self.pieces[i - 1][2]
        b, c, d = self.pieces[i]
        u = 1 - t
        weights = (u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t)
        ends = tuple(zip(weights, (a, b, c, d), strict=True))
        return Point(sum(w * p.x for w, p in ends), sum(w * p.y for w, p in ends))


def bent(src: Frame, dst: Frame, bulge: float = 0.0) -> Curve:
    """Lead from box to box, bulging to the right of the way by `bulge` at its middle.

    To the right as seen by who walks it; a negative bulge goes to the left.
    """
    dx, dy = dst.x - src.x, dst.y - src.y
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    # With y downwards, right of (dx, dy) is (-dy, dx).
    out = Point(-dy / length * bulge * 4 / 3, dx / length * bulge * 4 / 3)
    one = Point(src.x + dx / 4 + out.x, src.y + dy / 4 + out.y)
    two = Point(dst.x - dx / 4 + out.x, dst.y - dy / 4 + out.y)
    start, end = src.edge_towards(one), dst.edge_towards(two)
    return Curve(start, ((one, two, end),))


def through(points: Sequence[Point]) -> Curve:
    """Run smoothly through points from column to column, level at both ends."""
    last = len(points) - 1
    slopes = [0.0] * len(points)
    for i in range(1, last):
        before, after = points[i - 1], points[i + 1]
        slopes[i] = (after.y - before.y) / (after.x - before.x)
    pieces = []
    for i, (a, b) in enumerate(pairwise(points)):
        third = (b.x - a.x) / (2 if last == 1 else 3)
        one = Point(a.x + third, a.y + third * slopes[i])
        two = Point(b.x - third, b.y - third * slopes[i + 1])
        pieces.append((one, two, b))
    return Curve(points[0], tuple(pieces))
