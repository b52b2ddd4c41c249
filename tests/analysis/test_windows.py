"""Windows and device pairs at a period: by hand, and in every valid schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from factories import make_graph, make_op, make_tensor
from random_cases import random_case

from lpsched.analysis.at_period import AtPeriod, at_period
from lpsched.analysis.windows import (
    NO_PATH,
    Refutation,
    Windows,
    lap_horizon,
    windows_at,
)
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
from lpsched.errors import UnsupportedError

K = DelayName("k")
A, B, C = 0, 1, 2


def loop(**fields: Any) -> Graph:  # noqa: ANN401 - any field of Graph
    """Build A (3 ticks) -> B (2) -> A with delay k <= 1; transfers take 4 ticks."""
    return make_graph(
        {"A": 3, "B": 2},
        [make_tensor("x", 8, "A", "B"), make_tensor("w", 8, "B", ("A", "k"))],
        **{
            "devices": 2,
            "link": Link(latency=2, units_per_tick=4),
            "delays": {K: Delay(min=1, max=1)},
            **fields,
        },
    )


def order(src: str, dst: str, delay: int | str, lag: int = 0) -> Dependence:
    """Build a dependence."""
    k = delay if isinstance(delay, int) else DelayName(delay)
    return Dependence(src=OpId(src), dst=OpId(dst), delay=k, lag=lag)


def found(graph: Graph, period: int, **options: Any) -> Windows:  # noqa: ANN401
    """Deduce windows where the period is not refuted."""
    options = {"coupled": False, **options}
    windows = windows_at(at_period(graph, period), **options)
    assert isinstance(windows, Windows)
    return windows


def test_starts_lie_between_the_longest_paths() -> None:
    """A at 0: B from 3 on, and at the latest at 7 - 2 = 5, so that A can follow."""
    windows = found(loop(), 7)
    assert windows.longest.tolist() == [[0, 3], [2 - 7, 0]]
    assert windows.anchor.tolist() == [A, A]
    assert (windows.low.tolist(), windows.high.tolist()) == ([0, 3], [0, 5])


def test_a_loop_without_time_for_transfers_stays_on_one_device() -> None:
    """Apart it takes 3 + 4 + 2 + 4 = 13 ticks, together 5."""
    assert found(loop(), 12).must_share(A, B)
    assert not found(loop(), 13).must_share(A, B)
    refuted = windows_at(at_period(loop(), 4), coupled=False)
    assert isinstance(refuted, Refutation)
    assert set(refuted.ops) <= {"A", "B"}


def test_a_path_between_two_devices_pays_a_transfer() -> None:
    """A -> B -> C, 2 ticks each: C is 4 after A, 7 if they are apart (transfer 3).

    Whichever of the two arcs crosses, one transfer is due. A loop of 12 ticks leaves
    no time for the transfer back as well: 2 + 2 + 2 + 2 * 3 = 12.
    """
    tensors = [
        make_tensor("x", 0, "A", "B"),
        make_tensor("y", 0, "B", "C"),
        make_tensor("z", 0, "C", ("A", 1)),
    ]
    graph = make_graph(
        {"A": 2, "B": 2, "C": 2}, tensors, devices=2, link=Link(latency=3)
    )
    windows = found(graph, 12)
    assert (windows.longest[A, C], windows.apart[A, C]) == (4, 7)
    assert not windows.must_share(A, C)
    assert found(graph, 11).must_share(A, C)


def test_ops_too_long_to_share_a_device_are_apart() -> None:
    """Both need a device of 4 ticks for themselves, hence the transfers: 13 <= 4 k."""
    tight = loop(delays={K: Delay(min=1, max=3)})
    assert isinstance(windows_at(at_period(tight, 4), coupled=False), Refutation)
    windows = found(loop(delays={K: Delay(min=1, max=4)}), 4)
    assert not windows.may_share[A, B]
    assert windows.longest[A, B] == 3 + 4
    assert windows.least_delays() == {K: 4}


def test_without_deduction_only_paths_count() -> None:
    windows = found(loop(delays={K: Delay(min=1, max=4)}), 4, deduce=False)
    assert windows.may_share[A, B]
    assert windows.longest[A, B] == 3


def test_ops_that_must_share_a_device_take_turns() -> None:
    """T = 6. The arcs leave -1 <= s_B - s_A <= 4; on one device only 3 and 4 do.

    At -1 B would run from -1 to 1, into A at 0; at 3 or 4 it follows A.
    """
    graph = make_graph(
        {"A": 3, "B": 2},
        devices=1,
        dependences=(order("A", "B", 1, lag=2), order("B", "A", 1)),
    )
    assert found(graph, 6, deduce=False).longest[A, B] == -1
    assert found(graph, 6).longest[A, B] == 3


def test_no_turn_left_parts_two_ops_or_refutes_the_period() -> None:
    """The arcs leave 0 <= s_B - s_A <= 2 only, less than A's 3 ticks."""
    orders = (order("A", "B", 1, lag=3), order("B", "A", 1, lag=2))
    graph = make_graph({"A": 3, "B": 2}, devices=2, dependences=orders)
    assert not found(graph, 6).may_share[A, B]
    alone = make_graph({"A": 3, "B": 2}, devices=1, dependences=orders)
    assert isinstance(windows_at(at_period(alone, 6), coupled=False), Refutation)


def test_a_group_that_fills_a_device_keeps_others_off() -> None:
    """A and B must share; with C they would take 3 + 2 + 4 = 9 ticks of 8."""
    graph = make_graph(
        {"A": 3, "B": 2, "C": 4}, devices=2, colocate=((OpId("A"), OpId("B")),)
    )
    windows = found(graph, 8)
    assert not windows.may_part[A, B]
    assert not windows.may_share[A, C]
    assert not windows.may_share[B, C]
    assert found(graph, 9).may_share[A, C]


def test_ops_that_nothing_ties_are_windows_of_their_own() -> None:
    """A -> B without a way back: two components, unless times matter otherwise."""
    graph = make_graph({"A": 3, "B": 2}, [make_tensor("x", 8, "A", "B")], devices=1)
    apart = found(graph, 7)
    assert apart.longest[B, A] == NO_PATH
    assert apart.component.tolist() == [0, 1]
    assert not apart.holds(apart.problem.arcs[0])
    assert (apart.low.tolist(), apart.high.tolist()) == ([0, 0], [0, 6])
    one = found(graph, 7, coupled=True)
    assert one.holds(one.problem.arcs[0])
    reach = (lap_horizon(one.problem) + 1) * 7
    assert (one.low.tolist(), one.high.tolist()) == ([0, 3], [0, reach])


def test_a_cap_on_the_makespan_ties_everything() -> None:
    """One iteration within 6 ticks: B (2 ticks) at 3 or 4 after A at 0."""
    graph = make_graph({"A": 3, "B": 2}, [make_tensor("x", 8, "A", "B")], devices=1)
    windows = found(graph, 7, makespan=6)
    assert windows.component.tolist() == [0, 0]
    assert (windows.low[B], windows.high[B]) == (3, 4)
    refuted = windows_at(at_period(graph, 7), coupled=False, makespan=4)
    assert isinstance(refuted, Refutation)


def test_an_op_without_a_device_is_nowhere_else() -> None:
    graph = make_graph(
        [make_op("A", 9, devices=[]), make_op("B", 2)],
        [make_tensor("x", 8, "A", "B"), make_tensor("y", 8, "B", ("A", 3))],
        devices=2,
        link=Link(latency=5),
    )
    windows = found(graph, 4)
    assert windows.longest[A, B] == 9
    assert not windows.may_share[A, B]
    assert windows.may_part[A, B]
    assert windows.problem.devices_of(A) == [2]


def test_an_op_without_a_device_may_follow_itself() -> None:
    """Its loop of one tick and delay 1 is short; transfers elsewhere do not matter."""
    graph = make_graph(
        [make_op("A", 1), make_op("B", 1, devices=[]), make_op("C", 1)],
        [
            make_tensor("x", 1, "A", "B", "C"),
            make_tensor("y", 1, "B", ("B", 1)),
            make_tensor("z", 1, "C", ("A", 2)),
        ],
        devices=2,
        link=Link(latency=3),
    )
    assert found(graph, 4).longest[B, B] == 0


def test_an_op_that_no_device_can_run_in_time_is_refuted() -> None:
    graph = make_graph({"A": 5, "B": 1}, devices=2)
    refuted = windows_at(at_period(graph, 4), coupled=False)
    assert isinstance(refuted, Refutation)
    assert refuted.ops == ("A",)
    assert at_period(graph, 4).least_durations().tolist() == [0, 1]


def test_laps_spread_no_further_than_the_largest_delay_an_op() -> None:
    """Every gap between neighbours in lap order is at most 5, the larger delay."""
    graph = make_graph(
        {"A": 1, "B": 1, "C": 1}, dependences=(order("A", "B", 5), order("B", "C", 2))
    )
    assert lap_horizon(at_period(graph, 9)) == 2 * 5


def test_a_delay_that_joins_unrelated_ops_may_spread_laps_further() -> None:
    """D ties A to B and C to A: C -> B is missing, so the short proof fails."""
    unlimited = {K: Delay(min=1, max=None)}
    joined = make_graph(
        {"A": 1, "B": 1, "C": 1},
        delays=unlimited,
        dependences=(order("A", "B", "k"), order("A", "C", "k")),
    )
    loose = make_graph(
        {"A": 1, "B": 1, "C": 1},
        delays=unlimited,
        dependences=(order("A", "B", "k"), order("C", "A", "k")),
    )
    assert lap_horizon(at_period(joined, 9)) == 2 * 2
    assert lap_horizon(at_period(loose, 9)) == 2 * 3 * (2 + 1) * 2


def test_a_horizon_beyond_exact_numbers_is_refused() -> None:
    names = [DelayName(f"k{i}") for i in range(60)]
    graph = make_graph(
        {"A": 1, "B": 1, "C": 1},
        delays={name: Delay(min=1, max=None) for name in names},
        dependences=tuple(
            order(src, dst, name)
            for name in names
            for src, dst in (("A", "B"), ("C", "A"))
        ),
    )
    with pytest.raises(UnsupportedError, match="give the named delays a max"):
        windows_at(at_period(graph, 9), coupled=True)


def test_times_are_divided_by_their_common_unit() -> None:
    """Durations 6 and 9, transfers of 12 and T = 30: the unit is 3 ticks."""
    graph = make_graph(
        {"A": 6, "B": 9},
        [make_tensor("x", 8, "A", "B")],
        devices=2,
        link=Link(latency=12),
    )
    problem = at_period(graph, 30)
    assert (problem.unit, problem.period) == (3, 10)
    assert problem.least_durations().tolist() == [2, 3]
    assert problem.costs(problem.arcs[0])[:2, :2].tolist() == [[2, 6], [6, 2]]
    assert at_period(graph, 31).unit == 1


def test_placement_colocation_and_length_leave_the_devices() -> None:
    graph = make_graph(
        [
            make_op("A", 1, devices=["d0", "d1"]),
            make_op("B", 1, devices=["d1", "d2"]),
            make_op("C", {"d0": 9, "d1": 3, "d2": 3}),
        ],
        devices=3,
        colocate=((OpId("A"), OpId("B")),),
    )
    problem = at_period(graph, 8, placement={OpId("C"): DeviceId("d2")})
    assert [problem.devices_of(v) for v in (A, B, C)] == [[1], [1], [2]]
    assert at_period(graph, 8).devices_of(C) == [1, 2]


def test_a_cap_on_staleness_caps_each_delay() -> None:
    delays = {K: Delay(min=2, max=None), DelayName("j"): Delay(min=1, max=3)}
    graph = make_graph(
        {"A": 1, "B": 1},
        delays=delays,
        dependences=(order("A", "B", "k"), order("B", "A", "j")),
    )
    highs = [arc.high for arc in at_period(graph, 4).with_delay_caps(5).arcs]
    assert highs == [2 + 4, 3]
    highs = [arc.high for arc in at_period(graph, 4).with_delay_caps(2).arcs]
    assert highs == [2 + 1, 1 + 1]


def test_delays_range_from_what_paths_ask_to_what_windows_can_ask() -> None:
    """T = 7, A at 0, B from 3 to 5 + 7: A reads w from 5 to 14 + 4 ticks on."""
    windows = found(loop(delays={K: Delay(min=1, max=2)}), 7)
    assert windows.delay_ranges() == {K: (1, 2)}
    unlimited = found(loop(delays={K: Delay(min=1, max=None)}), 7, coupled=True)
    low, high = unlimited.delay_ranges()[K]
    assert low == 1
    latest = int(unlimited.high[B] - unlimited.low[A]) + 2 + 4
    assert high == -(-latest // 7)


def starts_of(problem: AtPeriod, schedule: Schedule) -> np.ndarray[Any, Any]:
    """Starts in units, by op number."""
    starts = [schedule.ops[op.id].start for op in problem.graph.ops]
    return np.array(starts) // problem.unit


@pytest.mark.parametrize("seed", range(150))
def test_every_valid_schedule_keeps_what_was_deduced(seed: int) -> None:
    graph, schedule = random_case(seed, max_ops=7)
    problem = at_period(graph, schedule.period)
    spans = [s.start for s in schedule.ops.values()]
    ends = [s.start + graph.duration(v, s.device) for v, s in schedule.ops.items()]
    makespan = (max(ends) - min(spans)) // problem.unit if seed % 3 == 0 else None
    windows = windows_at(problem, coupled=seed % 2 == 0, makespan=makespan)
    assert isinstance(windows, Windows)
    s = starts_of(problem, schedule)
    assert (s[None, :] - s[:, None] >= windows.longest).all()
    number = {d: p for p, d in enumerate(graph.device_ids)}
    homes = [schedule.ops[op.id].device for op in graph.ops]
    at = [problem.num_devices if d is None else number[d] for d in homes]
    assert windows.problem.allowed[range(len(at)), at].all()
    for arc in windows.problem.arcs:
        assert windows.pairs(arc)[at[arc.src], at[arc.dst]]
    for u, v in np.ndindex(len(at), len(at)):
        together = u == v or (at[u] == at[v] and homes[u] is not None)
        allowed = windows.may_share if together else windows.may_part
        assert allowed[u, v]
        if not together:
            assert s[v] - s[u] >= windows.apart[u, v]
    least = windows.least_delays()
    assert all(value >= least[name] for name, value in schedule.delays.items())
