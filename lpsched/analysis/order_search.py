"""Search for an order of the ops whose packing needs little staleness."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from lpsched.analysis.packing import earliest_phases, gap_phases, pack_phases
from lpsched.analysis.precedence import Block, PlacedGraph, Times
from lpsched.core.over import Over, never

__all__ = ["search_orders"]

#: Trials of a small graph, those in a row without gain, and the arcs looked at in all
#: on a large one.
MAX_TRIALS, MAX_IDLE = 1000, 200
MAX_ARCS = 400_000


@dataclass(frozen=True, slots=True, order=True)
class _Score:
    """How bad an order is: delays above their limits, staleness, ticks waited."""

    excess: int
    staleness: int
    ticks: int


def search_orders(placed: PlacedGraph, period: int, over: Over = never) -> list[Times]:
    """Times of several orders that fit the period, in no order; empty if none does.

    Three topological orders are packed in three ways; then the best of them, packed
    by `earliest_phases`, is improved by moving one op at a time to another place: a
    move is kept if it makes nothing worse. An order that breaks limits of delays is
    improved likewise until it keeps them. Reproducible, unless cut short: once time is
    over, the first order that fits is enough. Each device's load must be <= T.
    """
    found: list[Times] = []
    seeds: list[tuple[_Score, list[Block]]] = []
    for order in _topological_orders(placed):
        if found and over():
            return found
        for packer in (pack_phases, gap_phases):
            phases = packer(placed, period, order)
            if phases is not None:
                times = placed.times(period, phases, placed.greatest_delays())
                found += [] if times is None else [times]
        score, times = _tried(placed, period, order)
        found += [] if times is None else [times]
        seeds += [] if score is None else [(score, order)]
    if seeds:
        best = min(seeds, key=lambda seed: seed[0])
        times = _climb(placed, period, *best, over)
        found += [] if times is None else [times]
    return found


def _topological_orders(placed: PlacedGraph) -> Iterator[list[Block]]:
    """Orders of single ops: the graph's, soonest first, longest way to go first."""
    numbers = range(len(placed.ops))
    for key in (numbers, placed.heads(), [-tail for tail in placed.tails()]):
        yield [(placed.ops[i],) for i in sorted(numbers, key=key.__getitem__)]


def _climb(
    placed: PlacedGraph, period: int, score: _Score, order: list[Block], over: Over
) -> Times | None:
    """Move random ops to random places as long as the score does not rise."""
    rng = random.Random(0)
    least = sum(delay.min - 1 for delay in placed.graph.delays.values())
    best: Times | None = None
    idle = 0
    for _ in range(min(MAX_TRIALS, MAX_ARCS // max(1, len(placed.arcs)))):
        if (score.excess, score.staleness) <= (0, least) or idle == MAX_IDLE or over():
            break
        idle += 1
        moved = list(order)
        moved.insert(rng.randrange(len(moved)), moved.pop(rng.randrange(len(moved))))
        new, times = _tried(placed, period, moved)
        if new is not None and new <= score:
            idle = 0 if new < score else idle
            score, order, best = new, moved, times
    return best


def _tried(
    placed: PlacedGraph, period: int, order: list[Block]
) -> tuple[_Score | None, Times | None]:
    """Score an order; with times if all limits are kept, without a score if never."""
    phases = earliest_phases(placed, period, order)
    times = placed.times(period, phases, placed.greatest_delays())
    loose = times
    if loose is None:
        loose = placed.times(period, phases, dict.fromkeys(placed.graph.delays))
    if loose is None:
        return None, None
    excess = sum(
        max(0, loose.delays[name] - delay.max)
        for name, delay in placed.graph.delays.items()
        if delay.max is not None
    )
    ticks = sum(placed.waits(loose.starts).values())
    return _Score(excess, loose.staleness, ticks), times
