"""Phases, laps and delays from a placement."""

from __future__ import annotations

import itertools
from random import Random

import networkx as nx
import pytest
from factories import make_graph, make_tensor, training_chain
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_case

from lpsched.analysis.freedom import has_free_delays
from lpsched.analysis.packing import earliest_phases, gap_phases, pack_phases
from lpsched.analysis.precedence import PlacedGraph, topological_order
from lpsched.analysis.reservation import Reservation
from lpsched.analysis.timing import complete, least_staleness_laps, retime
from lpsched.core.graph import (
    Delay,
    DelayName,
    Dependence,
    DeviceId,
    Graph,
    Link,
    OpId,
)
from lpsched.core.schedule import Schedule
from lpsched.verify import verify

D0, D1 = DeviceId("d0"), DeviceId("d1")
A, B, C = OpId("A"), OpId("B"), OpId("C")
SEEDS = st.integers(0, 10**6)


def loop(*, most: int | None = None, flush: bool = False) -> Graph:
    """A (3 ticks) feeds B (2 ticks), which feeds A of a later iteration."""
    return make_graph(
        {"A": 3, "B": 2},
        [make_tensor("x", 1, "A", "B"), make_tensor("y", 1, "B", ("A", "d"))],
        devices=2,
        link=Link(latency=1),
        delays={DelayName("d"): Delay(max=most)},
        flush=flush,
    )


def staleness(schedule: Schedule) -> int:
    return sum(schedule.delays.values()) - len(schedule.delays)


def test_ops_are_ordered_by_edges_without_delay_and_then_as_they_stand() -> None:
    graph = make_graph(
        dict.fromkeys("ABCD", 1),
        [make_tensor("x", 1, "D", "A"), make_tensor("y", 1, "A", ("D", 1))],
    )
    assert topological_order(graph) == ("B", "C", "D", "A")


def test_an_order_is_found_even_where_edges_without_delay_close_a_loop() -> None:
    edges = [Dependence(src=A, dst=B), Dependence(src=B, dst=A)]
    graph = make_graph({"A": 1, "B": 1}, dependences=tuple(edges))
    assert topological_order(graph) == ("A", "B")


def test_laps_are_longest_paths_and_delays_the_least_then_valid() -> None:
    """T = 3, both ops at phase 0 of their own device.

    A ends at 3, its result arrives at 4, so B starts at 6, the next tick of phase 0.
    It arrives back at 9, which A reaches with three delays.
    """
    schedule = retime(loop(), 3, {A: D0, B: D1}, {A: 0, B: 0})
    assert schedule is not None
    assert {op: placed.start for op, placed in schedule.ops.items()} == {A: 0, B: 6}
    assert schedule.delays == {"d": 3}
    assert verify(loop(), schedule) == ()


def test_there_are_no_laps_when_a_loop_needs_more_than_the_greatest_delay() -> None:
    assert retime(loop(most=3), 3, {A: D0, B: D1}, {A: 0, B: 0}) is not None
    assert retime(loop(most=2), 3, {A: D0, B: D1}, {A: 0, B: 0}) is None


def test_there_is_no_schedule_when_an_iteration_exceeds_the_period_at_a_flush() -> None:
    assert retime(loop(flush=True), 6, {A: D0, B: D1}, {A: 0, B: 4}) is not None
    assert retime(loop(flush=True), 5, {A: D0, B: D1}, {A: 0, B: 4}) is None


def test_an_op_without_a_phase_starts_at_any_tick() -> None:
    """B takes no time: it starts when A's result is there, not a period later."""
    graph = make_graph({"A": 3, "B": 0}, [make_tensor("x", 1, "A", "B")])
    schedule = retime(graph, 5, {A: D0, B: D0}, {A: 4})
    assert schedule is not None
    assert schedule.ops[B].start == 7


def test_a_block_stays_back_to_back_in_one_iteration() -> None:
    """C, at phase 1, waits for A until 5 and so starts at 6; alone B would start at 0.

    T = 5; B and C before A, which ends with the period.
    """
    graph = make_graph({"A": 3, "B": 1, "C": 1}, [make_tensor("x", 1, "A", "C")])
    order = [(B, C), (A,)]
    alone = dict.fromkeys((A, B, C), D0)
    phases = pack_phases(PlacedGraph.of(graph, alone, order), 5, order)
    assert phases == {B: 0, C: 1, A: 2}
    starts = []
    for blocks in ((), order):
        schedule = retime(graph, 5, alone, phases, blocks=blocks)
        assert schedule is not None
        starts.append((schedule.ops[B].start, schedule.ops[C].start))
    assert starts == [(0, 6), (5, 6)]


@settings(deadline=None, max_examples=150)
@given(SEEDS)
def test_whatever_can_be_timed_is_timed_with_least_laps(seed: int) -> None:
    """A valid schedule's phases admit laps; the least ones are nowhere greater."""
    graph, known = random_case(seed)
    if graph.flush:
        return
    base = min(known.lap(op) for op in known.ops)
    schedule = retime(graph, known.period, *placed_phases(known))
    assert schedule is not None
    assert verify(graph, schedule) == ()
    assert all(schedule.lap(op) <= known.lap(op) - base for op in known.ops)
    assert min(schedule.lap(op) for op in known.ops) == 0


def placed_phases(
    schedule: Schedule,
) -> tuple[dict[OpId, DeviceId | None], dict[OpId, int]]:
    """Placement and phases of a schedule."""
    placement = {op: placed.device for op, placed in schedule.ops.items()}
    return placement, {op: schedule.phase(op) for op in schedule.ops}


@settings(deadline=None, max_examples=150)
@given(SEEDS)
def test_staleness_is_the_least_that_the_phases_allow(seed: int) -> None:
    """Against all values of the delays, each judged by a negative cycle or none."""
    graph, known = random_case(seed)
    if graph.flush:
        return
    better = least_staleness_laps(graph, known)
    assert verify(graph, better) == ()
    assert all(better.phase(op) == known.phase(op) for op in known.ops)
    least = least_by_enumeration(graph, known)
    if all(len({u for u, _ in uses(graph, d)}) < 2 for d in graph.delays):
        assert staleness(better) == least
    assert least <= staleness(better) <= staleness(known)


def uses(graph: Graph, delay: DelayName) -> list[tuple[OpId, OpId]]:
    """Producer and consumer of each use of a named delay."""
    return [(edge.src, edge.dst) for edge in graph.edges if edge.delay == delay]


def least_by_enumeration(graph: Graph, known: Schedule) -> int:
    """Try every combination of delays no greater in sum than a known one."""
    top = sum(known.delays.values())
    spans = [
        range(d.min, min(top if d.max is None else d.max, top) + 1)
        for d in graph.delays.values()
    ]
    values = sorted(itertools.product(*spans), key=sum)
    names = list(graph.delays)
    for value in values:
        if has_laps(graph, known, dict(zip(names, value, strict=True))):
            return sum(value) - len(names)
    raise AssertionError("the known delays themselves must do")


def has_laps(graph: Graph, known: Schedule, delays: dict[DelayName, int]) -> bool:
    """Laps exist unless the differences they must keep have a negative cycle."""
    differences: nx.DiGraph[OpId] = nx.DiGraph()
    differences.add_nodes_from(known.ops)
    for edge in graph.edges:
        u, v = known.ops[edge.src], known.ops[edge.dst]
        k = edge.delay if isinstance(edge.delay, int) else delays[edge.delay]
        ticks = graph.duration(edge.src, u.device) + edge.lag
        ticks += graph.transfer_ticks(edge.tensor, u.device, v.device)
        late = known.phase(edge.src) + ticks - known.phase(edge.dst)
        weight = k + (-late // known.period)
        if edge.src == edge.dst and weight < 0:
            return False
        if differences.has_edge(edge.src, edge.dst):
            weight = min(weight, differences.edges[edge.src, edge.dst]["weight"])
        differences.add_edge(edge.src, edge.dst, weight=weight)
    return not nx.negative_edge_cycle(differences)


def test_laps_that_cost_no_delay_are_not_changed_for_the_worse() -> None:
    """The forward may run a period late without staleness growing: it does not."""
    graph = loop()
    schedule = retime(graph, 6, {A: D0, B: D1}, {A: 0, B: 4})
    assert schedule is not None
    assert schedule.delays == {"d": 2}
    assert least_staleness_laps(graph, schedule).ops == schedule.ops


@settings(deadline=None, max_examples=100)
@given(SEEDS, st.integers(1, 4))
def test_any_placement_is_completed_at_its_load_when_delays_are_free(
    seed: int, devices: int
) -> None:
    rng = Random(seed)
    link = Link(latency=rng.randint(0, 9), units_per_tick=rng.choice([None, 1]))
    chain = training_chain(rng.randint(1, 5), devices=devices, link=link, rng=rng)
    assert has_free_delays(chain)
    placement = {op.id: rng.choice(chain.device_ids) for op in chain.ops}
    loads = PlacedGraph.of(chain, placement).loads()
    longest = max(chain.duration(op, device) for op, device in placement.items())
    period = max(longest, *loads.values()) + rng.choice([0, 0, 1, 5])
    is_over = rng.random() < 0.5
    schedule = complete(chain, placement, period, over=lambda: is_over)
    assert schedule is not None
    assert schedule.period == period
    assert verify(chain, schedule) == ()
    assert {op: placed.device for op, placed in schedule.ops.items()} == placement


def test_no_schedule_completes_a_placement_whose_load_exceeds_the_period() -> None:
    chain = training_chain(2)
    placement = dict.fromkeys((op.id for op in chain.ops), D0)
    assert complete(chain, placement, 10) is not None
    assert complete(chain, placement, 9) is None


def test_one_device_at_its_load_needs_no_staleness() -> None:
    chain = training_chain(4, devices=1)
    placement = dict.fromkeys((op.id for op in chain.ops), D0)
    schedule = complete(chain, placement, 22)
    assert schedule is not None
    assert set(schedule.delays.values()) == {1}


def test_completing_keeps_limits_of_delays_that_a_plain_packing_breaks() -> None:
    """Two stages of load 10 and 12, delays at most 2, as one forward, one backward has.

    Packed from phase 0 on both, F3 waits for the next period, and so does the way
    back: layer 1 would need a delay of 3.
    """
    chain = training_chain(4, delay_max=2)
    placement = {op.id: D0 if op.layer in ("1", "2") else D1 for op in chain.ops}
    placed = PlacedGraph.of(chain, placement)
    phases = pack_phases(placed, 12, [(op,) for op in placed.ops])
    assert retime(chain, 12, placement, phases) is None
    schedule = complete(chain, placement, 12)
    assert schedule is not None
    assert verify(chain, schedule) == ()


@settings(deadline=None, max_examples=100)
@given(SEEDS)
def test_every_packing_is_exclusive_at_the_load(seed: int) -> None:
    rng = Random(seed)
    graph, known = random_case(seed)
    placement, _ = placed_phases(known)
    placed = PlacedGraph.of(graph, placement)
    order = [(op,) for op in rng.sample(placed.ops, len(placed.ops))]
    period = max([1, *placed.loads().values()]) + rng.choice([0, 0, 2])
    for packer in (pack_phases, earliest_phases, gap_phases):
        phases = packer(placed, period, order)
        if phases is None:
            assert packer is gap_phases
            continue
        ticks = [
            (placement[op], (phase + i) % period)
            for op, phase in phases.items()
            for i in range(graph.duration(op, placement[op]))
        ]
        assert len(ticks) == len(set(ticks)) == sum(placed.loads().values())


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_a_reservation_finds_the_earliest_free_ticks(seed: int) -> None:
    """Against a circle of ticks looked at one by one."""
    rng = Random(seed)
    period = rng.randint(1, 12)
    busy = Reservation(period)
    circle: list[int | None] = [None] * period

    def held(start: int, duration: int) -> set[int]:
        ticks = (circle[(start + i) % period] for i in range(duration))
        return {op for op in ticks if op is not None}

    for op in range(8):
        ready, duration = rng.randint(-20, 20), rng.randint(0, 6)
        fits = [s for s in range(ready, ready + period) if not held(s, duration)]
        start = busy.earliest(ready, duration)
        assert start == (fits[0] if fits and duration <= period else None)
        where = rng.randint(-20, 20)
        if duration <= period:
            assert set(busy.conflicts(where, duration)) == held(where, duration)
        if start is not None:
            busy.reserve(start, duration, op)
            if rng.random() < 0.3:
                busy.release(start, duration, op)
            else:
                for i in range(duration):
                    circle[(start + i) % period] = op


@pytest.mark.parametrize(
    ("free", "graph"),
    [
        (True, loop()),
        (False, loop(most=9)),
        (False, loop(flush=True)),
        (True, training_chain(3)),
        (False, training_chain(3, delay_max=5)),
        (True, make_graph({"A": 1}, [make_tensor("x", 1, "A", ("A", 1))])),
        (False, make_graph({"A": 1}, [make_tensor("x", 1, "A", ("A", 1, 1))])),
        (
            False,
            make_graph(
                {"A": 1, "B": 1},
                [make_tensor("x", 1, "A", "B"), make_tensor("y", 1, "B", ("A", 1))],
            ),
        ),
    ],
)
def test_delays_are_free_unless_something_binds_a_loop(
    free: bool,  # noqa: FBT001 - a column of the table
    graph: Graph,
) -> None:
    assert has_free_delays(graph) is free


def test_delays_are_not_free_where_memory_is_limited() -> None:
    chain = training_chain(2)
    limited = tuple(type(d)(id=d.id, memory=99) for d in chain.devices)
    assert not has_free_delays(chain.replace(devices=limited))
