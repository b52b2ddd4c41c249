"""Load balancing: the least period, its proofs, and answers when time runs out."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

import pytest
from factories import make_graph, make_op
from hypothesis import given, settings
from hypothesis import strategies as st

from lpsched.analysis.sites import Sites
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.result import Proof, Stop
from lpsched.errors import NoScheduleError, UnsupportedError
from lpsched.formulations.api import Limits
from lpsched.formulations.balance import BalanceOutcome, balance
from lpsched.formulations.balance.chains import make_chains
from lpsched.formulations.balance.items import read_problem
from lpsched.formulations.balance.patterns import fill_patterns
from lpsched.verify import check_proof

#: MACs of the layers, batch 1: VGG-16 at 224 x 224 and AlexNet as in torchvision
#: (output positions x output channels x input channels x kernel area).
VGG16 = (
    [86_704_128, 1_849_688_064, 924_844_032, 1_849_688_064, 924_844_032]
    + [1_849_688_064] * 2
    + [924_844_032, 1_849_688_064, 1_849_688_064]
    + [462_422_016] * 3
    + [102_760_448, 16_777_216, 4_096_000]
)
ALEXNET = [
    *(70_276_800, 223_948_800, 112_140_288, 149_520_384, 99_680_256),
    *(37_748_736, 16_777_216, 4_096_000),
]


def halved_inputs(layers: Sequence[int], devices: int) -> Graph:
    """F and W whole, I in two halves; the first layer has no I."""
    ops: dict[str, int] = {}
    for n, macs in enumerate(layers, start=1):
        ops |= {f"F{n}": macs, f"W{n}": macs}
        if n > 1:
            ops |= {f"I{n}.0": (macs + 1) // 2, f"I{n}.1": macs // 2}
    return make_graph(ops, devices=devices)


def loads_of(graph: Graph, placement: Mapping[OpId, DeviceId]) -> dict[DeviceId, int]:
    """Loads of a placement, which must be complete and legal."""
    loads = dict.fromkeys(graph.device_ids, 0)
    for op in graph.ops:
        if graph.occupies_device(op.id):
            device = placement[op.id]
            assert device in graph.allowed(op.id)
            loads[device] += graph.duration(op.id, device)
    for group in graph.colocate:
        assert len({placement[op] for op in group}) == 1
    return loads


def check(graph: Graph, outcome: BalanceOutcome, *, lower: int = 0) -> None:
    """What must hold of every outcome, however it ended."""
    highest = max(loads_of(graph, outcome.placement).values(), default=0)
    assert outcome.period == max(highest, lower, 1)
    assert outcome.bound <= outcome.period
    assert outcome.proved == (outcome.bound == outcome.period)
    assert (outcome.stop is Stop.PROVED) == outcome.proved
    assert outcome.bound == max(outcome.proof.value or 1, lower)
    check_certificate(graph, outcome.proof)


def check_certificate(graph: Graph, proof: Proof) -> None:
    """The verifier accepts every certificate, and a plain recount agrees."""
    if proof.kind in {"exhaustion", "trivial"}:
        return
    assert proof.value is not None
    assert proof.certificate is not None
    assert check_proof(graph, "period", proof.value, proof).accepted
    if proof.kind == "packing":
        recount(graph, proof)


def recount(graph: Graph, proof: Proof) -> None:
    """Least ticks of a set of items that weighs more than the capacity, by weight."""
    assert proof.certificate is not None
    refuted, capacity = proof.certificate["refuted"], proof.certificate["capacity"]
    assert proof.value == refuted + 1
    most = capacity + 1
    least = [0, *[refuted + 1] * most]
    total = 0
    for item in proof.certificate["items"]:
        ticks = sum(graph.duration(op, graph.allowed(op)[0]) for op in item)
        weight = proof.certificate["weights"][str(ticks)]
        total += weight
        for w in range(most, 0, -1):
            least[w] = min(least[w], least[max(0, w - weight)] + ticks)
    assert least[most] > refuted
    assert total > capacity * len(proof.certificate["devices"])


def least_by_brute_force(graph: Graph) -> int:
    """The least highest load of all placements."""
    ops = [op.id for op in graph.ops if graph.occupies_device(op.id)]
    highest = []
    for devices in itertools.product(*map(graph.allowed, ops)):
        placed = dict(zip(ops, devices, strict=True))
        if all(len({placed[op] for op in group}) == 1 for group in graph.colocate):
            loads = dict.fromkeys(graph.device_ids, 0)
            for op, device in placed.items():
                loads[device] += graph.duration(op, device)
            highest.append(max(loads.values()))
    return max(1, min(highest))


def equal_devices(rng: Random) -> Graph:
    """Up to nine ops of few sizes on two or three devices."""
    sizes = rng.sample(range(1, 40), 3)
    durations = [rng.choice(sizes) for _ in range(rng.randint(3, 9))]
    ops = {f"v{i}": t for i, t in enumerate(durations)}
    return make_graph(ops, devices=rng.choice([2, 3]))


def dividing_sizes(rng: Random) -> Graph:
    """Up to ten ops of which many are halves or thirds of others."""
    durations = rng.choices([2, 4, 6, 12, 15, 30], k=rng.randint(5, 10))
    ops = {f"v{i}": t for i, t in enumerate(durations)}
    return make_graph(ops, devices=rng.choice([2, 3] if len(ops) < 9 else [2]))


def unequal_devices(rng: Random) -> Graph:
    """Up to seven ops with durations and devices of their own, two of them tied."""
    names = ["d0", "d1", "d2"]
    ops = []
    for i in range(rng.randint(4, 7)):
        allowed = None if i < 2 else rng.sample(names, rng.randint(1, 3))
        scale = rng.choice([1, 6])
        durations = {d: scale * rng.randint(0 if i == 3 else 1, 9) for d in names}
        ops.append(make_op(f"v{i}", durations, devices=allowed))
    return make_graph(ops, devices=3, colocate=((OpId("v0"), OpId("v1")),))


#: What the search may use: everything, or one exact search only.
OPTIONS = {
    "everything": {},
    "patterns": {"packing": False},
    "patterns without chains": {"packing": False, "chains": False},
    "units": {"packing": False, "patterns": False},
    "units plainly": dict.fromkeys(
        ["packing", "patterns", "chains", "symmetry"], False
    ),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("family", [equal_devices, dividing_sizes, unequal_devices])
def test_small_cases_agree_with_all_placements(
    family: Callable[[Random], Graph], options: Mapping[str, bool]
) -> None:
    for seed in range(15):
        graph = family(Random(seed))
        outcome = balance(graph, Limits(options=options))
        check(graph, outcome)
        assert outcome.proved
        assert outcome.period == least_by_brute_force(graph)


@pytest.mark.parametrize(
    ("devices", "period"),
    [
        (6, 7_732_723_712),
        (7, 6_705_119_232),
        (8, 5_797_052_416),
        (9, 5_189_402_624),
    ],
)
def test_vgg16_reaches_the_best_known_periods(devices: int, period: int) -> None:
    """Values of the project's design, section 5."""
    outcome = balance(halved_inputs(VGG16, devices), Limits())
    assert (outcome.period, outcome.bound) == (period, period)


@pytest.mark.parametrize("devices", [1, 2, *range(5, 17)])
def test_vgg16_is_proved_by_certificates_that_a_recount_confirms(devices: int) -> None:
    graph = halved_inputs(VGG16, devices)
    outcome = balance(graph, Limits())
    check(graph, outcome)
    assert outcome.proved
    assert outcome.proof.kind in {"resource", "packing"}


@pytest.mark.parametrize("devices", [3, 4])
def test_vgg16_on_few_devices_is_proved_by_exhaustion(devices: int) -> None:
    """There ops divided into fractional packings would reach the load bound."""
    graph = halved_inputs(VGG16, devices)
    outcome = balance(graph, Limits())
    check(graph, outcome)
    assert outcome.proved
    assert outcome.proof.kind == "exhaustion"
    load_bound = -(
        -sum(t for op in graph.ops if (t := ticks_of(graph, op.id))) // devices
    )
    assert load_bound < outcome.period < load_bound * 1.0001


def ticks_of(graph: Graph, op: OpId) -> int:
    """Ticks of an op that takes as long everywhere."""
    return graph.duration(op, graph.device_ids[0])


@pytest.mark.parametrize("devices", [1, 2, 5, 6, 8, *range(10, 17)])
def test_alexnet_is_proved_by_certificates_that_a_recount_confirms(
    devices: int,
) -> None:
    graph = halved_inputs(ALEXNET, devices)
    outcome = balance(graph, Limits())
    check(graph, outcome)
    assert outcome.proved
    assert outcome.proof.kind in {"resource", "packing"}


def test_chains_leave_few_ways_to_fill_a_device() -> None:
    """The figures in `chains`: VGG-16 on 10 devices at its least period."""
    graph = halved_inputs(VGG16, 10)
    problem = read_problem(Sites.of(graph))
    period = 4_640_997_376 // problem.unit
    found = fill_patterns(make_chains(problem), [1] * 10, period)
    assert found is not None
    assert [len(group.units) for group in found] == [380]
    assert fill_patterns(make_chains(problem, join=False), [1] * 10, period) is None


def test_loads_are_multiples_of_what_divides_all_durations() -> None:
    """Three ops of 10 on two devices: 20, though half of the work is 15."""
    graph = make_graph({"a": 10, "b": 10, "c": 10}, devices=2)
    outcome = balance(graph, Limits())
    check(graph, outcome)
    assert (outcome.period, outcome.proved, outcome.proof.kind) == (20, True, "packing")


def balance_within(graph: Graph, parts: int) -> BalanceOutcome:
    """Search until the gap is at most a part of the period, a minute at most."""
    enough = threading.Event()

    def progress(period: int | None, bound: int | None) -> None:
        if (
            period is not None
            and bound is not None
            and (period - bound) * parts <= period
        ):
            enough.set()

    return balance(graph, Limits(), progress=progress, interrupt=enough)


def test_many_ops_on_many_devices_come_close_to_the_load_bound() -> None:
    rng = Random(0)
    ops = {f"v{i}": rng.randint(10**3, 10**7) for i in range(1500)}
    graph = make_graph(ops, devices=64)
    outcome = balance_within(graph, 100_000)
    check(graph, outcome)
    assert outcome.stop is not Stop.TIME_LIMIT


def test_devices_of_several_speeds_come_close_to_the_assignment_bound() -> None:
    rng = Random(0)
    speeds = [1, 1, 2, 2, 3, 4]
    names = [f"d{d}" for d in range(6)]
    work = [rng.randint(10**4, 10**6) for _ in range(60)]
    ops = [
        make_op(f"v{i}", {d: -(-w // s) for d, s in zip(names, speeds, strict=True)})
        for i, w in enumerate(work)
    ]
    graph = make_graph(ops, devices=6)
    outcome = balance_within(graph, 1_000)
    check(graph, outcome)
    assert outcome.proof.kind == "assignment"
    assert outcome.stop is not Stop.TIME_LIMIT


def test_the_largest_durations_that_formats_allow_stay_exact() -> None:
    """All ticks together are 2^53 - 1; the best is a 9 against b 7 1."""
    half = (2**53 - 18) // 2
    graph = make_graph({"a": half, "b": half, "c": 7, "d": 9, "e": 1}, devices=2)
    outcome = balance(graph, Limits())
    check(graph, outcome)
    assert (outcome.period, outcome.proved) == (half + 9, True)


def test_durations_beyond_exact_floats_are_refused() -> None:
    graph = make_graph({"a": 1}).replace(ops=(make_op("a", 2**60),))
    with pytest.raises(UnsupportedError, match="use a longer one"):
        balance(graph, Limits())


def hard_case() -> Graph:
    """Sixty ops, each with a duration of its own on each of eight devices."""
    rng = Random(5)
    names = [f"d{d}" for d in range(8)]
    return make_graph(
        [
            make_op(f"v{i}", {d: rng.randint(100, 9_999) for d in names})
            for i in range(60)
        ],
        devices=8,
    )


def test_without_time_there_still_are_a_placement_and_a_true_bound() -> None:
    graph = hard_case()
    outcome = balance(graph, Limits(seconds=0.0))
    check(graph, outcome)
    assert outcome.stop is Stop.TIME_LIMIT
    better = balance(graph, Limits(seconds=1.0))
    assert outcome.bound <= better.bound <= better.period <= outcome.period


def test_an_interrupt_keeps_what_there_is() -> None:
    interrupt = threading.Event()
    interrupt.set()
    graph = hard_case()
    outcome = balance(graph, Limits(), interrupt=interrupt)
    check(graph, outcome)
    assert outcome.stop is Stop.INTERRUPTED


def test_an_interrupt_stops_a_running_search() -> None:
    """The limit is an hour."""
    interrupt = threading.Event()
    graph = hard_case()
    timer = threading.Timer(1.0, interrupt.set)
    timer.start()
    outcome = balance(graph, Limits(seconds=3600.0), interrupt=interrupt)
    timer.join()
    check(graph, outcome)
    assert outcome.stop is Stop.INTERRUPTED


def test_progress_only_improves_and_ends_with_the_answer() -> None:
    seen: list[tuple[int, int]] = []

    def progress(period: int | None, bound: int | None) -> None:
        assert period is not None
        assert bound is not None
        seen.append((period, bound))

    outcome = balance(halved_inputs(ALEXNET, 3), Limits(), progress=progress)
    periods, bounds = zip(*seen, strict=True)
    assert list(periods) == sorted(periods, reverse=True)
    assert list(bounds) == sorted(bounds)
    assert seen[-1] == (outcome.period, outcome.bound)


def test_the_same_search_twice_gives_the_same_placement() -> None:
    graph = halved_inputs(ALEXNET, 7)
    first, second = (balance(graph, Limits()) for _ in range(2))
    assert first.placement == second.placement
    assert first.proof == second.proof


def test_a_best_placement_given_is_kept() -> None:
    """The mirror image of the placement that would be found without it."""
    graph = make_graph({"a": 4, "b": 2, "c": 2}, devices=2)
    given_placement = {
        OpId(op): DeviceId(device)
        for op, device in {"a": "d1", "b": "d0", "c": "d0"}.items()
    }
    outcome = balance(graph, Limits(), upper=given_placement)
    assert outcome.placement == given_placement
    assert balance(graph, Limits()).placement != given_placement


@pytest.mark.parametrize(
    "placement",
    [{"a": "d0"}, {"a": "d0", "b": "d1"}, {"a": "d2", "b": "d2"}, {"a": "x", "b": "x"}],
    ids=["incomplete", "parted", "not allowed", "unknown device"],
)
def test_an_illegal_placement_given_is_refused(placement: Mapping[str, str]) -> None:
    ops = [make_op(name, 1, devices=["d0", "d1"]) for name in "ab"]
    graph = make_graph(ops, devices=3, colocate=((OpId("a"), OpId("b")),))
    upper = {OpId(op): DeviceId(device) for op, device in placement.items()}
    with pytest.raises(ValueError, match="no legal device for a, b"):
        balance(graph, Limits(), upper=upper)


def test_a_bound_from_elsewhere_is_enough_if_loads_keep_below_it() -> None:
    """Loads of 4 are possible; a cycle of the graph may demand a period of 7."""
    graph = make_graph({"a": 4, "b": 4}, devices=2)
    outcome = balance(graph, Limits(), lower=7)
    check(graph, outcome, lower=7)
    assert (outcome.period, outcome.proved) == (7, True)


def test_a_search_ends_at_a_bound_from_elsewhere() -> None:
    """Half of the work is 250: with a bound of 300 LPT is good enough."""
    rng = Random(0)
    graph = make_graph({f"v{i}": rng.randint(1, 20) for i in range(48)}, devices=2)
    outcome = balance(graph, Limits(seconds=0.0), lower=300)
    assert (outcome.period, outcome.stop) == (300, Stop.PROVED)


def test_ops_that_share_a_device_need_one_that_is_allowed_to_all() -> None:
    ops = [make_op("a", 1, devices=["d0"]), make_op("b", 1, devices=["d1"])]
    graph = make_graph(ops, devices=2, colocate=((OpId("a"), OpId("b")),))
    with pytest.raises(NoScheduleError, match="no device is allowed to all of a, b"):
        balance(graph, Limits())


@pytest.mark.parametrize(
    "durations", [[], [0, 0], [5]], ids=["none", "zero", "nowhere"]
)
def test_without_work_on_devices_the_period_is_one(durations: Iterable[int]) -> None:
    ops = [
        make_op(f"v{i}", t, devices=[] if t else None) for i, t in enumerate(durations)
    ]
    graph = make_graph(ops, devices=2)
    outcome = balance(graph, Limits())
    check(graph, outcome)
    assert (outcome.period, outcome.proved) == (1, True)


@settings(deadline=None, max_examples=40)
@given(
    durations=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    devices=st.integers(1, 3),
    factor=st.integers(2, 1000),
)
def test_scaled_durations_scale_the_period(
    durations: list[int], devices: int, factor: int
) -> None:
    plain = make_graph({f"v{i}": t for i, t in enumerate(durations)}, devices=devices)
    scaled = make_graph(
        {f"v{i}": t * factor for i, t in enumerate(durations)}, devices=devices
    )
    one, other = balance(plain, Limits()), balance(scaled, Limits())
    assert one.proved
    assert other.proved
    assert other.period == factor * one.period
