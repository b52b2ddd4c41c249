"""A valid schedule stays valid at every longer period, and holds no more."""

from __future__ import annotations

from itertools import product

import pytest
from factories import make_graph, make_schedule
from random_cases import random_case

from lpsched.analysis.metrics import measure
from lpsched.analysis.stretching import stretched
from lpsched.verify import verify


@pytest.mark.parametrize(("seed", "more"), [*product(range(60), (0, 1, 7))])
def test_a_stretched_schedule_keeps_every_rule_and_raises_no_peak(
    seed: int, more: int
) -> None:
    graph, schedule = random_case(seed)
    longer = stretched(graph, schedule, schedule.period + more)
    assert verify(graph, longer) == ()
    before, after = measure(graph, schedule), measure(graph, longer)
    assert after.period == before.period + more
    assert after.peak_memory <= before.peak_memory
    assert after.staleness == before.staleness
    assert after.communication == before.communication


def test_ends_keep_their_lap_and_phase() -> None:
    """A ends at 7 = 1·5 + 2 of period 5: at 1·8 + 2 of period 8; B at 3 stays."""
    graph = make_graph({"A": 4, "B": 1})
    schedule = make_schedule(graph, 5, {"A": ("d0", 3), "B": ("d0", 2)})
    longer = stretched(graph, schedule, 8)
    assert [longer.ops[op.id].start for op in graph.ops] == [6, 2]


def test_no_schedule_is_made_shorter() -> None:
    graph, schedule = random_case(0)
    with pytest.raises(ValueError, match="expected a period >="):
        stretched(graph, schedule, schedule.period - 1)
