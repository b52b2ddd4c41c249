"""Stages that are found: least maximum load, arrangements, and what is said of them."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import graph_of, instance_of, network_document, timed

from lpsched.cli import main
from lpsched.core.instance import Instance
from lpsched.core.io import instance_from_document
from lpsched.errors import InstanceError
from lpsched.network import compile_instance
from lpsched.network.partition import fewest_stages, partition

#: F + I + W of 3, 6, 9, 12 and 15 ticks.
FIVE = [timed(name, t, t, t) for name, t in zip("abcde", range(1, 6), strict=True)]


def stages_of(instance: Instance) -> list[set[str | None]]:
    """Layers of each stage of a compiled asynchronous instance."""
    graph = compile_instance(instance).graph
    count = 1 + max(op.stage for op in graph.ops if op.stage is not None)
    return [{op.layer for op in graph.ops if op.stage == s} for s in range(count)]


def most(loads: list[list[int | None]], ends: tuple[int, ...]) -> int | None:
    """Greatest load of the stages that end at `ends`; None if one may not run."""
    pieces = zip(loads, (0, *ends[:-1]), ends, strict=True)
    sums = []
    for row, start, end in pieces:
        ticks = [t for t in row[start:end] if t is not None]
        if len(ticks) < end - start:
            return None
        sums.append(sum(ticks))
    return max(sums)


@given(
    st.integers(1, 4).flatmap(
        lambda s: st.lists(
            st.lists(st.integers(0, 9) | st.none(), min_size=s + 3, max_size=s + 3),
            min_size=s,
            max_size=s,
        )
    )
)
@settings(deadline=None)
def test_the_partition_is_the_best_of_all(loads: list[list[int | None]]) -> None:
    n, s = len(loads[0]), len(loads)
    values = [most(loads, (*inner, n)) for inner in combinations(range(1, n), s - 1)]
    possible = [value for value in values if value is not None]
    ends = partition(loads)
    if ends is None:
        assert not possible
    else:
        assert sorted(set(ends)) == list(ends)
        assert most(loads, ends) == min(possible)


def test_so_many_stages_are_needed_for_a_load() -> None:
    assert fewest_stages([3, 1, 2, 2], 4) == 2
    assert fewest_stages([3, 1, 2, 2], 3) == 3
    assert fewest_stages([], 3) == 0


@pytest.mark.parametrize(
    "placement", [{"rule": "contiguous"}, {"stages": 2}, {"rule": "free", "stages": 2}]
)
def test_stages_are_found_of_least_greatest_load(placement: dict[str, Any]) -> None:
    """3 6 9 12 | 15 has 30, and 3 6 9 | 12 15 has 27."""
    found = stages_of(instance_of(*FIVE, placement=placement))
    assert found == [{"a", "b", "c"}, {"d", "e"}]


def test_a_faster_device_has_more_layers() -> None:
    """At half the time on d1: 3 6 | 9 12 15 takes 9 and 18, 3 6 9 | 12 15 takes 18."""
    found = stages_of(
        instance_of(
            *FIVE,
            devices=[{"id": "d0"}, {"id": "d1", "speed": 3}],
            placement={"rule": "contiguous"},
        )
    )
    assert found == [{"a", "b"}, {"c", "d", "e"}]


def test_microbatches_and_their_lists_count() -> None:
    """Layer a takes 3 + 50 over its two microbatches."""
    layers = [timed("a") | {"forward": [1, 48]}, *FIVE[1:]]
    graph = graph_of(
        *layers,
        training={"mode": "synchronous", "microbatches": 2},
        placement={"rule": "contiguous"},
    )
    assert next(op.duration for op in graph.ops if op.id == "F0@0") == 3


def test_a_graph_is_cut_by_its_layers() -> None:
    graph = {
        "schema": "lpsched/graph/1",
        "name": "g",
        "devices": [{"id": "d0"}, {"id": "d1"}],
        "ops": [
            {"id": n, "kind": "F", "layer": n, "duration": t}
            for n, t in zip("abc", (1, 2, 3), strict=True)
        ],
    }
    document = {"schema": "lpsched/instance/1", "graph": graph}
    instance = instance_from_document(document | {"placement": {"rule": "contiguous"}})
    assert stages_of(instance) == [{"a", "b"}, {"c"}]


def test_leftover_devices_and_idle_stages_are_told() -> None:
    alone = instance_of(timed("a"), devices=3, placement={"rule": "contiguous"})
    assert compile_instance(alone).notes == ("1 stages leave 2 devices without work",)
    layers = [timed("a", 9, 9, 9), timed("b"), timed("c")]
    lop_sided = instance_of(*layers, devices=3, placement={"rule": "contiguous"})
    assert compile_instance(lop_sided).notes == (
        "2 stages would have no greater load than these 3",
    )


def test_that_another_order_of_branches_might_do_better_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ticks a kind: a | b | c, e, d up to 10; a, e | b | c, d up to 9."""
    branches = [
        timed("a", 5, 5, 5),
        timed("b", 9, 9, 9),
        timed("c", 1, 1, 1, inputs=["a"]),
        timed("e", 4, 4, 4, inputs=["a"]),
        timed("d", 5, 5, 5, inputs=["b", "c", "e"]),
    ]
    document = {
        "schema": "lpsched/instance/1",
        "network": network_document(*branches),
        "devices": 3,
        "placement": {"rule": "contiguous"},
    }
    [told] = compile_instance(instance_from_document(document)).notes
    assert told.startswith("the layers branch")
    file = tmp_path / "branches.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert main(["build", str(file), "-o", str(tmp_path / "graph.json")]) == 0
    assert told in capsys.readouterr().err
    assert main(["build", str(file), "-o", str(tmp_path / "graph.json"), "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_more_stages_than_layers_are_refused() -> None:
    with pytest.raises(InstanceError, match="a stage for each of 1 layers, got 2"):
        compile_instance(instance_of(timed("a"), placement={"stages": 2}))


def test_layers_that_may_not_run_where_their_stage_is_are_refused() -> None:
    graph = {
        "schema": "lpsched/graph/1",
        "name": "g",
        "devices": [{"id": "d0"}, {"id": "d1"}],
        "ops": [
            {"id": "a", "kind": "F", "layer": "a", "duration": 1, "devices": ["d1"]},
            {"id": "b", "kind": "F", "layer": "b", "duration": 1},
        ],
    }
    document = {"schema": "lpsched/instance/1", "graph": graph}
    instance = instance_from_document(document | {"placement": {"rule": "contiguous"}})
    with pytest.raises(InstanceError, match="no 2 contiguous stages may run"):
        compile_instance(instance)


@pytest.mark.parametrize(
    ("arrangement", "count", "expected"),
    [
        ("loop", 6, "012012"),
        ("v", 6, "012210"),
        ("mirrored", 6, "012210"),
        ("mirrored", 12, "012012210210"),
        ("mirrored", 5, "01210"),
    ],
)
def test_stages_follow_the_devices_as_arranged(
    arrangement: str, count: int, expected: str
) -> None:
    layers = [timed(f"l{i}") for i in range(count)]
    placement = {"stages": count, "arrangement": arrangement}
    graph = graph_of(*layers, devices=3, placement=placement)
    homes = {op.stage: op.devices for op in graph.ops}
    assert [homes[s] for s in range(count)] == [(f"d{d}",) for d in expected]


def test_contiguous_lists_must_follow_the_layers() -> None:
    """Stage 1 of a, c | b, d would begin before stage 0 ends."""
    placement = {"rule": "contiguous", "stages": [["a", "c"], ["b", "d", "e"]]}
    instance = instance_of(*FIVE, devices=2, placement=placement)
    with pytest.raises(InstanceError, match="'c' of stage 0 comes after 'b'") as caught:
        compile_instance(instance)
    assert [fault.path for fault in caught.value.faults] == ["placement.stages"]
    placement["stages"] = [["b", "a"], ["c", "d", "e"]]
    instance = instance_of(*FIVE, devices=2, placement=placement)
    assert stages_of(instance) == [{"a", "b"}, {"c", "d", "e"}]
