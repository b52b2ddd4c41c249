"""What is written above the bars: names, exact figures, costs and how to read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from lpsched.analysis.metrics import bubble_ratio
from lpsched.core.graph import Graph, Op
from lpsched.core.result import Result, Status, relative_gap
from lpsched.core.schedule import Schedule
from lpsched.plot.colours import KINDS
from lpsched.plot.units import scale_of

__all__ = ["costs", "facts", "reading", "title"]


def title(graphs: Sequence[Graph], iterations: int | None) -> str:
    """Say what is drawn: the graphs, the devices, the window."""
    names = ", ".join(dict.fromkeys(graph.name for graph in graphs))
    counts = sorted({len(graph.devices) for graph in graphs})
    devices = " / ".join(map(str, counts)) + (
        " device" if counts == [1] else " devices"
    )
    what = "one period of the steady state"
    if iterations is not None:
        what = f"{iterations} iteration{'' if iterations == 1 else 's'}"
    return f"{names} on {devices}: {what}"


def reading(graphs: Sequence[Graph], iterations: int | None) -> str:
    """Say how a label is read."""
    microbatches = any(map(_has_microbatches, graphs))
    if iterations is None:
        text = (
            "Under each op: the iteration it belongs to; n is the newest one of the "
            "period. An arrow marks an op that runs across the end of the period."
        )
    else:
        text = "Under each op: the number of its iteration, from 0."
    if microbatches:
        return f"{text} A number alone is a microbatch."
    return text if iterations is None else f"{text} A number alone is that number."


def _has_microbatches(graph: Graph) -> bool:
    return any(op.microbatch is not None for op in graph.ops)


def costs(graph: Graph) -> str:
    """Durations by kind, and transfers: a picture hides no assumption."""
    order = [*KINDS, *dict.fromkeys(op.kind for op in graph.ops)]
    kinds = [k for k in dict.fromkeys(order) if any(op.kind == k for op in graph.ops)]
    times = [_duration_text(graph, kind) for kind in kinds]
    return f"Costs in {graph.time_unit}: {', '.join(times)}. {_transfers(graph)}."


def _duration_text(graph: Graph, kind: str) -> str:
    values = sorted(
        t for op in graph.ops if op.kind == kind for t in _durations(graph, op)
    )
    if not values:
        return kind
    low, high = (scale_of(v).text(v, "") for v in (values[0], values[-1]))
    return f"{kind} {low}" if low == high else f"{kind} {low} to {high}"


def _durations(graph: Graph, op: Op) -> Iterable[int]:
    if isinstance(op.duration, int):
        return (op.duration,)
    return [op.duration[d] for d in graph.allowed(op.id) if d in op.duration]


def _transfers(graph: Graph) -> str:
    links = {graph.link, *graph.links.values()}
    if all(link.latency == 0 and link.units_per_tick is None for link in links):
        return "Transfers take no time"
    link = graph.link
    rate = "" if link.units_per_tick is None else f" + size / {link.units_per_tick}"
    count = len(graph.links)
    differ = "1 link differs" if count == 1 else f"{count} links differ"
    others = f" ({differ})" if count else ""
    return f"A transfer takes {link.latency}{rate} {graph.time_unit}{others}"


def facts(graph: Graph, schedule: Schedule, first: tuple[str, Graph, Schedule]) -> str:
    """Return the figures beside a panel's title, exact."""
    facts = [f"period {schedule.period:,} {graph.time_unit}"]
    own = Fraction(schedule.period, graph.unfolding)
    if graph.unfolding > 1:
        facts.append(f"{own} per iteration")
    if _has_microbatches(graph):
        facts.append(f"bubble ratio {float(bubble_ratio(graph, schedule)):.2%}")
    name, other, base = first
    if base is not schedule:
        speed = float(Fraction(base.period, other.unfolding) / own)
        facts.append(f"{speed:.3g} times as fast as {name}")
    if schedule.result is not None:
        facts += _claims(graph, schedule.result)
    return " · ".join(facts)


def _claims(graph: Graph, result: Result) -> Iterator[str]:
    for key, unit in (
        ("communication", graph.size_unit),
        ("staleness", ""),
        ("peak_memory", graph.size_unit),
    ):
        value = result.objective.get(key)
        if isinstance(value, int):
            text = scale_of(value).text(value, unit)
            yield f"{key.replace('_', ' ')} {text}"
    yield from _proved(result)


def _proved(result: Result) -> Iterator[str]:
    """Say which objectives meet their bounds, and how far the others are from them.

    A bound holds given the values of the objectives before: unless the answer is
    optimal, none is said to be proved after one that is not.
    """
    met: list[str] = []
    gaps: list[str] = []
    for name, bound in result.bound.items():
        value = result.objective.get(name)
        gap = relative_gap(value if isinstance(value, int) else None, bound)
        if gap == 0 and (not gaps or result.status is Status.OPTIMAL):
            met.append(name.replace("_", " "))
        elif gap:
            gaps.append(f"gap of {name.replace('_', ' ')} to its bound {gap:.2%}")
    if met:
        given = sorted({p.given for p in result.proof.values() if p.given is not None})
        what = " and ".join(filter(None, [", ".join(met[:-1]), met[-1]]))
        yield " given the ".join([f"{what} proved optimal", *given])
    yield from gaps
