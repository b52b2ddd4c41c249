"""A schedule as the data that the page's charts draw: exact, and unrolled there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lpsched.analysis.explain import Explanation, explain
from lpsched.analysis.metrics import device_loads, memory_curve
from lpsched.core.graph import Graph, Op, OpId
from lpsched.core.schedule import Schedule
from lpsched.plot.colours import style_of
from lpsched.plot.figures import number
from lpsched.plot.picture import picture_of
from lpsched.plot.units import scale_of

__all__ = ["MOST_BARS", "iterations_shown", "run_of"]

#: Steady periods shown between prologue and epilogue.
STEADY = 4
#: Bars of a chart, unless prologue and epilogue alone have more.
MOST_BARS = 5_000


def iterations_shown(graph: Graph, schedule: Schedule) -> int:
    """Return how many iterations show prologue, some periods of kernel, and epilogue.

    Period p is steady if max lap <= p <= N - 1 + min lap: N = 1 + the difference of
    laps gives the first steady period.
    """
    laps = [schedule.lap(op) for op in schedule.ops]
    first = max(laps) - min(laps) + 1 if laps else 1
    return max(first, min(first + STEADY - 1, MOST_BARS // max(1, len(graph.ops))))


def run_of(
    name: str, graph: Graph, schedule: Schedule, iterations: int | None = None
) -> dict[str, Any]:
    """Return the data of one chart.

    Times are texts: they may exceed what JavaScript counts exactly. The page draws
    their nearest floats and computes what it says with big integers.
    """
    count = iterations or iterations_shown(graph, schedule)
    picture = picture_of([(name, graph, schedule)], iterations=count)
    explanation = explain(graph, schedule)
    index = {op.id: i for i, op in enumerate(graph.ops)}
    return {
        "name": name,
        "period": str(schedule.period),
        "iterations": count,
        "unit": graph.time_unit,
        "sizeUnit": graph.size_unit,
        "factor": str(picture.scale.factor),
        "axis": f"time in {picture.scale.unit(graph.time_unit)}",
        "lanes": _lanes(graph, schedule),
        "kinds": [{"name": s.name, "colour": s.colour} for s in picture.kinds],
        "ops": _ops(graph, schedule, explanation),
        "edges": _edges(graph, schedule, index),
        "cycle": [[index[w.src], w.delay] for w in explanation.binding.waits],
        "sections": [
            {
                "name": section.text.split(":")[0],
                "begin": str(section.begin),
                "end": str(section.end),
            }
            for section in picture.panels[0].sections
        ],
        "memory": _memory(graph, schedule),
    }


def _lanes(graph: Graph, schedule: Schedule) -> list[dict[str, Any]]:
    loads = device_loads(graph, schedule)
    lanes = [
        {"name": device, "busy": f"{load / schedule.period:.1%}"}
        for device, load in loads.items()
    ]
    if any(placed.device is None for placed in schedule.ops.values()):
        lanes.append({"name": "no device", "busy": ""})
    return lanes


def _ops(
    graph: Graph, schedule: Schedule, explanation: Explanation
) -> list[dict[str, Any]]:
    lane = {device: i for i, device in enumerate(graph.device_ids)}
    waits = _waits(graph, schedule, explanation)
    ops = []
    for op in graph.ops:
        placed = schedule.ops[op.id]
        slack = explanation.slack[op.id]
        ops.append(
            {
                "id": op.id,
                "kind": style_of(op.kind).name,
                "layer": _layer(op),
                "microbatch": op.microbatch,
                "lane": len(lane) if placed.device is None else lane[placed.device],
                "start": str(placed.start),
                "duration": str(graph.duration(op.id, placed.device)),
                "lap": schedule.lap(op.id),
                "earlier": number(slack.earlier),
                "later": number(slack.later),
                "waits": waits.get(op.id, "nothing"),
            }
        )
    return ops


def _layer(op: Op) -> str:
    if op.layer is not None:
        return op.layer
    return "none" if op.stage is None else f"stage {op.stage}"


def _waits(
    graph: Graph, schedule: Schedule, explanation: Explanation
) -> Mapping[OpId, str]:
    """Say what each op waits for: its device, or the operand that arrives last."""
    waits = {edge.dst: "its operands" for edge in graph.edges}
    for device in graph.device_ids:
        run = [op.id for op in graph.ops if schedule.ops[op.id].device == device]
        run = [op for op in run if graph.duration(op, device)]
        run.sort(key=schedule.phase)
        for before, after in zip([run[-1], *run[:-1]] if run else [], run, strict=True):
            waits[after] = f"its device, where {before} runs before"
    for gap in explanation.gaps:
        causes = ", ".join(gap.parts)
        if gap.waits_for is None or set(gap.parts) == {"nothing"}:
            waits[gap.op] = "nothing: it could begin earlier"
        else:
            waits[gap.op] = f"{gap.waits_for} ({causes})"
    return waits


def _edges(
    graph: Graph, schedule: Schedule, index: Mapping[OpId, int]
) -> list[list[Any]]:
    """Source, target, delay, ticks of transfer, tensor or None."""
    return [
        [
            index[edge.src],
            index[edge.dst],
            schedule.delay(edge.delay),
            str(
                graph.transfer_ticks(
                    edge.tensor,
                    schedule.ops[edge.src].device,
                    schedule.ops[edge.dst].device,
                )
            ),
            None if edge.tensor is None else edge.tensor.id,
        ]
        for edge in graph.edges
    ]


def _memory(graph: Graph, schedule: Schedule) -> list[dict[str, Any]]:
    """Level over one steady period, device by device."""
    curves = []
    for device in graph.devices:
        curve = memory_curve(graph, schedule, device.id)
        peak = max(level for _, level in curve)
        limit = "" if device.memory is None else f" of {_short(device.memory)}"
        curves.append(
            {
                "levels": [[str(phase), str(level)] for phase, level in curve],
                "peak": str(peak),
                "text": _short(peak) + limit,
            }
        )
    return curves


def _short(size: int) -> str:
    return scale_of(size).text(size, "")
