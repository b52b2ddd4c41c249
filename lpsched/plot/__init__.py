"""Pictures of schedules, graphs and fronts."""

from lpsched.plot.bars import Bar, bars
from lpsched.plot.front import check_front_output, draw_front, front_picture
from lpsched.plot.gantt import SUFFIXES, check_output, draw, gantt_picture
from lpsched.plot.graph import (
    GRAPH_SUFFIXES,
    check_graph_output,
    draw_graph,
    graph_picture,
)

__all__ = [
    "GRAPH_SUFFIXES",
    "SUFFIXES",
    "Bar",
    "bars",
    "check_front_output",
    "check_graph_output",
    "check_output",
    "draw",
    "draw_front",
    "draw_graph",
    "front_picture",
    "gantt_picture",
    "graph_picture",
]
