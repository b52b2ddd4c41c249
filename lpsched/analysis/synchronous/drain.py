"""Bound C: down to a stage, through all its F's, and the last gradient back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpsched.analysis.chain import Chain
from lpsched.analysis.synchronous.room import Room

__all__ = ["drain_bound", "light_speed"]


def light_speed(chain: Chain) -> tuple[int, ...]:
    r"""Least ticks R from the start of F(s, i) to that of I(s, i), by stage.

    .. math:: R_s = f_s + c_s + R_{s+1} + b_{s+1} + c'_s, \qquad R_{p-1} = f_{p-1}
    """
    last = chain.num_stages - 1
    found = [chain.forward[last]]
    for s in range(last - 1, -1, -1):
        there = chain.forward[s] + chain.down[s]
        back = chain.input_grad[s + 1] + chain.up[s]
        found.append(there + found[-1] + back)
    return tuple(reversed(found))


def drain_bound(chain: Chain, rooms: Sequence[Room], stage: int) -> int:
    r"""Bound C for a turning stage u, the best over stages v <= u.

    .. math:: T \ge \mathrm{offset}_v + \sum_{v \le t < u} (f_t + c_t + c'_t + b_t) +
              \mathrm{span}_u + w_v + u_v

    F(v, 0) is followed by F(u, 0) down the chain, I(u, m - 1) by I(v, m - 1) back up,
    and that by W(v, m - 1). From F(u, 0) to the end of I(u, m - 1) it takes

    .. math:: \mathrm{span}_u = \min_r \; d + (m-1) f + (m-r) b + (m-q) w +
              \max(R_u, f + (r-1) b) + b

    with r I's left at F(u, m - 1) and at most q W's (`Room.left`): hence m - 1 F's,
    m - r I's and m - q W's before it, and d = max(R_u - K f, 0) idle ticks before
    I(u, 0) if that precedes F(u, m - 1), as it does for m > K; after it the I's left,
    and at light speed I(m - 1) itself.
    """
    span = _span(chain, rooms[stage], stage)
    best, way = 0, 0
    for v in range(stage, -1, -1):
        if v < stage:
            way += chain.forward[v] + chain.down[v] + chain.up[v] + chain.input_grad[v]
        rest = chain.weight_grad[v] + chain.update[v]
        best = max(best, chain.offset(v) + way + span + rest)
    return best


def _span(chain: Chain, room: Room, stage: int) -> int:
    m = chain.microbatches
    f, b, w = (
        chain.forward[stage],
        chain.input_grad[stage],
        chain.weight_grad[stage],
    )
    light = light_speed(chain)[stage]
    early = max(light - room.cap * f, 0) if m > room.cap else 0
    spans = [
        (m - r) * b + (m - q) * w + max(light, f + (r - 1) * b)
        for r, q in zip(*map(np.ndarray.tolist, room.left(1)), strict=True)
    ]
    return early + (m - 1) * f + min(spans, default=light) + b
