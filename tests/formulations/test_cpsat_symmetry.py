"""What the CP-SAT model takes to be interchangeable, and that it loses nothing."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import pytest
from factories import devices_of, make_graph, make_op, make_tensor
from oracle import figures
from random_cases import random_graph, random_schedule

from lpsched.analysis.at_period import at_period
from lpsched.analysis.equal_devices import equal_devices
from lpsched.analysis.windows import Refutation
from lpsched.core.graph import Dependence, Graph, Link, Op, OpId
from lpsched.core.result import Status
from lpsched.formulations.api import Limits, Request
from lpsched.formulations.cpsat import solve_at_period
from lpsched.formulations.cpsat.scope import Options, Scope, scope_of
from lpsched.formulations.cpsat.symmetry import (
    equal_ops,
    microbatch_copies,
    ordered_ops,
)
from lpsched.verify import verify

OBJECTIVES = ("communication", "staleness", "peak_memory", "makespan")


def copied(kind: str, stage: int, batch: int, ticks: int) -> Op:
    """Build an op of one microbatch, fixed to its stage's device."""
    op = make_op(f"{kind}{stage}@{batch}", ticks, kind=kind, devices=[f"d{stage}"])
    return dataclasses.replace(op, stage=stage, microbatch=batch)


def pipeline(
    stages: int = 2,
    batches: int = 2,
    *,
    ticks: tuple[int, int] = (2, 3),
    memory: int | None = None,
    **fields: Any,  # noqa: ANN401 - any field of Graph
) -> Graph:
    """Build a synchronous pipeline: F and B of each stage and microbatch, then U.

    F keeps 2 units for B; activations and gradients take 1 tick between devices.
    """
    ops: list[Op] = []
    tensors, waits = [], []
    for s in range(stages):
        for m in range(batches):
            ops += [copied("F", s, m, ticks[0]), copied("B", s, m, ticks[1])]
            ahead = [f"F{s + 1}@{m}"] if s + 1 < stages else []
            below = [f"B{s - 1}@{m}"] if s else []
            tensors.append(make_tensor(f"a{s}@{m}", 2, f"F{s}@{m}", f"B{s}@{m}"))
            tensors.append(make_tensor(f"x{s}@{m}", 1, f"F{s}@{m}", *ahead))
            tensors.append(make_tensor(f"g{s}@{m}", 1, f"B{s}@{m}", *below))
            waits.append(Dependence(src=OpId(f"B{s}@{m}"), dst=OpId(f"U{s}")))
        ops.append(make_op(f"U{s}", 0, kind="U", devices=[f"d{s}"]))
        reads = [(f"{kind}{s}@{m}", 1) for m in range(batches) for kind in "FB"]
        tensors.append(make_tensor(f"w{s}", 1, f"U{s}", *reads))
    return make_graph(
        ops,
        tensors,
        **{
            "devices": devices_of(stages, memory=memory),
            "link": Link(latency=1),
            "dependences": tuple(waits),
            **fields,
        },
    )


def scope_at(graph: Graph, period: int) -> Scope:
    """Return the scope of a plain request."""
    scope = scope_of(Request(graph=graph, period=period), Options())
    assert isinstance(scope, Scope)
    return scope


def names(graph: Graph, lists: list[list[int]]) -> list[list[str]]:
    """Op ids of lists of op numbers."""
    return [[graph.ops[v].id for v in ops] for ops in lists]


def test_equal_devices_are_those_that_nothing_tells_apart() -> None:
    graph = make_graph(
        [make_op("A", 1), make_op("B", {"d0": 2, "d1": 2, "d2": 2, "d3": 3})],
        [make_tensor("x", 1, "A", "B")],
        devices=4,
    )
    assert equal_devices(at_period(graph, 9)) == [[0, 1, 2], [3]]
    d0, d1 = graph.device_ids[:2]
    linked = graph.replace(links={(d0, d1): Link(latency=5)})
    assert equal_devices(at_period(linked, 9)) == [[0], [1], [2], [3]]


def test_equal_links_within_a_class_keep_it() -> None:
    """A tensor of 4 units takes 2 ticks each way between d0 and d1, 7 to d2."""
    links = {
        (p, q): Link(latency=7) for p, q in (("d0", "d2"), ("d1", "d2"), ("d2", "d0"))
    }
    links["d2", "d1"] = Link(latency=7)
    graph = make_graph(
        {"A": 1, "B": 1},
        [make_tensor("x", 4, "A", "B")],
        devices=3,
        link=Link(latency=2),
        links=links,
    )
    assert equal_devices(at_period(graph, 9)) == [[0, 1], [2]]


def test_equal_parts_are_found_and_unequal_ones_told_apart() -> None:
    parts = ["P0", "P1", "P2"]
    tensors = [
        make_tensor("x", 4, "A", *parts),
        *(make_tensor(f"y{p}", 3, p, ("A", 1)) for p in parts),
    ]
    graph = make_graph({"A": 1, **dict.fromkeys(parts, 2)}, tensors)
    assert names(graph, equal_ops(at_period(graph, 9))) == [parts]
    slower = make_graph({"A": 1, "P0": 2, "P1": 3, "P2": 2}, tensors)
    assert names(slower, equal_ops(at_period(slower, 9))) == [["P0", "P2"]]
    tensors[1] = make_tensor("yP0", 5, "P0", ("A", 1))
    bigger = make_graph({"A": 1, **dict.fromkeys(parts, 2)}, tensors)
    assert names(bigger, equal_ops(at_period(bigger, 9))) == [["P1", "P2"]]


def test_copies_of_equal_microbatches_are_ordered() -> None:
    graph = pipeline()
    found = names(graph, microbatch_copies(scope_at(graph, 20)))
    assert found == [[f"{k}{s}@0", f"{k}{s}@1"] for s in (0, 1) for k in "FB"]
    assert names(graph, ordered_ops(scope_at(graph, 20))) == found


@pytest.mark.parametrize(
    "change",
    [
        {"dependences": (Dependence(src=OpId("F0@0"), dst=OpId("F0@1")),)},
        {"dependences": (Dependence(src=OpId("F0@0"), dst=OpId("U0")),)},
        {"tensors": (make_tensor("x", 1, "F0@1", "B0@0"),)},
        {"tensors": (make_tensor("x", 1, "U0", ("F0@1", 1)),)},
    ],
    ids=["between two", "of one", "tensor between two", "tensor to one"],
)
def test_unequal_microbatches_are_not_ordered(change: dict[str, Any]) -> None:
    graph = pipeline()
    changed = graph.replace(
        **{name: (*getattr(graph, name), *more) for name, more in change.items()}
    )
    assert microbatch_copies(scope_at(graph, 20))
    assert microbatch_copies(scope_at(changed, 20)) == []


def test_microbatches_that_may_sit_on_two_devices_are_not_ordered() -> None:
    graph = pipeline()
    free = graph.replace(
        ops=tuple(dataclasses.replace(op, devices=None) for op in graph.ops)
    )
    assert microbatch_copies(scope_at(free, 40)) == []


@pytest.mark.parametrize("memory", [None, 4, 6])
@pytest.mark.parametrize("flush", [False, True])
def test_ordering_microbatches_loses_nothing(
    memory: int | None, *, flush: bool
) -> None:
    graph = pipeline(batches=3, memory=memory, flush=flush)
    for period in range(15, 26, 2):
        compare(Request(graph=graph, period=period), ("peak_memory", "makespan"))


@pytest.mark.parametrize("seed", range(30))
def test_symmetry_loses_nothing_on_random_graphs(seed: int) -> None:
    rng = Random(seed)
    graph = random_graph(rng, max_ops=6, max_devices=3)
    schedule = random_schedule(graph, rng)
    for period in (max(1, schedule.period - 2), schedule.period):
        compare(Request(graph=graph, period=period), OBJECTIVES[seed % 4 :][:2])


def compare(request: Request, objectives: tuple[str, ...]) -> None:
    """Hold the answers with and without symmetry breaking against each other."""
    for objective in objectives:
        asked = dataclasses.replace(request, minimise=objective)
        outcomes = [
            solve_at_period(asked, Limits(options={"symmetry": on}))
            for on in (True, False)
        ]
        assert outcomes[0].status is outcomes[1].status
        assert outcomes[0].status in (Status.OPTIMAL, Status.INFEASIBLE)
        assert outcomes[0].bound == outcomes[1].bound
        for outcome in outcomes:
            if outcome.schedule is not None:
                assert verify(request.graph, outcome.schedule) == ()
                found = figures(request.graph, outcome.schedule)
                assert found[objective] == outcome.bound
        if outcomes[0].status is Status.INFEASIBLE:
            break


def test_a_refuted_request_has_no_scope() -> None:
    refuted = scope_of(Request(graph=pipeline(), period=3), Options())
    assert isinstance(refuted, Refutation)
