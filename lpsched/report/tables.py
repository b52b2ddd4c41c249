"""The tables of the page, as texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lpsched.analysis.explain import CAUSES, explain
from lpsched.analysis.metrics import bubble_to_work, device_loads
from lpsched.analysis.stashes import SORTS, stashes
from lpsched.core.graph import Graph
from lpsched.core.io import graph_digest
from lpsched.core.schedule import Schedule
from lpsched.plot.captions import costs
from lpsched.plot.comparison import cells, columns
from lpsched.plot.figures import number, percent
from lpsched.report.case import Case
from lpsched.solve import Front, Row

__all__ = ["Table", "comparison", "front", "idle", "kept", "origin", "provenance"]

#: What each cause of idle time is called.
CAUSE_NAMES = {
    "data": "waits for data",
    "delay": "waits for a delay",
    "transfer": "waits for a transfer",
    "nothing": "nothing to do",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Headings, each with ``left`` or ``right`` (numbers), and rows of texts."""

    caption: str
    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str]]


def comparison(cases: Sequence[Case]) -> Table:
    """All methods on all problems; the problem has a column if there are several."""
    graphs = {case.graph.name for case in cases}
    several = len(graphs) > 1
    heads = columns(cases[0].rows.baseline)
    rows = [
        [*([case.graph.name] if several else []), *cells(row)]
        for case in cases
        for row in case.rows
    ]
    units = {(case.graph.time_unit, case.graph.size_unit) for case in cases}
    text = "; ".join(f"time in {time}, sizes in {size}" for time, size in sorted(units))
    return Table(
        caption=f"{', '.join(dict.fromkeys(c.graph.name for c in cases))}: {text}",
        columns=[*([("problem", "left")] if several else []), *heads],
        rows=rows,
    )


def idle(graph: Graph, schedule: Schedule) -> Table:
    """How long each device works, and why it does not otherwise."""
    causes = explain(graph, schedule).idle()
    period = schedule.period
    rows = []
    for device, load in device_loads(graph, schedule).items():
        found = causes.get(device, {})
        rest = period - load - sum(found.values())  # a device without any op
        parts = [found.get(c, 0) + (rest if c == "nothing" else 0) for c in CAUSES]
        rows.append(
            [
                device,
                percent(load / period),
                number(period - load),
                *(number(part) for part in parts),
            ]
        )
    ratio = bubble_to_work(graph, schedule)
    bubbles = f"; idle over work {float(ratio):.4f}" if ratio is not None else ""
    return Table(
        caption=f"Utilisation, and idle {graph.time_unit} a period by cause{bubbles}",
        columns=[
            ("device", "left"),
            ("busy", "right"),
            ("idle", "right"),
            *((CAUSE_NAMES[cause], "right") for cause in CAUSES),
        ],
        rows=rows,
    )


def kept(graph: Graph, schedule: Schedule) -> Table:
    """Staleness of each layer, and what devices keep of it."""
    found = stashes(graph, schedule)
    sorts = [sort for sort in SORTS if any(stash.sort == sort for stash in found)]
    by_place: dict[tuple[str, str], dict[str, list[str]]] = {}
    for stash in found:
        place = by_place.setdefault((stash.layer, stash.device), {})
        place[stash.sort] = [str(stash.versions), number(stash.size)]
    rows = []
    for (layer, device), sizes in by_place.items():
        # Named delays are named after their layers (formats.md).
        delay = next((v for k, v in schedule.delays.items() if k == f"d{layer}"), None)
        texts = [text for sort in sorts for text in sizes.get(sort, ["", ""])]
        rows.append([layer, device, "" if delay is None else str(delay - 1), *texts])
    heads = [("layer", "left"), ("device", "left"), ("staleness", "right")]
    for sort in sorts:
        heads += [(f"versions of {sort}", "right"), (f"size of {sort}", "right")]
    text = f"Staleness, and most versions and {graph.size_unit}s held at once"
    return Table(caption=text, columns=heads, rows=rows)


def front(found: Front) -> Table:
    """The points of a front."""
    x, y = found.objectives
    names = [name.replace("_", " ") for name in found.objectives]
    whole = "" if found.complete else "; there may be others"
    return Table(
        caption=f"The front of {names[0]} and {names[1]}: no schedule found is better"
        f" in both{whole}",
        columns=[(names[0], "right"), (names[1], "right"), ("proved", "left")],
        rows=[
            [
                number(point.objective[x]),
                number(point.objective[y]),
                "yes" if point.proved else "no",
            ]
            for point in found.points
        ],
    )


def provenance(case: Case) -> Table:
    """How each row was found, and what is proved of it."""
    return Table(
        caption="How each schedule was found, and what is proved",
        columns=[
            ("method", "left"),
            ("status", "left"),
            ("found by", "left"),
            ("proved bounds", "left"),
            ("seed", "right"),
            ("workers", "right"),
            ("seconds", "right"),
            ("lpsched", "left"),
        ],
        rows=[_provenance(row) for row in case.rows],
    )


def _provenance(row: Row) -> list[str]:
    result = row.schedule.result if row.schedule else None
    bounds = []
    for name, value in row.bound.items():
        proof = row.proof.get(name)
        kind = f" (by {proof.kind})" if proof else ""
        bounds.append(f"{name.replace('_', ' ')} ≥ {number(value)}{kind}")
    return [
        row.method,
        row.status if row.reason is None else f"{row.status}: {row.reason}",
        result.method if result else row.method,
        "; ".join(bounds),
        "" if result is None or result.seed is None else str(result.seed),
        "" if result is None or result.workers is None else str(result.workers),
        f"{row.seconds:.2f}",
        (result.version if result else None) or "",
    ]


def origin(case: Case) -> Table:
    """What was scheduled: costs, devices, links, digest."""
    return Table(
        caption=f"The problem: {case.title}",
        columns=[("", "left"), ("", "left")],
        rows=[list(pair) for pair in _origin(case)],
    )


def _origin(case: Case) -> Iterator[tuple[str, str]]:
    graph = case.graph
    yield "graph", f"{len(graph.ops)} ops, {len(graph.edges)} precedences"
    yield "digest", graph_digest(graph)
    yield "costs", costs(graph)
    limits = {device.memory for device in graph.devices}
    memory = "no limit of memory"
    if limits - {None}:
        texts = [f"{d.id} {number(d.memory)}" for d in graph.devices]
        memory = f"memory in {graph.size_unit}: {', '.join(texts)}"
    yield "devices", f"{len(graph.devices)}, {memory}"
    ranges = {graph.delay_range(name) for name in graph.delays}
    if len(ranges) == 1:
        ((low, high),) = ranges
        most = "no limit" if high is None else str(high)
        yield "delays", f"{len(graph.delays)} named, each from {low} to {most}"
    elif ranges:
        yield "delays", f"{len(graph.delays)} named, with limits of their own"
    if case.rounding is not None:
        yield "rounding", _flat(case.rounding)
    for name, proof in case.proof.items():
        if proof.certificate is not None:
            text = f"{proof.kind}, {', '.join(proof.certificate)}"
            yield f"proof of {name.replace('_', ' ')}", text


def _flat(data: Mapping[str, object]) -> str:
    """Write nested data as one line."""
    parts = []
    for key, value in data.items():
        name = key.replace("_", " ")
        if isinstance(value, Mapping):
            parts.append(f"{name} ({_flat(value)})")
        else:
            parts.append(f"{name} {value}")
    return ", ".join(parts)
