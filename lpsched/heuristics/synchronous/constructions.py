"""Orders worth trying on a chain of stages, the likeliest to meet a bound first."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from lpsched.analysis.chain import Chain
from lpsched.analysis.pipeline import Pipeline
from lpsched.analysis.synchronous import rooms_of
from lpsched.heuristics.synchronous.automatic import automatic_orders
from lpsched.heuristics.synchronous.deadlines import deadline_orders, deadlines_for
from lpsched.heuristics.synchronous.orders import (
    Orders,
    gpipe_order,
    one_f_one_b_order,
    zero_bubble_order,
)

__all__ = ["constructions"]

#: Targets above the bound: the first by this share of it, each next one so much more.
_FIRST_SHARE, _GROWTH, _TARGETS = 0.0003, 1.3, 30

#: Restarts with deadlines moved at random.
_RESTARTS = 40


def constructions(
    pipeline: Pipeline, chain: Chain, bound: int, *, seed: int = 0
) -> Iterator[tuple[str, Orders]]:
    """Orders for a period near `bound`, each with the name of what made it.

    Deadline list scheduling at the bound; ZB-H1's order; the greedy scheduler's orders;
    other published ones; then deadlines for targets above the bound, and moved at
    random. Orders may exceed the memory: to be timed and verified.
    """
    rooms = rooms_of(chain)
    yield from _deadline(pipeline, chain, bound)
    yield "zb-h1", zero_bubble_order(pipeline, depth=1)
    for _, orders in automatic_orders(pipeline):
        yield "zb-auto", orders
    yield "zb-h2", zero_bubble_order(pipeline, depth=2)
    yield "1f1b", one_f_one_b_order(pipeline)
    yield "gpipe", gpipe_order(pipeline)
    for n in range(_TARGETS):
        more = max(n + 1, int(bound * _FIRST_SHARE * _GROWTH**n))
        yield from _deadline(pipeline, chain, bound + more)
    rng = Random(seed)
    longest = max(max(chain.work(s) for s in range(chain.num_stages)) // 3, 1)
    for n in range(_RESTARTS):
        target = bound + rng.randint(0, max(1, bound * n // (50 * _RESTARTS)))
        deadlines = deadlines_for(chain, rooms, target)
        found = deadline_orders(
            pipeline, deadlines.blurred(rng, rng.randint(1, longest))
        )
        if found is not None:
            yield "deadlines", found


def _deadline(
    pipeline: Pipeline, chain: Chain, period: int
) -> Iterator[tuple[str, Orders]]:
    orders = deadline_orders(pipeline, deadlines_for(chain, rooms_of(chain), period))
    if orders is not None:
        yield "deadlines", orders
