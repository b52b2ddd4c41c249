"""Bound A: a stage idles before its first I's and after its last F's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lpsched.analysis.chain import Chain
from lpsched.analysis.synchronous.paths import Paths, ends
from lpsched.analysis.synchronous.room import Room

__all__ = ["heads", "idle_bound", "tails"]

_Array = npt.NDArray[np.int64]


def heads(chain: Chain, room: Room, stage: int, paths: Paths) -> _Array:
    r"""Idle ticks of a stage from F(0) to I(k), at least, for k = 0, ..., N - 1.

    .. math:: \mathrm{head}_k = H(k) - f \min(m, K + k) - k (b + w)

    with H(k) the longest path from F(0) to I(k): of all work of the stage no more F's
    than `Room.cap` allows, k I's and k W's (W follows I) can lie between.
    """
    k = np.arange(paths.count)
    forwards = np.minimum(chain.microbatches, room.cap + k)
    rest = chain.work(stage) - chain.forward[stage]
    most = chain.forward[stage] * forwards + k * rest
    found: _Array = paths.input_grad[stage, stage] - most
    return found


def tails(chain: Chain, room: Room, stage: int, paths: Paths) -> _Array:
    r"""Idle ticks from the start of F(m - n) to the stage's end, for n = 1, ..., N.

    .. math:: \mathrm{tail}_n = E(n) - n f - \max\{r b + q w\}

    with E(n) the longest path from F(m - n) to the end, and the maximum over the r I's
    and q W's that can be left then (`Room.left`).
    """
    f, b, w = (
        chain.forward[stage],
        chain.input_grad[stage],
        chain.weight_grad[stage],
    )
    found = []
    for n in range(1, paths.count + 1):
        r, q = room.left(n)
        most = int((r * b + q * w).max(initial=0))
        end = int(ends(chain, paths, stage, n)[stage])
        found.append(end - n * f - most)
    return np.array(found, dtype=np.int64)


def idle_bound(chain: Chain, rooms: Sequence[Room], stage: int, paths: Paths) -> int:
    r"""Bound A: the work of a stage and the idle ticks at both its ends.

    .. math:: T \ge \mathrm{offset} + m P + u + \max(\mathrm{head}_k, 0) +
              \max(\mathrm{tail}_n, 0) \quad \text{if } k + K \le m - n

    The two windows are disjoint then: I(k) starts before F(k + K), which starts no
    later than F(m - n). Otherwise either alone.
    """
    m, room = chain.microbatches, rooms[stage]
    before = heads(chain, room, stage, paths)
    after = tails(chain, room, stage, paths)
    idle = max(0, int(before.max()), int(after.max()))
    best_tail = np.maximum.accumulate(after)  # of n' <= n
    for k, head in enumerate(before):
        n = min(m - room.cap - k, len(after))
        if n < 1:
            break
        idle = max(idle, max(int(head), 0) + max(int(best_tail[n - 1]), 0))
    work = m * chain.work(stage) + chain.update[stage]
    return chain.offset(stage) + work + idle
