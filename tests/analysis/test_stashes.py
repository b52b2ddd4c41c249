"""What a schedule keeps, against hand-made schedules and the memory curve."""

from __future__ import annotations

import pytest
from factories import make_graph, make_schedule, make_tensor, training_chain
from random_cases import random_case

from lpsched.analysis.metrics import memory_curve, stash_depth
from lpsched.analysis.stashes import stashes
from lpsched.core.graph import Graph, Op, OpId
from lpsched.core.schedule import Schedule


def pipeline() -> tuple[Graph, Schedule]:
    """Two layers on a device each, T = 6, every op 2 ticks, every size 4.

    F1 [0, 2), F2 [6, 8), I2 [8, 10), W2 [10, 12), W1 [14, 16): d1 = 3, d2 = 1.
    """
    graph = training_chain(2, devices=2)
    places = {
        "F1": ("d0", 0),
        "F2": ("d1", 6),
        "I2": ("d1", 8),
        "W2": ("d1", 10),
        "W1": ("d0", 14),
    }
    return graph, make_schedule(graph, 6, places, d1=3, d2=1)


def rows(
    graph: Graph, schedule: Schedule
) -> dict[tuple[str, str, str], tuple[int, int]]:
    return {
        (s.layer, s.device, s.sort): (s.versions, s.size)
        for s in stashes(graph, schedule)
    }


def test_a_pipeline_keeps_activations_for_their_backward_and_weights() -> None:
    """Births and deaths by rule 6 of formats.md.

    a1 on d0 lives [0, 16), W1's end: 3 versions. On d1 [2, 12): 2. g2 lives [8, 10)
    on d1 (sent at once), [10, 16) on d0. w1 lives from 14 to the ends of F1, 2 + 3·6,
    and of W1, 16 + 6 = 22: 2 versions. w2 from 10 to W2's end a period on, 18: 2.
    """
    assert rows(*pipeline()) == {
        ("1", "d0", "activations"): (3, 12),
        ("1", "d0", "weights"): (2, 8),
        ("1", "d1", "activations"): (2, 8),
        ("2", "d0", "gradients"): (1, 4),
        ("2", "d1", "activations"): (1, 4),
        ("2", "d1", "gradients"): (1, 4),
        ("2", "d1", "weights"): (2, 8),
    }


def test_rows_stand_in_the_order_of_layers_devices_and_sorts() -> None:
    found = list(rows(*pipeline()))
    assert found == sorted(found)


@pytest.mark.parametrize("seed", range(60))
def test_versions_and_sizes_agree_with_depth_and_memory(seed: int) -> None:
    """A row has the depth of its deepest tensor; rows together cover the peak."""
    graph, schedule = random_case(seed)
    graph = graph.replace(unfolding=1)
    found = stashes(graph, schedule)
    deepest: dict[tuple[str, str], int] = {}
    for (tensor, device), depth in stash_depth(graph, schedule).items():
        producer = next(t.producer for t in graph.tensors if t.id == tensor)
        key = (str(graph.op_by_id[producer].layer or producer), str(device))
        deepest[key] = max(deepest.get(key, 0), depth)
    versions: dict[tuple[str, str], int] = {}
    for stash in found:
        key = (stash.layer, stash.device)
        versions[key] = max(versions.get(key, 0), stash.versions)
    assert versions == {key: depth for key, depth in deepest.items() if depth}
    for device in graph.device_ids:
        here = {op for op, placed in schedule.ops.items() if placed.device == device}
        resident = sum(r.size for r in graph.residents if here & set(r.ops))
        peak = max(level for _, level in memory_curve(graph, schedule, device))
        kept = sum(stash.size for stash in found if stash.device == device)
        assert peak <= resident + kept


def test_microbatches_of_one_layer_count_together() -> None:
    """F@0 and F@1 both wait for the backward of their own: 2 activations at once."""
    ops = [
        Op(id=OpId(f"{kind}@{m}"), kind=kind, duration=1, layer="a", microbatch=m)
        for kind in ("F", "I")
        for m in (0, 1)
    ]
    tensors = [make_tensor(f"a@{m}", 5, f"F@{m}", f"I@{m}") for m in (0, 1)]
    graph = make_graph(ops, tensors)
    starts = {"F@0": 0, "F@1": 1, "I@0": 2, "I@1": 3}
    schedule = make_schedule(graph, 4, {op: ("d0", s) for op, s in starts.items()})
    assert rows(graph, schedule) == {("a", "d0", "activations"): (2, 10)}


def test_ops_without_a_label_stand_for_themselves_and_stages_for_theirs() -> None:
    ops = [
        Op(id=OpId("x"), kind="fir", duration=1),
        Op(id=OpId("y"), kind="F", duration=1, stage=2),
    ]
    graph = make_graph(ops, [make_tensor("v", 3, "x", "y"), make_tensor("w", 1, "y")])
    schedule = make_schedule(graph, 2, {"x": ("d0", 0), "y": ("d0", 1)})
    assert rows(graph, schedule) == {
        ("x", "d0", "values"): (1, 3),
        ("stage 2", "d0", "activations"): (1, 1),
    }
    assert stashes(graph, schedule)[0].document() == {
        "layer": "x",
        "device": "d0",
        "sort": "values",
        "versions": 1,
        "size": 3,
    }
