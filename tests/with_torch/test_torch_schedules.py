"""PyTorch's own schedules, as it dumps them: read, timed, verified, written again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import distributed, nn
from torch.distributed.pipelining import PipelineStage, schedules
from torch.testing._internal.distributed.fake_pg import FakeStore

from lpsched.export import torch_csv_text
from lpsched.network.readers import read_torch_csv
from lpsched.solve.actions import schedule_actions, unit_graph

#: Classes for two stages a rank, and the stages of rank 0 of two.
CLASSES = {
    "ScheduleLoopedBFS": (0, 2),
    "ScheduleInterleaved1F1B": (0, 2),
    "ScheduleInterleavedZeroBubble": (0, 2),
    "ScheduleZBVZeroBubble": (0, 3),
    "ScheduleDualPipeV": (0, 3),
}


@pytest.fixture(autouse=True)
def _two_ranks() -> Iterator[None]:
    """A process group of two ranks, one of them this process, that sends nothing."""
    distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    yield
    distributed.destroy_process_group()


def dumped(name: str, folder: Path, form: str) -> str:
    """What PyTorch writes of a schedule of its own: four stages, four microbatches."""
    stages = [
        PipelineStage(nn.Linear(2, 2), stage, 4, torch.device("cpu"))
        for stage in CLASSES[name]
    ]
    made = getattr(schedules, name)(stages, 4, loss_fn=nn.functional.mse_loss)
    made._dump_csv(str(folder / "dump.csv"), format=form)  # noqa: SLF001
    return (folder / "dump.csv").read_text()


@pytest.mark.parametrize("form", ["compute_only", "compute_comms"])
@pytest.mark.parametrize("name", CLASSES)
def test_what_pytorch_dumps_is_read_and_gets_the_least_times(
    name: str, form: str, tmp_path: Path
) -> None:
    """24 ticks of work a rank; zero bubble in a V has none to lose, others have."""
    table = read_torch_csv(dumped(name, tmp_path, form), source=name)
    assert table.has_communication == (form == "compute_comms")
    graph = unit_graph(table, name=name)
    answer = schedule_actions(table, graph, source=name)
    period = answer.require_schedule().period
    assert 24 <= period <= 27
    assert (period == 24) == (name == "ScheduleZBVZeroBubble")
    again = torch_csv_text(graph, answer.require_schedule())
    back = schedule_actions(read_torch_csv(again, source="x"), graph, source="x")
    assert back.require_schedule().period == period


def test_what_is_written_is_loaded_by_pytorch_as_it_stands(tmp_path: Path) -> None:
    """Both forms of the same schedule: what PyTorch adds to one stands in the other."""
    name = "ScheduleZBVZeroBubble"
    table = read_torch_csv(dumped(name, tmp_path, "compute_only"), source=name)
    graph = unit_graph(table, name=name)
    schedule = schedule_actions(table, graph, source=name).require_schedule()
    found = {}
    for form in ("compute_only", "compute_comms"):
        path = tmp_path / "ours.csv"
        text = torch_csv_text(graph, schedule, communication=form == "compute_comms")
        path.write_text(text)
        stages = [
            PipelineStage(nn.Linear(2, 2), stage, 4, torch.device("cpu"))
            for stage in CLASSES[name]
        ]
        runtime = schedules._PipelineScheduleRuntime(  # noqa: SLF001
            stages, 4, loss_fn=nn.functional.mse_loss
        )
        runtime._load_csv(str(path), format=form)  # noqa: SLF001
        assert runtime.stage_index_to_group_rank == {0: 0, 1: 1, 2: 1, 3: 0}
        lowered = runtime.pipeline_order_with_comms
        found[form] = {
            rank: {str(action) for action in row if "SHARD" not in str(action)}
            for rank, row in lowered.items()
        }
    assert found["compute_only"] == found["compute_comms"]
