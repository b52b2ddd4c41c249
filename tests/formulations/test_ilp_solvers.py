"""What solvers say is read honestly: limits, interrupts, contradictions, silence."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import highspy
import pulp
import pytest
from factories import make_graph, make_op, make_tensor, training_chain
from random_cases import random_case

from lpsched.analysis.linear import QuietHighs, quiet_highs
from lpsched.analysis.metrics import measure
from lpsched.core.graph import Delay, DelayName, DeviceId, Graph, Link, OpId
from lpsched.core.result import Status, Stop
from lpsched.errors import SolverError, SolverUnavailableError, UnsupportedError
from lpsched.formulations.api import Limits, Request
from lpsched.formulations.ilp import (
    build,
    cbc,
    highs,
    model_text,
    solve,
    solve_at_period,
    write_model,
)
from lpsched.formulations.ilp.extract import figure_value, round_integer
from lpsched.formulations.ilp.hint import starting_point
from lpsched.formulations.ilp.names import Names
from lpsched.formulations.ilp.solved import Solved, Watch
from lpsched.verify import verify

SOLVERS = pytest.mark.parametrize("is_cbc", [False, True], ids=["highs", "cbc"])


def chain(layers: int = 2, *, devices: int = 2, delay_max: int = 2) -> Graph:
    """Build a training chain with transfers of 2 ticks."""
    link = Link(latency=1, units_per_tick=4)
    return training_chain(layers, devices=devices, delay_max=delay_max, link=link)


@SOLVERS
def test_an_infeasible_period_leaves_no_stale_schedule(*, is_cbc: bool) -> None:
    """F1, W1 in a cycle with one delay: 4 ticks; the windows do not see T = 9 fail.

    Ten ticks of work on one device.
    """
    graph = chain(devices=1)
    limits = Limits(options={"cbc": is_cbc, "deduce": False})
    outcome = solve_at_period(Request(graph=graph, period=9), limits)
    assert (outcome.status, outcome.stop) == (Status.INFEASIBLE, Stop.PROVED)
    assert outcome.schedule is None
    assert outcome.bound is None
    assert solve_at_period(Request(graph=graph, period=10), limits).schedule is not None


@SOLVERS
def test_a_search_stopped_at_once_knows_only_the_bound_it_was_given(
    *, is_cbc: bool
) -> None:
    interrupt = threading.Event()
    interrupt.set()
    request = Request(
        graph=chain(6, devices=3), period=14, minimise="communication", lower=4
    )
    outcome = solve_at_period(
        request, Limits(options={"cbc": is_cbc}), interrupt=interrupt
    )
    assert (outcome.status, outcome.stop) == (Status.UNKNOWN, Stop.INTERRUPTED)
    assert outcome.schedule is None
    assert outcome.bound is not None
    assert outcome.bound >= 4


def test_an_interrupt_keeps_the_incumbent_and_its_bound() -> None:
    graph = chain(8, devices=4, delay_max=4)
    interrupt = threading.Event()
    seen = []

    def progress(incumbent: int | None, bound: int | None) -> None:
        seen.append((incumbent, bound))
        if incumbent is not None:
            interrupt.set()

    request = Request(graph=graph, period=20, minimise="communication")
    outcome = solve_at_period(
        request, Limits(seconds=120), progress=progress, interrupt=interrupt
    )
    assert (outcome.status, outcome.stop) == (Status.FEASIBLE, Stop.INTERRUPTED)
    assert outcome.schedule is not None
    assert verify(graph, outcome.schedule) == ()
    assert outcome.bound is not None
    assert outcome.bound < measure(graph, outcome.schedule).communication
    assert all(b is None or i is None or b <= i for i, b in seen)


def test_a_time_limit_keeps_a_hint_as_incumbent() -> None:
    """The hint is of a shorter period: laps and phases of its ends are kept."""
    graph = chain(8, devices=4, delay_max=4)
    hint = solve_at_period(Request(graph=graph, period=20), Limits()).schedule
    request = Request(graph=graph, period=23, minimise="communication", hint=hint)
    outcome = solve_at_period(request, Limits(seconds=2))
    assert (outcome.status, outcome.stop) == (Status.FEASIBLE, Stop.TIME_LIMIT)
    assert outcome.schedule is not None
    assert hint is not None
    found = measure(graph, outcome.schedule).communication
    assert found <= measure(graph, hint).communication
    assert verify(graph, outcome.schedule) == ()


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("longer", [0, 3])
def test_a_hint_satisfies_every_row(seed: int, longer: int) -> None:
    """All it says pinned, the model has a solution no worse than the hint."""
    graph, hint = random_case(seed, max_ops=5)
    request = Request(
        graph=graph, period=hint.period + longer, minimise="communication", hint=hint
    )
    model = build(request, {"windows": seed % 2 == 0})
    begin = starting_point(model)
    for x in model.problem.variables():
        if x.name in begin:
            x.lowBound = x.upBound = begin[x.name]
    watch = Watch(deadline=time.monotonic() + 60)
    solved = highs.run_highs(model.problem, watch, seed=0, begin={})
    assert solved.values is not None
    assert figure_value(model, solved.values) == measure(graph, hint).communication


def test_a_hint_of_another_graph_or_a_longer_period_is_dropped() -> None:
    hint = solve_at_period(Request(graph=chain(), period=12), Limits()).schedule
    for graph, period in ((chain(3), 30), (chain(), 11)):
        model = build(Request(graph=graph, period=period, hint=hint))
        assert starting_point(model) == {}


def test_the_same_seed_gives_the_same_schedule() -> None:
    request = Request(graph=chain(4, devices=3), period=14, minimise="communication")
    first, second = (solve_at_period(request, Limits(seed=7)) for _ in range(2))
    assert first.schedule is not None
    assert first.schedule == second.schedule


def test_a_bound_above_the_value_is_an_error_that_keeps_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lies(model: pulp.LpProblem, watch: Watch, **options: object) -> Solved:
        honest = highs.run_highs(model, watch, seed=0, begin={})
        assert options
        return dataclasses.replace(honest, is_complete=False, bound=1e6)

    monkeypatch.setattr(solve, "run_highs", lies)
    request = Request(graph=chain(), period=11, minimise="communication")
    with pytest.raises(SolverError, match="a bound of") as caught:
        solve_at_period(request, Limits())
    assert "Subject To" in (caught.value.model or "")


def test_values_above_the_bound_are_not_called_optimal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lies(model: pulp.LpProblem, watch: Watch, **options: object) -> Solved:
        honest = highs.run_highs(model, watch, seed=0, begin={})
        assert options
        return dataclasses.replace(honest, bound=-4.0)

    monkeypatch.setattr(solve, "run_highs", lies)
    request = Request(graph=chain(), period=11, minimise="makespan")
    with pytest.raises(SolverError, match="called optimal"):
        solve_at_period(request, Limits())


@pytest.mark.parametrize(
    ("seed", "objective"), [(191, "communication"), (389, "staleness")]
)
def test_a_start_is_not_handed_back_for_the_optimum(seed: int, objective: str) -> None:
    """HiGHS 1.16 proves these at once, yet returns the values it was given."""
    graph, hint = random_case(seed, max_ops=5)
    request = Request(graph=graph, period=hint.period, minimise=objective, hint=hint)
    outcome = solve_at_period(request, Limits())
    assert outcome.schedule is not None
    assert outcome.bound == getattr(measure(graph, outcome.schedule), objective) == 0
    assert getattr(measure(graph, hint), objective) > 0


def test_what_is_not_integral_is_an_error() -> None:
    assert round_integer(2.9999999, "k") == 3
    with pytest.raises(SolverError, match=r"k = 2\.9 is not"):
        round_integer(2.9, "k")


def test_a_failure_inside_highs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_self: highspy.Highs) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(QuietHighs, "run", fails, raising=False)
    with pytest.raises(SolverError, match="no more"):
        solve_at_period(Request(graph=chain(), period=11), Limits())


def test_a_run_that_does_not_stop_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()

    def hangs(_self: highspy.Highs) -> None:
        release.wait(60)

    monkeypatch.setattr(QuietHighs, "run", hangs, raising=False)
    monkeypatch.setattr(highs, "GRACE", 0.1)
    request = Request(graph=chain(), period=11, minimise="communication", lower=3)
    outcome = solve_at_period(request, Limits(seconds=0.2))
    release.set()
    assert (outcome.status, outcome.stop) == (Status.UNKNOWN, Stop.TIME_LIMIT)
    assert outcome.bound == 3


def test_a_missing_cbc_is_said_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    cbc.cbc_path.cache_clear()
    monkeypatch.setattr("shutil.which", lambda _name: None)
    monkeypatch.setattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", "no-such-cbc")
    with pytest.raises(SolverUnavailableError, match="CBC"):
        solve_at_period(
            Request(graph=chain(), period=11), Limits(options={"cbc": True})
        )
    cbc.cbc_path.cache_clear()


def test_nothing_reaches_stdout() -> None:
    """HiGHS's banner is written by C code, once a process: look at a fresh one."""
    code = """
from lpsched.core.graph import Device, Graph, Op
from lpsched.formulations.api import Limits, Request
from lpsched.formulations.ilp import solve_at_period
op = Op(id="A", kind="F", duration=1)
graph = Graph(name="g", devices=(Device(id="d"),), ops=(op,))
for cbc in (False, True):
    solve_at_period(Request(graph=graph, period=2), Limits(options={"cbc": cbc}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b""
    assert done.stderr == b""


def test_times_are_divided_by_their_common_unit() -> None:
    """Everything times 10^9: the same model, and a schedule in ticks."""
    giga = 10**9
    graph = make_graph(
        {"A": 3 * giga, "B": 2 * giga},
        [make_tensor("a", 8, "A", "B"), make_tensor("b", 8, "B", ("A", 1))],
        devices=2,
        link=Link(latency=giga),
    )
    request = Request(graph=graph, period=5 * giga, minimise="makespan")
    outcome = solve_at_period(request, Limits())
    assert outcome.bound == 5 * giga
    assert outcome.schedule is not None
    assert verify(graph, outcome.schedule) == ()
    odd = dataclasses.replace(request, period=5 * giga + 1)
    with pytest.raises(UnsupportedError, match="cpsat"):
        solve_at_period(odd, Limits())


def test_placement_alone_is_decided_whatever_the_ticks() -> None:
    """Free delays: exclusivity is load, and huge periods are no obstacle."""
    big = 5_797_052_416
    graph = make_graph(
        {"A": big, "B": big - 1, "C": 1},
        [make_tensor("a", 7, "A", "B"), make_tensor("b", 5, "B", ("A", "k"), "C")],
        devices=2,
        delays={DelayName("k"): Delay()},
    )
    request = Request(graph=graph, period=big, minimise="communication")
    outcome = solve_at_period(request, Limits())
    assert (outcome.status, outcome.bound) == (Status.OPTIMAL, 12)
    assert outcome.schedule is not None
    assert verify(graph, outcome.schedule) == ()


def test_requests_that_mean_nothing_are_refused() -> None:
    for names in ({"minimise": "period"}, {"minimise": "joy"}, {"at_most": {"x": 1}}):
        request = dataclasses.replace(Request(graph=chain(), period=11), **names)
        with pytest.raises(UnsupportedError, match="no minimising"):
            solve_at_period(request, Limits())


def test_a_period_above_its_cap_is_infeasible() -> None:
    request = Request(graph=chain(), period=12, at_most={"period": 11})
    assert solve_at_period(request, Limits()).status is Status.INFEASIBLE


@pytest.mark.parametrize("kind", ["lp", "mps"])
@pytest.mark.parametrize("objective", ["communication", "staleness", "peak_memory"])
def test_a_written_model_is_the_one_that_is_solved(
    kind: str, objective: str, tmp_path: Path
) -> None:
    layers = 1 if objective == "peak_memory" else 2
    request = Request(graph=chain(layers), period=11, minimise=objective)
    path = tmp_path / f"model.{kind}"
    write_model(request, path)
    reader = quiet_highs()
    reader.readModel(str(path))
    reader.run()
    model = build(request)
    outcome = solve_at_period(request, Limits())
    assert round(reader.getObjectiveValue()) * model.unit == outcome.bound
    assert reader.getNumRow() == model.problem.numConstraints()
    names = {reader.getColName(i)[1] for i in range(reader.getNumCol())}
    assert names == {x.name for x in model.problem.variables()}
    assert {"start_F1", "on_F1_d0", f"order_F1_W{layers}"} <= names


def test_models_are_written_as_lp_or_mps_only() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.raises(UnsupportedError, match=r"\.lp or \.mps"),
    ):
        write_model(Request(graph=chain(), period=11), Path(folder) / "model.txt")


def test_ids_that_files_cannot_hold_stay_apart() -> None:
    """PuLP turns a-b, a b and a>b into one name; lengths over 100 are refused."""
    long = "x" * 120
    ids = ["a-b", "a b", "a>b", "a_b", "é", f"{long}1", f"{long}2"]
    graph = make_graph([make_op(name, 1) for name in ids], devices=2)
    request = Request(graph=graph, period=4)
    text = model_text(request, "lp")
    assert "on_a_b.2_d0" not in text  # the number ends the whole name
    assert "on_a_b_d0.2" in text
    outcome = solve_at_period(request, Limits())
    assert outcome.schedule is not None
    assert verify(graph, outcome.schedule) == ()
    assert set(outcome.schedule.ops) == set(map(OpId, ids))


def test_names_are_given_out_once() -> None:
    names = Names()
    assert [names.make("on", "F 1", None) for _ in range(3)] == [
        "on_F_1_none",
        "on_F_1_none.2",
        "on_F_1_none.3",
    ]


def test_a_graph_without_devices_is_timed_by_its_arcs_alone() -> None:
    graph = make_graph(
        [make_op("A", 9, devices=[]), make_op("B", 4, devices=[])],
        [make_tensor("a", 1, "A", "B"), make_tensor("b", 1, "B", ("A", 2))],
        devices=(),
    )
    assert solve_at_period(Request(graph=graph, period=6), Limits()).schedule is None
    outcome = solve_at_period(Request(graph=graph, period=7), Limits())
    assert outcome.schedule is not None
    assert verify(graph, outcome.schedule) == ()
    assert outcome.schedule.ops[OpId("A")].device is None


def test_a_given_device_is_kept() -> None:
    graph = chain()
    placement = {OpId("F1"): DeviceId("d1"), OpId("W1"): DeviceId("d0")}
    request = Request(graph=graph, period=12, placement=placement)
    schedule = solve_at_period(request, Limits()).schedule
    assert schedule is not None
    assert {op: schedule.ops[op].device for op in placement} == placement
