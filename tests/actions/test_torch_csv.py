"""Schedules as PyTorch's CSV and back: the right cells, or every reason why not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from factories import make_graph, make_op, make_schedule, make_tensor
from pipelines import Times, pipeline

from lpsched.core.graph import Graph, OpId
from lpsched.core.io import instance_from_document
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import FormatError, InstanceError, UnsupportedError
from lpsched.export import torch_csv_text
from lpsched.heuristics import METHODS
from lpsched.network import compile_instance
from lpsched.network.readers import read_torch_csv
from lpsched.solve.actions import schedule_actions, unit_graph
from lpsched.verify import verify

#: Every synchronous method with what its pipeline needs beside two devices.
SHAPES: dict[str, dict[str, object]] = {
    "gpipe": {},
    "1f1b": {},
    "zb-h1": {},
    "zb-h2": {},
    "zb-auto": {},
    "interleaved": {"stages": 4},
    "zb-v": {"stages": 4, "arrangement": "v"},
    "dualpipe-v": {"stages": 4, "arrangement": "v"},
}


def graph_for(method: str, **more: object) -> Graph:
    """A pipeline on which a method is defined."""
    return pipeline(2, 4, Times(2, 3, 2, 1), **(SHAPES[method] | more))  # type: ignore[arg-type]


def test_a_schedule_is_written_in_the_order_in_which_its_devices_run() -> None:
    """Two microbatches, F = I = W = 1, free transfers, ZB-H1 by hand.

    Rank 0 warms up with one forward, then alternates; rank 1 has none to warm up.
    """
    graph = pipeline(2, 2, Times(1, 1, 1))
    text = torch_csv_text(graph, METHODS["zb-h1"].function(graph))
    assert text == "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n"


def test_messages_stand_where_both_ranks_are_when_they_are_sent() -> None:
    """The same with one microbatch: F, message, F and I, message, I and W."""
    graph = pipeline(2, 1, Times(1, 1, 1, 1))
    schedule = METHODS["zb-h1"].function(graph)
    assert torch_csv_text(graph, schedule, communication=True).splitlines() == [
        "0F0,0SEND_F0,0RECV_B0,0I0,0W0,0REDUCE_GRAD",
        "1RECV_F0,1F0,1I0,1SEND_B0,1W0,1REDUCE_GRAD",
    ]


def test_stages_next_to_each_other_on_a_rank_send_nothing() -> None:
    graph = graph_for("zb-v")
    text = torch_csv_text(graph, METHODS["zb-v"].function(graph), communication=True)
    assert "1SEND_F" not in text
    assert "2SEND_B" not in text
    assert "0SEND_F3" in text


@pytest.mark.parametrize("communication", [False, True])
@pytest.mark.parametrize("method", SHAPES)
def test_every_method_comes_back_with_its_period(
    method: str, *, communication: bool
) -> None:
    """The least times of the same orders: the methods' own."""
    graph = graph_for(method)
    schedule = METHODS[method].function(graph)
    text = torch_csv_text(graph, schedule, communication=communication)
    table = read_torch_csv(text, source="made.csv")
    answer = schedule_actions(table, graph, source="made.csv")
    found = answer.require_schedule()
    assert found.period == schedule.period
    assert verify(graph, found) == ()


def test_a_fused_backward_is_b_and_comes_back_for_a_split_graph() -> None:
    """B on a graph with I and W means both in a row: 1F1B with F = I = W = 1.

    Two ranks, two microbatches: rank 0 runs F F, waits for 1F0 and 1B0 (from 1 to 4),
    then B, waits for the second until 7, and B until 9.
    """
    fused = pipeline(2, 2, Times(1, 1, 1), fuse_backward=True)
    text = torch_csv_text(fused, METHODS["1f1b"].function(fused))
    assert text == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
    table = read_torch_csv(text, source="made.csv")
    assert schedule_actions(table, fused, source="x").require_schedule().period == 9
    split = pipeline(2, 2, Times(1, 1, 1))
    found = schedule_actions(table, split, source="x").require_schedule()
    order = sorted(
        ("I0@0", "W0@0", "I0@1", "W0@1"), key=lambda op: found.ops[OpId(op)].start
    )
    assert order == ["I0@0", "W0@0", "I0@1", "W0@1"]


def test_without_a_graph_every_pass_takes_a_tick_and_placement_is_the_files() -> None:
    """A V of four stages on two ranks, one microbatch.

    Six passes down, with I six up, W beside them: rank 0 has F0, F3, I3, I0 in a chain
    through rank 1: 4 F and 4 I in a row, then the last W.
    """
    text = "0F0,3F0,3I0,3W0,0I0,0W0\n1F0,2F0,2I0,1I0,2W0,1W0\n"
    table = read_torch_csv(text, source="made.csv")
    graph = unit_graph(table, name="made")
    homes = {op.stage: op.devices for op in graph.ops}
    assert homes == {0: ("d0",), 1: ("d1",), 2: ("d1",), 3: ("d0",)}
    found = schedule_actions(table, graph, source="x").require_schedule()
    assert found.period == 9


def test_a_stage_with_only_one_gradient_runs_it_as_b() -> None:
    """The first layer of a network has no I: PyTorch wants I and W, or B."""
    costs = {"forward": 1, "weight_grad": 2, "output": 1, "parameters": 1}
    document = {
        "schema": "lpsched/instance/1",
        "name": "thin",
        "network": {
            "schema": "lpsched/network/1",
            "name": "thin",
            "layers": [{"name": "a", **costs}, {"name": "b", "input_grad": 1, **costs}],
        },
        "devices": 2,
        "training": {"mode": "synchronous", "microbatches": 2},
        "placement": {"stages": [["a"], ["b"]]},
    }
    graph = compile_instance(instance_from_document(document)).graph
    text = torch_csv_text(graph, METHODS["gpipe"].function(graph))
    assert text == "0F0,0F1,0B0,0B1\n1F0,1F1,1I0,1W0,1I1,1W1\n"
    table = read_torch_csv(text, source="x")
    assert schedule_actions(table, graph, source="x").require_schedule().period > 0


# -- schedules that PyTorch cannot run ---------------------------------------------


def moved(schedule: Schedule, **starts: tuple[str, int]) -> Schedule:
    """The schedule with some ops elsewhere; names have _ for @."""
    ops = dict(schedule.ops)
    for name, (device, start) in starts.items():
        ops[OpId(name.replace("_", "@"))] = Placed(device, start)  # type: ignore[arg-type]
    return dataclasses.replace(schedule, ops=ops)


def reasons(graph: Graph, schedule: Schedule) -> list[str]:
    """Every reason that the export names."""
    with pytest.raises(InstanceError) as caught:
        torch_csv_text(graph, schedule)
    return [str(fault) for fault in caught.value.faults]


def test_a_gradient_away_from_its_stage_is_refused() -> None:
    graph = graph_for("gpipe")
    schedule = METHODS["gpipe"].function(graph)
    (found,) = reasons(graph, moved(schedule, W0_1=("d1", 0)))
    assert found.startswith("op W0@1: is on d1, away from F0@0 of its stage on d0")


def test_an_iteration_longer_than_the_period_is_refused() -> None:
    graph = graph_for("gpipe")
    schedule = METHODS["gpipe"].function(graph)
    late = schedule.ops[OpId("W0@3")].start + schedule.period
    (found,) = reasons(graph, moved(schedule, W0_3=("d0", late)))
    assert "PyTorch ends one before it begins the next" in found


def test_forwards_of_the_last_stage_out_of_order_are_refused() -> None:
    """PyTorch appends losses as they come and looks them up by microbatch."""
    graph = graph_for("gpipe")
    schedule = METHODS["gpipe"].function(graph)
    first, second = (schedule.ops[OpId(f"F1@{m}")].start for m in (0, 1))
    swapped = moved(schedule, F1_0=("d1", second), F1_1=("d1", first))
    (found,) = reasons(graph, swapped)
    assert found.startswith("rank 1, step 1: 1F0: the last stage must run its forwards")


def test_asynchronous_schedules_idle_devices_and_plain_graphs_are_refused() -> None:
    plain = make_graph({"a": 1})
    (found,) = reasons(plain, make_schedule(plain, 1, {"a": ("d0", 0)}))
    assert "expected kind F, I, W, B or U" in found
    graph = pipeline(3, 2, Times(1, 1, 1), stages=2)
    (found,) = reasons(graph, METHODS["gpipe"].function(graph))
    assert found.startswith("device d2: runs nothing")


def test_a_tensor_that_skips_a_stage_is_refused_by_name() -> None:
    graph = pipeline(3, 1, Times(1, 1, 1))
    skip = make_tensor("skip@0", 1, "F0@0", "F2@0")
    graph = graph.replace(tensors=(*graph.tensors, skip))
    (found,) = reasons(graph, METHODS["gpipe"].function(graph))
    assert found == (
        "tensor skip@0: takes activations of stage 0 to F2@0 of stage 2; "
        "PyTorch sends between adjacent stages only"
    )


def test_layers_without_stages_are_stages_of_their_own() -> None:
    """A chain of two layers, F and B each, on two devices."""
    named = {"F0": 1, "B0": 2, "F1": 1, "B1": 2}
    ops = [
        dataclasses.replace(
            make_op(name, ticks, kind=name[0]), layer=f"l{name[1]}", microbatch=0
        )
        for name, ticks in named.items()
    ]
    tensors = [
        make_tensor("a0", 1, "F0", "F1", "B0"),
        make_tensor("a1", 1, "F1", "B1"),
        make_tensor("g1", 1, "B1", "B0"),
    ]
    graph = make_graph(ops, tensors, devices=2)
    starts = {"F0": ("d0", 0), "F1": ("d1", 1), "B1": ("d1", 2), "B0": ("d0", 4)}
    schedule = make_schedule(graph, 6, starts)
    assert verify(graph, schedule) == ()
    assert torch_csv_text(graph, schedule) == "0F0,0B0\n1F0,1B0\n"


# -- files that are no schedules ---------------------------------------------------

GOOD = ["0F0,0F1,0I0,0W0,0I1,0W1", "1F0,1I0,1F1,1I1,1W0,1W1"]
SENT = [
    "0F0,0SEND_F0,0RECV_B0,0I0,0W0,0REDUCE_GRAD",
    "1RECV_F0,1F0,1I0,1SEND_B0,1W0,1REDUCE_GRAD",
]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["0F0@12", GOOD[1]], "rank 0, step 0: expected a stage, a kind"),
        (["0F0,0X0", GOOD[1]], "rank 0, step 1: expected one of F, I, W, B"),
        (["0F", GOOD[1]], "rank 0, step 0: F lacks a microbatch"),
        (["(0F0)OVERLAP_F_B"], "expected two actions or more to overlap"),
        (["(0F0;0SEND_F0)OVERLAP_F_B"], "only F, I, W, B can overlap"),
        ([GOOD[0].replace("0F1", "0F0"), GOOD[1]], "rank 0, step 1: 0F0 is repeated"),
        (["0F0,0B0", "1F0,1B0", ""], "rank 2: no action"),
        (["0F0,0B0", "2F0,2B0"], "no rank runs stage 1"),
        (["0F0,0B0,1F0,1B0", "1F0,1B0"], "rank 1, step 0: 1F0: stage 1 is on rank 0"),
        (["0F0,0F2,0B0,0B2", "1F0,1F2,1B0,1B2"], "no F of microbatch 1"),
        (["0F0,0I0", "1F0,1B0"], "rank 0, stage 0: I without W for microbatch 0"),
        (["0F0,0B0,0I0,0W0", "1F0,1B0"], "both B and I or W for microbatch 0"),
        (["0B0,0F0", "1F0,1B0"], "rank 0, step 0: 0B0 comes before its 0F0"),
        (["0F0,0W0,0I0", "1F0,1B0"], "rank 0, step 1: 0W0 comes before its 0I0"),
        (["0F0,1B0,1F0,0B0"], "1B0 comes before its 1F0"),
        (
            ["0F0,0B0,0F1,0B1", "1F0,1F1,1B0,1B1"],
            "rank 0, step 1: a deadlock: 0B0 waits for 1I0 for ever",
        ),
        ([SENT[0].replace("0SEND_F0,", ",0SEND_F0,"), SENT[1]], "a blank cell"),
        ([SENT[0].replace("0RECV_B0,", ""), SENT[1]], "0I0 lacks 0RECV_B0 before it"),
        ([SENT[0].replace("0SEND_F0,", ""), SENT[1]], "1F0 needs 0SEND_F0"),
        (
            [SENT[0].replace("0F0,0SEND_F0", "0SEND_F0,0F0"), SENT[1]],
            "rank 0, step 0: 0SEND_F0 comes before what it sends",
        ),
        (
            [SENT[0].replace("0W0,0REDUCE_GRAD", "0REDUCE_GRAD,0W0"), SENT[1]],
            "0REDUCE_GRAD comes before the last gradient",
        ),
        ([SENT[0].replace("0F0,", "0F0,0SEND_B0,"), SENT[1]], "there is no stage -1"),
        (
            ["0F0,0SEND_F0,1F0,1B0,0B0"],
            "rank 0, step 1: 0SEND_F0: stage 1 is on the same rank",
        ),
    ],
)
def test_a_bad_table_is_refused_with_rank_and_step(
    rows: list[str], message: str
) -> None:
    with pytest.raises(FormatError) as caught:
        parse(rows)
    assert message in str(caught.value)
    assert str(caught.value).startswith("bad.csv: ")


def parse(rows: list[str], graph: Graph | None = None) -> Schedule:
    """Read rows and give them times."""
    table = read_torch_csv("\n".join(rows) + "\n", source="bad.csv")
    check = graph if graph is not None else unit_or_none(rows)
    return schedule_actions(table, check, source="bad.csv").require_schedule()


def unit_or_none(rows: list[str]) -> Graph:
    """A graph of as many stages and microbatches as rows that need not be right."""
    table = read_torch_csv("\n".join(rows) + "\n", source="bad.csv")
    return pipeline(
        max(2, len(table.rows)),
        table.microbatches,
        Times(1, 1, 1),
        stages=table.stages,
    )


def test_a_microbatch_beyond_those_of_the_graph_is_refused() -> None:
    """PyTorch would load it: it counts microbatches and looks at no number."""
    rows = ["0F0,0F7,0B0,0B7", "1F0,1F7,1B0,1B7"]
    with pytest.raises(FormatError) as caught:
        parse(rows, pipeline(2, 2, Times(1, 1, 1)))
    text = str(caught.value)
    assert "rank 0, step 1: 0F7: expected a microbatch from 0 to 1, got 7" in text
    assert "rank 1, step 3: 1B7: expected a microbatch from 0 to 1, got 7" in text


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pipeline(2, 2, Times(1, 1, 1), stages=4), "2 stages, and 4 in the"),
        (lambda: pipeline(2, 2, Times(1, 1, 1), arrangement="v"), None),
        (
            lambda: pipeline(2, 2, Times(1, 1, 1), fuse_backward=True),
            "rank 0, step 2: 0I0: the graph has I and W in one, as B",
        ),
        (lambda: pipeline(1, 2, Times(1, 1, 1), stages=2), "there are 2 rows, and 1"),
    ],
)
def test_a_table_of_another_graph_is_refused(
    build: Callable[[], Graph], message: str | None
) -> None:
    if message is None:
        assert parse(GOOD, build()).period > 0
        return
    with pytest.raises(InstanceError) as caught:
        parse(GOOD, build())
    assert message in str(caught.value)


def test_stages_on_other_devices_than_the_graphs_are_refused() -> None:
    with pytest.raises(InstanceError) as caught:
        parse(GOOD[::-1], pipeline(2, 2, Times(1, 1, 1)))
    assert "rank 0: this is d0, and the graph has stage 1 on d1" in str(caught.value)
    with pytest.raises(UnsupportedError):
        parse(GOOD, make_graph({"a": 1}))


def test_sends_that_would_wait_for_each_other_are_a_deadlock() -> None:
    """Each rank sends before it receives: only buffers would save them."""
    rows = [
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1",
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1",
    ]
    with pytest.raises(FormatError) as caught:
        parse(rows)
    text = str(caught.value)
    assert "rank 0, step 3: a deadlock: 0SEND_F1 waits for 1RECV_F1 for ever" in text
    assert "rank 1, step 3: a deadlock: 1SEND_B0 waits for 0RECV_B0 for ever" in text


def test_overlapping_actions_run_one_after_the_other() -> None:
    """The cell of two starts when both can; blank cells are idle and mean nothing."""
    rows = [
        "0F0,0F1,,0I0,0W0,0I1,0W1",
        "1F0,(1I0;1F1)OVERLAP_F_B,1I1,1W0,1W1",
    ]
    assert parse(rows).period == parse(GOOD).period
