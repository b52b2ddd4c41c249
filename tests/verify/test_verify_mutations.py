"""Random damage to valid schedules: none that does harm passes, none else is refused.

Whether a mutant does harm is decided by playing it out tick by tick (`ticks`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_case
from ticks import broken_rules, figures, memory_by_tick

from lpsched.core.graph import DelayName, DeviceId, Graph, OpId
from lpsched.core.io import graph_digest
from lpsched.core.result import INTEGER_OBJECTIVES, Result, Status
from lpsched.core.schedule import Placed, Schedule
from lpsched.verify import verify

Mutation = Callable[[Graph, Schedule, Random], Schedule]


def with_limits_and_claims(seed: int) -> tuple[Graph, Schedule]:
    """Return a random valid case whose memory just suffices and whose claims hold."""
    graph, schedule = random_case(seed)
    rng = Random(seed)
    held = memory_by_tick(graph, schedule)
    limits = {
        d: rng.choice([None, max(units), max(units)]) for d, units in held.items()
    }
    devices = tuple(replace(d, memory=limits[d.id]) for d in graph.devices)
    graph = graph.replace(devices=devices)
    seen = figures(graph, schedule)
    result = Result(
        method="random",
        status=Status.FEASIBLE,
        objective={
            name: int(value) if name in INTEGER_OBJECTIVES else str(value)
            for name, value in seen.items()
        },
        bound={name: int(seen[name]) for name in rng.sample(INTEGER_OBJECTIVES, 2)},
    )
    schedule = replace(schedule, graph_digest=graph_digest(graph), result=result)
    return graph, schedule


def place(schedule: Schedule, **changed: Placed) -> Schedule:
    new = {OpId(op): placed for op, placed in changed.items()}
    return replace(schedule, ops={**schedule.ops, **new})


def move(graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    op = rng.choice(sorted(schedule.ops))
    device = rng.choice([*graph.device_ids, *graph.device_ids, None, DeviceId("none")])
    return place(schedule, **{op: replace(schedule.ops[op], device=device)})


def swap(_graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    a, b = rng.choices(sorted(schedule.ops), k=2)
    return place(schedule, **{a: schedule.ops[b], b: schedule.ops[a]})


def swap_starts(_graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    a, b = rng.choices(sorted(schedule.ops), k=2)
    first, second = schedule.ops[a], schedule.ops[b]
    changed = {a: replace(first, start=second.start)}
    return place(
        schedule, **changed, **{b: replace(second, start=first.start)} if a != b else {}
    )


def shift(_graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    op = rng.choice(sorted(schedule.ops))
    by = rng.choice([-1, 1, 2, -schedule.period, schedule.period])
    placed = schedule.ops[op]
    return place(schedule, **{op: replace(placed, start=placed.start + by)})


def shift_all(_graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    by = rng.randint(-9, 9)
    moved = {op: replace(p, start=p.start + by) for op, p in schedule.ops.items()}
    return replace(schedule, ops=moved)


def drop(_graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    op = rng.choice(sorted(schedule.ops))
    return replace(schedule, ops={k: p for k, p in schedule.ops.items() if k != op})


def add(graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    return place(schedule, extra=Placed(rng.choice([None, *graph.device_ids]), 0))


def change_delay(graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    name = rng.choice([*graph.delays, DelayName("extra")])
    if rng.random() < 0.2:
        left = {k: v for k, v in schedule.delays.items() if k != name}
        return replace(schedule, delays=left)
    value = schedule.delays.get(name, 1) + rng.choice([-2, -1, 1, 2])
    return replace(schedule, delays={**schedule.delays, name: value})


def change_period(_graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    return replace(
        schedule, period=max(1, schedule.period + rng.choice([-2, -1, 1, 3]))
    )


def change_claim(_graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    assert schedule.result is not None
    result = schedule.result
    name = rng.choice(INTEGER_OBJECTIVES)
    by = rng.choice([-1, 1])
    if rng.random() < 0.5:
        bound = {**result.bound, name: int(result.objective[name]) + by}
        return schedule.with_result(replace(result, bound=bound))
    objective = {**result.objective, name: int(result.objective[name]) + by}
    return schedule.with_result(replace(result, objective=objective))


def change_status(_graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    assert schedule.result is not None
    status = rng.choice([Status.FEASIBLE, Status.INFEASIBLE, Status.UNKNOWN])
    return schedule.with_result(replace(schedule.result, status=status))


def change_identity(_graph: Graph, schedule: Schedule, rng: Random) -> Schedule:
    if rng.random() < 0.5:
        return replace(schedule, graph=schedule.graph + "x")
    at = rng.randrange(len("sha256:"), len(schedule.graph_digest))
    digit = "0" if schedule.graph_digest[at] != "0" else "f"
    digest = schedule.graph_digest[:at] + digit + schedule.graph_digest[at + 1 :]
    return replace(schedule, graph_digest=digest)


MUTATIONS: tuple[Mutation, ...] = (
    move,
    swap,
    swap_starts,
    shift,
    shift_all,
    drop,
    add,
    change_delay,
    change_period,
    change_claim,
    change_status,
    change_identity,
)


def mutant(
    mutation: Mutation, graph: Graph, schedule: Schedule, rng: Random
) -> Schedule:
    """Damage a schedule; in half the cases it then claims nothing any more."""
    damaged = mutation(graph, schedule, rng)
    return replace(damaged, result=None) if rng.random() < 0.5 else damaged


def rules_found(graph: Graph, schedule: Schedule) -> set[str]:
    return {violation.rule for violation in verify(graph, schedule)}


def assert_same_rules(graph: Graph, schedule: Schedule) -> set[str]:
    """Hold the verifier against the simulation; return the rules that are broken.

    What does not cover the graph cannot be played out, so that there only the rules
    that can still be judged are compared.
    """
    expected = broken_rules(graph, schedule)
    found = rules_found(graph, schedule)
    if "coverage" in expected or graph.delays.keys() - schedule.delays.keys():
        assert expected == found & {"coverage", "delay"}
    else:
        assert expected == found
    return expected


def test_no_harmful_mutant_passes_and_no_harmless_one_is_refused() -> None:
    seen: Counter[str] = Counter()
    for seed in range(240):
        graph, schedule = with_limits_and_claims(seed)
        assert assert_same_rules(graph, schedule) == set()
        rng = Random(seed)
        for mutation in MUTATIONS:
            damaged = mutant(mutation, graph, schedule, rng)
            broken = assert_same_rules(graph, damaged)
            seen.update(broken or {"nothing"})
    rules = "coverage exclusive precedence delay colocate flush memory claims nothing"
    assert all(seen[rule] >= 10 for rule in rules.split()), seen


@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_mutants_of_mutants_are_judged_as_they_run(seed: int) -> None:
    graph, schedule = with_limits_and_claims(seed)
    rng = Random(seed)
    for _ in range(3):
        if not schedule.ops or schedule.result is None:
            break
        schedule = rng.choice(MUTATIONS)(graph, schedule, rng)
        assert_same_rules(graph, schedule)
