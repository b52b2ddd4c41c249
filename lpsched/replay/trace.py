"""A run as a trace: what was predicted above, what was measured below."""

from __future__ import annotations

from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.export.perfetto import add_schedule
from lpsched.export.trace import Slice, Trace
from lpsched.replay.job import Span
from lpsched.replay.outcome import Outcome

__all__ = ["run_trace"]


def run_trace(graph: Graph, schedule: Schedule, outcome: Outcome) -> str:
    """Write the measured iterations beside as many of the schedule's.

    Both begin at 0; a tick is as long as the outcome has it.
    """
    trace = Trace()
    measured = [[span for span in rank if span.iteration > 0] for rank in outcome.spans]
    count = max(span.iteration for rank in measured for span in rank)
    add_schedule(
        trace, "predicted", graph, schedule, iterations=count, tick=outcome.tick
    )
    pid = trace.process(f"measured: {graph.name}")
    first = min(span.start for rank in measured for span in rank)
    for device, spans in zip(graph.device_ids, measured, strict=True):
        tid = trace.track(pid, device)
        for span in spans:
            trace.slice(pid, tid, _slice(span, first))
    return trace.text(measured=outcome.document())


def _slice(span: Span, first: int) -> Slice:
    microbatch = "" if span.microbatch is None else f"@{span.microbatch}"
    return Slice(
        name=f"{span.kind}{span.stage}{microbatch}",
        kind=span.kind,
        start=span.start - first,
        length=span.end - span.start,
        details={"iteration": span.iteration - 1, "stage": span.stage},
    )
