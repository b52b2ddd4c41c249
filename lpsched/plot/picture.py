"""Schedules laid out as panels of lanes: all that a picture says, before drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lpsched.core.graph import DeviceId, Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import UnsupportedError
from lpsched.plot import captions
from lpsched.plot.bars import Bar, bars
from lpsched.plot.colours import KINDS, OTHER, KindStyle, style_of
from lpsched.plot.units import Scale, scale_of

__all__ = ["MAX_BARS", "Lane", "Panel", "Picture", "Section", "picture_of"]

#: More bars than this are no picture any more, and would exhaust the drawing.
MAX_BARS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One row of bars; `busy` is their share of the panel's span, None off devices."""

    name: str
    bars: tuple[Bar, ...]
    busy: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A stretch of the time axis with a name, such as the period or the prologue."""

    begin: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One schedule: its lanes from `begin` to `end`, in ticks.

    `grid` holds the starts of the periods within an unrolled run.
    """

    title: str
    facts: str
    lanes: tuple[Lane, ...]
    begin: int
    end: int
    sections: tuple[Section, ...]
    grid: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Panels on one time axis, with what is said above them."""

    title: str
    notes: tuple[str, ...]
    panels: tuple[Panel, ...]
    kinds: tuple[KindStyle, ...]
    unit: str
    scale: Scale
    unrolled: bool

    @property
    def begin(self) -> int:
        """Start of the common axis."""
        return min(panel.begin for panel in self.panels)

    @property
    def end(self) -> int:
        """End of the common axis."""
        return max(panel.end for panel in self.panels)

    def when(self, bar: Bar) -> str:
        """Which iteration a bar belongs to: ``n``, ``n`` minus 2, or its number."""
        if self.unrolled:
            return str(bar.iteration)
        return f"n\N{MINUS SIGN}{-bar.iteration}" if bar.iteration else "n"


def picture_of(
    schedules: Sequence[tuple[str, Graph, Schedule]], *, iterations: int | None = None
) -> Picture:
    """Lay out named schedules, one panel each, on a common axis.

    Raises
    ------
    UnsupportedError
        If there is nothing to draw, too much, or no common time unit.
    """
    _check(schedules, iterations)
    graphs = [graph for _, graph, _ in schedules]
    span = max(s.period * (iterations or 1) for _, _, s in schedules)
    scale = scale_of(span)
    costs = list(dict.fromkeys(captions.costs(graph) for graph in graphs))
    panels = tuple(
        _panel(entry, schedules[0], scale, iterations, own_costs=len(costs) > 1)
        for entry in schedules
    )
    used = {style_of(b.kind) for p in panels for lane in p.lanes for b in lane.bars}
    return Picture(
        title=captions.title(graphs, iterations),
        notes=(
            *(costs if len(costs) == 1 else ()),
            captions.reading(graphs, iterations),
        ),
        panels=panels,
        kinds=tuple(style for style in (*KINDS.values(), OTHER) if style in used),
        unit=graphs[0].time_unit,
        scale=scale,
        unrolled=iterations is not None,
    )


def _check(
    schedules: Sequence[tuple[str, Graph, Schedule]], iterations: int | None
) -> None:
    if not schedules:
        raise UnsupportedError("nothing to draw: no schedule was given")
    if iterations is not None and iterations < 1:
        raise UnsupportedError(f"cannot draw {iterations} iterations: at least 1")
    units = sorted({graph.time_unit for _, graph, _ in schedules})
    if len(units) > 1:
        raise UnsupportedError(
            f"schedules in different time units ({', '.join(units)}) have no common "
            "axis: draw them one by one"
        )
    count = (iterations or 1) * sum(len(graph.ops) for _, graph, _ in schedules)
    if count > MAX_BARS:
        raise UnsupportedError(
            f"{count} bars are too many for a picture (limit {MAX_BARS}): draw fewer "
            "iterations or fewer schedules"
        )


def _panel(
    entry: tuple[str, Graph, Schedule],
    first: tuple[str, Graph, Schedule],
    scale: Scale,
    iterations: int | None,
    *,
    own_costs: bool,
) -> Panel:
    name, graph, schedule = entry
    drawn = bars(graph, schedule, iterations=iterations)
    begin, end, sections = 0, schedule.period, _steady(graph, schedule, scale)
    grid: tuple[int, ...] = ()
    if iterations is not None:
        begin = min((b.start for b in drawn), default=0)
        end = max((b.end for b in drawn), default=schedule.period)
        sections = _phases(graph, schedule, scale, iterations, begin, end)
        first_period = -(-begin // schedule.period) * schedule.period
        grid = tuple(range(first_period, end + 1, schedule.period))
    facts = captions.facts(graph, schedule, first)
    return Panel(
        title=name,
        facts=f"{facts} · {captions.costs(graph)}" if own_costs else facts,
        lanes=_lanes(graph, drawn, end - begin),
        begin=begin,
        end=end,
        sections=sections,
        grid=grid,
    )


def _steady(graph: Graph, schedule: Schedule, scale: Scale) -> tuple[Section, ...]:
    text = f"T = {scale.text(schedule.period, graph.time_unit)}"
    return (Section(begin=0, end=schedule.period, text=text),)


def _phases(
    graph: Graph,
    schedule: Schedule,
    scale: Scale,
    iterations: int,
    begin: int,
    end: int,
) -> tuple[Section, ...]:
    """Prologue, kernel and epilogue of a run of N iterations.

    Period p is steady if every op starts one of the N iterations in it:
    ``0 <= p - lap <= N - 1`` for every lap.
    """
    laps = [schedule.lap(op) for op in schedule.ops] or [0]
    period = schedule.period
    low = max(laps) * period
    high = (iterations + min(laps)) * period
    value = scale.text(period, graph.time_unit)
    if low >= high:
        text = f"too short for a steady state (T = {value})"
        return (Section(begin=begin, end=end, text=text),)
    count = (high - low) // period
    periods = "1 period" if count == 1 else f"{count} periods"
    kernel = f"kernel: {periods} of {value}"
    sections = (
        Section(begin=begin, end=low, text="prologue"),
        Section(begin=low, end=high, text=kernel),
        Section(begin=high, end=end, text="epilogue"),
    )
    return tuple(s for s in sections if s.begin < s.end)


def _lanes(graph: Graph, drawn: Sequence[Bar], span: int) -> tuple[Lane, ...]:
    """One lane per device, idle ones too, and as many as needed for other ops."""
    by_device: dict[DeviceId | None, list[Bar]] = {d: [] for d in graph.device_ids}
    for bar in drawn:
        by_device.setdefault(bar.device, []).append(bar)
    free = by_device.pop(None, [])
    lanes = [
        Lane(
            name=device or "",
            bars=tuple(run),
            busy=Fraction(sum(b.length for b in run), span),
        )
        for device, run in by_device.items()
    ]
    lanes += [
        Lane(name="no device" if row == 0 else "", bars=tuple(run), busy=None)
        for row, run in enumerate(_rows(free))
    ]
    return tuple(lanes)


def _rows(free: Sequence[Bar]) -> list[list[Bar]]:
    """Pack bars that may overlap into rows: each into the first row free by then."""
    rows: list[list[Bar]] = []
    for bar in sorted(free, key=lambda b: (b.start, b.op)):
        row = next((r for r in rows if r[-1].end <= bar.start), None)
        if row is None:
            rows.append([bar])
        else:
            row.append(bar)
    return rows
