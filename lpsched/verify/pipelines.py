r"""Certificates of synchronous pipelines with a device for each stage.

A certificate names its ``rule`` and, but for ``path`` and ``ramp``, a ``stage``. Each
bounds T: the makespan with flush, else the span of a stage, which ends before the next
iteration begins there. F(s, i) is the F of stage s and microbatch i; K (`Stage.cap`)
the microbatches that memory lets be in flight; c and c' are the transfers down and up.

=========  ======================================================================
rule       says of its stage
=========  ======================================================================
``work``   how early it can begin, and all its work
``idle``   and ticks in which it cannot work, before its first I's and after its
           last F's (over ``microbatches`` of them, by default all)
``drain``  the way down, through all its F's, and the last gradient back up
``path``   (no stage) the longest ways between stages, around any cycle of them
``ramp``   (no stage) T = ``refused`` leaves some stage too few idle ticks
=========  ======================================================================
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from math import ceil, inf

from lpsched.core.graph import Graph
from lpsched.verify.evidence import (
    Certificate,
    NotCheckableError,
    RefusedError,
    read_integer,
)
from lpsched.verify.rows import Row, Stage, read_row

__all__ = ["pipeline_bound"]

#: An I may be looked back at over so many microbatches beyond K.
_FAR = 48

#: Steps of a check beyond which it is given up.
MOST_STEPS = 30_000_000


def pipeline_bound(graph: Graph, certificate: Certificate, *, closed: bool) -> int:
    """Return what a ``pipeline`` certificate proves of the period or the makespan.

    Parameters
    ----------
    closed : bool
        Whether the period is bounded: without flush the span of a stage counts then,
        and the makespan otherwise.
    """
    spans = closed and not graph.flush
    checker = _Checker(read_row(graph, closed=spans), certificate, spans=spans)
    rules: Mapping[str, Callable[[], int]] = {
        "work": checker.work,
        "idle": checker.idle,
        "drain": checker.drain,
        "path": checker.path,
        "ramp": checker.ramp,
    }
    rule = certificate.get("rule")
    if not isinstance(rule, str) or rule not in rules:
        raise RefusedError(f"expected a rule, one of {', '.join(rules)}")
    return rules[rule]()


def _left(stage: Stage, m: int, n: int) -> Iterator[tuple[int, int]]:
    r"""Numbers of I's, and most W's with each, that can be left when F(m - n) starts.

    With q W's and r <= q I's left the level is

    .. math:: taken (m - n + 1) - given (m - r) - (taken - given)(m - q)

    and must leave room for what F needs besides. I(m - n - K) has ended by then.
    """
    kept = stage.taken - stage.given
    for r in range(n, min(m, stage.cap(m) + n - 1) + 1):
        q = m
        if stage.limit is not None and kept > 0:
            free = stage.limit - stage.with_f + stage.taken * (n - 1)
            q = min(m, (free - stage.given * r) // kept)
        if q >= r:
            yield r, q


def _room_made(stage: Stage, m: int, n: int) -> int:
    r"""Least ticks of I's and W's from the start of I(j) to that of F(j + K + n).

    With r of the I's and q of the W's run since, q <= r, the level at F(k) is at least

    .. math:: taken (k + 1 - j) - given\,r - (taken - given)\,q

    since no more W's than I's, j, had been run before.
    """
    cap = stage.cap(m)
    most, kept = cap + n, stage.taken - stage.given
    best: float = inf
    for r in range(n + 1, most + 1):
        q = 0
        if stage.limit is not None and kept > 0:
            level = stage.taken * (most + 1) + stage.with_f - stage.given * r
            q = max(0, -(-(level - stage.limit) // kept))
        if q <= r:
            best = min(best, r * stage.b + q * stage.w)
    return (n + 1) * stage.b if best == inf else int(best)


class _Checker:
    """Derives what each rule proves."""

    def __init__(self, row: Row, certificate: Certificate, *, spans: bool) -> None:
        self._row, self._certificate = row, certificate
        self._spans = spans
        self._m = row.microbatches
        self._caps = [stage.cap(self._m) for stage in row.stages]
        if min(self._caps) < 1:
            raise RefusedError("a device has no room for a microbatch")
        self._made: dict[int, Sequence[int]] = {}
        self._steps = 0
        count = certificate.get("microbatches", self._m)
        self._count = min(
            self._m, read_integer({"microbatches": count}, "microbatches", least=1)
        )

    def _stage(self) -> int:
        s = read_integer(self._certificate, "stage")
        if s >= len(self._row.stages):
            raise RefusedError(f"there is no stage {s}")
        return s

    def _begin(self, s: int) -> int:
        """Ticks before a stage can begin, where they count."""
        if self._spans:
            return 0
        return sum(x.f for x in self._row.stages[:s]) + sum(self._row.down[:s])

    # -- work and idle ticks of a stage ----------------------------------------
    def work(self) -> int:
        """The stage begins late and does all its work."""
        s = self._stage()
        return self._begin(s) + self._row.stages[s].load

    def idle(self) -> int:
        r"""Before I(k) the stage can do at most min(m, K + k) F's, k I's and k W's.

        What is missing to the longest way from F(0) to I(k) it idles; and so at the end
        from F(m - n) on, where the n F's, r I's and q W's left (`_left`) are all there
        is. The two do not overlap if k + K <= m - n.
        """
        s = self._stage()
        x, m, cap = self._row.stages[s], self._m, self._caps[s]
        forward, back = self._distances(s, self._count)
        heads = [
            back[s][k] - x.f * min(m, cap + k) - k * (x.b + x.w)
            for k in range(self._count)
        ]
        tails = list(self._tails(s, forward[s], back[s]))
        idle = max(0, *heads, *tails)
        best = list(accumulate(tails, max))
        for k, head in enumerate(heads):
            n = min(m - cap - k, len(best))
            if n < 1:
                break
            idle = max(idle, max(head, 0) + max(best[n - 1], 0))
        return self._begin(s) + m * x.work + x.u + int(idle)

    def _tails(
        self, s: int, forward: Sequence[float], back: Sequence[float]
    ) -> Iterator[float]:
        """Idle ticks from the start of F(m - n) on, for n = 1, 2, ..."""
        x = self._row.stages[s]
        for n, way in enumerate(self._ways(s, forward, back), 1):
            left = _left(x, self._m, n)
            yield way - n * x.f - max((r * x.b + q * x.w for r, q in left), default=0)

    def _ways(
        self, s: int, forward: Sequence[float], back: Sequence[float]
    ) -> Iterator[float]:
        """Longest way to the end of a stage's W's over n = 1, 2, ... microbatches.

        From F(k) all work of n - k microbatches is left, from I(k) all but their F's.
        """
        x = self._row.stages[s]
        rest = x.b + x.w
        from_f = from_i = -inf
        for k, (to_f, to_i) in enumerate(zip(forward, back, strict=True)):
            from_f = max(from_f, to_f - k * x.work)
            from_i = max(from_i, to_i - k * rest)
            yield max(from_f + (k + 1) * x.work, from_i + (k + 1) * rest)

    # -- the way down and back --------------------------------------------------
    def drain(self) -> int:
        r"""Down to the stage, through its m F's, and the last gradient back up.

        At the start of its last F r I's and q W's are left (`_left`). Before it ran
        m - 1 F's, the other I's and W's; after it I(m - 1) comes after r - 1 I's, and
        no earlier than light speed R allows. If K < m, I(0) is one of those before,
        and R - K f ticks before it are idle.
        """
        s, m = self._stage(), self._m
        x, light = self._row.stages[s], self._light()[s]
        early = max(0, light - self._caps[s] * x.f) if m > self._caps[s] else 0
        after = [
            (m - r) * x.b + (m - q) * x.w + max(light, x.f + (r - 1) * x.b)
            for r, q in _left(x, m, 1)
        ]
        span = early + (m - 1) * x.f + min(after, default=light) + x.b
        best = way = 0
        for v in range(s, -1, -1):
            y = self._row.stages[v]
            if v < s:
                way += y.f + self._row.down[v] + self._row.up[v] + y.b
            best = max(best, self._begin(v) + way + span + y.w + y.u)
        return best

    def _light(self) -> list[int]:
        """R: least ticks from the start of F(s, i) to that of I(s, i), by stage."""
        stages = self._row.stages
        found = [stages[-1].f]
        for s in range(len(stages) - 2, -1, -1):
            there = stages[s].f + self._row.down[s]
            found.append(there + found[-1] + stages[s + 1].b + self._row.up[s])
        return found[::-1]

    # -- longest ways -------------------------------------------------------------
    def path(self) -> int:
        r"""Ways D(s, t) from F(s, 0) to the end of stage t.

        The makespan is at least max D(0, t). The span of every stage is at most T, and
        F(t, 0) of the next iteration follows the end of t, so that around a cycle the
        D's sum up to at most T each.
        """
        stages = range(len(self._row.stages))
        if not self._spans:
            return int(max(self._to_ends(0)))
        return ceil(_max_mean([self._to_ends(s) for s in stages]))

    def _to_ends(self, source: int) -> list[float]:
        """D(source, t) for every t, U included."""
        forward, back = self._distances(source, self._count)
        found = []
        for t, x in enumerate(self._row.stages):
            ways = [
                max(
                    to_f + (self._m - k) * x.work,
                    to_i + (self._m - k) * (x.b + x.w),
                )
                for k, (to_f, to_i) in enumerate(zip(forward[t], back[t], strict=True))
            ]
            found.append(max(ways) + x.u)
        return found

    def _distances(
        self, source: int, count: int
    ) -> tuple[list[list[float]], list[list[float]]]:
        r"""Longest ways from F(source, 0) to F(t, k) and to I(t, k), by t and k.

        Down the stages and back up; in index order; from F(j) to I(k) through the F's
        j to k and the I's j to k - 1, for these follow F(j); from I(j) to F(k),
        k = j + K + n, through n F's and `_room_made`, since no more than K + j F's
        start before I(j).
        """
        stages = self._row.stages
        self._spend(count * len(stages) * _FAR)
        forward: list[list[float]] = [[] for _ in stages]
        back: list[list[float]] = [[] for _ in stages]
        turned = [-inf] * len(stages)
        for k in range(count):
            for t, x in enumerate(stages):
                ways = [0 if (t, k) == (source, 0) else -inf]
                if t > 0:
                    before = stages[t - 1].f + self._row.down[t - 1]
                    ways.append(forward[t - 1][k] + before)
                if k > 0:
                    ways.append(forward[t][k - 1] + x.f)
                late = max(0, k - self._caps[t] + 1)
                returns = self._returns(t)[:late]
                ways += [back[t][late - 1 - n] + r for n, r in enumerate(returns)]
                forward[t].append(max(ways))
            for t in reversed(range(len(stages))):
                x = stages[t]
                turned[t] = max(turned[t] + x.f + x.b, forward[t][k] + x.f)
                ways = [turned[t]]
                if t < len(stages) - 1:
                    ways.append(back[t + 1][k] + stages[t + 1].b + self._row.up[t])
                if k > 0:
                    ways.append(back[t][k - 1] + x.b)
                back[t].append(max(ways))
        return forward, back

    def _returns(self, t: int) -> Sequence[int]:
        """Least ticks from the start of I(j) to that of F(j + K + n), by n."""
        if t not in self._made:
            x, far = self._row.stages[t], min(_FAR, self._m)
            spans = [n * x.f + _room_made(x, self._m, n) for n in range(far)]
            self._made[t] = spans
        return self._made[t]

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MOST_STEPS:
            raise NotCheckableError(f"a check of more than {MOST_STEPS} steps")

    # -- both ends of every stage ---------------------------------------------------
    def ramp(self) -> int:
        """Refuse T = ``refused``, and with it every shorter one.

        Of each stage x ticks pass from F(0) to I(0) and z from F(m - 1) to I(m - 1).
        Both grow at least as light does from the last stage up. Only F's precede
        I(0), so x is a number of them and idle ticks; between the other two run r - 1
        I's and less than q W's (`_left`), and idle ticks. If K < m both windows share
        the idle ticks that T leaves the stage. Kept are the pairs (x, z) of which no
        other is better in both.
        """
        refused = read_integer(self._certificate, "refused")
        stages, light = self._row.stages, self._light()
        pairs = [(0, 0)]
        below = 0
        for s in range(len(stages) - 1, -1, -1):
            x = stages[s]
            idle = refused - self._begin(s) - x.u - self._m * x.work
            step, below = light[s] - below, light[s]
            found = {
                pair
                for a, z in pairs
                for pair in self._pairs(s, a + step, z + step, idle)
            }
            pairs = _best(found)
            self._spend(len(found))
        if pairs:
            raise RefusedError(f"nothing here refuses a period of {refused}")
        return refused + 1

    def _pairs(self, s: int, a: int, z: int, idle: int) -> Iterator[tuple[int, int]]:
        x, m, cap = self._row.stages[s], self._m, self._caps[s]
        firsts = [k * x.f for k in range(1, min(cap, m) + 1)]
        lasts = sorted(
            {x.f + (r - 1) * x.b + j * x.w for r, q in _left(x, m, 1) for j in range(q)}
        )
        for first, early in _rounded(firsts, a):
            for last, late in _rounded(lasts, z):
                if (early + late if m > cap else max(early, late)) <= idle:
                    yield first, last


def _rounded(windows: Sequence[int], least: int) -> Iterator[tuple[int, int]]:
    """Ticks of at least `least` made of a window and of idle ticks, and these.

    The longest window that is not longer, made up; and the shortest that is, as it is.
    """
    at = bisect_right(windows, least)
    if at > 0:
        yield least, least - windows[at - 1]
    if at < len(windows):
        yield windows[at], 0


def _best(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for pair in sorted(pairs):
        if not kept or pair[1] < kept[-1][1]:
            kept.append(pair)
    return kept


def _max_mean(spans: Sequence[Sequence[float]]) -> Fraction:
    r"""Greatest mean of the weights around any cycle (Karp).

    .. math:: \max_v \min_{k < n} \frac{d_n(v) - d_k(v)}{n - k}

    with d_k(v) the heaviest walk of k steps to v. Every two stages are joined.
    """
    nodes = range(len(spans))
    walks: list[list[float]] = [[0] * len(spans)]
    for _ in nodes:
        last = walks[-1]
        walks.append([max(last[u] + spans[u][v] for u in nodes) for v in nodes])
    return max(
        min(
            Fraction(int(walks[-1][v] - walk[v]), len(spans) - k)
            for k, walk in enumerate(walks[:-1])
        )
        for v in nodes
    )
