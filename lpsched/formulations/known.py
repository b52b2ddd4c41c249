"""The schedule that a request brings along, if it is one of what is asked."""

from __future__ import annotations

from dataclasses import replace

from lpsched.analysis.metrics import measure, received_sizes
from lpsched.analysis.stretching import stretched
from lpsched.core.schedule import Schedule
from lpsched.formulations.api import Request
from lpsched.verify import verify

__all__ = ["known_schedule"]


def known_schedule(request: Request) -> Schedule | None:
    """Return the hint at the period asked for; None if it breaks a rule or a cap."""
    hint, graph = request.hint, request.graph
    if hint is None or hint.period > request.period:
        return None
    known = replace(stretched(graph, hint, request.period), result=None)
    homes = {op: placed.device for op, placed in known.ops.items()}
    if verify(graph, known) or any(
        homes[op] != device for op, device in request.placement.items()
    ):
        return None
    figures = measure(graph, known).figures()
    if any(int(figures[name]) > cap for name, cap in request.at_most.items()):
        return None
    most = request.max_received
    received = max(received_sizes(graph, homes).values(), default=0)
    return None if most is not None and received > most else known
