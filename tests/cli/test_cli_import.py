"""`lpsched import`: files written, remarks on stderr, bad input told with exit 2."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from lpsched.cli import main
from lpsched.core.io import load_network

PROFILE = Path(__file__).resolve().parents[1] / "data" / "profile_small.txt"
PIPEDREAM = ("import", str(PROFILE), "--from", "pipedream")


def test_a_profile_becomes_a_network_that_can_be_compared(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "net.json"
    assert main([*PIPEDREAM, "-o", str(target)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "node1 (Input0) is no work" in err
    assert f"{target}: a network of 7 layers, time in us, sizes in byte" in err
    argv = ["solve", str(target), "--devices", "2", "--method", "pipedream", "--json"]
    assert main(argv) == 0
    assert json.loads(capsys.readouterr().out)["objective"]["period"] > 0


def test_without_a_file_to_write_the_network_goes_to_stdout(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "net.json"
    assert main([*PIPEDREAM, "-q"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert main([*PIPEDREAM, "-q", "-o", str(target)]) == 0
    assert target.read_text() == out


def test_the_backward_split_is_taken_from_the_command_line(tmp_path: Path) -> None:
    found = []
    for split in ("0.25", "1/4", "parameters"):
        target = tmp_path / "net.json"
        argv = [*PIPEDREAM, "-q", "-o", str(target), "--split-backward", split]
        assert main(argv) == 0
        found.append(load_network(target).layer_by_name["node9_Linear"].input_grad)
    assert found == [250, 250, 410]


def test_coarsening_says_what_it_did_and_what_it_may_cost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*PIPEDREAM, "--coarsen"]) == 0
    out, err = capsys.readouterr()
    assert "coarsened: 7 layers to 5; the least period stays the same" in err
    assert len(json.loads(out)["layers"]) == 5
    assert main([*PIPEDREAM, "--coarsen-loss", "0.05"]) == 0
    out, err = capsys.readouterr()
    assert "the least period grows by at most 3.99 %" in err
    assert len(json.loads(out)["layers"]) == 4


def _onnx_file(path: Path) -> str:
    """Write a model: a known and an unknown operator, two open dimensions."""
    values = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4, "n"])
        for name in "xhy"
    }
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["h"], name="act"),
            helper.make_node("Mine", ["h"], ["y"], name="own", domain="mine"),
        ],
        "net",
        [values["x"]],
        [values["y"]],
        value_info=[values["h"]],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    onnx.save_model(helper.make_model(graph, opset_imports=opsets), path)
    return str(path)


def test_other_programs_files_name_the_verb_that_reads_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = _onnx_file(tmp_path / "net.onnx")
    assert main(["compare", path, "--devices", "2"]) == 2
    told = capsys.readouterr().err
    assert "an ONNX model" in told
    assert f"lpsched import {path} --from onnx" in told


def test_an_onnx_model_becomes_a_network(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    argv = ["import", _onnx_file(tmp_path / "net.onnx"), "--from", "onnx"]
    assert main([*argv, "--dims", "n=3"]) == 2
    assert "cost is not known: mine.Mine (1)" in capsys.readouterr().err
    assert main([*argv, "--unknown-zero"]) == 2
    assert "dimension 'n': is open; give it with --dims n=N" in capsys.readouterr().err
    target = tmp_path / "net.json"
    full = [*argv, "--unknown-zero", "--dims", "n=3,batch=2", "-o", str(target)]
    assert main(full) == 0
    err = capsys.readouterr().err
    assert "cost is taken as zero: mine.Mine (1)" in err
    assert "a network of 2 layers, costs by the cost model" in err
    assert load_network(target).input == (2, 4, 3)
    assert main([*full, "--coarsen"]) == 0
    assert "times are MACs" in capsys.readouterr().err
    assert len(load_network(target).layers) == 1


def test_a_workload_of_tasks_becomes_a_graph(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two tied tasks of 3 and a free one of 4 on two accelerators: 6."""
    node = {"supportedOnFpga": 1, "cpuLatency": 1, "isBackwardNode": 0, "size": 0}
    nodes = [
        {**node, "id": 0, "fpgaLatency": 3, "colorClass": 0},
        {**node, "id": 1, "fpgaLatency": 3, "colorClass": 0},
        {**node, "id": 2, "fpgaLatency": 4},
    ]
    edges = [{"sourceId": i, "destId": i + 1, "cost": 0.5} for i in range(2)]
    head = {"maxSizePerFPGA": 1, "maxFPGAs": 2, "maxCPUs": 0}
    source, target = tmp_path / "work.json", tmp_path / "graph.json"
    source.write_text(json.dumps({**head, "nodes": nodes, "edges": edges}))
    argv = ["import", str(source), "--from", "dnn-partitioning", "-o", str(target)]
    for more, ops in (([], 3), (["--coarsen"], 2)):
        assert main([*argv, *more]) == 0
        assert f"a graph of {ops} ops on 2 devices" in capsys.readouterr().err
        solve = ["solve", str(target), "--objective", "period", "--json"]
        assert main(solve) == 0
        assert json.loads(capsys.readouterr().out)["objective"]["period"] == 6


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([str(PROFILE)], "--from"),
        ([str(PROFILE), "--from", "pipedreams"], "expected one of pipedream"),
        ([str(PROFILE), "--from", "pipedream", "--split-backward", "2"], "from 0 to 1"),
        ([str(PROFILE), "--from", "pipedream", "--split-backward", "x"], "from 0 to 1"),
        ([str(PROFILE), "--from", "pipedream", "--coarsen-loss", "1/0"], "from 0 to 1"),
        ([str(PROFILE), "--from", "pipedream", "--dims", "n=3"], "does not go with"),
        ([str(PROFILE), "--from", "onnx", "--split-backward", "1"], "does not go with"),
        ([str(PROFILE), "--from", "onnx", "--dims", "n=0"], "N from 1 to"),
        ([str(PROFILE), "--from", "onnx", "--dims", "=3"], "NAME=N"),
        ([str(PROFILE), "--from", "onnx"], "profile_small.txt: not an ONNX model"),
        (["missing.onnx", "--from", "onnx"], "missing.onnx: cannot be read"),
        (["missing.txt", "--from", "pipedream"], "missing.txt: cannot be read"),
        (["{folder}", "--from", "pipedream"], "cannot be read: Is a directory"),
        (["{folder}/bad.txt", "--from", "pipedream"], "bad.txt: line 2: expected a"),
        (["{folder}/blob.txt", "--from", "pipedream"], "not UTF-8 text"),
        ([str(PROFILE), "--from", "pipedream", "-o", "{folder}/no/net.json"], "no/net"),
        ([str(PROFILE), "--from", "pipedream", "-o", "{folder}"], "cannot be written"),
    ],
)
def test_bad_input_exits_2_with_a_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, argv: list[str], message: str
) -> None:
    (tmp_path / "bad.txt").write_text("\nnode1 - Linear\n")
    (tmp_path / "blob.txt").write_bytes(b"\xff\xfe\x00")
    filled = [part.format(folder=tmp_path) for part in argv]
    assert main(["import", *filled]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in " ".join(err.split())
