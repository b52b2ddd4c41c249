"""Layers in contiguous stages of least maximum load, by an exact dynamic program."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

__all__ = ["fewest_stages", "partition"]

_NEVER = np.int64(1) << np.int64(62)


def partition(loads: Sequence[Sequence[int | None]]) -> tuple[int, ...] | None:
    r"""Cut a sequence of layers into stages, none empty, of least maximum load.

    With :math:`L_s(j, i)` the load of layers j to i - 1 on the device of stage s,

    .. math:: B_s(i) = \min_{j < i} \max(B_{s-1}(j), L_s(j, i)),
              \qquad B_{-1}(0) = 0

    and the earliest of the best cuts, stage by stage from the last. O(S n²) for S
    stages and n layers, n >= S.

    Parameters
    ----------
    loads : sequence of sequence of (int or None)
        For each stage, the ticks of every layer on its device; None where the layer
        may not run.

    Returns
    -------
    tuple of int or None
        For each stage, the number of layers up to its end; None if some layer may
        not run on any device that could have it.
    """
    num_layers = len(loads[0])
    best = np.full(num_layers + 1, _NEVER)
    best[0] = 0
    choices: list[list[int]] = []
    for stage, row in enumerate(loads):
        sums = _sums([ticks or 0 for ticks in row])
        barred = _sums([ticks is None for ticks in row])
        before, best = best, np.full(num_layers + 1, _NEVER)
        choices.append([0] * (num_layers + 1))
        for end in range(stage + 1, num_layers + 1):
            load = np.where(barred[:end] < barred[end], _NEVER, sums[end] - sums[:end])
            most = np.maximum(before[:end], load)
            choices[stage][end] = int(np.argmin(most))
            best[end] = most.min()
    if best[-1] >= _NEVER:
        return None
    ends = [num_layers]
    for stage in range(len(loads) - 1, 0, -1):
        ends.append(choices[stage][ends[-1]])
    return tuple(reversed(ends))


def _sums(values: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.array([0, *accumulate(values)], dtype=np.int64)


def fewest_stages(loads: Sequence[int], limit: int) -> int:
    """Return how many contiguous stages of load <= `limit` a sequence needs.

    Every load is at most `limit`.

    >>> fewest_stages([3, 1, 2, 2], 4)
    2
    """
    sums = [0, *accumulate(loads)]
    count, done = 0, 0
    while done < len(loads):
        done = bisect_right(sums, sums[done] + limit) - 1
        count += 1
    return count
