r"""Longest paths from the stages' first F's: how early anything can start after them.

The arcs join starts, and each is the least time between two of them:

- F(s, k) to F(s + 1, k): f + c; I(s + 1, k) to I(s, k): b' + c'; in index order on one
  stage F(k) to F(k + 1): f, and I(k) to I(k + 1): b;
- F(j) to I(k), j <= k: (k - j + 1) f + (k - j) b, for F(j), ..., F(k) all run in
  between, and so do I(j), ..., I(k - 1), which follow F(j);
- I(j) to F(k), n = k - j - K >= 0: n f + `Room.least_work`, for at most K + j F's start
  before I(j), so that n of those before F(k) start after it.

All weights depend on differences of indices only, so that the paths from F(s, j) are
those from F(s, 0), j later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
import numpy.typing as npt

from lpsched.analysis.chain import Chain
from lpsched.analysis.cycles import max_cycle_ratio
from lpsched.analysis.dataflow import Arc
from lpsched.analysis.synchronous.room import Room

__all__ = ["Paths", "ends", "longest_paths", "path_bound"]

_Array = npt.NDArray[np.int64]

#: Longest arcs from I(k - K - n) to F(k) that are looked at: n below this.
_FAR = 48

#: Where no path leads.
_NONE = np.int64(-(2**60))


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Longest paths over N microbatches, in ticks.

    Attributes
    ----------
    forward, input_grad : array of shape (stages, stages, N)
        To F(t, k) and to I(t, k) from F(s, 0), by t, s and k.
    """

    forward: _Array
    input_grad: _Array

    @property
    def count(self) -> int:
        """Return N."""
        return int(self.forward.shape[2])


def longest_paths(chain: Chain, rooms: Sequence[Room], count: int) -> Paths:
    """Compute all longest paths over the first `count` = N microbatches.

    O(S² N) for S stages; where no path leads the entry is far below 0. Arcs from I to F
    over many microbatches, n >= `_FAR`, are left out.
    """
    stages = range(chain.num_stages)
    shape = (chain.num_stages, chain.num_stages, count)
    forward, back = np.full(shape, _NONE), np.full(shape, _NONE)
    turned = np.full(shape[:2], _NONE)  # to I(t, k), from whatever F(t, j)
    waits = [_returns(chain, room, t, count) for t, room in enumerate(rooms)]
    for k in range(count):
        for t in stages:
            best = forward[t, :, k]
            if k == 0:
                best[t] = 0
            if t > 0:
                ticks = chain.forward[t - 1] + chain.down[t - 1]
                np.maximum(best, forward[t - 1, :, k] + ticks, out=best)
            if k > 0:
                np.maximum(best, forward[t, :, k - 1] + chain.forward[t], out=best)
            late = k - rooms[t].cap + 1
            if late > 0:
                spans = waits[t][: min(late, _FAR)]
                after = back[t, :, late - len(spans) : late] + spans[::-1]
                np.maximum(best, after.max(axis=1), out=best)
        for t in reversed(stages):
            f, b = chain.forward[t], chain.input_grad[t]
            turned[t] = np.maximum(turned[t] + f + b, forward[t, :, k] + f)
            best = back[t, :, k]
            best[:] = turned[t]
            if t < chain.num_stages - 1:
                ticks = chain.input_grad[t + 1] + chain.up[t]
                np.maximum(best, back[t + 1, :, k] + ticks, out=best)
            if k > 0:
                np.maximum(best, back[t, :, k - 1] + b, out=best)
    return Paths(forward=forward, input_grad=back)


def _returns(chain: Chain, room: Room, stage: int, count: int) -> _Array:
    """Weights of the arcs from I(k - K - n) to F(k), by n."""
    f = chain.forward[stage]
    spans = range(max(0, min(_FAR, count - room.cap)))
    return np.array([n * f + room.least_work(n) for n in spans], dtype=np.int64)


def ends(chain: Chain, paths: Paths, stage: int, microbatches: int) -> _Array:
    r"""Longest paths from every F(s, 0) to a stage's end, after so many microbatches.

    The last arc is (n - k) P from F(k) and (n - k)(b + w) from I(k), k < n: what is
    left then of the stage's own work on n microbatches.
    """
    k = np.arange(min(paths.count, microbatches))
    left = microbatches - k
    whole = chain.work(stage)
    rest = whole - chain.forward[stage]
    from_f = paths.forward[stage][:, k] + left * whole
    from_i = paths.input_grad[stage][:, k] + left * rest
    found: _Array = np.maximum(from_f, from_i).max(axis=1)
    return found


def path_bound(chain: Chain, paths: Paths) -> int:
    r"""Bound on the period by the longest paths between the stages' first F's and ends.

    With D(s, t) the longest path from F(s, 0) to the end of stage t, u included, the
    makespan is at least max_t D(0, t). Without flush the first F of stage t in the next
    iteration follows its end, so that around any cycle of stages

    .. math:: \sum_{(s,t)} D(s, t) \le T \cdot \text{(number of stages on it)},

    of which T >= D(s, s) is the shortest.
    """
    updates = np.array(chain.update)
    columns = [
        ends(chain, paths, t, chain.microbatches) for t in range(chain.num_stages)
    ]
    spans = np.stack(columns, axis=1) + updates
    if chain.flush:
        return int(spans[0].max())
    arcs = [
        Arc(s, t, int(ticks), 1, None)
        for (s, t), ticks in np.ndenumerate(spans)
        if ticks > 0
    ]
    least = Fraction(int(spans.diagonal().max()))
    return ceil(max_cycle_ratio(chain.num_stages, arcs, floor=least).value or least)
