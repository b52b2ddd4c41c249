"""Steps that search by CP-SAT: all patterns, parts of a placement, all of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random

from lpsched.core.result import Status
from lpsched.formulations.balance.chains import Chain, make_chains
from lpsched.formulations.balance.model import (
    add_hint,
    cover_model,
    units_model,
)
from lpsched.formulations.balance.patterns import alike_devices, fill_patterns
from lpsched.formulations.balance.prune import prune
from lpsched.formulations.balance.run import run
from lpsched.formulations.balance.state import State

__all__ = ["search_neighbourhoods", "search_patterns", "search_units"]

#: Greatest weight of a device; larger ones would risk overflow and help little.
_GRID = 1_000_000
#: Kinds times devices of the largest model that is tried whole.
_MAX_VARIABLES = 20_000
#: What part of the gap is searched first: 1 / 64.
_SHARE = 64
#: Devices of a neighbourhood, rounds without success, and CP-SAT's deterministic time.
_NEIGHBOURS = 4
_MAX_IDLE = 20
_NEIGHBOUR_WORK = 0.3


def search_patterns(state: State) -> None:
    """Find out whether the patterns of a period can hold all items.

    First at the best bound, which is met most often; then by bisection, at a quarter of
    the gap, since what is infeasible has fewer patterns and is refuted faster.
    """
    if not state.is_on("patterns"):
        return
    chains = make_chains(state.problem, join=state.is_on("chains"))
    weights = _even_weights(state, chains)
    period = state.goal
    while not state.is_over:
        patterns = fill_patterns(chains, weights, period)
        if patterns is None:
            return
        state.count("patterns", sum(len(group.units) for group in patterns))
        state.count("searches")
        model = cover_model(chains, patterns)
        seconds = state.deadline.left / 2
        found = run(model.cp, state.limits, state.deadline, seconds=seconds)
        if found.values is not None:
            state.offer(model.where(found.values))
        elif found.status is Status.INFEASIBLE:
            state.raise_by_exhaustion(period + 1, solver="cpsat")
        else:
            return
        period = state.goal + (state.highest - 1 - state.goal) // 4


def _even_weights(state: State, chains: Sequence[Chain]) -> list[int]:
    """Weights of the devices as integers, the same for all that are alike.

    Averaging loses nothing: the bound is a concave function of the weights.
    """
    even = [Fraction(0)] * len(state.weights)
    for devices in alike_devices(chains, len(even)):
        mean = Fraction(sum(state.weights[d] for d in devices), len(devices))
        for d in devices:
            even[d] = mean
    largest = max(even, default=Fraction(0))
    if largest == 0:
        return [1] * len(even)
    grid = min(_GRID, 2**60 // state.problem.never)  # sums stay within 64 bits
    grid = 1 if state.problem.is_uniform else grid
    return [int(y * grid / largest) for y in even]


def search_neighbourhoods(state: State) -> None:
    """Place anew all items of the busiest device and a few others, again and again.

    Ends when many rounds in a row found nothing better, or with half of the time.
    """
    if len(state.problem.devices) <= _NEIGHBOURS:
        return
    rng = Random(state.limits.seed)
    end = state.deadline.left / 2
    idle = 0
    while idle < _MAX_IDLE and not state.is_over and state.deadline.left > end:
        state.count("neighbourhoods")
        idle = 0 if _relieve(state, _neighbours(state, rng)) else idle + 1


def _neighbours(state: State, rng: Random) -> list[int]:
    """Pick the busiest device, the least busy one, and others at random."""
    loads = state.problem.loads(state.where)
    by_load = sorted(range(len(loads)), key=loads.__getitem__)
    busiest, least, between = by_load[-1], by_load[0], by_load[1:-1]
    return sorted([busiest, least, *rng.sample(between, _NEIGHBOURS - 2)])


def _relieve(state: State, devices: Sequence[int]) -> bool:
    """Lower the highest load among some devices; tell whether it worked."""
    where = list(state.where)
    items = [i for i, d in enumerate(where) if d in devices]
    core = prune(state.problem, state.weights, state.highest)
    part = core.part(items, devices)
    own = tuple(devices.index(where[i]) for i in items)
    high = max(part.loads(own)) - 1
    model = units_model(part, make_chains(part), low=min(state.goal, high), high=high)
    add_hint(model, part, own)
    found = run(model.cp, state.limits, state.deadline, work=_NEIGHBOUR_WORK)
    if found.values is None:
        return False
    for i, d in zip(items, model.where(found.values), strict=True):
        where[i] = devices[d]
    return state.offer(tuple(where))


def search_units(state: State) -> None:
    """Search all placements up to loads near the best bound, then up to higher ones.

    The nearer, the more placements are pruned. Where none better is found, the part of
    the gap that is searched doubles, at last to the whole of it.
    """
    share = _SHARE
    while share > 0 and not state.is_over:
        high = state.goal + (state.highest - state.goal) // share
        seconds = math.inf if share == 1 else state.deadline.left / 4
        if not _search_up_to(state, high, seconds):
            share //= 2


def _search_up_to(state: State, high: int, seconds: float) -> bool:
    """Search the placements of no load above `high`; tell whether that helped."""
    before = state.highest
    core = prune(state.problem, state.weights, high)
    if any(all(t is None for t in profile) for profile in core.profiles):
        state.raise_by_exhaustion(high + 1, pruned=True)
        return False
    if sum(t is not None for profile in core.kinds for t in profile) > _MAX_VARIABLES:
        return False
    chains = make_chains(core, join=state.is_on("chains"))
    alike = state.is_on("symmetry")
    model = units_model(core, chains, low=state.goal, high=high, order_alike=alike)
    add_hint(model, core, state.where)
    state.count("searches")
    found = run(
        model.cp,
        state.limits,
        state.deadline,
        seconds=seconds,
        listener=lambda values: state.offer(model.where(values)),
    )
    if found.values is not None:
        state.offer(model.where(found.values))
    if found.status is Status.INFEASIBLE:
        state.raise_by_exhaustion(high + 1, solver="cpsat")
    elif found.bound is not None:
        state.raise_by_exhaustion(found.bound, solver="cpsat")
    return state.highest < before
