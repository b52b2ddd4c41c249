"""Explanations against values worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lpsched.analysis.explain import Slack, explain, total_time
from lpsched.core.graph import (
    Consumer,
    Device,
    DeviceId,
    Graph,
    Link,
    Op,
    OpId,
    Tensor,
    TensorId,
)
from lpsched.core.io import graph_digest
from lpsched.core.schedule import Placed, Schedule

D0, D1 = DeviceId("d0"), DeviceId("d1")


def _loop(*, devices: int = 2) -> Graph:
    """F (3 ticks) makes a for W (4 ticks), whose weights F reads an iteration later."""
    f, w = OpId("F"), OpId("W")
    return Graph(
        name="loop",
        devices=(Device(id=D0), Device(id=D1))[:devices],
        link=Link(latency=1),
        ops=(Op(id=f, kind="F", duration=3), Op(id=w, kind="W", duration=4)),
        tensors=(
            Tensor(id=TensorId("a"), size=1, producer=f, consumers=(Consumer(op=w),)),
            Tensor(
                id=TensorId("w"),
                size=1,
                producer=w,
                consumers=(Consumer(op=f, delay=1),),
            ),
        ),
    )


def _schedule(graph: Graph, period: int, **starts: tuple[DeviceId, int]) -> Schedule:
    return Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=period,
        ops={OpId(op): Placed(*place) for op, place in starts.items()},
    )


def test_a_loop_over_two_devices_binds_and_its_idle_time_has_causes() -> None:
    """F ends at 3, its value arrives at 4; W ends at 8, its value arrives at 9 = T.

    The two devices work 3 + 4 of 2 * 9 ticks, so 11 of 18 are idle.
    d0 idles from 3 to 9: 5 ticks while W of the same iteration is made, for F's next
    iteration (a delay), 1 in transfer. d1 idles 5: 4 while F runs or waits, 1 in
    transfer.
    """
    graph = _loop()
    found = explain(graph, _schedule(graph, 9, F=(D0, 0), W=(D1, 4)))
    assert found.binding.kind == "cycle"
    assert found.binding.least_period == 9
    assert {wait.src for wait in found.binding.waits} == {"F", "W"}
    assert found.idle() == {
        "d0": {"data": 0, "delay": 5, "transfer": 1, "nothing": 0},
        "d1": {"data": 4, "delay": 0, "transfer": 1, "nothing": 0},
    }
    assert found.slack == {
        "F": Slack(earlier=0, later=0),
        "W": Slack(earlier=0, later=0),
    }
    assert found.makespan == 8
    assert found.bubble_ratio == Fraction(11, 18)
    assert found.document()["bubble_ratio"] == "11/18"


def test_one_full_device_binds() -> None:
    graph = _loop(devices=1)
    found = explain(graph, _schedule(graph, 7, F=(D0, 0), W=(D0, 3)))
    assert found.binding.least_period == 7
    assert found.binding.kind in ("device", "cycle")
    assert found.idle() == {}


def test_every_full_device_is_named() -> None:
    """Two ops of 4 ticks and two of 3 and 1 together fill three devices at T = 4."""
    names = tuple(DeviceId(f"d{i}") for i in range(4))
    ticks = {"a": 4, "b": 4, "c": 3, "e": 1, "f": 2}
    ops = tuple(Op(id=OpId(op), kind="F", duration=t) for op, t in ticks.items())
    graph = Graph(name="g", devices=tuple(Device(id=d) for d in names), ops=ops)
    places = {op: (names[min(i, 2)], 0) for i, op in enumerate("abc")}
    places |= {"e": (names[2], 3), "f": (names[3], 0)}
    binding = explain(graph, _schedule(graph, 4, **places)).binding
    assert binding.full == names[:3]
    assert "devices d0, d1, d2 are full: each works all 4 ticks" in binding.sentence()


def test_a_needlessly_long_period_is_told() -> None:
    """At T = 12 nothing binds: the structure would run at 9. W could start 3 later."""
    graph = _loop()
    found = explain(graph, _schedule(graph, 12, F=(D0, 0), W=(D1, 4)))
    assert found.binding.kind == "slack"
    assert found.binding.least_period == Fraction(9)
    assert found.slack[OpId("W")] == Slack(earlier=0, later=3)
    assert found.idle()[D0]["nothing"] == 3


@pytest.mark.parametrize(("iterations", "total"), [(0, 0), (1, 8), (100, 899)])
def test_total_time_counts_the_makespan_once(iterations: int, total: int) -> None:
    assert total_time(9, 8, iterations) == total
