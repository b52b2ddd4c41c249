"""The published synchronous schedules give the published figures, for any M."""

from __future__ import annotations

from fractions import Fraction

import pytest
from pipelines import Times, ZeroBubbleRow, pipeline, zero_bubble_rows

from lpsched.analysis.metrics import measure
from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.errors import NoScheduleError, UnsupportedError
from lpsched.heuristics import METHODS
from lpsched.heuristics.synchronous import (
    dualpipe_v,
    gpipe,
    interleaved,
    one_f_one_b,
    zb_auto,
    zb_h1,
    zb_h2,
    zb_v,
)
from lpsched.verify import verify

ROWS = zero_bubble_rows()
SMALL = [row for row in ROWS if row.stages * row.microbatches <= 520]

#: Times with F > W and I > W, no two equal, no transfers.
FREE = Times(7, 9, 4)


def names(row: ZeroBubbleRow) -> str:
    return f"{row.stages}x{row.microbatches}-{row.times.forward}"


def bubble(schedule: Schedule, work: int) -> int:
    """Ticks beyond the work of one device."""
    return schedule.period - work


@pytest.mark.parametrize("row", SMALL, ids=names)
def test_1f1b_takes_as_long_as_published(row: ZeroBubbleRow) -> None:
    graph = row.graph(flush=True, fuse_backward=True)
    assert one_f_one_b(graph).period == row.spans["1F1B"]


@pytest.mark.parametrize("row", SMALL, ids=names)
def test_zb_h1_takes_as_long_as_published(row: ZeroBubbleRow) -> None:
    """In the memory of 1F1B: room for p microbatches on each device."""
    graph = row.graph(flush=True, limit=row.stages)
    assert zb_h1(graph).period == row.spans["ZB_H1"]


@pytest.mark.parametrize("row", SMALL, ids=names)
def test_zb_h2_spans_a_stage_as_published(row: ZeroBubbleRow) -> None:
    """In room for 2p - 1 microbatches on each device."""
    graph = row.graph(limit=2 * row.stages - 1)
    assert zb_h2(graph).period == row.spans["ZB_H2"]


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("row", SMALL, ids=names)
def test_zb_auto_spans_a_stage_as_published(row: ZeroBubbleRow, limit: int) -> None:
    graph = row.graph(limit=limit * row.stages)
    assert zb_auto(graph).period == row.spans[f"ZB_{limit}p"]


@pytest.mark.slow
@pytest.mark.parametrize("row", [r for r in ROWS if r not in SMALL], ids=names)
def test_large_rows_come_out_as_published(row: ZeroBubbleRow) -> None:
    p, spans = row.stages, row.spans
    fused = row.graph(flush=True, fuse_backward=True)
    assert one_f_one_b(fused).period == spans["1F1B"]
    assert zb_h1(row.graph(flush=True, limit=p)).period == spans["ZB_H1"]
    assert zb_h2(row.graph(limit=2 * p - 1)).period == spans["ZB_H2"]
    assert zb_auto(row.graph(limit=p)).period == spans["ZB_1p"]
    assert zb_auto(row.graph(limit=2 * p)).period == spans["ZB_2p"]


def test_zb_v_spans_a_device_as_published() -> None:
    """Half a stage a chunk, in 1F1B's memory; counted in half microseconds."""
    row = next(r for r in ROWS if (r.stages, r.microbatches) == (16, 48))
    graph = pipeline(
        row.stages,
        row.microbatches,
        row.times._replace(transfer=2 * row.times.transfer),
        stages=2 * row.stages,
        arrangement="v",
        memory=2 * row.stages * row.taken,
        deltas=(row.taken, -row.given_back),
    )
    assert Fraction(zb_v(graph).period, 2) == row.spans["ZBV"]


@pytest.mark.parametrize(("p", "m"), [(1, 3), (2, 5), (4, 8), (5, 7)])
def test_without_transfers_bubbles_follow_the_formulas(p: int, m: int) -> None:
    """1F1B (p-1)(F+I+W), ZB-H1 (p-1)(F+I-W), ZB-H2 (p-1)(F+I-2W), as published.

    ZB-H2's holds where I and F are no shorter than two W's keep busy: 7 + 9 > 2·4, and
    from m >= 2p - 1 on, when there are forwards enough to warm up with.
    """
    f, i, w = FREE.forward, FREE.input_grad, FREE.weight_grad
    assert isinstance(f, int) and isinstance(i, int) and isinstance(w, int)  # noqa: PT018
    work = m * (f + i + w)
    fused = pipeline(p, m, FREE, flush=True, fuse_backward=True)
    assert bubble(one_f_one_b(fused), work) == (p - 1) * (f + i + w)
    if m >= p:
        whole = pipeline(p, m, FREE, flush=True)
        assert bubble(zb_h1(whole), work) == (p - 1) * (f + i - w)
    if m >= 2 * p - 1:
        steady = pipeline(p, m, FREE)
        assert bubble(zb_h2(steady), work) == (p - 1) * (f + i - 2 * w)


@pytest.mark.parametrize(("p", "v", "m"), [(2, 2, 4), (4, 3, 8), (3, 2, 9)])
def test_interleaving_divides_the_bubble_of_1f1b(p: int, v: int, m: int) -> None:
    """(p-1)(F+I+W) of a chunk, a v-th of a device's, where p divides m."""
    graph = pipeline(p, m, FREE, stages=p * v, flush=True, fuse_backward=True)
    assert bubble(interleaved(graph), m * v * 20) == (p - 1) * 20


def test_gpipe_waits_for_the_whole_pipeline_twice() -> None:
    """2 stages, 3 microbatches of 1, 1, 1: F's end at 4, the last I, W pair at 12.

    d1 runs F1-F3 in 1..4 and three I, W in 4..10; d0 waits from 3 for its first I at
    5 and then every second tick: its last I starts at 9 and its last W ends at 11.
    """
    graph = pipeline(2, 3, Times(1, 1, 1), flush=True)
    assert gpipe(graph).period == 11


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("regime", ["steady", "flush"])
def test_every_method_takes_any_number_of_microbatches(
    p: int, m: int, regime: str
) -> None:
    flush = regime == "flush"
    times = Times([3, 5, 2, 4, 3], [4, 2, 5, 3, 6], [2, 2, 1, 3, 1], 1)
    row = pipeline(p, m, times, update=1, flush=flush)
    for method in (gpipe, one_f_one_b, zb_h1, zb_h2, zb_auto):
        assert verify(row, method(row)) == ()
    loop = pipeline(p, m, Times(3, 4, 2, 1), stages=3 * p, flush=flush)
    for method in (gpipe, interleaved):
        assert verify(loop, method(loop)) == ()
    v = pipeline(p, m, Times(3, 4, 2, 1), stages=2 * p, arrangement="v", flush=flush)
    for method in (gpipe, zb_v, dualpipe_v):
        assert verify(v, method(v)) == ()


def test_peaks_are_those_that_the_methods_promise() -> None:
    """1F1B, ZB-H1 and ZB-V: p microbatches, ZB-H2: 2p - 1, DualPipeV: p + 1."""
    p, m, times = 4, 16, Times(1, 1, 1)

    def peak(graph: Graph, schedule: Schedule) -> int:
        return measure(graph, schedule).peak_memory

    row = pipeline(p, m, times)
    assert peak(row, one_f_one_b(row)) == 2 * p
    assert peak(row, zb_h1(row)) == 2 * p
    assert peak(row, zb_h2(row)) == 2 * (2 * p - 1)
    assert peak(row, gpipe(row)) == 2 * m
    v = pipeline(p, m, times, stages=2 * p, arrangement="v")
    assert peak(v, zb_v(v)) <= 2 * 2 * p
    assert peak(v, dualpipe_v(v)) == 2 * (2 * p + 1)


def test_too_little_memory_is_told() -> None:
    graph = pipeline(3, 6, FREE, memory=4)
    with pytest.raises(NoScheduleError, match="memory"):
        gpipe(graph)
    assert verify(graph, zb_auto(graph)) == ()
    with pytest.raises(NoScheduleError, match="no setting"):
        zb_auto(pipeline(3, 6, FREE, memory=1))


def test_methods_refuse_placements_that_are_not_theirs() -> None:
    row, loop = pipeline(2, 4, FREE), pipeline(2, 4, FREE, stages=4)
    v = pipeline(2, 4, FREE, stages=4, arrangement="v")
    for method in (one_f_one_b, zb_h1, zb_h2, zb_auto):
        with pytest.raises(UnsupportedError, match="one stage on each device"):
            method(loop)
    for method in (zb_v, dualpipe_v):
        for graph in (row, loop):
            with pytest.raises(UnsupportedError, match="two stages on each device"):
                method(graph)
    with pytest.raises(UnsupportedError, match="in a loop"):
        interleaved(v)
    with pytest.raises(UnsupportedError, match="as many stages on every device"):
        interleaved(pipeline(2, 4, FREE, stages=3))


def test_the_methods_stand_in_the_registry() -> None:
    row = pipeline(2, 4, FREE)
    assert METHODS["zb-h1"].function(row).period == zb_h1(row).period
    assert {"gpipe", "1f1b", "interleaved", "zb-h2", "zb-auto", "zb-v"} < set(METHODS)
