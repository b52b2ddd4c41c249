"""PipeDream's profiles: what becomes of each line, and the measured networks."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from lpsched.core.graph import Graph
from lpsched.core.io import network_from_document, network_to_document
from lpsched.core.network import Network
from lpsched.errors import FormatError
from lpsched.heuristics import METHODS, pipedream
from lpsched.network import compile_network
from lpsched.network.coarsen import coarsened
from lpsched.network.readers import BackwardSplit, profile_text, read_pipedream, source
from lpsched.verify import verify

DATA = Path(__file__).resolve().parents[1] / "data"
PROFILES = Path(__file__).resolve().parents[2].parent / "shared" / "profiles"
ASYNCHRONOUS = ("sequential", "pipedream", "layerpipe", "list")
META = (
    "forward_compute_time=1.0, backward_compute_time=2.0, activation_size=4.0,"
    " parameter_size=8.0"
)


def small(split_backward: BackwardSplit = Fraction(1, 2)) -> Network:
    """Read the small profile of the tests."""
    text = (DATA / "profile_small.txt").read_text()
    return read_pipedream(
        text, source="profile_small.txt", split_backward=split_backward
    ).document


def times(network: Network) -> dict[str, list[object]]:
    """F, I and W of each layer."""
    return {x.name: [x.forward, x.input_grad, x.weight_grad] for x in network.layers}


def test_a_profile_becomes_a_network_in_microseconds() -> None:
    """By hand: inputs and the sink node6 are gone, the DAG is kept.

    conv2 reads only the input: all backward is W. ReLU and Concat have no parameters:
    all is I. Of LSTM's 5,503 and Linear's 1,001 half is I, halves up: 2,752 and 501.
    """
    network = small()
    assert times(network) == {
        "node2_Conv2d": [1250, None, 2501],
        "node3_ReLU": [200, 100, None],
        "node4_LSTM": [3000, 2752, 2751],
        "node5_getitem": [0, 0, None],
        "node7_hidden": [0, None, None],
        "node8_Concat": [10, 20, None],
        "node9_Linear": [500, 501, 500],
    }
    by_name = network.layer_by_name
    assert by_name["node2_Conv2d"].inputs == ()
    assert set(by_name["node8_Concat"].inputs) == {
        "node3_ReLU", "node5_getitem", "node7_hidden",
    }  # fmt: skip
    assert by_name["node4_LSTM"].output == 280
    assert by_name["node4_LSTM"].parameters == 320
    assert (network.time_unit, network.size_unit) == ("us", "byte")
    assert "1/2" not in str(network.origin)
    assert "0.5" in str(network.origin)


def test_what_a_module_keeps_follows_from_its_kind() -> None:
    saves = {x.name: x.saves for x in small().layers}
    assert saves["node2_Conv2d"] == "none"
    assert saves["node3_ReLU"] == "output"
    assert saves["node4_LSTM"] is None


def test_the_backward_time_is_divided_as_asked() -> None:
    """By share: all to W, all to I; by bytes: LSTM writes 400 as I and 320 as W."""
    assert times(small(Fraction(0)))["node4_LSTM"] == [3000, 0, 5503]
    assert times(small(Fraction(1)))["node4_LSTM"] == [3000, 5503, 0]
    by_bytes = times(small("parameters"))
    assert by_bytes["node4_LSTM"] == [3000, 3057, 2446]  # 5503 * 400 / 720 = 3057.2
    assert by_bytes["node9_Linear"] == [500, 410, 591]  # 1001 * 200 / 488 = 410.2
    assert by_bytes["node2_Conv2d"] == [1250, None, 2501]


def test_what_was_left_out_is_told() -> None:
    text = (DATA / "profile_small.txt").read_text()
    remarks = read_pipedream(text, source="p.txt").remarks
    assert remarks == (
        "9 nodes read, 7 layers kept",
        "node1 (Input0) is no work: its 63.5 ms are left out",
        "the file's stage_id are left out: a network has no stages",
    )


def test_rounding_is_told() -> None:
    line = f"a -- Linear -- {META}".replace("time=1.0", "time=0.0014", 1)
    imported = read_pipedream(line, source="p.txt")
    assert imported.document.layers[0].forward == 1
    assert imported.remarks[1:] == (
        "rounding to microseconds: at most 0.4 a time, 0.4 in all",
    )


def test_a_backward_time_that_nothing_needs_is_kept() -> None:
    """Neither parameters nor an input that learns: all work stays, as I."""
    line = f"a -- Dropout -- {META}".replace("parameter_size=8.0", "parameter_size=0")
    (layer,) = read_pipedream(line, source="p.txt").document.layers
    assert layer.input_grad == 2000
    assert layer.weight_grad is None


def test_sinks_behind_sinks_are_left_out_too_but_not_what_leads_elsewhere() -> None:
    nodes = [f"n{i} -- __getitem__({i}) -- {META}" for i in range(3)]
    edges = ["\tx -- n0", "\tn0 -- n1", "\tx -- n2", "\tn2 -- y"]
    ends = [f"x -- LSTM -- {META}", f"y -- Linear -- {META}"]
    text = "\n".join([ends[0], *nodes, ends[1], *edges])
    network = read_pipedream(text, source="p.txt").document
    names = [layer.name for layer in network.layers]
    assert names == ["x_LSTM", "n2_getitem", "y_Linear"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("vgg16.txt", "vgg16"),
        ("profiles/gnmt/graph.txt", "gnmt"),
        ("graph.txt", "graph"),
        ("a b.txt", "a_b"),
        ("-.txt", "-"),
    ],
)
def test_a_network_is_named_after_its_file(path: str, name: str) -> None:
    line = f"a -- Linear -- {META}"
    assert read_pipedream(line, source=path).document.name == name


def test_names_that_files_may_not_use_are_replaced_and_stay_apart() -> None:
    text = f"a.1 -- Linear -- {META}\na/1 -- Linear -- {META}\n"
    network = read_pipedream(text, source="p.txt").document
    assert [x.name for x in network.layers] == ["a_1_Linear", "a_1_Linear_2"]
    assert network_from_document(network_to_document(network)) == network


def test_the_text_may_end_without_a_line_and_lines_in_another_way() -> None:
    text = f"a -- Linear -- {META}\r\nb -- Linear -- {META}\r\n\ta -- b"
    network = read_pipedream(text.replace("\r\n", "\n"), source="p.txt").document
    assert network.layers[1].inputs == ("a_Linear",)
    assert read_pipedream(text, source="p.txt").document == network


def faults(text: str) -> list[str]:
    """Faults of a file, each with its line."""
    with pytest.raises(FormatError) as caught:
        read_pipedream(text, source="bad.txt")
    assert str(caught.value).startswith("bad.txt: ")
    return [str(fault) for fault in caught.value.faults]


GOOD = f"a -- Linear -- {META}\nb -- Linear -- {META}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no node; expected lines"),
        ("\n \n", "no node; expected lines"),
        ("a -- Conv2d(3, 64, ker", "line 1: expected a node"),
        (f"a -- Linear -- {META[:-10]}", "line 1: expected each of"),
        (f"a -- Linear -- {META[:60]}", "line 1: expected each of"),
        ("a -- Linear -- forward_compute_time=1.0", "line 1: required, but missing"),
        (f"a - Linear - {META}", "line 1: expected a node"),
        (f"a, Linear, {META}", "line 1: expected a node"),
        (f"a -- x -- y -- {META} -- stage_id=1", "line 1: expected a node"),
        (GOOD + "    a -- b", "line 3: expected a node `ID -- DESCRIPTION"),
        (GOOD + "\ta b", "line 3: expected an edge `ID -- ID`"),
        (GOOD + "\ta -- b -- c", "line 3: expected an edge `ID -- ID`"),
        (GOOD + "\ta -- c", "line 3: an edge of the unknown node 'c'"),
        (GOOD + "\ta -- b\n\tb -- a", "the edges form a cycle"),
        (GOOD + "\ta -- a", "line 3: the edges form a cycle: a -> a"),
        (GOOD + GOOD, "line 3: the node 'a' stands in line 1 already"),
        (GOOD + f"c -- x -- {META} -- stage_id=one", "line 3: expected stage_id"),
        (GOOD.replace("time=1.0", "time=nan", 1), "line 1: forward_compute_time: exp"),
        (GOOD.replace("time=2.0", "time=-2.0", 1), "line 1: backward_compute_time: "),
        (GOOD.replace("size=4.0", "size=inf", 1), "line 1: activation_size: expected"),
        (GOOD.replace("size=4.0", "size=[1.0; x]", 1), "line 1: activation_size: "),
        (GOOD.replace("size=4.0", "size=[1.0", 1), "line 1: activation_size: "),
        (GOOD.replace("size=8.0", "size=1e30", 1), "line 1: parameter_size: expected"),
        (GOOD.replace("size=8.0", "size=", 1), "line 1: parameter_size: expected"),
        (GOOD.replace("size=8.0", "size=1_000", 1), "line 1: parameter_size: "),
        (f"a -- Input -- {META}", "no node is left that does any work"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(text: str, expected: str) -> None:
    found = faults(text)
    assert any(expected in fault for fault in found), found


def test_all_faults_come_at_once() -> None:
    text = GOOD.replace("time=1.0", "time=nan") + "\ta -- c\n\td -- b\nrubbish\n"
    lines = [fault.split(":")[0] for fault in faults(text + "\tb -- b\n")]
    assert sorted(lines) == [f"line {n}" for n in range(1, 7)]


def test_every_fault_of_a_line_is_told() -> None:
    """A wrong key, and the number after it; the key that is missing, too."""
    text = META.replace("forward_", "fore_").replace("size=4.0", "size=x")
    found = "\n".join(faults(f"a -- Linear -- {text}"))
    assert "got 'fore_compute_time=" in found
    assert "activation_size: expected a number" in found
    assert "required, but missing: forward_compute_time" in found


def test_a_million_faults_are_cut_short() -> None:
    found = faults("rubbish\n" * 1000)
    assert len(found) == 51
    assert found[-1] == "and 950 faults more"


def test_a_long_cycle_is_told_in_short() -> None:
    count = 1000
    nodes = [f"n{i} -- Linear -- {META}" for i in range(count)]
    edges = [f"\tn{i} -- n{(i + 1) % count}" for i in range(count)]
    (fault,) = faults("\n".join(nodes + edges))
    assert fault.startswith("line ")
    assert " -> ... -> " in fault
    assert len(fault) < 120


def test_far_too_many_nodes_or_edges_are_refused_at_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A million lines are not read to their end; the limits are made small here."""
    assert source.MAX_NODES <= 100_000
    assert profile_text.MAX_EDGES <= 1_000_000
    monkeypatch.setattr(profile_text, "MAX_NODES", 100)
    monkeypatch.setattr(profile_text, "MAX_EDGES", 200)
    nodes = "\n".join(f"n{i} -- Linear -- {META}" for i in range(10**5))
    (fault,) = faults(nodes)
    assert fault.startswith("line 101: more than 100 nodes")
    (fault,) = faults("\n".join(f"\ta -- b{i}" for i in range(1000)))
    assert fault.startswith("line 201: more than 100 nodes or 200 edges")


def profile(name: str) -> Network:
    """Read a measured profile, if it is there."""
    path = PROFILES / f"{name}.txt"
    if not path.exists():
        pytest.skip("shared/profiles is not beside the project")
    return read_pipedream(path.read_text(), source=path.name).document


def total(graph: Graph) -> int:
    """Ticks of all ops."""
    return sum(graph.duration(op.id, graph.device_ids[0]) for op in graph.ops)


@pytest.mark.parametrize(
    ("name", "layers", "work"),
    [
        ("alexnet", 22, 85_321),
        ("gnmt", 37, 89_416),
        ("resnet50", 176, 443_419),
        ("vgg16", 40, 672_535),
    ],
)
def test_measured_profiles_compile_are_solved_and_verified(
    name: str, layers: int, work: int
) -> None:
    """No microsecond is lost but those of inputs; sums as in the profiles' README."""
    network = profile(name)
    assert len(network.layers) == layers
    assert network_from_document(network_to_document(network)) == network
    graph = compile_network(network, devices=4).graph
    assert total(graph) == work
    for method in ASYNCHRONOUS:
        schedule = METHODS[method].function(graph)
        assert verify(graph, schedule) == ()
        assert schedule.period >= -(-work // 4)


@pytest.mark.parametrize(
    ("name", "periods"),
    [
        ("vgg16", {2: 370_931, 4: 216_450, 8: 159_531, 16: 159_531}),
        ("resnet50", {2: 221_933, 4: 111_497, 8: 56_684, 16: 29_642}),
    ],
)
@pytest.mark.parametrize("coarse", [False, True], ids=["fine", "coarse"])
def test_pipedream_reaches_the_known_least_maximum_to_the_microsecond(
    name: str, periods: dict[int, int], *, coarse: bool
) -> None:
    """Figures of the profiles' README; merging what costs nothing changes none."""
    network = profile(name)
    if coarse:
        fine, network = network, coarsened(network).network
        assert len(network.layers) < len(fine.layers)
    for devices, period in periods.items():
        graph = compile_network(network, devices=devices).graph
        assert pipedream(graph).period == period
