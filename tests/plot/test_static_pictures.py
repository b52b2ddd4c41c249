"""Drawn pictures: every bar is there, and no label leaves its bar."""

from __future__ import annotations

import dataclasses
from itertools import combinations
from random import Random

import pytest
from factories import make_graph, make_op, make_schedule, training_chain
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from lpsched.core.graph import DeviceId, Graph
from lpsched.core.schedule import Schedule
from lpsched.plot import bars
from lpsched.plot.colours import KINDS, PALE
from lpsched.plot.picture import Picture, picture_of
from lpsched.plot.sheet import WIDTH, sheet_of
from lpsched.plot.static import figure_of
from lpsched.plot.text import shorten, width, wrap


def packed(graph: Graph, seed: int = 0, *, laps: int = 12) -> Schedule:
    """Ops one after another on each device, wrapped at random, laps at random.

    Bars and labels need no valid schedule, only one without overlap.
    """
    rng = Random(seed)
    load: dict[DeviceId, int] = dict.fromkeys(graph.device_ids, 0)
    places: dict[str, tuple[str, int]] = {}
    for op in graph.ops:
        device = min(load, key=lambda d: load[d])
        places[op.id] = (device, load[device])
        load[device] += graph.duration(op.id, device)
    period = max(load.values())
    turn = {device: rng.randrange(period) for device in load}
    starts: dict[str, tuple[str | None, int]] = {
        op: (device, start + turn[DeviceId(device)] + rng.randrange(laps) * period)
        for op, (device, start) in places.items()
    }
    return make_schedule(graph, period, starts)


def layered(devices: int, layers: int = 20, seed: int = 0) -> Graph:
    """Ops with names and durations as networks have them: long and uneven."""
    rng = Random(seed)
    ops = [
        make_op(f"{kind}conv{n}_{n % 3}.0", rng.randrange(1, 2 * 10**9), kind=kind)
        for n in range(layers)
        for kind in "FIW"
    ]
    return make_graph(ops, devices=devices, time_unit="MAC")


def drawn(picture: Picture) -> Figure:
    """Draw a figure, so that its texts know their extents."""
    figure = figure_of(picture)
    figure.draw_without_rendering()
    return figure


def rectangles(figure: Figure, panel: int, colour: str) -> list[Bbox]:
    """Rectangles of a colour in a panel, in data coordinates."""
    return [
        path.get_extents()
        for collection in figure.axes[panel].collections
        if isinstance(collection, PolyCollection)
        and to_hex(to_rgba_array(collection.get_facecolor())[0]) == colour
        for path in collection.get_paths()
    ]


def labels(figure: Figure, panel: int) -> list[Text]:
    """Texts that stand in bars."""
    return [text for text in figure.axes[panel].texts if text.get_zorder() == 5]


def test_every_bar_is_a_rectangle_of_its_kind_at_its_time() -> None:
    graph = training_chain(4, devices=3)
    schedule = packed(graph)
    figure = drawn(picture_of([("x", graph, schedule)]))
    for kind in "FIW":
        expected = sorted(
            (bar.start, bar.end) for bar in bars(graph, schedule) if bar.kind == kind
        )
        found = sorted(
            (round(box.x0), round(box.x1))
            for box in rectangles(figure, 0, KINDS[kind].colour)
        )
        assert found == expected


def test_bars_stand_in_the_lane_of_their_device() -> None:
    graph = make_graph([make_op(f"F{n}", 4, kind="F") for n in range(3)], devices=3)
    places = {"F0": ("d2", 0), "F1": ("d0", 0), "F2": ("d1", 0)}
    figure = drawn(picture_of([("x", graph, make_schedule(graph, 4, places))]))
    grounds = sorted(rectangles(figure, 0, PALE), key=lambda box: box.y0)
    for text in labels(figure, 0):
        lane = int(places[text.get_text().split("\n")[0]][0][1])
        assert grounds[lane].y0 < text.get_position()[1] < grounds[lane].y1


def test_one_collection_serves_all_bars_of_a_kind_in_a_lane() -> None:
    """Thousands of bars as artists of their own would take minutes."""
    rng = Random(0)
    kinds = "FIW"
    ops = [
        make_op(f"n{i}", rng.randrange(1, 99), kind=kinds[i % 3]) for i in range(3000)
    ]
    graph = make_graph(ops, devices=4)
    figure = figure_of(picture_of([("x", graph, packed(graph))]))
    bar_collections = [
        c for c in figure.axes[0].collections if isinstance(c, PolyCollection)
    ]
    assert len(bar_collections) == 4 + 4 * len(kinds)  # grounds and bars


@pytest.mark.parametrize("devices", [1, 2, 8, 16])
@pytest.mark.parametrize("panels", [1, 3])
@pytest.mark.parametrize("iterations", [None, 2])
def test_no_label_leaves_its_bar_or_meets_another(
    devices: int, panels: int, iterations: int | None
) -> None:
    graph = layered(devices, layers=4 + 2 * devices)
    entries = [(f"method-{n}", graph, packed(graph, n, laps=2)) for n in range(panels)]
    figure = drawn(picture_of(entries, iterations=iterations))
    count = 0
    for panel, axes in enumerate(figure.axes):
        boxes = [
            axes.transData.transform_bbox(box)
            for kind in "FIW"
            for box in rectangles(figure, panel, KINDS[kind].colour)
        ]
        for text in labels(figure, panel):
            extent = text.get_window_extent()
            middle = (extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2
            homes = [box for box in boxes if box.contains(*middle)]
            # Half a pixel of rounding at each edge.
            assert any(
                box.x0 <= extent.x0 + 0.5
                and extent.x1 - 0.5 <= box.x1
                and min(box.y0, box.y1) <= extent.y0 + 0.5
                and extent.y1 - 0.5 <= max(box.y0, box.y1)
                for box in homes
            ), text.get_text()
            count += 1
    assert count > 0


@pytest.mark.parametrize("devices", [1, 8, 20])
def test_nothing_is_clipped_and_no_texts_of_the_frame_overlap(devices: int) -> None:
    graph = layered(devices)
    entries = [(f"method-{n}", graph, packed(graph, n)) for n in range(3)]
    figure = drawn(picture_of(entries))
    beside = [t for axes in figure.axes for t in axes.texts if t.get_zorder() != 5]
    frame = [*figure.texts, *beside]
    frame += [text for legend in figure.legends for text in legend.get_texts()]
    frame += [axes.xaxis.label for axes in figure.axes]
    extents = [t.get_window_extent() for t in frame if t.get_text()]
    page = figure.bbox
    for extent in extents:
        assert page.x0 <= extent.x0
        assert extent.x1 <= page.x1
        assert page.y0 <= extent.y0
        assert extent.y1 <= page.y1
    for one, other in combinations(extents, 2):
        assert Bbox.intersection(one.padded(-0.5), other.padded(-0.5)) is None


def test_a_label_says_op_and_iteration_if_it_fits_and_less_if_not() -> None:
    graph = make_graph(
        [make_op("wide", 900), make_op("longish-name", 40), make_op("i", 1)]
    )
    places = {"wide": ("d0", 0), "longish-name": ("d0", 900), "i": ("d0", 940)}
    schedule = make_schedule(graph, 1000, places)
    figure = drawn(picture_of([("x", graph, schedule)]))
    texts = {text.get_text() for text in labels(figure, 0)}
    assert "wide\nn" in texts
    assert not any(text.startswith("i") for text in texts)


def test_a_long_name_is_broken_in_two_before_it_is_dropped() -> None:
    graph = make_graph([make_op("Wlayer3_0_conv1", 40), make_op("b", 960)])
    places = {"Wlayer3_0_conv1": ("d0", 0), "b": ("d0", 40)}
    figure = drawn(picture_of([("x", graph, make_schedule(graph, 1000, places))]))
    assert "Wlayer3_\n0_conv1\nn" in {text.get_text() for text in labels(figure, 0)}


def test_narrow_bars_of_a_run_show_their_iteration() -> None:
    """Every iteration has the same ops: the number tells more than the name."""
    graph = make_graph({"a-long-name-without-end-and-more": 1})
    schedule = make_schedule(graph, 1, {"a-long-name-without-end-and-more": ("d0", 0)})
    figure = drawn(picture_of([("x", graph, schedule)], iterations=60))
    assert [t.get_text() for t in labels(figure, 0)] == [str(n) for n in range(60)]


def test_narrow_bars_of_a_synchronous_pipeline_show_their_microbatch() -> None:
    ops = [
        dataclasses.replace(make_op(f"F-of-stage-0@{m}", 1, kind="F"), microbatch=m)
        for m in range(60)
    ]
    graph = make_graph(ops)
    places: dict[str, tuple[str | None, int]] = {
        op.id: ("d0", m) for m, op in enumerate(ops)
    }
    figure = drawn(picture_of([("x", graph, make_schedule(graph, 60, places))]))
    assert [t.get_text() for t in labels(figure, 0)] == [str(m) for m in range(60)]


def test_names_are_shown_as_they_are_dollars_and_all() -> None:
    graph = make_graph([make_op("$x_1$", 4)], name="$\\frac$")
    schedule = make_schedule(graph, 4, {"$x_1$": ("d0", 0)})
    figure = drawn(picture_of([("$a$", graph, schedule)]))
    assert [t.get_text() for t in labels(figure, 0)] == ["$x_1$\nn"]


@pytest.mark.parametrize("lanes", [1, 2, 16, 64, 3000])
def test_a_page_grows_with_its_lanes_and_has_an_end(lanes: int) -> None:
    graph = make_graph({"a": 1}, devices=lanes)
    schedule = make_schedule(graph, 1, {"a": ("d0", 0)})
    sheet = sheet_of(picture_of([("x", graph, schedule)]))
    assert sheet.width == WIDTH
    assert 1 < sheet.height < 105
    assert sheet.panels[0][1] - sheet.panels[0][0] < sheet.height


def test_text_is_shortened_to_the_room_there_is() -> None:
    assert shorten("short", 8, 100) == "short"
    cut = shorten("gpu-node-01/very-long-device-name", 8, 60)
    assert cut.endswith("…")
    assert width(cut, 8) <= 60


def test_text_is_wrapped_at_spaces_to_the_room_there_is() -> None:
    words = "one two three four five six seven"
    lines = wrap(words, 8, 60)
    assert " ".join(lines) == words
    assert len(lines) > 1
    assert all(width(line, 8) <= 60 for line in lines)
