"""What ops need at the least: never more than any schedule holds, and tight by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import pytest
from factories import devices_of, make_graph, make_tensor
from oracle import brute_force
from random_cases import random_case

from lpsched.analysis.memory_shares import MemoryShare, average_shares, peak_shares
from lpsched.analysis.metrics import memory_curve
from lpsched.core.graph import Delay, DelayName, DeviceId, Graph, OpId, Resident
from lpsched.core.schedule import Schedule


def due(shares: Iterable[MemoryShare], ops: Iterable[str]) -> int:
    """Sum of the shares that some ops pay."""
    held = set(map(OpId, ops))
    return sum(share.size for share in shares if share.ops & held)


def ops_on(schedule: Schedule, device: DeviceId) -> list[OpId]:
    return [op for op, placed in schedule.ops.items() if placed.device == device]


def mean(curve: Sequence[tuple[int, int]], period: int) -> Fraction:
    """Mean over a period of a level given from each phase to the next."""
    ends = [*(phase for phase, _ in curve[1:]), period]
    area = sum(
        units * (end - begin) for (begin, units), end in zip(curve, ends, strict=True)
    )
    return Fraction(area, period)


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_no_schedule_holds_less(first: int) -> None:
    """The mean over a period, and the peak, of each device of random schedules."""
    for seed in range(first, first + 100):
        graph, schedule = random_case(seed, max_ops=7)
        period = schedule.period
        averages, peaks = average_shares(graph, period), peak_shares(graph, period)
        for device in graph.device_ids:
            curve = memory_curve(graph, schedule, device)
            ops = ops_on(schedule, device)
            assert due(averages, ops) <= mean(curve, period) * period
            assert due(peaks, ops) <= max(units for _, units in curve) * period


def weights() -> Graph:
    """F takes the weights of W at a free delay, I those that F took, W its own.

    F, I and W take 2, 3 and 4 ticks; the weights w have size 10, the activation a of
    F, which I uses, size 1.
    """
    return make_graph(
        {"F": 2, "I": 3, "W": 4},
        [
            make_tensor("w", 10, "W", ("F", "d"), ("I", "d"), ("W", 1)),
            make_tensor("a", 1, "F", "I", "W"),
        ],
        delays={DelayName("d"): Delay(min=1)},
    )


def test_weights_are_there_in_two_versions_while_they_are_updated() -> None:
    """W's own use lets one version live T longer than W: two while W runs."""
    shares = peak_shares(weights(), 9)
    assert due(shares, "W") == 9 * (10 + 10 + 1)


def test_a_copy_lives_to_the_end_of_the_longest_path_to_its_last_use() -> None:
    """T = 9. I alone keeps a for 3 ticks, and w for F and itself, 2 + 3.

    It uses the version that F used. With F on the device a lives 2 ticks longer.
    """
    shares = average_shares(weights(), 9)
    assert due(shares, "I") == 1 * 3 + 10 * (2 + 3)
    assert due(shares, "FI") == 1 * (2 + 3) + 10 * (2 + 3)
    assert due(shares, "F") == 1 * 2 + 10 * 2


def test_a_resident_is_paid_once() -> None:
    graph = make_graph(
        {"A": 1, "B": 1}, residents=(Resident(size=7, ops=(OpId("A"), OpId("B"))),)
    )
    for shares in (average_shares(graph, 5), peak_shares(graph, 5)):
        assert due(shares, "A") == due(shares, "AB") == 7 * 5


def test_all_on_one_device_needs_what_brute_force_finds() -> None:
    """T = 9, no idle tick: w twice while W runs, with a; less has no schedule."""
    graph = weights()
    needed = -(-due(peak_shares(graph, 9), "FIW") // 9)
    assert brute_force(graph, 9, "peak_memory") == needed
    tight = graph.replace(devices=devices_of(1, memory=needed - 1))
    assert brute_force(tight, 9) is None


def test_longer_delays_make_no_share_larger() -> None:
    """A path through a delay of at most k gets shorter by T with each one more."""
    graph = weights()
    shares = [
        due(average_shares(graph.with_delay_max(k), 9), "FIW") for k in (1, 2, 3, None)
    ]
    assert shares == sorted(shares, reverse=True)


def test_a_loop_that_no_schedule_keeps_is_no_obstacle() -> None:
    """A and B wait for each other within an iteration of 3 ticks; T is 2."""
    graph = make_graph(
        {"A": 1, "B": 2},
        [make_tensor("x", 5, "A", "B"), make_tensor("y", 5, "B", ("A", 1))],
    )
    assert due(average_shares(graph, 2), "AB") > 0
