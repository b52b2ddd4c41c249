"""Schedules of one graph against each other's bounds: which of them refute which."""

from __future__ import annotations

import pytest
from factories import make_graph, make_op, make_schedule, make_tensor

from lpsched.core.graph import Graph
from lpsched.core.result import Proof, Result, Status
from lpsched.core.schedule import Schedule
from lpsched.verify import check_agreement, verify


def pair() -> tuple[Graph, Schedule, Schedule]:
    """Two ops of 3 and 2 ticks, 7 sent: alone period 5 and 0 sent, split 3 and 7."""
    graph = make_graph(
        [make_op("a", 3), make_op("b", 2)],
        [make_tensor("v", 7, "a", "b")],
        devices=2,
    )
    alone = make_schedule(graph, 5, {"a": ("d0", 0), "b": ("d0", 3)})
    split = make_schedule(graph, 3, {"a": ("d0", 0), "b": ("d1", 3)})
    assert verify(graph, alone) == verify(graph, split) == ()
    return graph, alone, split


def claiming(
    schedule: Schedule, bound: dict[str, int], given: str | None = None
) -> Schedule:
    certificate = {"solver": "x"} if given is None else {"given": given}
    proofs = dict.fromkeys(bound, Proof(kind="exhaustion", certificate=certificate))
    return schedule.with_result(
        Result(method="m", status=Status.OPTIMAL, bound=bound, proof=proofs)
    )


def test_a_valid_schedule_below_a_claimed_bound_refutes_it() -> None:
    graph, alone, split = pair()
    forged = claiming(alone, {"period": 5})
    assert verify(graph, forged) == ()  # taken alone, nothing tells
    (found,) = check_agreement(graph, [("forged", forged), ("best", split)])
    assert (found.rule, found.excess) == ("claims", 2)
    assert "forged claims" in found.message
    assert "best" in found.message


@pytest.mark.parametrize(
    "bound",
    [
        {"period": 3},
        {"communication": 7},  # under a cap of 3, perhaps: 5 is beyond it
        {"period": 3, "communication": 7},
    ],
)
def test_a_bound_binds_only_what_is_as_good_in_what_was_settled(
    bound: dict[str, int],
) -> None:
    graph, alone, split = pair()
    claims = claiming(split, bound)
    assert check_agreement(graph, [("split", claims), ("alone", alone)]) == ()


def test_a_later_objective_is_refuted_by_what_is_as_good_before() -> None:
    """Both have period 5; the split one claims that 7 must be sent at that."""
    graph, alone, _ = pair()
    slow = make_schedule(graph, 5, {"a": ("d0", 0), "b": ("d1", 3)})
    claims = claiming(slow, {"period": 3, "communication": 7})
    (found,) = check_agreement(graph, [("slow", claims), ("alone", alone)])
    assert "communication is at least 7" in found.message


def test_a_bound_given_a_placement_binds_that_placement_only() -> None:
    graph, alone, split = pair()
    held = claiming(alone, {"period": 5}, given="placement")
    assert check_agreement(graph, [("held", held), ("split", split)]) == ()
