"""No certificate that is accepted contradicts a schedule that exists."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

from brute_force import is_schedulable
from factories import devices_of, make_graph, make_op, make_tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_case
from verdicts import Certificate, verdict

from lpsched.core.graph import Graph, Link
from lpsched.verify import Verdict
from lpsched.verify.loads import can_exceed


def random_certificates(graph: Graph, rng: Random) -> Iterator[tuple[str, Certificate]]:
    """Certificates of every kind, sensible in form."""
    ops = [str(op.id) for op in graph.ops]
    devices = [str(d) for d in graph.device_ids]
    some = rng.sample(ops, rng.randint(1, len(ops)))
    yield from _random_walks(graph, rng)
    yield "resource", {"ops": some, "devices": devices}
    yield "resource", {"ops": some, "devices": rng.sample(devices, 1)}
    yield "resource", {"ops": some[:2], "group": True}
    weights = {d: rng.randint(0, 3) for d in devices}
    total = sum(weights.values())
    yield "assignment", {"weights": weights, "denominator": total}
    refuted = rng.randint(0, 12)
    level = rng.randint(1, 6)
    yield (
        "packing",
        {
            "refuted": refuted,
            "ops": some,
            "devices": devices,
            "weights": {str(t): level * t // (refuted + 1) for t in range(20)},
            "capacity": level - 1,
        },
    )


def _random_walks(graph: Graph, rng: Random) -> Iterator[tuple[str, Certificate]]:
    """Walk along random edges; every return to the first op closes a cycle."""
    for _ in range(4):
        walk = [rng.randrange(len(graph.edges))] if graph.edges else []
        while walk and len(walk) < 8:
            first, last = graph.edges[walk[0]], graph.edges[walk[-1]]
            ops = [str(graph.edges[e].src) for e in walk]
            yield "path", {"ops": [*ops, str(last.dst)], "edges": list(walk)}
            if last.dst == first.src:
                yield "cycle", {"ops": ops, "edges": list(walk)}
                yield "cycle", {"ops": ops, "edges": list(walk), "transfers": True}
            onward = [i for i, e in enumerate(graph.edges) if e.src == last.dst]
            if not onward:
                break
            walk.append(rng.choice(onward))


@settings(deadline=None, max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_nothing_is_proved_that_a_schedule_contradicts(seed: int) -> None:
    graph, schedule = random_case(seed)
    rng = Random(seed)
    span = [
        (placed.start, placed.start + graph.duration(op, placed.device))
        for op, placed in schedule.ops.items()
    ]
    makespan = max(end for _, end in span) - min(start for start, _ in span)
    for kind, certificate in random_certificates(graph, rng):
        too_much = schedule.period + 1
        assert verdict(graph, kind, too_much, certificate) is not Verdict.ACCEPTED
        if kind == "path":
            answer = verdict(graph, kind, makespan + 1, certificate, "makespan")
            assert answer is not Verdict.ACCEPTED


def test_no_period_below_what_two_transfers_prove_has_a_schedule() -> None:
    """Random loops of two or three ops on two devices, by brute force.

    Among them some where the transfers prove more than the plain cycle.
    """
    num_stronger = 0
    for seed in range(60):
        rng = Random(seed)
        names = "AB" if seed % 3 else "ABC"
        tensors = [
            make_tensor(f"x{i}", rng.randint(0, 4), u, (v, rng.choice([1, 1, 2])))
            for i, (u, v) in enumerate(zip(names, names[1:] + names[0], strict=True))
        ]
        slow = rng.choice([1, 1, 2])
        durations = [rng.randint(1, 3) for _ in names]
        ops = [
            make_op(name, {"d0": ticks, "d1": slow * ticks})
            for name, ticks in zip(names, durations, strict=True)
        ]
        link = Link(latency=rng.randint(0, 2), units_per_tick=rng.choice([1, 2]))
        graph = make_graph(ops, tensors, devices=devices_of(2), link=link)
        plain = {"ops": list(names), "edges": list(range(len(names)))}
        extended = plain | {"transfers": True}
        bound = _most_proved(graph, extended)
        num_stronger += bound > _most_proved(graph, plain)
        assert not any(is_schedulable(graph, period) for period in range(1, bound))
    assert num_stronger >= 10


def _most_proved(graph: Graph, certificate: Certificate) -> int:
    bound = 0
    while verdict(graph, "cycle", bound + 1, certificate) is Verdict.ACCEPTED:
        bound += 1
    return bound


@settings(deadline=None, max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_the_knapsack_is_exact(seed: int) -> None:
    rng = Random(seed)
    kinds = [
        (rng.randint(0, 9), rng.randint(0, 9), rng.randint(1, 3))
        for _ in range(rng.randint(0, 5))
    ]
    room = rng.randint(0, 30)
    heaviest = max(
        sum(n * weight for n, (_, weight, _) in zip(taken, kinds, strict=True))
        for taken in product(*(range(count + 1) for _, _, count in kinds))
        if sum(n * ticks for n, (ticks, _, _) in zip(taken, kinds, strict=True)) <= room
    )
    assert not can_exceed(kinds, room, heaviest)
    assert can_exceed(kinds, room, heaviest - 1)
