"""Schedules on PyTorch's runtime: right gradients, and the period that was promised."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from pipelines import Times, pipeline

from lpsched import SolveParams
from lpsched.cli import main
from lpsched.core.graph import Graph
from lpsched.core.io import save_schedule
from lpsched.core.schedule import Schedule
from lpsched.errors import InstanceError, RunError, UnsupportedError
from lpsched.heuristics import METHODS
from lpsched.network.readers import read_torch_csv
from lpsched.replay.gradients import greatest_error
from lpsched.replay.job import Job
from lpsched.replay.outcome import Outcome
from lpsched.replay.run import Case, replay, replay_all
from lpsched.replay.worker import gradients_file
from lpsched.solve import solve
from lpsched.solve.actions import schedule_actions

#: Methods, and how many stages a device they are for.
ONE_STAGE = ("gpipe", "1f1b", "zb-h1", "zb-h2", "zb-auto")
TWO_STAGES = {"interleaved": "loop", "zb-v": "v", "dualpipe-v": "v"}
#: Blocks of the model `perceptron` for so many stages, uneven and none left over.
UNEVEN = {2: (5, 4), 4: (3, 1, 4, 1), 8: (1, 1, 2, 1, 1, 1, 1, 1)}


def case(graph: Graph, schedule: Schedule, **more: object) -> Case:
    """A case of the nine blocks, two iterations."""
    stages = len({op.stage for op in graph.ops})
    fields = {"model": "torch_models:perceptron", "iterations": 2}
    fields |= {"blocks": UNEVEN[stages]}
    return Case(graph=graph, schedule=schedule, **(fields | more))  # type: ignore[arg-type]


def cases(devices: int) -> dict[str, Case]:
    """Every shipped synchronous method, an optimum, and odd shapes."""
    times = Times(2, 3, 2, 1)
    found = {}
    for method in (*ONE_STAGE, *TWO_STAGES):
        two = method in TWO_STAGES
        graph = pipeline(
            devices,
            2 * devices,
            times,
            stages=2 * devices if two else devices,
            arrangement=TWO_STAGES.get(method, "loop"),
        )
        found[method] = case(graph, METHODS[method].function(graph))
    graph = pipeline(devices, 3, times, flush=True)
    answer = solve(graph, SolveParams(objective=("period",), time_limit=20))
    found["optimum"] = case(graph, answer.require_schedule(), communication=True)
    few = pipeline(devices, 1, times)  # fewer microbatches than stages
    found["few"] = case(few, METHODS["zb-h1"].function(few), communication=True)
    fused = pipeline(devices, 4, times, fuse_backward=True, flush=True)
    found["fused"] = case(fused, METHODS["1f1b"].function(fused))
    late = pipeline(devices, 2, times, update=3)
    found["update"] = case(late, METHODS["gpipe"].function(late))
    if devices == 2:
        found["blocks of attention"] = case(
            *_attention(), model="torch_models:transformer", blocks=(1, 3)
        )
        found["overlap"] = case(*_overlap())
        found["split"] = _split_case()
    return found


def _attention() -> tuple[Graph, Schedule]:
    graph = pipeline(2, 3, Times(2, 3, 2, 1))
    return graph, METHODS["zb-h2"].function(graph)


def _overlap() -> tuple[Graph, Schedule]:
    """A table of PyTorch's, with B and with I and W: read, timed, written, run."""
    text = "0F0,0F1,0I0,0W0,0B1\n1F0,(1I0;1F1)OVERLAP_F_B,1W0,1I1,1W1\n"
    graph = pipeline(2, 2, Times(2, 3, 2, 1))
    table = read_torch_csv(text, source="x")
    return graph, schedule_actions(table, graph, source="x").require_schedule()


def _split_case() -> Case:
    """A module cut at split points, three stages in a V and back on two ranks."""
    graph = pipeline(2, 2, Times(2, 3, 2, 1), stages=3, arrangement="v")
    return Case(
        graph=graph,
        schedule=METHODS["gpipe"].function(graph),
        model="torch_models:split",
        iterations=2,
    )


def assert_right(found: dict[str, Outcome]) -> None:
    """All gradients are those without a pipeline, and some pass of each kind ran."""
    wrong = {name: o.gradient_error for name, o in found.items() if not o.is_right}
    assert wrong == {}
    for outcome in found.values():
        for row in outcome.kinds:
            assert row.measured > 0
            assert row.passes > 0


#: Stand-ins: a method, and whether ranks meet before each iteration.
STAND_INS = (("1f1b", True), ("zb-h1", False))


@pytest.fixture(scope="module")
def outcomes() -> dict[int, dict[str, Outcome]]:
    """All that ran, by number of ranks and name: each number starts its ranks once."""
    chosen = {devices: cases(devices) for devices in (2, 4)}
    for method, flush in STAND_INS:
        graph = pipeline(2, 4, Times(60, 80, 60), flush=flush).replace(time_unit="ms")
        schedule = METHODS[method].function(graph)
        naps = Case(graph=graph, schedule=schedule, iterations=4)
        chosen[2][f"stand-in {method}"] = naps
    return {
        devices: dict(zip(some, replay_all(list(some.values())), strict=True))
        for devices, some in chosen.items()
    }


@pytest.mark.parametrize("devices", [2, 4])
def test_every_schedule_gives_the_gradients_without_a_pipeline(
    devices: int, outcomes: dict[int, dict[str, Outcome]]
) -> None:
    """Single precision, sums in another order: within 1e-5 of the greatest entry."""
    found = outcomes[devices]
    assert_right(found)
    kinds = {name: {row.name for row in o.kinds} for name, o in found.items()}
    assert kinds["zb-h1"] == {"F", "I", "W"}
    assert kinds["fused"] == {"F", "B"}
    assert kinds["update"] == {"F", "I", "W", "U"}
    calibrated = {name for name, outcome in found.items() if outcome.calibrated}
    assert calibrated == {name for name in found if "stand-in" not in name}


@pytest.mark.parametrize("method", [method for method, _ in STAND_INS])
def test_a_stand_in_takes_as_long_as_was_predicted(
    method: str, outcomes: dict[int, dict[str, Outcome]]
) -> None:
    """Within 10 %, passes of 60 and 80 ms."""
    outcome = outcomes[2][f"stand-in {method}"]
    assert outcome.tick == Fraction(10**6)
    assert outcome.period.error is not None
    assert abs(outcome.period.error) < Fraction(1, 10)


def test_a_run_from_the_command_line_has_a_table_and_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Predicted and measured side by side; times of MACs are calibrated."""
    graph = pipeline(2, 2, Times(2, 3, 2)).replace(time_unit="MAC")
    save_schedule(METHODS["zb-h1"].function(graph), tmp_path / "s.json")
    trace = tmp_path / "trace.json"
    argv = ["run", str(tmp_path / "s.json"), "--model", "torch_models:perceptron"]
    argv += ["--stages", "5,4", "--iterations", "2", "--trace", str(trace)]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert "predicted ms" in out
    assert "Gradients: at most" in out
    assert "so that all work together takes" in out
    assert "2 ranks start" in err
    events = json.loads(trace.read_text())["traceEvents"]
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert [name.split(":")[0] for name in names] == ["predicted", "measured"]
    measured = [e for e in events if e["ph"] == "X" and e["pid"] == _pid(events)]
    assert len(measured) == 2 * 12


def _pid(events: list[dict[str, object]]) -> object:
    return next(
        e["pid"]
        for e in events
        if e["name"] == "process_name" and "measured" in str(e["args"])
    )


def test_gradients_that_differ_are_found(tmp_path: Path) -> None:
    """By a thousandth of the greatest entry, by a missing one, by no number."""
    job = Job(
        communication=False,
        homes=(0, 1),
        microbatches=1,
        blocks=(1, 1),
        model=None,
        naps={},
        updates=frozenset(),
        flush=False,
        iterations=2,
        seed=0,
        folder=str(tmp_path),
    )
    right = {"0.w": torch.tensor([1.0, -4.0]), "1.w": torch.tensor([2.0])}
    torch.save({"1.w": right["1.w"]}, gradients_file(job.folder, 1))
    for value, error in ((1.0, 0.0), (1.004, 1e-3), (float("nan"), float("inf"))):
        mine = {"0.w": torch.tensor([value, -4.0])}
        torch.save(mine, gradients_file(job.folder, 0))
        found, name = greatest_error(job, right)
        assert found == pytest.approx(error, rel=1e-3)
        assert name == "0.w" or error == 0.0
    torch.save({"0.w": None}, gradients_file(job.folder, 0))
    assert greatest_error(job, right) == (float("inf"), "0.w")
    # Infinity over infinity is no number: it must not be lost among the others.
    torch.save({"0.w": torch.tensor([2.0, -4.0])}, gradients_file(job.folder, 0))
    endless = right | {"0.w": torch.tensor([2.0, -float("inf")])}
    assert greatest_error(job, endless) == (float("inf"), "0.w")


def test_a_rank_that_fails_is_named_with_its_reason() -> None:
    graph = pipeline(2, 2, Times(1, 1, 1))
    schedule = METHODS["gpipe"].function(graph)
    with pytest.raises(RunError, match=r"rank \d failed: .*no such weights"):
        replay(Case(graph=graph, schedule=schedule, model="torch_models:fallible"))


@pytest.mark.parametrize(
    ("model", "blocks", "message"),
    [
        ("torch_models:perceptron", None, "of 2 stages, 9 together, got 1, 1"),
        ("torch_models:perceptron", (9,), "a number of blocks for each of 2 stages"),
        ("torch_models:nothing", None, "expected a Model or a pair"),
        ("torch_models:NOT_A_FUNCTION", None, "has no function 'NOT_A_FUNCTION'"),
        ("no_such_module:f", None, "no module 'no_such_module'"),
        ("missing.py:f", None, "there is no file missing.py"),
        ("torch_models", None, "expected MODULE:FUNCTION"),
        (None, None, "how long is a tick?"),
    ],
)
def test_cases_that_cannot_be_run_are_refused_before_any_rank_starts(
    model: str | None, blocks: tuple[int, ...] | None, message: str
) -> None:
    graph = pipeline(2, 2, Times(1, 1, 1))
    schedule = METHODS["gpipe"].function(graph)
    with pytest.raises(InstanceError) as caught:
        replay(Case(graph=graph, schedule=schedule, model=model, blocks=blocks))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("model", "blocks", "message"),
    [
        ("torch_models:random", (2, 1), "differ from run to run"),
        ("torch_models:tied", (2, 1), "block 2 shares a parameter"),
        ("torch_models:skipping", (2, 1), "reads 2 tensors of earlier blocks"),
    ],
)
def test_models_that_no_pipeline_reproduces_are_refused(
    model: str, blocks: tuple[int, ...], message: str
) -> None:
    graph = pipeline(2, 2, Times(1, 1, 1))
    schedule = METHODS["gpipe"].function(graph)
    with pytest.raises(UnsupportedError, match=message):
        replay(Case(graph=graph, schedule=schedule, model=model, blocks=blocks))


def test_a_tick_is_not_said_twice() -> None:
    graph = pipeline(2, 2, Times(1, 1, 1)).replace(time_unit="ms")
    schedule = METHODS["gpipe"].function(graph)
    with pytest.raises(InstanceError, match="tick: is ms in the graph"):
        replay(Case(graph=graph, schedule=schedule, tick=Fraction(5)))
