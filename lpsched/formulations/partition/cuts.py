"""Separation of subset-row cuts: all that a fractional solution violates."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from lpsched.formulations.partition.master import Floats
from lpsched.formulations.partition.problem import Problem
from lpsched.formulations.partition.sets import Sets
from lpsched.formulations.partition.subset_rows import Cut

__all__ = ["violated_cuts"]


def violated_cuts(
    problem: Problem,
    sets: Sets,
    levels: Floats,
    *,
    known: Collection[Cut],
    most: int,
    least: float,
) -> list[Cut]:
    """Find the subset-row cuts that a fractional solution violates most.

    Parameters
    ----------
    levels : array of float
        x, one per set.
    most : int
        How many to return at the most.
    least : float
        By how much the left side must exceed the right one, as a share of it.
    """
    used = np.flatnonzero(levels > 1e-7)
    held = sets.take(used).counts(np.array(problem.class_of), len(problem.classes))
    counts, x = held.astype(np.float64), levels[used]
    sizes = np.array([float(len(members)) for members in problem.classes])
    found = [*_of_three(counts, x, sizes, least), *_of_two(counts, x, sizes, least)]
    cuts = [
        (excess, Cut(tuple(problem.classes[c] for c in classes), picks))
        for excess, classes, picks in found
    ]
    fresh = [pair for pair in cuts if pair[1] not in known]
    fresh.sort(key=lambda pair: (-pair[0], pair[1]))
    return [cut for _, cut in fresh[:most]]


def _of_three(
    counts: Floats, x: Floats, sizes: Floats, least: float
) -> Iterator[tuple[float, tuple[int, ...], tuple[int, ...]]]:
    r"""One item of each of three classes.

    A set that holds :math:`k_a` of :math:`m_a` items has one chosen at random with
    probability :math:`p_a = k_a / m_a`, and two or three of three with probability
    :math:`p_a p_b + p_a p_c + p_b p_c - 2 p_a p_b p_c`.
    """
    p = counts / sizes[:, None]
    weighted = p * x
    pairs = weighted @ p.T
    for a in range(len(p) - 2):
        rest = slice(a + 1, len(p))
        all_three = (weighted[rest] * p[a]) @ p[rest].T
        left = pairs[a, rest, None] + pairs[a, None, rest] + pairs[rest, rest]
        excess = np.triu(left - 2 * all_three - 1, k=1)
        for b, c in zip(*np.nonzero(excess > least), strict=True):
            yield float(excess[b, c]), (a, a + 1 + int(b), a + 1 + int(c)), (1, 1, 1)


def _of_two(
    counts: Floats, x: Floats, sizes: Floats, least: float
) -> Iterator[tuple[float, tuple[int, ...], tuple[int, ...]]]:
    r"""Two items of a class a and one of a class b.

    Both of a are held with probability :math:`k(k-1) / m(m-1)`, one of them with
    :math:`2k(m-k) / m(m-1)`; with that of b, this makes two as well.
    """
    several = np.flatnonzero(sizes > 1)
    k, m = counts[several], sizes[several, None]
    both, one = k * (k - 1) / (m * (m - 1)), 2 * k * (m - k) / (m * (m - 1))
    p = counts / sizes[:, None]
    excess = (both @ x)[:, None] + (one * x) @ p.T - 1
    excess[np.arange(len(several)), several] = 0.0
    for row, b in zip(*np.nonzero(excess > least), strict=True):
        a = int(several[row])
        classes, picks = (a, int(b)), (2, 1)
        if b < a:
            classes, picks = (int(b), a), (1, 2)
        yield float(excess[row, b]), classes, picks
