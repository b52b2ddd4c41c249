"""Traces: slices where the schedule has them, nested tracks, flows, memory."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from factories import make_graph, make_op, make_schedule, make_tensor, training_chain
from random_cases import random_case

from lpsched.analysis.metrics import measure, memory_curve
from lpsched.core.graph import Graph, Link
from lpsched.core.schedule import Schedule
from lpsched.errors import UnsupportedError
from lpsched.export import perfetto_text
from lpsched.export.perfetto import memory_levels
from lpsched.export.trace import Slice, lanes, tick_ns
from lpsched.heuristics import METHODS


def events(graph: Graph, schedule: Schedule, **more: int) -> list[dict[str, Any]]:
    """All events of a trace of one schedule."""
    document = json.loads(perfetto_text([("made", graph, schedule)], **more))
    assert document["displayTimeUnit"] in ("ms", "ns")
    found: list[dict[str, Any]] = document["traceEvents"]
    return found


def tracks(found: list[dict[str, Any]]) -> dict[int, str]:
    """Names of the tracks by number."""
    return {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name"}


def two_devices() -> tuple[Graph, Schedule]:
    """A producer of 3 ticks, a transfer of 2, a user of 1; and back an iteration on."""
    graph = make_graph(
        {"a": 3, "b": 1},
        [make_tensor("x", 5, "a", "b"), make_tensor("y", 7, "b", ("a", 1))],
        devices=2,
        link=Link(latency=2),
        time_unit="ms",
        size_unit="KiB",
    )
    return graph, make_schedule(graph, 8, {"a": ("d0", 0), "b": ("d1", 5)})


def test_devices_and_links_are_tracks_with_slices_in_microseconds() -> None:
    """Period 8 ms: a at 0 and 8, x on its way from 3 to 5 and 11 to 13, b at 5, 13."""
    found = events(*two_devices(), iterations=2)
    names = tracks(found)
    assert list(names.values()) == ["d0", "d1", "d0 → d1", "d1 → d0"]
    slices = [
        (
            names[e["tid"]],
            e["name"],
            e["cat"],
            e["ts"],
            e["dur"],
            e["args"]["iteration"],
        )
        for e in found
        if e["ph"] == "X"
    ]
    assert slices == [
        ("d0", "a", "X", 0, 3000, 0),
        ("d0", "a", "X", 8000, 3000, 1),
        ("d1", "b", "X", 5000, 1000, 0),
        ("d1", "b", "X", 13000, 1000, 1),
        ("d0 → d1", "x", "transfer", 3000, 2000, 0),
        ("d0 → d1", "x", "transfer", 11000, 2000, 1),
        ("d1 → d0", "y", "transfer", 6000, 2000, 0),
        ("d1 → d0", "y", "transfer", 14000, 2000, 1),
    ]


def test_flows_lead_from_producer_over_the_link_to_the_user() -> None:
    """Two of x, and one of y: the user of the second would be in a third iteration."""
    found = events(*two_devices(), iterations=2)
    names = tracks(found)
    flows = defaultdict(list)
    for e in found:
        if e["ph"] in "stf":
            flows[e["id"]].append((e["name"], e["ph"], names[e["tid"]], e["ts"]))
    assert list(flows.values()) == [
        [
            ("x", "s", "d0", 2999.999),
            ("x", "t", "d0 → d1", 3000),
            ("x", "f", "d1", 5000),
        ],
        [
            ("x", "s", "d0", 10999.999),
            ("x", "t", "d0 → d1", 11000),
            ("x", "f", "d1", 13000),
        ],
        [
            ("y", "s", "d1", 5999.999),
            ("y", "t", "d1 → d0", 6000),
            ("y", "f", "d0", 8000),
        ],
    ]
    assert all(e["bp"] == "e" for e in found if e["ph"] == "f")


def test_memory_is_a_counter_for_each_device() -> None:
    """One iteration: d0 keeps x from 0 to 5, and y arrives from 6; d1 the other way.

    y of the iteration before is at d0 from the beginning until a has used it at 3.
    """
    graph, schedule = two_devices()
    found = events(graph, schedule, iterations=1)
    levels = defaultdict(list)
    for e in found:
        if e["ph"] == "C":
            levels[e["name"]].append((e["ts"], e["args"]["KiB"]))
    assert levels["memory of d0"] == [(0, 12), (3000, 5), (5000, 0)]
    assert levels["memory of d1"] == [(0, 0), (3000, 5), (5000, 12), (6000, 0)]


def test_the_steady_state_has_the_memory_that_is_measured() -> None:
    """In the middle of a long run the level is that of the period's curve."""
    graph = training_chain(4, devices=2, link=Link(latency=1), rng=Random(3))
    schedule = METHODS["pipedream"].function(graph)
    run = range(12)
    for device in graph.device_ids:
        levels = dict(memory_levels(graph, schedule, device, run))
        curve = dict(memory_curve(graph, schedule, device))
        begin = 6 * schedule.period
        for phase, level in curve.items():
            at = max(t for t in levels if t <= begin + phase)
            assert levels[at] == level
        assert max(levels.values()) == max(curve.values())
    peak = max(
        max(level for _, level in memory_levels(graph, schedule, d, run))
        for d in graph.device_ids
    )
    assert peak == measure(graph, schedule).peak_memory


def assert_nested(found: list[dict[str, Any]]) -> None:
    """Slices of a track are one after the other; arrows begin and end inside some."""
    by_track = defaultdict(list)
    for e in found:
        if e["ph"] == "X":
            start = round(1000 * e["ts"])
            by_track[e["tid"]].append((start, start + round(1000 * e["dur"])))
    for spans in by_track.values():
        for (_, end), (start, _) in pairwise(sorted(spans)):
            assert end <= start
    for e in found:
        if e["ph"] in "stf":
            at = round(1000 * e["ts"])
            assert any(a <= at <= b for a, b in by_track[e["tid"]])


@pytest.mark.parametrize("seed", range(40))
def test_tracks_nest_whatever_is_drawn(seed: int) -> None:
    """Ops without device or duration, delays, negative starts, transfers at once."""
    graph, schedule = random_case(seed)
    assert_nested(events(graph, schedule, iterations=4))


def test_overlapping_transfers_get_lanes() -> None:
    spans = [(0, 5), (1, 2), (5, 2), (2, 4), (6, 1)]
    pieces = [Slice(name="x", kind="t", start=s, length=n) for s, n in spans]
    found = [[(p.start, p.length) for p in lane] for lane in lanes(pieces)]
    assert found == [[(0, 5), (5, 2)], [(1, 2), (6, 1)], [(2, 4)]]


@pytest.mark.parametrize(
    ("unit", "ns"),
    [
        ("ns", 1),
        ("us", 1000),
        ("µs", 1000),
        ("10 ms", 10**7),
        ("0.5 us", 500),
        ("s", 10**9),
        ("0.5 ns", None),
        ("0 ms", None),
        ("MAC", None),
    ],
)
def test_a_unit_of_time_is_so_many_nanoseconds(unit: str, ns: int | None) -> None:
    assert tick_ns(unit) == ns


def test_ops_before_tick_0_move_the_trace_to_its_beginning() -> None:
    graph = make_graph([make_op("a", 2), make_op("b", 1, devices=[])])
    schedule = make_schedule(graph, 4, {"a": ("d0", -7), "b": (None, -9)})
    found = [e for e in events(graph, schedule, iterations=1) if e["ph"] == "X"]
    assert {e["name"]: e["ts"] for e in found} == {"a": 2, "b": 0}


def test_a_trace_that_no_viewer_opens_is_refused() -> None:
    graph, schedule = two_devices()
    with pytest.raises(UnsupportedError, match="fewer iterations"):
        perfetto_text([("made", graph, schedule)], iterations=10_000_000)
