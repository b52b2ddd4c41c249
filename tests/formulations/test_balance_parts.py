"""The parts of load balancing: chains, patterns, pruning and local search."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random

import pytest
from factories import make_graph, make_op
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python.cp_model import CpModel

from lpsched.analysis.load_bounds import assignment_bound
from lpsched.analysis.sites import Sites
from lpsched.core.graph import Graph
from lpsched.core.result import Proof
from lpsched.errors import SolverError
from lpsched.formulations.api import Limits
from lpsched.formulations.balance.chains import make_chains
from lpsched.formulations.balance.construct import greedy, multifit
from lpsched.formulations.balance.exact import search_neighbourhoods, search_units
from lpsched.formulations.balance.improve import descend, split_evenly
from lpsched.formulations.balance.items import Problem, read_problem
from lpsched.formulations.balance.patterns import fill_patterns
from lpsched.formulations.balance.prune import prune
from lpsched.formulations.balance.run import run
from lpsched.formulations.balance.state import State
from lpsched.formulations.deadline import Deadline

FOREVER = Deadline(3600.0, None)


def problem_of(graph: Graph) -> Problem:
    return read_problem(Sites.of(graph))


def equal_devices(durations: Sequence[int], devices: int) -> Problem:
    ops = {f"v{i}": t for i, t in enumerate(durations)}
    return problem_of(make_graph(ops, devices=devices))


def unequal_graph(rng: Random) -> Graph:
    """Five ops with a duration of their own on each of three devices."""
    names = ["d0", "d1", "d2"]
    ops = [make_op(f"v{i}", {d: rng.randint(1, 9) for d in names}) for i in range(5)]
    return make_graph(ops, devices=3)


def can_pack(items: Sequence[int], room: Sequence[int]) -> bool:
    """Whether items fit into devices of so much room, by trying all placements."""
    for where in itertools.product(range(len(room)), repeat=len(items)):
        used = [0] * len(room)
        for size, d in zip(items, where, strict=True):
            used[d] += size
        if all(u <= r for u, r in zip(used, room, strict=True)):
            return True
    return False


def test_kinds_that_divide_each_other_form_chains() -> None:
    """Two is a half of 4, a quarter of 8; 3 is a half of 6; 5 divides nothing."""
    problem = equal_devices([8, 4, 4, 2, 2, 5, 3, 3, 6], 2)
    chains = {c.sizes: c.profile[0] for c in make_chains(problem)}
    assert chains == {(1, 2, 4): 2, (1,): 5, (1, 2): 3}
    assert len(make_chains(problem, join=False)) == 6


def test_few_small_items_are_not_joined_to_a_large_one() -> None:
    """7 units for one item leave more values than counting both kinds apart."""
    assert len(make_chains(equal_devices([7, 7, 1, 1], 2))) == 2


@settings(deadline=None, max_examples=150)
@given(
    counts=st.lists(st.integers(0, 2), min_size=3, max_size=3),
    ratios=st.lists(st.integers(2, 3), min_size=2, max_size=2),
    room=st.lists(st.integers(0, 14), min_size=3, max_size=3),
)
def test_chains_unpack_exactly_where_the_items_fit(
    counts: list[int], ratios: list[int], room: list[int]
) -> None:
    sizes = [1, ratios[0], ratios[0] * ratios[1]]
    items = [s for s, n in zip(sizes, counts, strict=True) for _ in range(n)]
    problem = equal_devices(items or [1], 3)
    fits = can_pack([p[0] or 0 for p in problem.profiles], room)
    if len(make_chains(problem)) != 1:
        return  # too few small items to be joined
    (chain,) = make_chains(problem)
    by_blocks = all(
        sum(u // size for u in room) >= need
        for size, need in zip(chain.sizes, chain.needs, strict=True)
    )
    assert by_blocks == fits
    if not fits:
        with pytest.raises(ValueError, match="find no room"):
            chain.unpack(room)
        return
    where = chain.unpack(room)
    used = [0] * len(room)
    for item, d in where.items():
        used[d] += problem.profiles[item][0] or 0
    assert sorted(where) == list(range(len(problem.items)))
    assert all(u <= r for u, r in zip(used, room, strict=True))


def test_patterns_contain_every_device_of_every_placement_within_the_period() -> None:
    for seed in range(20):
        graph = unequal_graph(Random(seed))
        problem = problem_of(graph)
        chains = make_chains(problem, join=False)
        bound = assignment_bound(Sites.of(graph))
        assert bound is not None
        assert bound.proof.certificate is not None
        weights = [
            bound.proof.certificate["weights"].get(d, 0) for d in problem.devices
        ]
        period = -(-bound.value // problem.unit) + 1
        found = fill_patterns(chains, weights, period)
        assert found is not None
        rows = {g.devices[0]: {tuple(r) for r in g.units.tolist()} for g in found}
        for where in itertools.product(range(3), repeat=len(problem.items)):
            if max(problem.loads(where)) <= period:
                for d in range(3):
                    units = tuple(
                        sum(where[i] == d for i in chain.items[0]) for chain in chains
                    )
                    assert units in rows[d]


def test_patterns_are_few_where_the_period_is_tight() -> None:
    """Two devices of 10: 6 4 or 5 5 on each, in all 20 of 20 ticks."""
    chains = make_chains(equal_devices([6, 4, 5, 5], 2), join=False)
    found = fill_patterns(chains, [1, 1], 10)
    assert found is not None
    (group,) = found
    ticks = [chain.profile[0] for chain in chains]
    fillings = {
        tuple(sorted(t for t, n in zip(ticks, row, strict=True) for _ in range(n) if t))
        for row in group.units.tolist()
    }
    assert fillings == {(4, 6), (5, 5)}


def test_too_many_patterns_are_refused() -> None:
    rng = Random(0)
    chains = make_chains(equal_devices([rng.randint(1, 10**6) for _ in range(99)], 3))
    assert fill_patterns(chains, [1, 1, 1], 10**8) is None


def test_pruning_keeps_every_placement_within_the_load() -> None:
    for seed in range(20):
        graph = unequal_graph(Random(seed))
        problem = problem_of(graph)
        weights = [3, 1, 2]
        loads = {
            where: max(problem.loads(where))
            for where in itertools.product(range(3), repeat=len(problem.items))
        }
        least = min(loads.values())
        for load in (least, least + 2):
            core = prune(problem, weights, load)
            for where, highest in loads.items():
                if highest <= load:
                    assert max(core.loads(where)) == highest


def test_pruning_finds_the_only_device_left() -> None:
    """Each op takes 1 at home and 9 away; with loads <= 2 all stay at home."""
    ops = [
        make_op(f"v{i}", {"d0": 1 if i < 2 else 9, "d1": 9 if i < 2 else 1})
        for i in range(4)
    ]
    core = prune(problem_of(make_graph(ops, devices=2)), [1, 1], 2)
    assert core.profiles == ((1, None), (1, None), (None, 1), (None, 1))


def test_differencing_splits_the_textbook_example() -> None:
    """8 7 6 5 4 leave a difference of 2 (Karmarkar and Karp): 16 and 14."""
    first = split_evenly([8, 7, 6, 5, 4])
    assert sorted([sum([8, 7, 6, 5, 4][i] for i in first), 14, 16])[1] in {14, 16}


def test_differencing_makes_up_for_a_head_start() -> None:
    """The first side is 10 ahead: it gets nothing of 6 and 4."""
    assert split_evenly([6, 4], ahead=10) == []
    assert split_evenly([6, 4], ahead=-10) == [0, 1]


@settings(deadline=None, max_examples=60)
@given(
    durations=st.lists(st.integers(1, 50), min_size=1, max_size=12),
    devices=st.integers(1, 4),
)
def test_local_search_never_raises_the_loads(
    durations: list[int], devices: int
) -> None:
    problem = equal_devices(durations, devices)
    before = greedy(problem)
    after = descend(problem, before, goal=0, deadline=FOREVER)
    assert sum(problem.loads(after)) == sum(problem.loads(before))
    assert sorted(problem.loads(after), reverse=True) <= sorted(
        problem.loads(before), reverse=True
    )


def test_a_better_split_is_found_where_no_single_exchange_helps() -> None:
    """LPT: 3 3 2 2 2 as 7 and 5; the best is 6 and 6, by exchange or split."""
    problem = equal_devices([3, 3, 2, 2, 2], 2)
    assert max(problem.loads(greedy(problem))) == 7
    better = descend(problem, greedy(problem), goal=6, deadline=FOREVER)
    assert problem.loads(better) == [6, 6]


def test_first_fit_into_a_bisected_capacity_beats_longest_first() -> None:
    """LPT gives 7 for 3 3 2 2 2 on two devices, MULTIFIT 6."""
    problem = equal_devices([3, 3, 2, 2, 2], 2)
    where = multifit(problem, [1, 1], low=6, high=12, deadline=FOREVER)
    assert where is not None
    assert max(problem.loads(where)) == 6


def test_no_capacity_below_the_longest_item_will_do() -> None:
    problem = equal_devices([30, 10, 20], 2)
    assert problem.unit == 10
    assert multifit(problem, [1, 1], low=1, high=2, deadline=FOREVER) is None


def state_of(graph: Graph, *, lower: int = 0, seconds: float = 3600.0) -> State:
    sites = Sites.of(graph)
    return State(
        sites,
        read_problem(sites),
        limits=Limits(),
        deadline=Deadline(seconds, None),
        lower=lower,
        progress=None,
    )


def test_neighbourhoods_relieve_the_busiest_device() -> None:
    """All ten items start on one of six devices."""
    graph = make_graph({f"v{i}": t for i, t in enumerate([9, 8, 7, 5] * 5)}, devices=6)
    state = state_of(graph)
    state.offer((0,) * 20)
    assert state.highest == 145
    search_neighbourhoods(state)
    assert state.highest <= 29  # half of what two devices had


def test_a_search_from_no_bound_at_all_finds_the_least_load() -> None:
    """The first loads tried are too low for the work alone."""
    for seed in range(5):
        state = state_of(unequal_graph(Random(seed)))
        state.weights = (2, 3, 2)
        state.offer(greedy(state.problem))
        search_units(state)
        assert state.is_proved
        assert state.highest == min(
            max(state.problem.loads(where))
            for where in itertools.product(range(3), repeat=5)
        )


def test_a_bound_above_a_placement_is_an_error() -> None:
    state = state_of(make_graph({"a": 4, "b": 4}, devices=2))
    state.offer((0, 1))
    with pytest.raises(
        SolverError, match=r"bound of 5 .* contradicts a placement of 4"
    ):
        state.raise_bound(Proof(kind="exhaustion", value=5))


def test_a_model_that_the_solver_refuses_is_an_error() -> None:
    """A sum that may leave 64-bit integers."""
    model = CpModel()
    x = model.new_int_var(0, 2**61, "x")
    model.add(8 * x <= 7)
    with pytest.raises(SolverError, match="refuses the model") as raised:
        run(model, Limits(), FOREVER)
    assert raised.value.model
