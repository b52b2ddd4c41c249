"""Cuts are the best there are, by enumeration and by published profiles."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpsched.core.order import topological_order
from lpsched.heuristics.cuts import Cut, Work, cut, down_sets, prefixes

PROFILES = Path(__file__).resolve().parents[2].parent / "shared" / "profiles"
SEEDS = st.integers(0, 10**6)


def random_work(rng: Random) -> Work:
    """Up to five items on up to three devices, a sequence or a DAG."""
    num_items, num_devices = rng.randint(1, 5), rng.randint(1, 3)
    before = [[j for j in range(i) if rng.random() < 0.5] for i in range(num_items)]
    states = down_sets(before) if rng.random() < 0.6 else prefixes(num_items)
    assert states is not None
    equal = [rng.randint(0, 4) for _ in range(num_items)]
    loads: list[list[int | None]] = [
        [None if rng.random() < 0.15 else rng.randint(0, 4) for _ in range(num_items)]
        for _ in range(num_devices)
    ]
    if rng.random() < 0.5:
        loads = [list(equal) for _ in loads]
    charges = [[0, *(rng.randint(0, 6) for _ in states[1:])] for _ in loads]
    charged = rng.random() < 0.4
    return Work(loads=loads, states=states, transfers=charges if charged else ())


def chains(work: Work) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Every chain of states: its maximum, number of pieces, and ends as positions."""
    full = work.states[-1]
    numbers = range(len(work.states))
    for ends in itertools.product(numbers, repeat=len(work.loads) - 1):
        before, costs = 0, []
        for device, end in enumerate((*ends, len(work.states) - 1)):
            cost = piece_cost(work, device, before, end)
            if cost is None:
                break
            costs += [cost] if end != before else []
            before = end
        else:
            assert work.states[before] == full
            yield max(costs, default=0), len(costs), (*ends, len(numbers) - 1)


def piece_cost(work: Work, device: int, before: int, end: int) -> int | None:
    """Cost of a device's piece between two states; None if it cannot be."""
    first, last = work.states[before], work.states[end]
    if first & ~last:
        return None
    loads = [
        load for i, load in enumerate(work.loads[device]) if (last & ~first) >> i & 1
    ]
    if first == last:
        return 0
    known = [load for load in loads if load is not None]
    if len(known) < len(loads):
        return None
    charged = work.transfers[device][before] if work.transfers else 0
    return max(sum(known), charged)


def positions(work: Work, found: Cut) -> tuple[int, ...]:
    return tuple(work.states.index(end) for end in found.ends)


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_a_cut_has_the_least_maximum_then_the_fewest_pieces(seed: int) -> None:
    work = random_work(Random(seed))
    found = cut(work)
    known = list(chains(work))
    if found is None:
        assert not known
        return
    least = min((maximum, pieces) for maximum, pieces, _ in known)
    assert found.maximum == least[0]
    assert (*least, positions(work, found)) in known
    assert cut(work, at_most=found.maximum) == found


@settings(deadline=None, max_examples=150)
@given(SEEDS)
def test_among_equal_devices_the_cuts_are_the_earliest(seed: int) -> None:
    rng = Random(seed)
    costs = [rng.randint(0, 4) for _ in range(rng.randint(1, 6))]
    work = Work(loads=[costs] * rng.randint(1, 4), states=prefixes(len(costs)))
    found = cut(work)
    assert found is not None
    known = list(chains(work))
    least = min(entry[:2] for entry in known)
    best = min(cuts_of(ends) for *value, ends in known if tuple(value) == least)
    assert cuts_of(positions(work, found)) == best


def cuts_of(ends: tuple[int, ...]) -> list[int]:
    """Positions of the cuts, devices left empty aside."""
    return sorted({0, *ends})


def test_an_item_sits_on_the_device_whose_piece_holds_it() -> None:
    found = cut(Work(loads=[[4, 1, 1, 2]] * 3, states=prefixes(4)))
    assert found is not None
    assert found.maximum == 4
    assert [found.device_of(i) for i in range(4)] == [0, 1, 1, 1]


def test_there_is_no_cut_where_an_item_fits_no_device_in_order() -> None:
    """The first item may run on the second device only, the second on the first."""
    assert cut(Work(loads=[[None, 1], [1, None]], states=prefixes(2))) is None
    assert cut(Work(loads=[], states=prefixes(1))) is None


def test_down_sets_hold_all_predecessors() -> None:
    """A diamond 0 -> 1, 2 -> 3 has six: {}, 0, 01, 02, 012, 0123."""
    assert down_sets([[], [0], [0], [1, 2]]) == [0, 1, 3, 5, 7, 15]


def test_too_many_down_sets_are_not_listed() -> None:
    """Items without edges: every subset is one."""
    assert len(down_sets([[]] * 6, limit=64) or ()) == 64
    assert down_sets([[]] * 6, limit=63) is None


def profile(name: str) -> tuple[list[int], list[list[int]]]:
    """Forward plus backward in microseconds, and predecessors, of a measured network.

    Inputs and sinks of ``__getitem__`` are no work.
    """
    path = PROFILES / f"{name}.txt"
    if not path.exists():
        pytest.skip("shared/profiles is not beside the project")
    times: dict[str, int] = {}
    before: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        node, *rest = line.strip().split(" -- ")
        if line.startswith("\t"):
            before[rest[0]].append(node)
        else:
            idle = rest[0].startswith("Input") or "__getitem__" in rest[0]
            found = re.findall(r"(?:forward|backward)_compute_time=([\d.]+)", line)
            times[node] = 0 if idle else sum(round(1000 * float(x)) for x in found)
            before.setdefault(node, [])
    order, _ = topological_order(before)
    place = {node: i for i, node in enumerate(order)}
    return [times[n] for n in order], [[place[j] for j in before[n]] for n in order]


@pytest.mark.parametrize(
    ("name", "total", "least"),
    [
        ("vgg16", 672_535, {2: 370_931, 4: 216_450, 8: 159_531, 16: 159_531}),
        ("resnet50", 443_419, {2: 221_933, 4: 111_497, 8: 56_684, 16: 29_642}),
    ],
)
def test_stages_of_measured_networks_are_as_balanced_as_known(
    name: str, total: int, least: dict[int, int]
) -> None:
    """Least maximum stage time of PipeDream's profiles, from their README."""
    times, before = profile(name)
    states = down_sets(before)
    assert sum(times) == total
    assert states is not None
    for num_devices, value in least.items():
        found = cut(Work(loads=[times] * num_devices, states=states))
        assert found is not None
        assert found.maximum == value


def test_one_topological_order_can_be_worse_than_all_down_sets() -> None:
    """Root 0 leads to 1 and 2: {0, 2} and {1} balance 3 and 3, no prefix does."""
    loads = [[1, 3, 2]] * 2
    along = cut(Work(loads=loads, states=prefixes(3)))
    states = down_sets([[], [0], [0]])
    assert states is not None
    across = cut(Work(loads=loads, states=states))
    assert along is not None
    assert across is not None
    assert (along.maximum, across.maximum) == (4, 3)
