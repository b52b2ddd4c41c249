r"""What a memory limit L says of the order of ops on one stage.

Everywhere in this package: one op at a time on a stage, microbatches in index order
within a kind (they are alike, so that this costs nothing), W after its I. Before an
op there have been n F's, i I's and w W's with w <= i <= n, and the level is
a n + b i - (a + b) w; see `lpsched.analysis.chain.StageMemory` for what an op needs in
addition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lpsched.analysis.chain import Chain, StageMemory

__all__ = ["Room", "room_of"]

Counts: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The limit of one stage, m microbatches and the ticks of I and W.

    Attributes
    ----------
    cap : int
        K: at most K + k F's start before I(k), and F(j) starts after I(j - K) has
        ended. m without a limit; less than 1 if nothing can run.
    """

    microbatches: int
    memory: StageMemory
    limit: int | None
    input_grad: int
    weight_grad: int
    cap: int

    def left(self, n: int) -> tuple[Counts, Counts]:
        r"""Return how many I's can be left when F(m - n) starts, and most W's for each.

        There are r I's from n to min(m, K + n - 1), for F(m - n) follows
        I(m - n - K). With m - n + 1 F's started, m - r I's and m - q W's ended,

        .. math:: (a + b)\,q \le L - \mathrm{extra} + a (n - 1) + b\,r

        and r <= q, for W follows I: an r without such a q is left out.
        """
        m, held = self.microbatches, self.memory
        r = np.arange(n, min(m, self.cap + n - 1) + 1)
        q = np.full(len(r), m)
        if self.limit is not None and held.weight_grad > 0:
            free = self.limit - held.during_forward + held.forward * (n - 1)
            q = np.minimum(m, (free + held.input_grad * r) // held.weight_grad)
        return r[q >= r], q[q >= r]

    def least_work(self, n: int) -> int:
        r"""Least ticks of I's and W's from the start of I(k - K - n) to that of F(k).

        With j = k - K - n, r I's and q W's after that start, of which only q <= r can
        be among those that the level at F(k) lacks,

        .. math:: a (k + 1 - j) + b\,r - (a + b)\,q \le L - \mathrm{extra}, \qquad
            n + 1 \le r \le k - j,

        and the least r b' + q w' of their ticks b', w'.
        """
        held, most = self.memory, self.cap + n
        lacking = held.forward * (most + 1) + held.during_forward - (self.limit or 0)
        best: int | None = None
        for r in range(n + 1, most + 1):
            q = 0
            if self.limit is not None and held.weight_grad:
                q = max(0, -(-(lacking + held.input_grad * r) // held.weight_grad))
            if q <= r:
                ticks = r * self.input_grad + q * self.weight_grad
                best = ticks if best is None else min(best, ticks)
            if q == 0:
                break
        return (n + 1) * self.input_grad if best is None else best


def room_of(chain: Chain, stage: int) -> Room:
    r"""Room of one stage.

    .. math:: K = \left\lfloor \frac{L - \max(e_F, e_I)}{a} \right\rfloor

    with e what F and I need while they run. At the start of F(j) with at most q I's
    and W's done the level is at least a (j - q), so that a (j + 1 - q) + e_F <= L and
    q >= j + 1 - K; at the start of I(k) with n F's started it is at least a (n - k),
    so that a (n - k) + e_I <= L and n <= k + K.
    """
    held, limit = chain.memory[stage], chain.room[stage]
    cap = chain.microbatches
    if limit is not None:
        free = limit - max(held.during_forward, held.during_input_grad)
        if held.forward > 0:
            cap = min(cap, free // held.forward)
        elif free < 0:
            cap = 0
    return Room(
        microbatches=chain.microbatches,
        memory=held,
        limit=limit,
        input_grad=chain.input_grad[stage],
        weight_grad=chain.weight_grad[stage],
        cap=max(cap, 0),
    )
