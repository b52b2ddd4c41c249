"""Optima of tiny pipelines by trying every order; written apart from the package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import ceil

from lpsched.analysis.chain import Chain

__all__ = ["optimum"]

Order = tuple[tuple[str, int], ...]


@cache
def interleavings(m: int) -> tuple[Order, ...]:
    """All orders of m F, I and W, W(k) after I(k) after F(k), each in index order."""

    def grow(f: int, i: int, w: int) -> Iterator[Order]:
        if w == m:
            yield ()
        if f < m:
            yield from ((("F", f), *rest) for rest in grow(f + 1, i, w))
        if i < f:
            yield from ((("I", i), *rest) for rest in grow(f, i + 1, w))
        if w < i:
            yield from ((("W", w), *rest) for rest in grow(f, i, w + 1))

    return tuple(grow(0, 0, 0))


def fits(chain: Chain, stage: int, order: Order) -> bool:
    """Play the level of memory op by op."""
    held, limit, level = chain.memory[stage], chain.room[stage], 0
    if limit is None:
        return True
    for kind, _ in order:
        if kind == "F":
            level += held.forward
            need = level + held.during_forward
        elif kind == "I":
            need = level + held.during_input_grad
            level += held.input_grad
        else:
            need = level + held.during_weight_grad
            level -= held.forward + held.input_grad
        if need > limit:
            return False
    return True


def spans(chain: Chain, orders: Sequence[Order]) -> list[list[int]] | None:
    """Longest time from each stage's first start to each end; None: deadlock."""
    ticks = {"F": chain.forward, "I": chain.input_grad, "W": chain.weight_grad}
    last = chain.num_stages - 1
    found = []
    for source in range(chain.num_stages):
        end: dict[tuple[str, int, int], int | None] = {}
        place, free = (
            [0] * len(orders),
            [None if s != source else 0 for s in range(last + 1)],
        )
        moved = True
        while moved:
            moved = False
            for s, order in enumerate(orders):
                while place[s] < len(order):
                    kind, k = order[place[s]]
                    before, wait = None, 0
                    if kind == "F" and s:
                        before, wait = ("F", s - 1, k), chain.down[s - 1]
                    elif kind == "I":
                        before = ("F", s, k) if s == last else ("I", s + 1, k)
                        wait = 0 if s == last else chain.up[s]
                    if before is not None and before not in end:
                        break
                    ready = None if before is None else end[before]
                    times = [
                        t
                        for t in (free[s], None if ready is None else ready + wait)
                        if t is not None
                    ]
                    start = max(times, default=None)
                    free[s] = None if start is None else start + ticks[kind][s]
                    end[kind, s, k] = free[s]
                    place[s] += 1
                    moved = True
        if any(n < len(o) for n, o in zip(place, orders, strict=True)):
            return None
        found.append(
            [-1 if t is None else t + chain.update[s] for s, t in enumerate(free)]
        )
    return found


def value(chain: Chain, orders: Sequence[Order]) -> int | None:
    """Makespan, or least period: the greatest mean around any cycle of stages."""
    ways = spans(chain, orders)
    if ways is None:
        return None
    if chain.flush:
        return max(ways[0])
    best = Fraction(0)
    for size in range(1, chain.num_stages + 1):
        for cycle in permutations(range(chain.num_stages), size):
            legs = [ways[cycle[i - 1]][s] for i, s in enumerate(cycle)]
            if min(legs) >= 0:
                best = max(best, Fraction(sum(legs), size))
    return ceil(best)


def optimum(chain: Chain) -> int | None:
    """Least value over all orders that fit the memory; None if none does."""
    choices = [
        [o for o in interleavings(chain.microbatches) if fits(chain, s, o)]
        for s in range(chain.num_stages)
    ]
    values = (value(chain, orders) for orders in product(*choices))
    return min((v for v in values if v is not None), default=None)
