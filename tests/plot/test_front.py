"""The picture of a front: marks that can be told apart, labels that can be read."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from factories import training_chain

from lpsched import compare, pareto_front
from lpsched.plot.front import draw_on
from lpsched.solve import Comparison, SolveParams

PAIR = ("period", "communication")


@pytest.fixture(scope="module")
def rows() -> Comparison:
    """A chain of two layers on two devices, under several methods."""
    methods = ("sequential", "pipedream", "layerpipe", "list", "optimal")
    params = SolveParams(objective=PAIR)
    return compare(training_chain(2), methods=methods, params=params)


def drawn(rows: Comparison) -> Any:  # noqa: ANN401 - matplotlib is optional
    figure_of = pytest.importorskip("matplotlib.figure").Figure
    figure = figure_of(dpi=150, layout="constrained")
    draw_on(figure, pareto_front(training_chain(2), PAIR), rows)
    figure.draw_without_rendering()
    return figure


def test_methods_at_one_point_share_a_mark_and_a_label(rows: Comparison) -> None:
    (axes,) = drawn(rows).axes
    points: dict[tuple[int, ...], list[str]] = {}
    for row in rows:
        at = tuple(row.objective[name] for name in PAIR)
        points.setdefault(at, []).append(row.method)
    assert len(points) < len(rows)  # some share a point
    told = [text.get_text().replace("\n", " ") for text in axes.texts]
    assert told == [", ".join(names) for names in points.values()]


def test_no_label_covers_another_nor_the_legend(rows: Comparison) -> None:
    figure = drawn(rows)
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in axes.texts]
    boxes.append(axes.get_legend().get_window_extent())
    assert len(boxes) > 2
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_marks_of_methods_are_hollow_so_that_proofs_are_seen(rows: Comparison) -> None:
    (axes,) = drawn(rows).axes
    (marks,) = (line for line in axes.get_lines() if line.get_marker() == "s")
    assert marks.get_markerfacecolor() == "none"
    assert marks.get_linestyle() == "None"
