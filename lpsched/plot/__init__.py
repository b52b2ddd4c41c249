"""Pictures of schedules and graphs."""

from lpsched.plot.bars import Bar, bars
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
    "check_graph_output",
    "check_output",
    "draw",
    "draw_graph",
    "gantt_picture",
    "graph_picture",
]
