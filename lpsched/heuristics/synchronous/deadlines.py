"""Deadlines of a chain's ops for a period under test: one stage a device."""

from __future__ import annotations

from collections.abc import Sequence

from lpsched.analysis.chain import Chain
from lpsched.analysis.synchronous import Room, longest_paths, tails
from lpsched.heuristics.synchronous.dispatch import Deadlines

__all__ = ["deadlines_for", "quiet_tails"]


def quiet_tails(chain: Chain, rooms: Sequence[Room]) -> list[int]:
    """Idle ticks that each stage needs after its last F: tail_1, if room is short."""
    paths = longest_paths(chain, rooms, 1)
    found = []
    for s, room in enumerate(rooms):
        short = chain.microbatches > room.cap
        found.append(max(0, int(tails(chain, room, s, paths)[0])) if short else 0)
    return found


def deadlines_for(chain: Chain, rooms: Sequence[Room], period: int) -> Deadlines:
    r"""Latest starts of all ops for a period T, from the last microbatch to the first.

    Stage s runs from its light-speed arrival :math:`\sigma_s` to :math:`\sigma_s + T`
    (to T with flush), and may idle D ticks, :math:`\tau` of them at its end
    (`quiet_tails`). In that time there must be room for what is left of each kind and
    for what must come between; with P = f + b + w,

    .. math::
        W(i) &\le \mathrm{end} - (m - i) w \\
        F(i) &\le \mathrm{end} - (m - i) P - \tau,\; I(i) - f,\; F(i + 1) - f,\;
            F(s + 1, i) - f - c \\
        I(i) &\le \mathrm{end} - (m - i)(b + w),\; I(i + 1) - b,\;
            I(s - 1, i) - b - c', \\
            &\quad \sigma + D - \tau + f \min(m, K + i) + i (b + w),\;
            F(K + i) - (\text{least work to make room for it})

    where the fourth of I, with :math:`\tau` only if K + i < m, counts the work that can
    precede it, and I(0) is rounded down to k f plus at most D (`Ramp`).
    """
    return _Maker(chain, rooms, period).deadlines()


class _Maker:
    """Deadlines of one chain at one period."""

    def __init__(self, chain: Chain, rooms: Sequence[Room], period: int) -> None:
        self._chain, self._rooms = chain, rooms
        self._count = chain.microbatches
        stages = range(chain.num_stages)
        self._begin = [sum(chain.forward[:s]) + sum(chain.down[:s]) for s in stages]
        spans = [period - chain.offset(s) - chain.update[s] for s in stages]
        self._end = [b + t for b, t in zip(self._begin, spans, strict=True)]
        self._idle = [spans[s] - self._count * chain.work(s) for s in stages]
        self._quiet = quiet_tails(chain, rooms)
        self._return = [room.least_work(0) for room in rooms]
        blank = [[0] * self._count for _ in stages]
        self._latest = {kind: [list(row) for row in blank] for kind in "FIW"}

    def deadlines(self) -> Deadlines:
        stages = range(self._chain.num_stages)
        for i in range(self._count - 1, -1, -1):
            for s in stages:
                self._latest["I"][s][i] = self._input_grad(s, i)
            for s in reversed(stages):
                self._latest["F"][s][i] = self._forward(s, i)
                rest = (self._count - i) * self._chain.weight_grad[s]
                self._latest["W"][s][i] = self._end[s] - rest
        return Deadlines(latest=self._latest, idle=self._idle)

    def _input_grad(self, s: int, i: int) -> int:
        chain, cap = self._chain, self._rooms[s].cap
        f, b = chain.forward[s], chain.input_grad[s]
        rest = b + chain.weight_grad[s]
        quiet = self._quiet[s] if cap + i < self._count else 0
        before = f * min(self._count, cap + i) + i * rest
        limits = [
            self._end[s] - (self._count - i) * rest,
            self._begin[s] + self._idle[s] - quiet + before,
        ]
        if cap + i < self._count:
            limits.append(self._latest["F"][s][cap + i] - self._return[s])
        if i < self._count - 1:
            limits.append(self._latest["I"][s][i + 1] - b)
        if s > 0:
            limits.append(self._latest["I"][s - 1][i] - b - chain.up[s - 1])
        latest = min(limits)
        return self._rounded(s, latest) if i == 0 else latest

    def _rounded(self, s: int, latest: int) -> int:
        """Round I(0) down to a whole number of F's after the first, and idle ticks."""
        f, begin = self._chain.forward[s], self._begin[s]
        if f == 0:
            return latest
        k = min(self._rooms[s].cap, (latest - begin) // f)
        return min(latest, begin + k * f + self._idle[s])

    def _forward(self, s: int, i: int) -> int:
        chain = self._chain
        f = chain.forward[s]
        whole = (self._count - i) * chain.work(s)
        limits = [
            self._end[s] - whole - self._quiet[s],
            self._latest["I"][s][i] - f,
        ]
        if s < chain.num_stages - 1:
            limits.append(self._latest["F"][s + 1][i] - f - chain.down[s])
        if i < self._count - 1:
            limits.append(self._latest["F"][s][i + 1] - f)
        return min(limits)
