"""Pictures of graphs: everything in its place, nothing on top of another."""

from __future__ import annotations

import stat
import sys
from itertools import combinations
from pathlib import Path

import pytest
from factories import make_graph, make_op, make_tensor, training_chain
from random_cases import random_case

from lpsched.analysis.layerpipe import derive_layerpipe, stages_of_groups
from lpsched.core.graph import Dependence, Graph, OpId
from lpsched.errors import MissingExtraError, UnsupportedError
from lpsched.network import compile_network, load_shipped
from lpsched.plot import draw_graph
from lpsched.plot.curves import Frame, Point, bent, through
from lpsched.plot.flow import MAX_BOXES, chart_of
from lpsched.plot.graph import figure_of
from lpsched.plot.graphviz import has_graphviz
from lpsched.plot.layout import Layout, layout_of


def laid_out(graph: Graph, stages: dict[OpId, int] | None = None) -> Layout:
    return layout_of(graph, chart_of(graph), stages)


def overlapping(layout: Layout) -> list[tuple[str, str]]:
    return [
        (a, b)
        for (a, f), (b, g) in combinations(layout.frames.items(), 2)
        if abs(f.x - g.x) < (f.width + g.width) / 2
        and abs(f.y - g.y) < (f.height + g.height) / 2
    ]


GRAPHS = {
    "chain": training_chain(5),
    "lenet5": compile_network(load_shipped("lenet5"), devices=2).graph,
    "resnet18": compile_network(load_shipped("resnet18"), devices=2).graph,
    **{f"random {seed}": random_case(seed)[0] for seed in range(30)},
}


@pytest.mark.parametrize("name", GRAPHS)
def test_no_two_boxes_overlap_and_each_wire_ends_at_its_boxes(name: str) -> None:
    graph = GRAPHS[name]
    layout = laid_out(graph)
    assert set(layout.frames) == {op.id for op in graph.ops}
    assert not overlapping(layout)
    assert {(wire.src, wire.dst) for wire, _ in layout.curves} == {
        (edge.src, edge.dst) for edge in graph.edges
    }
    for wire, curve in layout.curves:
        for end, frame in (
            (curve.start, layout.frames[wire.src]),
            (curve.at(1), layout.frames[wire.dst]),
        ):
            assert abs(end.x - frame.x) <= frame.width / 2 + 1e-6
            assert abs(end.y - frame.y) <= frame.height / 2 + 1e-6
            on_side = abs(abs(end.x - frame.x) - frame.width / 2) < 1e-6
            on_top = abs(abs(end.y - frame.y) - frame.height / 2) < 1e-6
            assert on_side or on_top


def test_a_training_graph_flows_right_on_top_and_left_at_the_bottom() -> None:
    frames = laid_out(training_chain(3)).frames
    at = {op: frames[OpId(op)] for op in ("F1", "F2", "F3", "W1", "W2", "I2", "I3")}
    assert at["F1"].x < at["F2"].x < at["F3"].x
    assert at["F1"].y == at["F2"].y < at["W1"].y == at["W2"].y < at["I2"].y
    assert at["F2"].x == at["W2"].x == at["I2"].x


def test_ranks_follow_the_flow_and_delays_lead_back() -> None:
    graph = make_graph(
        {"a": 1, "b": 1, "c": 1},
        [make_tensor("x", 1, "a", "b"), make_tensor("y", 1, "b", "c", ("a", 2))],
    )
    frames = laid_out(graph).frames
    assert frames[OpId("a")].x < frames[OpId("b")].x < frames[OpId("c")].x


def test_wires_carry_their_delay_in_the_words_of_signal_flow() -> None:
    graph = make_graph(
        {"a": 1, "b": 1},
        [make_tensor("x", 1, "a", "b", ("a", 1)), make_tensor("y", 2, "a", "b")],
        dependences=(Dependence(src=OpId("b"), dst=OpId("a"), delay=3, lag=2),),
    )
    labels = {(w.src, w.dst): w.label for w in chart_of(graph).wires}
    assert labels == {("a", "b"): "", ("a", "a"): "D", ("b", "a"): "3D +2"}
    chain = chart_of(training_chain(2, delay_max=4))
    assert {w.label for w in chain.wires if w.is_delayed} == {"d1", "d2", "D"}
    assert "d1 1…4" in chain.facts


def test_boxes_hold_duration_and_lap() -> None:
    graph = make_graph([make_op("a", {"d0": 2, "d1": 5}), make_op("b", 7)], devices=2)
    notes = [box.note for box in chart_of(graph).boxes]
    assert notes == ["2–5", "7"]
    laps = {OpId("a"): 0, OpId("b"): 3}
    notes = [box.note for box in chart_of(graph, laps).boxes]
    assert notes == ["2–5 · lap 0", "7 · lap 3"]


def test_stages_of_whole_layers_are_bands_and_others_are_not_shown() -> None:
    graph = training_chain(4)
    stages = stages_of_groups(graph, [["1"], ["2", "3"], ["4"]])
    bands = laid_out(graph, stages).bands
    assert [band.name for band in bands] == ["stage 0", "stage 1", "stage 2"]
    assert bands[0].right == bands[1].left
    assert not laid_out(graph, stages | {OpId("W2"): 0}).bands
    apart = stages_of_groups(graph, [["1", "3"], ["2", "4"]])
    assert not laid_out(graph, apart).bands


def test_the_figure_shows_every_name_note_and_delay() -> None:
    graph = training_chain(3)
    derivation = derive_layerpipe(graph, stages_of_groups(graph, [["1"], ["2", "3"]]))
    step = derivation.steps[1].graph
    chart = chart_of(step, derivation.laps)
    figure = figure_of(chart, layout_of(step, chart, derivation.stages))
    texts = [text.get_text() for text in figure.axes[0].texts]
    for expected in ("F1", "2 · lap 2", "3D", "D", "stage 1", "chain3"):
        assert expected in texts


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_files_are_what_their_extension_says_and_the_same_every_time(
    tmp_path: Path, suffix: str, start: bytes
) -> None:
    files = [tmp_path / f"{i}{suffix}" for i in range(2)]
    for file in files:
        draw_graph(training_chain(2), file, engine="own")
    first, second = (file.read_bytes() for file in files)
    assert first.startswith(start)
    assert first == second


def test_an_empty_graph_is_an_empty_picture(tmp_path: Path) -> None:
    draw_graph(make_graph({}), tmp_path / "empty.svg", engine="own")
    assert (tmp_path / "empty.svg").exists()


def test_other_extensions_and_endless_graphs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot draw a graph as \.gif"):
        draw_graph(training_chain(2), tmp_path / "a.gif")
    many = make_graph({f"v{i}": 1 for i in range(MAX_BOXES + 1)})
    with pytest.raises(UnsupportedError, match="too many for a picture"):
        draw_graph(many, tmp_path / "a.svg")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(MissingExtraError, match=r"lpsched\[plot\]"):
        draw_graph(training_chain(2), tmp_path / "a.svg")


# -- graphviz ----------------------------------------------------------------------


def fake_dot(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Put a program `dot` on the path that is alone there with the shell."""
    program = folder / "dot"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_graphviz_draws_general_graphs_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The program gets the kind of file and the DOT text, and its output is kept."""
    fake_dot(tmp_path, monkeypatch, 'echo "$1"; cat')
    target = tmp_path / "a.svg"
    graph = make_graph({"a": 1, "b": 1}, [make_tensor("x", 1, "a", ("b", 2))])
    draw_graph(graph, target, laps={OpId("a"): 0, OpId("b"): 1})
    text = target.read_text()
    assert text.startswith('-Tsvg\ndigraph "made" {')
    assert 'label="2D"' in text
    draw_graph(graph, target, engine="own")
    assert target.read_text().startswith("<?xml")
    draw_graph(training_chain(2), target)
    assert target.read_text().startswith("<?xml")
    draw_graph(training_chain(2), target, engine="dot")
    assert 'fillcolor="#56b4e9"' in target.read_text()


def test_what_graphviz_says_when_it_fails_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_dot(tmp_path, monkeypatch, 'echo "no room" >&2; exit 1')
    with pytest.raises(UnsupportedError, match="graphviz failed: no room"):
        draw_graph(make_graph({"a": 1}), tmp_path / "a.svg")
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert not has_graphviz()
    with pytest.raises(UnsupportedError, match="not installed"):
        draw_graph(make_graph({"a": 1}), tmp_path / "a.svg", engine="dot")


# -- curves ------------------------------------------------------------------------


def test_a_bent_way_bulges_to_the_right_of_who_walks_it() -> None:
    """Walking right on a page with y downwards, the right hand is further down."""
    src, dst = Frame(0, 0, 10, 10), Frame(100, 0, 10, 10)
    curve = bent(src, dst, 12)
    assert curve.middle.y == pytest.approx(12, abs=3)
    assert bent(src, dst).middle == Point(50, 0)
    assert bent(dst, src, 12).middle.y < 0


def test_a_smooth_way_passes_its_points() -> None:
    points = [Point(0, 0), Point(50, 30), Point(100, 10), Point(150, 10)]
    curve = through(points)
    found = [curve.at(i / 3) for i in range(4)]
    for a, b in zip(found, points, strict=True):
        assert a == pytest.approx(b)
