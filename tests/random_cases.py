"""Random small graphs and valid schedules of them, for every test folder.

All take a `random.Random`, so that a seed names a case for good.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from factories import devices_of, make_graph, make_op, make_schedule

from lpsched.core.graph import (
    Consumer,
    Delay,
    DelayName,
    Dependence,
    DeviceId,
    Edge,
    Graph,
    Link,
    Op,
    OpId,
    Resident,
    Tensor,
    TensorId,
)
from lpsched.core.io import checked
from lpsched.core.schedule import Schedule

__all__ = ["random_case", "random_graph", "random_schedule", "sequential_schedule"]

Placement = Mapping[OpId, DeviceId | None]


def random_case(
    seed: int, *, max_ops: int = 6, max_devices: int = 3
) -> tuple[Graph, Schedule]:
    """Return a random graph with a valid schedule of it."""
    rng = Random(seed)
    graph = random_graph(rng, max_ops=max_ops, max_devices=max_devices)
    return graph, random_schedule(graph, rng)


def random_graph(rng: Random, *, max_ops: int = 6, max_devices: int = 3) -> Graph:
    """Build a small graph with any mix of what a graph can state.

    Unequal devices and links, allowed devices, ops without a device or of duration
    0, tensors of size 0, lags, named delays with and without limit, dependences,
    colocation, residents, flush, unfolding; no memory limits. A schedule exists:
    edges without delay lead from earlier to later ops.
    """
    devices = devices_of(rng.randint(1, max_devices))
    names = [d.id for d in devices]
    ops = [_op(rng, f"v{i}", names) for i in range(rng.randint(1, max_ops))]
    delays = {DelayName(f"k{i}"): _delay(rng) for i in range(rng.randint(0, 2))}
    graph = make_graph(
        ops,
        [_tensor(rng, f"x{i}", ops, list(delays)) for i in range(rng.randint(0, 5))],
        devices=devices,
        name=f"random{rng.randrange(10**6)}",
        delays=delays,
        dependences=tuple(_dependences(rng, ops, list(delays))),
        link=_link(rng),
        links={
            (p, q): _link(rng)
            for p in names
            for q in names
            if p != q and rng.random() < 0.2
        },
        residents=tuple(
            Resident(size=rng.randint(0, 9), ops=tuple(_some_ids(rng, ops)))
            for _ in range(rng.choice([0, 0, 1, 2]))
        ),
        unfolding=rng.choice([1, 1, 2, 3]),
        flush=rng.random() < 0.2,
    )
    return checked(graph.replace(colocate=_groups(rng, graph)))


def _op(rng: Random, name: str, devices: Sequence[DeviceId]) -> Op:
    kind = rng.choice("FIWX")
    if rng.random() < 0.1:
        return make_op(name, rng.randint(0, 4), kind=kind, devices=[])
    allowed = (
        rng.sample(devices, rng.randint(1, len(devices)))
        if rng.random() < 0.3
        else None
    )
    if rng.random() < 0.3:
        ticks = {str(d): rng.randint(0, 5) for d in allowed or devices}
        return make_op(name, ticks, kind=kind, devices=allowed)
    return make_op(name, rng.randint(0, 5), kind=kind, devices=allowed)


def _delay(rng: Random) -> Delay:
    least = rng.choice([1, 1, 2])
    return Delay(min=least, max=rng.choice([None, least, least + 2]))


def _edge_delay(
    rng: Random, src: int, dst: int, names: Sequence[DelayName]
) -> int | DelayName:
    if names and rng.random() < 0.4:
        return rng.choice(names)
    return rng.choice([0, 0, 0, 1]) if src < dst else rng.choice([1, 1, 2])


def _lag(rng: Random) -> int:
    return rng.choice([0, 0, 0, 1, 3])


def _tensor(
    rng: Random, name: str, ops: Sequence[Op], delays: Sequence[DelayName]
) -> Tensor:
    src = rng.randrange(len(ops))
    uses = [rng.randrange(len(ops)) for _ in range(rng.randint(0, 3))]
    return Tensor(
        id=TensorId(name),
        size=rng.choice([0, 1, 2, 3, 5, 8]),
        producer=ops[src].id,
        consumers=tuple(
            Consumer(
                op=ops[dst].id, delay=_edge_delay(rng, src, dst, delays), lag=_lag(rng)
            )
            for dst in uses
        ),
    )


def _dependences(
    rng: Random, ops: Sequence[Op], delays: Sequence[DelayName]
) -> Iterator[Dependence]:
    for _ in range(rng.choice([0, 0, 1, 2])):
        src, dst = rng.randrange(len(ops)), rng.randrange(len(ops))
        yield Dependence(
            src=ops[src].id,
            dst=ops[dst].id,
            delay=_edge_delay(rng, src, dst, delays),
            lag=_lag(rng),
        )


def _link(rng: Random) -> Link:
    return Link(
        latency=rng.choice([0, 0, 1, 3]), units_per_tick=rng.choice([None, 1, 2, 4])
    )


def _some_ids(rng: Random, ops: Sequence[Op]) -> list[OpId]:
    return [op.id for op in rng.sample(ops, rng.randint(1, len(ops)))]


def _groups(rng: Random, graph: Graph) -> tuple[tuple[OpId, ...], ...]:
    """At most one group, of ops that have an allowed device in common."""
    if rng.random() < 0.6:
        return ()
    group: list[OpId] = []
    common = set(graph.device_ids)
    for op in rng.sample(graph.ops, len(graph.ops)):
        if common & set(graph.allowed(op.id)) and len(group) < 3:
            common &= set(graph.allowed(op.id))
            group.append(op.id)
    return (tuple(group),) if len(group) > 1 else ()


def random_schedule(graph: Graph, rng: Random) -> Schedule:
    """Build a valid schedule: ops packed on random devices, laps by longest path.

    Where the delays are too tight for the phases drawn, or with flush, ops run one
    after the other.
    """
    placement = _placement(graph, rng)
    if not graph.flush:
        for attempt in range(8):
            found = _packed(
                graph, placement, rng, slack=rng.randint(0, 1 + 2 * attempt)
            )
            if found is not None:
                return found
    return sequential_schedule(graph, rng, placement)


def _placement(graph: Graph, rng: Random) -> dict[OpId, DeviceId | None]:
    classes: list[set[OpId]] = [{op.id} for op in graph.ops]
    for group in graph.colocate:
        joined = [c for c in classes if c & set(group)]
        classes = [c for c in classes if not c & set(group)] + [set().union(*joined)]
    placement: dict[OpId, DeviceId | None] = {}
    for members in classes:
        shared = [
            d for d in graph.device_ids if all(d in graph.allowed(v) for v in members)
        ]
        device = rng.choice(shared) if shared else None
        placement |= dict.fromkeys(members, device)
    return placement


def _packed(
    graph: Graph, placement: Placement, rng: Random, *, slack: int
) -> Schedule | None:
    """Phases by packing each device in random order, then laps; None if too tight."""
    ticks = {v: graph.duration(v, d) for v, d in placement.items()}
    loads = [
        sum(ticks[v] for v in placement if placement[v] == d) for d in graph.device_ids
    ]
    period = max([1, *loads]) + slack
    phase = {v: rng.randrange(period) for v in placement}
    for device, load in zip(graph.device_ids, loads, strict=True):
        at, idle = rng.randrange(period), period - load
        own = [v for v in sorted(placement) if placement[v] == device]
        for v in rng.sample(own, len(own)):
            gap = rng.randint(0, idle)
            phase[v] = (at + gap) % period
            at, idle = at + gap + ticks[v], idle - gap
    delays = {
        name: None if d.max is None else rng.randint(d.min, d.max)
        for name, d in graph.delays.items()
    }
    laps = _laps(graph, placement, phase, period, delays)
    if laps is None:
        return None
    starts = {v: laps[v] * period + phase[v] for v in placement}
    values = {
        name: max(
            [graph.delays[name].min, *_needs(graph, name, placement, starts, period)]
        )
        if value is None
        else value
        for name, value in delays.items()
    }
    return _shifted(graph, period, placement, starts, values, rng)


def _gap(graph: Graph, edge: Edge, placement: Placement) -> int:
    """Ticks ``t_u + c + lag`` of an edge."""
    src, dst = placement[edge.src], placement[edge.dst]
    transfer = graph.transfer_ticks(edge.tensor, src, dst)
    return graph.duration(edge.src, src) + transfer + edge.lag


def _needs(
    graph: Graph,
    name: DelayName,
    placement: Placement,
    starts: Mapping[OpId, int],
    period: int,
) -> list[int]:
    """Least value of a delay for each edge that names it."""
    return [
        -((starts[e.dst] - starts[e.src] - _gap(graph, e, placement)) // period)
        for e in graph.edges
        if e.delay == name
    ]


def _laps(
    graph: Graph,
    placement: Placement,
    phase: Mapping[OpId, int],
    period: int,
    delays: Mapping[DelayName, int | None],
) -> dict[OpId, int] | None:
    """Least laps by longest path (Bellman-Ford); None if a cycle forbids any."""
    least = []
    for e in graph.edges:
        k = e.delay if isinstance(e.delay, int) else delays[e.delay]
        if k is not None:
            late = phase[e.src] + _gap(graph, e, placement) - phase[e.dst]
            least.append((e.src, e.dst, -(-late // period) - k))
    laps = dict.fromkeys(placement, 0)
    for _ in range(len(placement) + 1):
        tight = [(u, v, w) for u, v, w in least if laps[v] < laps[u] + w]
        if not tight:
            return laps
        for u, v, w in tight:
            laps[v] = max(laps[v], laps[u] + w)
    return None


def sequential_schedule(
    graph: Graph, rng: Random, placement: Placement | None = None
) -> Schedule:
    """Build a valid schedule with one op at a time and iterations that do not overlap.

    It exists whenever edges without delay form no cycle.
    """
    placed = placement or _placement(graph, rng)
    delays = {
        name: rng.randint(d.min, d.min + 2 if d.max is None else d.max)
        for name, d in graph.delays.items()
    }
    gaps = [(e, _gap(graph, e, placed)) for e in graph.edges]
    starts: dict[OpId, int] = {}
    now = 0
    while len(starts) < len(placed):
        waiting = {e.dst for e, _ in gaps if e.delay == 0 and e.src not in starts}
        op = rng.choice(
            [v for v in sorted(placed) if v not in starts | dict.fromkeys(waiting)]
        )
        ready = [starts[e.src] + g for e, g in gaps if e.dst == op and e.delay == 0]
        starts[op] = max([now, *ready])
        now = starts[op] + graph.duration(op, placed[op])
    period = max(1, now - min(starts.values(), default=0))
    for e, gap in gaps:
        k = e.delay if isinstance(e.delay, int) else delays[e.delay]
        if k:
            period = max(period, -(-(starts[e.src] + gap - starts[e.dst]) // k))
    return _shifted(graph, period + rng.choice([0, 0, 2]), placed, starts, delays, rng)


def _shifted(
    graph: Graph,
    period: int,
    placement: Placement,
    starts: Mapping[OpId, int],
    delays: Mapping[DelayName, int],
    rng: Random,
) -> Schedule:
    """Build the schedule with every start moved alike: that keeps all rules."""
    shift = rng.randint(-2 * period, 2 * period)
    return make_schedule(
        graph,
        period,
        {v: (d, starts[v] + shift) for v, d in placement.items()},
        **{str(name): value for name, value in delays.items()},
    )
