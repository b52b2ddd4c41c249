"""Bars say where, when and in which iteration every op runs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from factories import make_graph, make_op, make_schedule
from random_cases import random_case

from lpsched.plot import Bar, bars


def seen(found: list[Bar], *fields: str) -> list[tuple[object, ...]]:
    """Chosen fields of the bars, in time order per op."""
    order: Callable[[Bar], tuple[str, int, int]] = lambda b: (  # noqa: E731 - local
        b.op,
        b.start,
        b.iteration,
    )
    return [tuple(getattr(b, f) for f in fields) for b in sorted(found, key=order)]


def test_an_op_inside_the_period_is_one_bar_at_its_phase() -> None:
    graph = make_graph([make_op("F1", 3, kind="F")])
    (bar,) = bars(graph, make_schedule(graph, 8, {"F1": ("d0", 2)}))
    assert (bar.op, bar.kind, bar.device) == ("F1", "F", "d0")
    assert (bar.start, bar.length, bar.end, bar.duration) == (2, 3, 5, 3)
    assert (bar.lap, bar.iteration, bar.wrapped) == (0, 0, False)


def test_an_op_that_crosses_the_end_shows_on_both_sides() -> None:
    """Phase 6 and duration 5 in a period of 8: 6 to 8, and 0 to 3 a period later.

    What runs from 0 to 3 began one period ago: it is one iteration older.
    """
    graph = make_graph({"a": 5})
    found = bars(graph, make_schedule(graph, 8, {"a": ("d0", 6)}))
    assert seen(found, "start", "length", "iteration", "cut_left", "cut_right") == [
        (0, 3, -1, True, False),
        (6, 2, 0, False, True),
    ]
    assert all(bar.wrapped for bar in found)
    assert sum(bar.length for bar in found) == 5


def test_an_op_that_fills_the_period_from_its_middle_is_two_bars() -> None:
    graph = make_graph({"a": 8})
    found = bars(graph, make_schedule(graph, 8, {"a": ("d0", 3)}))
    assert seen(found, "start", "length", "iteration") == [(0, 3, -1), (3, 5, 0)]


def test_an_op_that_ends_with_the_period_does_not_wrap() -> None:
    graph = make_graph({"a": 5})
    (bar,) = bars(graph, make_schedule(graph, 8, {"a": ("d0", 3)}))
    assert (bar.end, bar.wrapped) == (8, False)


def test_the_iteration_falls_with_the_lap_and_the_newest_is_zero() -> None:
    """Starts 3, 11 and 27 at period 8 are laps 0, 1, 3: iterations n, n-1, n-3."""
    graph = make_graph({"a": 1, "b": 1, "c": 1}, devices=3)
    starts = {"a": ("d0", 3), "b": ("d1", 11), "c": ("d2", 27)}
    found = bars(graph, make_schedule(graph, 8, starts))
    assert seen(found, "op", "start", "lap", "iteration") == [
        ("a", 3, 0, 0),
        ("b", 3, 1, -1),
        ("c", 3, 3, -3),
    ]


def test_negative_laps_are_counted_from_the_least() -> None:
    """Start -5 at period 8 is lap -1, phase 3: the newest iteration; start 1 is n-1."""
    graph = make_graph({"a": 1, "b": 1})
    schedule = make_schedule(graph, 8, {"a": ("d0", -5), "b": ("d0", 1)})
    assert seen(bars(graph, schedule), "op", "start", "lap", "iteration") == [
        ("a", 3, -1, 0),
        ("b", 1, 0, -1),
    ]


def test_an_op_without_duration_has_no_bar() -> None:
    graph = make_graph({"a": 2, "u": 0}, devices=1)
    schedule = make_schedule(graph, 4, {"a": ("d0", 0), "u": ("d0", 2)})
    assert [bar.op for bar in bars(graph, schedule)] == ["a"]
    assert [bar.op for bar in bars(graph, schedule, iterations=2)] == ["a", "a"]


def test_an_op_without_a_device_may_last_longer_than_the_period() -> None:
    """70 ticks from phase 19 in a period of 31: three iterations are under way.

    The newest from 19 to 31, the one before through the whole period, and the end of
    the one before that: 19 - 62 + 70 = 27.
    """
    graph = make_graph([make_op("io", 70, devices=[])])
    found = bars(graph, make_schedule(graph, 31, {"io": (None, 50)}))
    assert seen(found, "device", "start", "length", "iteration") == [
        (None, 0, 27, -2),
        (None, 0, 31, -1),
        (None, 19, 12, 0),
    ]


def test_a_duration_per_device_is_that_of_the_device_chosen() -> None:
    graph = make_graph([make_op("a", {"d0": 3, "d1": 6})], devices=2)
    (bar,) = bars(graph, make_schedule(graph, 9, {"a": ("d1", 0)}))
    assert (bar.length, bar.device) == (6, "d1")


def test_an_unrolled_run_has_every_iteration_whole_at_its_own_time() -> None:
    graph = make_graph({"a": 5, "b": 2})
    schedule = make_schedule(graph, 8, {"a": ("d0", 6), "b": ("d0", 11)})
    found = bars(graph, schedule, iterations=3)
    assert seen(found, "op", "start", "length", "iteration", "wrapped") == [
        ("a", 6, 5, 0, False),
        ("a", 14, 5, 1, False),
        ("a", 22, 5, 2, False),
        ("b", 11, 2, 0, False),
        ("b", 19, 2, 1, False),
        ("b", 27, 2, 2, False),
    ]


@pytest.mark.parametrize("seed", range(60))
def test_bars_of_a_period_are_the_steady_state_of_a_long_run(seed: int) -> None:
    """The window of one late period, cut out of an unrolled run, tick by tick."""
    graph, schedule = random_case(seed)
    shift = Random(seed).randrange(-20, 20)
    moved: dict[str, tuple[str | None, int]] = {
        op: (placed.device, placed.start + shift) for op, placed in schedule.ops.items()
    }
    schedule = make_schedule(graph, schedule.period, moved)
    period = schedule.period
    laps = [schedule.lap(op) for op in schedule.ops]
    runs = bars(graph, schedule, iterations=1)
    longest = max((run.duration for run in runs), default=0)
    number = max(laps) - min(laps) + longest // period + 3
    begin = (number + min(laps)) * period
    expected = {
        (run.op, run.device, run.iteration - number, time - begin)
        for run in bars(graph, schedule, iterations=number + 1)
        for time in range(run.start, run.end)
        if begin <= time < begin + period
    }
    found = {
        (bar.op, bar.device, bar.iteration, time)
        for bar in bars(graph, schedule)
        for time in range(bar.start, bar.end)
    }
    assert found == expected
