"""DOT text: every op, every edge with its delay, names of any kind."""

from __future__ import annotations

import re

from factories import make_graph, make_op, make_tensor, training_chain

from lpsched.analysis.delays import fix_delays
from lpsched.core.graph import Delay, DelayName, Dependence, OpId
from lpsched.export import dot_text


def test_ops_and_edges_stand_in_the_text_with_their_figures() -> None:
    graph = make_graph(
        {"a": 3, "b": 2},
        [make_tensor("x", 5, "a", "b", ("b", 2), ("a", "k", 4))],
        dependences=(Dependence(src=OpId("b"), dst=OpId("a"), delay=1),),
        delays={DelayName("k"): Delay(max=3)},
    )
    text = dot_text(graph, laps={OpId("a"): 0, OpId("b"): 7}, colours={"X": "#123456"})
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == 'digraph "made" {'
    assert lines[-1] == "}"
    assert (
        '"a" [label="a\\n3\\nlap 0", kind="X", duration="3", lap="0",'
        ' fillcolor="#123456"];' in lines
    )
    assert '"a" -> "b" [delay="0"];' in lines
    assert '"a" -> "b" [delay="2", label="2D"];' in lines
    assert '"a" -> "a" [delay="k", label="k +4", lag="4", constraint="false"];' in lines
    assert (
        '"b" -> "a" [delay="1", label="D", style="dashed", constraint="false"];'
        in lines
    )


def test_a_training_graph_keeps_its_weights_loops_out_of_the_ranks() -> None:
    """Edges of delay 0 lead forward; the weights lead back to F and W."""
    text = dot_text(fix_delays(training_chain(3)))
    back = re.findall(r'"(\w+)" -> "(\w+)" \[.*constraint="false"', text)
    loops = [(f"W{n}", f"{kind}{n}") for n in (1, 2, 3) for kind in "FW"]
    assert set(loops) <= set(back)
    assert {u[0] for u, _ in back} == {"W"}


def test_equal_edges_are_drawn_once() -> None:
    two = [make_tensor("x", 1, "a", "b"), make_tensor("y", 1, "a", "b")]
    text = dot_text(make_graph({"a": 1, "b": 1}, two))
    assert text.count("->") == 1


def test_names_with_quotes_backslashes_and_breaks_are_escaped() -> None:
    name = 'a"b\\c\nd'
    text = dot_text(make_graph([make_op(name, {"d0": 1, "d1": 2})], devices=2))
    assert '"a\\"b\\\\c\\nd" [label="a\\"b\\\\c\\nd\\nd0: 1, d1: 2"' in text
