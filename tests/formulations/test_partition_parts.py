"""Each part of the set-partitioning back end alone, against brute force."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest
from placement_problems import (
    all_partitions,
    brute_force_cost,
    random_problem,
    vgg16_problem,
)

from lpsched.formulations.deadline import Deadline
from lpsched.formulations.partition import covering, relaxation
from lpsched.formulations.partition.automaton import Automaton, build_automaton
from lpsched.formulations.partition.columns import Columns, Duals, Grid, placed_items
from lpsched.formulations.partition.contraction import contract
from lpsched.formulations.partition.covering import cover
from lpsched.formulations.partition.cuts import violated_cuts
from lpsched.formulations.partition.diving import dive, dive_deep
from lpsched.formulations.partition.levels import Levels
from lpsched.formulations.partition.neighbourhoods import Neighbourhoods
from lpsched.formulations.partition.ordering import narrow_automaton
from lpsched.formulations.partition.pairs import split_pair
from lpsched.formulations.partition.pool import Pool
from lpsched.formulations.partition.prefixes import best_cover
from lpsched.formulations.partition.pricing import Pricing
from lpsched.formulations.partition.problem import (
    DeviceGroup,
    ItemSet,
    Message,
    Placed,
    Problem,
)
from lpsched.formulations.partition.relaxation import Relaxation, box_width
from lpsched.formulations.partition.sets import Sets, costs_of, loads_of
from lpsched.formulations.partition.subset_rows import Counter, Cut
from lpsched.formulations.partition.tightening import tighten

SEEDS = range(30)
UNLIMITED = Deadline(1e6)


def some_problem(seed: int, *, most_items: int = 7) -> Problem:
    return random_problem(Random(seed), twins=seed % 2 == 0, most_items=most_items)


def every_set(num_items: int) -> list[ItemSet]:
    items = range(num_items)
    return [frozenset(c) for k in range(num_items + 1) for c in combinations(items, k)]


def canonical_sets(problem: Problem) -> list[ItemSet]:
    return [s for s in every_set(problem.num_items) if problem.canonical(s) == s]


def no_duals(problem: Problem) -> Duals:
    none = np.zeros(problem.num_items, dtype=np.int64)
    return Duals(prices=none, fees=none[:0])


def some_duals(problem: Problem, rng: Random, num_cuts: int = 0) -> Duals:
    """Draw prices, equal within a class, and fees."""
    by_class = [rng.randint(-8, 20) for _ in problem.classes]
    prices = [by_class[c] for c in problem.class_of]
    fees = [rng.randint(0, 5) for _ in range(num_cuts)]
    return Duals(
        prices=np.array(prices, dtype=np.int64), fees=np.array(fees, dtype=np.int64)
    )


def some_cuts(problem: Problem, rng: Random) -> tuple[Cut, ...]:
    """Draw cuts through one to three classes."""
    found = set()
    for _ in range(4):
        if problem.num_items >= 3:
            chosen = [
                problem.class_of[v] for v in rng.sample(range(problem.num_items), 3)
            ]
            classes = sorted(set(chosen))
            found.add(
                Cut(
                    tuple(problem.classes[c] for c in classes),
                    tuple(chosen.count(c) for c in classes),
                )
            )
    return tuple(sorted(found))


def read(automaton: Automaton, items: ItemSet) -> int | None:
    """What a set is charged; None if the automaton refuses it."""
    state = total = 0
    for i, item in enumerate(automaton.order):
        choice = int(item in items)
        if choice and state in automaton.blocked[i]:
            return None
        total += int(automaton.charges[choice][i][state])
        state = int(automaton.following[choice][i][state])
    return total


def pricing_of(problem: Problem, *, cuts: tuple[Cut, ...] = ()) -> Pricing:
    automaton = build_automaton(problem, range(problem.num_items))
    assert automaton is not None
    grid = Grid(unit=1, highest=10**6)
    pricing = Pricing.of(problem, automaton, grid, most_cells=10**6)
    for cut in cuts:
        wider = pricing.with_cut(cut, most_in_all=None)
        assert wider is not None
        pricing = wider
    return pricing


def reduced_cost(
    problem: Problem, items: ItemSet, duals: Duals, cuts: tuple[Cut, ...]
) -> int:
    """By the definition: cost less prices, and a fee for each choice a cut counts."""
    total = problem.cost(items) - sum(int(duals.prices[item]) for item in items)
    for cut, fee in zip(cuts, duals.fees.tolist(), strict=True):
        choices = chosen_triples(cut)
        total += fee * sum(len(choice & items) >= 2 for choice in choices)
    return total


def chosen_triples(cut: Cut) -> list[ItemSet]:
    """Every choice of so many different items of each class of a cut."""
    choices: list[ItemSet] = [frozenset()]
    for members, picks in zip(cut.classes, cut.picks, strict=True):
        choices = [
            some | frozenset(more)
            for some in choices
            for more in combinations(members, picks)
        ]
    return choices


# -- problems ------------------------------------------------------------------
def test_exchanging_items_of_a_class_changes_no_cost() -> None:
    for seed in SEEDS:
        problem = some_problem(seed)
        for members in problem.classes:
            for a, b in combinations(members, 2):
                turn = {a: b, b: a}
                for items in every_set(problem.num_items):
                    other = frozenset(turn.get(v, v) for v in items)
                    assert problem.cost(items) == problem.cost(other)


def test_equal_halves_of_an_op_make_a_class() -> None:
    """All I but the first layer's are in two equal halves: 15 classes of two."""
    classes = vgg16_problem(8, slack=5, halves=True).classes
    assert sorted(map(len, classes)) == [1] * 32 + [2] * 15


def test_part_of_a_problem_costs_what_its_devices_receive() -> None:
    """Costs of the devices that stay put do not change when others are rearranged."""
    for seed in SEEDS:
        problem = some_problem(seed)
        if len(problem.groups) > 1 or problem.num_devices < 3:
            continue
        placed = next(all_partitions(problem), None)
        if placed is None:
            continue
        items = sorted(placed[0] | placed[1])
        part = problem.part(items, [2])
        inside = [frozenset(items.index(v) for v in placed[d]) for d in (0, 1)]
        assert sum(map(part.cost, inside)) == sum(map(problem.cost, placed[:2]))


def test_contraction_keeps_the_optimum() -> None:
    for seed in SEEDS:
        problem = some_problem(seed)
        contraction = contract(problem)
        best = brute_force_cost(contraction.problem)
        assert best == brute_force_cost(problem)


def test_contraction_never_makes_a_given_partition_dearer() -> None:
    for seed in SEEDS:
        problem = some_problem(seed, most_items=5)
        contraction = contract(problem)
        for placed in all_partitions(problem):
            shrunk = contraction.shrink(placed)
            assert contraction.problem.holds(shrunk)
            back = tuple(map(contraction.expand, shrunk))
            assert problem.holds(back)
            assert sum(map(problem.cost, back)) <= sum(map(problem.cost, placed))


def test_an_item_without_time_joins_the_only_one_that_feeds_it() -> None:
    """Item 1 takes no time and reads 5 from item 0, all that sends; it sends 3."""
    problem = Problem(
        period=4,
        num_items=3,
        groups=(DeviceGroup(count=2, loads=(2, 0, 3)),),
        messages=(
            Message(size=5, source=0, targets=frozenset({1})),
            Message(size=3, source=1, targets=frozenset({2})),
        ),
    )
    assert contract(problem).members == (frozenset({0, 1}), frozenset({2}))


# -- sets and loads ------------------------------------------------------------
def test_packed_sets_unpack_to_themselves() -> None:
    sets = [frozenset({0, 15, 16, 40}), frozenset(), frozenset({39})]
    packed = Sets.of(41, sets)
    assert packed.unpacked() == sets
    assert packed.sums(np.arange(41)).tolist() == [71, 0, 39]
    assert packed.has(16).tolist() == [True, False, False]


def test_costs_and_loads_of_many_sets_are_those_of_each() -> None:
    for seed in SEEDS:
        problem = some_problem(seed)
        sets = every_set(problem.num_items)
        packed = Sets.of(problem.num_items, sets)
        assert costs_of(problem, packed).tolist() == list(map(problem.cost, sets))
        loads = [problem.load(s, 0) for s in sets]
        assert all(
            want is None or got == want
            for got, want in zip(loads_of(problem, packed, 0), loads, strict=True)
        )


def test_levels_are_the_loads_from_which_an_end_is_in_reach() -> None:
    levels = Levels.of([3, None, 5, 1], least=4, most=6)
    assert levels is not None
    # Before the third item 0 or 3; after it 3 (1 more will do) and 5, not 0 or 8.
    assert levels.counts == (1, 2, 2, 2, 3)
    assert Levels.of([1, 2, 4, 8], least=0, most=15, most_levels=8) is None


# -- the automaton -------------------------------------------------------------
def test_the_automaton_charges_every_set_its_cost() -> None:
    for seed in SEEDS:
        problem = some_problem(seed)
        order = list(range(problem.num_items))
        Random(seed).shuffle(order)
        automaton = build_automaton(problem, order)
        assert automaton is not None
        for items in every_set(problem.num_items):
            canonical = problem.canonical(items) == items
            assert read(automaton, items) == (
                problem.cost(items) if canonical else None
            )


def test_with_the_rest_it_charges_both_sets() -> None:
    for seed in SEEDS:
        problem = some_problem(seed)
        items = range(problem.num_items)
        automaton = build_automaton(problem, items, with_rest=True)
        assert automaton is not None
        for chosen in canonical_sets(problem):
            rest = frozenset(items) - chosen
            assert read(automaton, chosen) == problem.cost(chosen) + problem.cost(rest)


def test_few_states_only_lower_charges() -> None:
    for seed in SEEDS:
        problem = some_problem(seed)
        automaton = build_automaton(problem, range(problem.num_items), most_states=4)
        if automaton is not None:
            assert max(automaton.widths) <= 4
            for items in canonical_sets(problem):
                charged = read(automaton, items)
                assert charged is not None
                assert charged <= problem.cost(items)


def test_the_automaton_of_vgg16_has_six_states_and_twelve_in_halves() -> None:
    whole, halves = vgg16_problem(8, slack=5), vgg16_problem(8, slack=5, halves=True)
    assert max(narrow_automaton(whole, most_states=99).widths) <= 6
    assert max(narrow_automaton(halves, most_states=99).widths) <= 12


# -- cuts ----------------------------------------------------------------------
def test_a_cut_counts_the_choices_that_a_set_holds_two_of() -> None:
    cut = Cut(((0, 1, 2), (4,)), (2, 1))
    choices = chosen_triples(cut)
    assert cut.most == len(choices) == 3
    for items in every_set(5):
        held = tuple(len(items & set(members)) for members in cut.classes)
        assert cut.coefficients[held] == sum(len(c & items) >= 2 for c in choices)


def test_a_counter_adds_up_to_the_coefficient_in_any_order() -> None:
    cut = Cut(((0, 1), (2, 3), (5,)), (1, 1, 1))
    rng = Random(1)
    for _ in range(20):
        order = list(cut.items)
        rng.shuffle(order)
        counter = Counter(cut, order)
        for items in every_set(6):
            state, total = counter.start, 0
            for place, item in enumerate(order):
                out, gain, into = counter.moves[place][state]
                state, gain = (into, gain) if item in items else (out, 0)
                total += gain
            held = tuple(len(items & set(members)) for members in cut.classes)
            assert total == cut.coefficients[held]


def test_no_partition_breaks_a_cut() -> None:
    for seed in SEEDS:
        problem = some_problem(seed, most_items=6)
        cuts = some_cuts(problem, Random(seed))
        for placed in all_partitions(problem):
            sets = Sets.of(problem.num_items, map(problem.canonical, placed))
            assert all(sets.coefficients(cut).sum() <= cut.most for cut in cuts)


def test_violated_cuts_are_those_that_enumeration_finds() -> None:
    """Half of each pair of three items: every triple of these is crossed 3/2 times."""
    problem = Problem(
        period=9,
        num_items=4,
        groups=(DeviceGroup(count=2, loads=(1, 2, 3, 4)),),
        messages=(),
    )
    pairs = [frozenset(pair) for pair in combinations(range(3), 2)]
    sets = Sets.of(4, [*pairs, frozenset({3})])
    levels = np.array([0.5, 0.5, 0.5, 1.0])
    found = violated_cuts(problem, sets, levels, known=(), most=9, least=0.02)
    assert found == [Cut(((0,), (1,), (2,)), (1, 1, 1))]
    assert not violated_cuts(problem, sets, levels, known=found, most=9, least=0.02)


# -- the dynamic program -------------------------------------------------------
def test_the_dynamic_program_finds_the_least_reduced_costs() -> None:
    for seed in SEEDS:
        rng, problem = Random(seed), some_problem(seed)
        cuts = some_cuts(problem, rng)
        duals = some_duals(problem, rng, len(cuts))
        pricing = pricing_of(problem, cuts=cuts)
        columns, reach = pricing.columns_within(duals, None, 6)
        found = list(zip(columns.sets.unpacked(), columns.groups, strict=True))
        for g in range(len(problem.groups)):
            legal = [
                reduced_cost(problem, items, duals, cuts)
                for items in canonical_sets(problem)
                if problem.fits(items, g)
                and (problem.load(items, g) or 0) >= problem.least_load
            ]
            got = sorted(
                reduced_cost(problem, items, duals, cuts)
                for items, of in found
                if of == g
            )
            assert got == sorted(legal)[:6]
            if len(legal) > 6:
                assert reach <= got[-1] - got[0]


def test_an_offer_never_exceeds_the_optimum() -> None:
    for seed in SEEDS:
        rng, problem = Random(seed), some_problem(seed)
        best = brute_force_cost(problem)
        cuts = some_cuts(problem, rng)
        pricing = pricing_of(problem, cuts=cuts)
        for _ in range(5):
            duals = some_duals(problem, rng, len(cuts))
            assert best is None or pricing.offer(duals, 3).bound <= best


def test_coarse_loads_give_weaker_bounds_and_no_overloaded_column() -> None:
    fine = vgg16_problem(8, slack=5)
    automaton = narrow_automaton(fine, most_states=99)
    grid = Grid.of(fine)
    exact = Pricing.of(fine, automaton, grid, most_cells=10**6)
    coarse = Pricing.of(fine, automaton, grid, most_cells=10**4)
    assert exact.coarseness == 1 < coarse.coarseness
    prices = np.full(fine.num_items, 500 * grid.unit, dtype=np.int64)
    duals = Duals(prices=prices, fees=prices[:0])
    assert coarse.offer(duals, 1).bound <= exact.offer(duals, 1).bound
    columns, _ = coarse.columns_within(duals, None, 500)
    assert all(fine.fits(items, 0) for items in columns.sets.unpacked())


# -- linear programs -----------------------------------------------------------
def test_the_relaxation_bounds_the_optimum_and_cuts_raise_it() -> None:
    """VGG-16 on 8 devices at 607: root bound 17,925 (17,924.33), optimum 19,406."""
    problem = vgg16_problem(8, slack=5)
    relaxation = Relaxation(problem, Grid.of(problem), UNLIMITED)
    root = relaxation.solve(enough=10**9)
    assert root == 17_925
    assert relaxation.cut()
    assert root < relaxation.solve(enough=10**9) <= 19_406


def pool_of_everything(problem: Problem) -> Pool:
    pricing = pricing_of(problem)
    columns, _ = pricing.columns_within(no_duals(problem), None, 10**6)
    return Pool(problem=problem, grid=Grid.of(problem), columns=columns)


def test_a_pool_of_all_sets_prices_as_the_dynamic_program_does() -> None:
    for seed in SEEDS:
        rng, problem = Random(seed), some_problem(seed)
        pool = pool_of_everything(problem)
        pricing = Pricing.of(
            problem,
            narrow_automaton(problem, most_states=999),
            pool.grid,
            most_cells=10**6,
        )
        duals = some_duals(problem, rng)
        assert pool.offer(duals, 1).bound == pricing.offer(duals, 1).bound


def test_tightening_and_covering_settle_a_pool() -> None:
    for seed in SEEDS:
        problem = some_problem(seed)
        best = brute_force_cost(problem)
        pool = pool_of_everything(problem)
        if best is None:
            continue
        tightened = tighten(
            pool, no_duals(problem), box_width(problem), target=best, deadline=UNLIMITED
        )
        assert tightened.bound <= best
        steps = list(cover(tightened, best, UNLIMITED))
        placed = [step.placed for step in steps if step.placed is not None]
        assert sum(map(problem.cost, placed[-1])) == best
        assert max(step.bound for step in steps) == best


def test_a_target_below_the_optimum_is_refuted() -> None:
    problem = vgg16_problem(4, slack=1)  # optimum 9,817
    relaxation = Relaxation(problem, Grid.of(problem), UNLIMITED)
    relaxation.solve(enough=10**9)
    columns, _ = relaxation.pricing.columns_within(relaxation.duals, None, 30_000)
    pool = Pool(problem=problem, grid=Grid.of(problem), columns=columns)
    tightened = tighten(
        pool, relaxation.duals, box_width(problem), target=9_500, deadline=UNLIMITED
    )
    assert tightened.bound > 9_500


def test_a_cover_that_is_cut_short_proves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Time is over as soon as the integer program begins; it has no bound then."""
    problem = vgg16_problem(4, slack=1)  # optimum 9,817
    relaxation = Relaxation(problem, Grid.of(problem), UNLIMITED)
    relaxation.solve(enough=10**9)
    columns, _ = relaxation.pricing.columns_within(relaxation.duals, None, 30_000)
    pool = Pool(problem=problem, grid=Grid.of(problem), columns=columns)
    tightened = tighten(
        pool, relaxation.duals, box_width(problem), target=10_000, deadline=UNLIMITED
    )
    monkeypatch.setattr(
        covering, "best_cover", lambda p, which, _: best_cover(p, which, Deadline(0.0))
    )
    bounds = [step.bound for step in cover(tightened, 10_000, UNLIMITED)]
    assert max(bounds) <= 9_817


# -- partitions ----------------------------------------------------------------
def test_chosen_columns_become_a_partition_with_items_of_its_own() -> None:
    """Both devices get one of two equal items; each its own."""
    problem = Problem(
        period=2,
        num_items=2,
        groups=(DeviceGroup(count=2, loads=(2, 2)),),
        messages=(),
    )
    sets = Sets.of(2, [frozenset({0}), frozenset({0})])
    none = np.zeros(2, dtype=np.int64)
    placed = placed_items(problem, Columns(sets, none, none))
    assert placed == (frozenset({0}), frozenset({1}))


@pytest.mark.parametrize("devices", [4, 8])
def test_a_dive_makes_a_partition(devices: int) -> None:
    problem = vgg16_problem(devices, slack=5, halves=True)
    placed = dive(pricing_of(problem), no_duals(problem))
    assert placed is not None
    assert problem.holds(placed)


def test_cuts_that_make_the_automaton_too_wide_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = vgg16_problem(4, slack=1)
    before = Relaxation(problem, Grid.of(problem), UNLIMITED)
    bound = before.solve(enough=problem.most_cost + 1)
    monkeypatch.setattr(relaxation, "_WIDER", 0)
    assert not before.cut()
    assert before.solve(enough=problem.most_cost + 1) == bound
    monkeypatch.undo()
    assert before.cut()
    assert before.solve(enough=problem.most_cost + 1) > bound


def test_a_deep_dive_finds_partitions_within_a_cost_and_none_below_the_optimum() -> (
    None
):
    found = 0
    for seed in SEEDS:
        problem = some_problem(seed)
        optimum = brute_force_cost(problem)
        if optimum is None:
            continue
        bare = Relaxation(problem, Grid.of(problem), UNLIMITED)
        bare.solve(enough=problem.most_cost + 1)
        assert dive_deep(bare, optimum - 1, UNLIMITED) is None
        placed = dive_deep(bare, optimum, UNLIMITED)
        if placed is not None:
            found += 1
            assert problem.holds(placed)
            assert sum(map(problem.cost, placed)) == optimum
    assert found > len(SEEDS) // 2


def test_a_deep_dive_finds_what_one_pass_misses() -> None:
    """VGG-16 on 4 devices at 2 %: 7,759 is best (placement-bounds, by other code)."""
    problem = vgg16_problem(4, slack=2)
    bare = Relaxation(problem, Grid.of(problem), UNLIMITED)
    bare.solve(enough=problem.most_cost + 1)
    shallow = dive(bare.pricing, bare.duals)
    deep = dive_deep(bare, problem.most_cost, UNLIMITED)
    assert shallow is not None
    assert deep is not None
    assert problem.holds(deep)
    costs = [sum(map(problem.cost, placed)) for placed in (deep, shallow)]
    assert 7_759 <= costs[0] < costs[1]


def test_splitting_a_pair_is_exact() -> None:
    for seed in SEEDS:
        problem = some_problem(seed)
        if problem.num_devices != 2 or len(problem.groups) > 1:
            continue
        for placed in all_partitions(problem):
            better = split_pair(problem, placed)
            cost = sum(map(problem.cost, better or placed))
            assert cost == brute_force_cost(problem)


def test_neighbourhoods_improve_until_no_few_devices_can_be() -> None:
    problem = vgg16_problem(4, slack=5)

    def solver(part: Problem, placed: Placed, _deadline: Deadline) -> Placed | None:
        return split_pair(part, placed)

    start = dive(pricing_of(problem), no_duals(problem))
    assert start is not None
    costs = [sum(map(problem.cost, start))]
    for placed in Neighbourhoods(problem, solver).improve(start, UNLIMITED, largest=2):
        assert problem.holds(placed)
        costs.append(sum(map(problem.cost, placed)))
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]
