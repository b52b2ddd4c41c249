"""A picture says what it shows: lanes, shares, period, costs, iterations."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from itertools import pairwise

import pytest
from factories import make_graph, make_op, make_schedule, make_tensor

from lpsched.core.graph import DeviceId, Graph, Link
from lpsched.core.result import Proof, Result, Status
from lpsched.core.schedule import Schedule
from lpsched.errors import UnsupportedError
from lpsched.plot.colours import KINDS, OTHER, style_of
from lpsched.plot.picture import MAX_BARS, picture_of
from lpsched.plot.units import scale_of


def two_devices() -> tuple[Graph, Schedule]:
    """F1 for 3 ticks on d0, W1 for 4 on d1, at period 8, two laps apart."""
    graph = make_graph(
        [make_op("F1", 3, kind="F"), make_op("W1", 4, kind="W")], devices=2
    )
    return graph, make_schedule(graph, 8, {"F1": ("d0", 0), "W1": ("d1", 18)})


def test_there_is_a_lane_a_device_in_order_idle_ones_too() -> None:
    graph = make_graph({"a": 3}, devices=3)
    schedule = make_schedule(graph, 4, {"a": ("d1", 0)})
    (panel,) = picture_of([("one", graph, schedule)]).panels
    assert [lane.name for lane in panel.lanes] == ["d0", "d1", "d2"]
    assert [lane.busy for lane in panel.lanes] == [0, Fraction(3, 4), 0]


def test_the_busy_share_of_an_unrolled_run_is_of_its_whole_span() -> None:
    """F1 twice is 6 ticks, of the 30 from the first F1 to the end of the last W1."""
    (panel,) = picture_of([("two", *two_devices())], iterations=2).panels
    assert (panel.begin, panel.end) == (0, 18 + 8 + 4)
    assert panel.lanes[0].busy == Fraction(6, 30)


def test_ops_without_a_device_stand_in_lanes_of_their_own_without_overlap() -> None:
    graph = make_graph(
        [make_op("io", 9, devices=[]), make_op("a", 2), make_op("t", 3, devices=[])]
    )
    places = {"io": (None, 2), "a": ("d0", 0), "t": (None, 1)}
    (panel,) = picture_of([("x", graph, make_schedule(graph, 6, places))]).panels
    assert [lane.name for lane in panel.lanes] == ["d0", "no device", "", ""]
    for lane in panel.lanes[1:]:
        assert lane.busy is None
        order = sorted(lane.bars, key=lambda bar: bar.start)
        assert all(one.end <= next_.start for one, next_ in pairwise(order))
    free = [bar for lane in panel.lanes[1:] for bar in lane.bars]
    assert sum(bar.length for bar in free) == 9 + 3


def test_the_period_is_marked_with_its_value() -> None:
    picture = picture_of([("two", *two_devices())])
    (section,) = picture.panels[0].sections
    assert (section.begin, section.end, section.text) == (0, 8, "T = 8 tick")
    assert "period 8 tick" in picture.panels[0].facts


def test_panels_share_one_axis_so_that_lengths_compare() -> None:
    graph = make_graph({"a": 3})
    slow, fast = (make_schedule(graph, t, {"a": ("d0", 0)}) for t in (12, 4))
    picture = picture_of([("slow", graph, slow), ("fast", graph, fast)])
    assert (picture.begin, picture.end) == (0, 12)
    assert [panel.end for panel in picture.panels] == [12, 4]
    assert "3 times as fast as slow" in picture.panels[1].facts
    assert "as fast as" not in picture.panels[0].facts


def test_a_run_is_divided_into_prologue_kernel_and_epilogue() -> None:
    """Laps 0 and 2: of 5 iterations, the periods 2, 3 and 4 start every op."""
    picture = picture_of([("two", *two_devices())], iterations=5)
    panel = picture.panels[0]
    assert [(s.begin, s.end, s.text.split(":")[0]) for s in panel.sections] == [
        (0, 16, "prologue"),
        (16, 40, "kernel"),
        (40, 54, "epilogue"),
    ]
    assert "3 periods of 8 tick" in panel.sections[1].text
    assert panel.grid == (0, 8, 16, 24, 32, 40, 48)


def test_a_run_too_short_for_a_steady_state_says_so() -> None:
    picture = picture_of([("two", *two_devices())], iterations=2)
    (section,) = picture.panels[0].sections
    assert section.text.startswith("too short for a steady state")


def test_a_label_names_the_iteration_relative_to_the_newest_or_by_number() -> None:
    steady = picture_of([("two", *two_devices())])
    labels = [steady.when(b) for lane in steady.panels[0].lanes for b in lane.bars]
    assert labels == ["n", "n\N{MINUS SIGN}2"]
    run = picture_of([("two", *two_devices())], iterations=2)
    numbers = [run.when(b) for lane in run.panels[0].lanes for b in lane.bars]
    assert numbers == ["0", "1", "0", "1"]


def test_costs_stand_on_the_picture_once_if_all_panels_share_them() -> None:
    graph = make_graph(
        [
            make_op("F1", 3, kind="F"),
            make_op("W1", 4, kind="W"),
            make_op("W2", {"d0": 5, "d1": 10}, kind="W"),
        ],
        [make_tensor("a", 8, "F1", "W1")],
        devices=2,
        link=Link(latency=1, units_per_tick=4),
        links={(DeviceId("d0"), DeviceId("d1")): Link(latency=3)},
    )
    places = {"F1": ("d0", 0), "W1": ("d0", 3), "W2": ("d1", 0)}
    schedule = make_schedule(graph, 20, places)
    picture = picture_of([("x", graph, schedule), ("y", graph, schedule)])
    assert picture.notes[0] == (
        "Costs in tick: F 3, W 4 to 10. "
        "A transfer takes 1 + size / 4 tick (1 link differs)."
    )
    free = graph.replace(link=Link(), links={})
    picture = picture_of([("x", graph, schedule), ("y", free, schedule)])
    assert not any("Costs" in note for note in picture.notes)
    assert "Transfers take no time." in picture.panels[1].facts


def test_what_a_result_claims_stands_beside_the_title() -> None:
    graph, schedule = two_devices()
    objective = {
        "period": 8,
        "communication": 12,
        "staleness": 3,
        "peak_memory": 123456789,
    }
    proved = Result(
        method="m", status=Status.OPTIMAL, objective=objective, bound={"period": 8}
    )
    facts = picture_of([("m", graph, schedule.with_result(proved))]).panels[0].facts
    assert facts == (
        "period 8 tick · communication 12 element · staleness 3 · "
        "peak memory 123.5 M element · period proved optimal"
    )
    open_ended = dataclasses.replace(
        proved, status=Status.FEASIBLE, bound={"period": 6}
    )
    facts = picture_of([("m", graph, schedule.with_result(open_ended))]).panels[0].facts
    assert facts.endswith(" · gap of period to its bound 25.00%")


@pytest.mark.parametrize(
    ("status", "bound", "given", "said"),
    [
        (
            Status.OPTIMAL,
            {"period": 8, "communication": 12},
            None,
            "period and communication proved optimal",
        ),
        (
            Status.OPTIMAL,
            {"period": 8, "communication": 12},
            "placement",
            "period and communication proved optimal given the placement",
        ),
        # A slack lengthened the period: communication is least under that cap.
        (
            Status.OPTIMAL,
            {"period": 6, "communication": 12},
            None,
            "communication proved optimal · gap of period to its bound 25.00%",
        ),
        (
            Status.FEASIBLE,
            {"period": 8, "communication": 9},
            None,
            "period proved optimal · gap of communication to its bound 25.00%",
        ),
        # Least at a period that may not be: nothing is proved optimal.
        (
            Status.FEASIBLE,
            {"period": 6, "communication": 12},
            None,
            "gap of period to its bound 25.00%",
        ),
    ],
)
def test_what_is_proved_is_named_and_nothing_else(
    status: Status, bound: dict[str, int], given: str | None, said: str
) -> None:
    graph, schedule = two_devices()
    certificate = None if given is None else {"given": given}
    result = Result(
        method="m",
        status=status,
        objective={"period": 8, "communication": 12},
        bound=bound,
        proof={"period": Proof(kind="exhaustion", certificate=certificate)},
    )
    shown = picture_of([("m", graph, schedule.with_result(result))]).panels[0].facts
    assert shown == f"period 8 tick · communication 12 element · {said}"


def test_an_unfolded_graph_states_the_period_of_one_iteration() -> None:
    graph = make_graph({"a": 7}, unfolding=2)
    schedule = make_schedule(graph, 7, {"a": ("d0", 0)})
    facts = picture_of([("x", graph, schedule)]).panels[0].facts
    assert facts == "period 7 tick · 7/2 per iteration"


def test_a_schedule_of_microbatches_states_its_bubble_ratio() -> None:
    """One op of 3 ticks in 4 ticks on one of two devices: 5 of 8 are idle."""
    op = dataclasses.replace(make_op("F1@0", 3), microbatch=0)
    graph = make_graph([op], devices=2)
    schedule = make_schedule(graph, 4, {"F1@0": ("d0", 0)})
    facts = picture_of([("x", graph, schedule)]).panels[0].facts
    assert facts == "period 4 tick · bubble ratio 62.50%"


def test_the_legend_names_the_kinds_in_use_once_each_in_fixed_order() -> None:
    ops = [make_op(f"{k}{n}", 1, kind=k) for n in range(2) for k in "WxyIF"]
    graph = make_graph(ops)
    places: dict[str, tuple[str | None, int]] = {
        op.id: ("d0", i) for i, op in enumerate(ops)
    }
    picture = picture_of([("x", graph, make_schedule(graph, 10, places))])
    assert picture.kinds == (KINDS["F"], KINDS["I"], KINDS["W"], OTHER)


def test_every_kind_has_a_colour_of_its_own() -> None:
    styles = [style_of(kind) for kind in ("F", "I", "W", "B", "U", "anything")]
    assert len({style.colour for style in styles}) == 6
    assert style_of("add") == style_of("mul") == OTHER


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` by WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("style", [*KINDS.values(), OTHER])
def test_black_text_is_readable_on_every_colour(style: object) -> None:
    """WCAG 2 asks for a contrast of 4.5 for small text."""
    colour = getattr(style, "colour", "")
    assert (luminance(colour) + 0.05) / (luminance("#1a1a1a") + 0.05) > 4.5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 MAC"),
        (9999, "9999 MAC"),
        (10_000, "10 k MAC"),
        (999_999, "1000 k MAC"),
        (5_797_052_416, "5.797 G MAC"),
        (-46_324_088_832, "-46.32 G MAC"),
        (10**33, "1000 Q MAC"),
    ],
)
def test_large_numbers_are_written_in_engineering_notation(
    value: int, text: str
) -> None:
    assert scale_of(value).text(value, "MAC") == text


def test_schedules_in_different_time_units_have_no_common_picture() -> None:
    graph, schedule = two_devices()
    other = graph.replace(time_unit="ns")
    with pytest.raises(UnsupportedError, match=r"time units \(ns, tick\)"):
        picture_of([("a", graph, schedule), ("b", other, schedule)])


@pytest.mark.parametrize("iterations", [0, -1, MAX_BARS])
def test_a_picture_of_no_or_too_many_iterations_is_refused(iterations: int) -> None:
    with pytest.raises(UnsupportedError):
        picture_of([("a", *two_devices())], iterations=iterations)


def test_a_picture_of_nothing_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="nothing to draw"):
        picture_of([])


def test_blocks_of_iterations_compare_by_what_one_iteration_takes() -> None:
    """Two iterations in 8 ticks are faster than one in 6: 6 / 4 times."""
    graph = make_graph({"a": 1})
    block = make_graph({"a#0": 1, "a#1": 1}, unfolding=2)
    one = make_schedule(graph, 6, {"a": ("d0", 0)})
    two = make_schedule(block, 8, {"a#0": ("d0", 0), "a#1": ("d0", 4)})
    panels = picture_of([("one", graph, one), ("two", block, two)]).panels
    assert "4 per iteration" in panels[1].facts
    assert "1.5 times as fast as one" in panels[1].facts
