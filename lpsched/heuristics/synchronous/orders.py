"""The published schedules that are orders: what each device runs, whatever it takes.

Each function returns the slots of every device; a backward pass is I with its W right
after it where the method does not part them. A method for more microbatches than there
are leaves out those too many, which keeps every order valid.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from lpsched.analysis.pipeline import Pipeline, Slot
from lpsched.core.graph import DeviceId
from lpsched.errors import UnsupportedError

__all__ = [
    "Orders",
    "dualpipe_v_order",
    "folded",
    "gpipe_order",
    "interleaved_order",
    "looped",
    "one_f_one_b_order",
    "single",
    "zero_bubble_order",
]

Orders = dict[DeviceId, list[Slot]]


def single(pipeline: Pipeline, method: str) -> None:
    """Refuse several stages on a device."""
    if len(pipeline.stages_on) < pipeline.num_stages:
        raise UnsupportedError(f"{method} runs one stage on each device")


def looped(pipeline: Pipeline, method: str) -> list[tuple[int, ...]]:
    """Stages of each device in a loop, by device; refuse any other placement."""
    homes = list(pipeline.stages_on.values())
    count = len(homes)
    if any(s % count != d for d, mine in enumerate(homes) for s in mine):
        text = "the stages to follow the devices in a loop, again and again"
        raise UnsupportedError(f"{method} needs {text}")
    if pipeline.num_stages % count:
        raise UnsupportedError(f"{method} needs as many stages on every device")
    return homes


def folded(pipeline: Pipeline, method: str) -> list[tuple[int, int]]:
    """First and second stage of each device in a V; refuse any other placement."""
    homes = list(pipeline.stages_on.values())
    last = pipeline.num_stages - 1
    pairs = [(d, last - d) for d in range(len(homes))]
    if homes != pairs:
        text = "two stages on each device, down the devices and back up"
        raise UnsupportedError(f"{method} needs {text}")
    return pairs


def _backward(stage: int, m: int) -> Iterator[Slot]:
    yield Slot("I", stage, m)
    yield Slot("W", stage, m)


def gpipe_order(pipeline: Pipeline) -> Orders:
    """All forwards, then all backwards; on a device stage after stage, and back.

    Source: Huang et al., *GPipe* (NeurIPS 2019).
    """
    count = range(pipeline.microbatches)
    orders: Orders = {}
    for device, stages in pipeline.stages_on.items():
        orders[device] = [Slot("F", s, m) for s in stages for m in count]
        for s in reversed(stages):
            orders[device] += [slot for m in count for slot in _backward(s, m)]
    return orders


def one_f_one_b_order(pipeline: Pipeline) -> Orders:
    """Stage s of p runs p - 1 - s forwards, then one forward and one backward in turn.

    Source: Narayanan et al., *PipeDream* (SOSP 2019), flushed each iteration.
    """
    m = pipeline.microbatches
    orders: Orders = {}
    for s, device in enumerate(pipeline.devices):
        warm = min(m, pipeline.num_stages - 1 - s)
        order = [Slot("F", s, k) for k in range(warm)]
        for k in range(m):
            if warm + k < m:
                order.append(Slot("F", s, warm + k))
            order += _backward(s, k)
        orders[device] = order
    return orders


def zero_bubble_order(pipeline: Pipeline, *, depth: int) -> Orders:
    """ZB-H1 (`depth` 1) and ZB-H2 (2), by the rules that give the published figures.

    Stage s of p runs depth·(p - s) forwards, H2 one fewer; then an I, a W if more than
    depth·s wait, and a forward, in turn; the W's left over come last.

    Source: Qi et al., *Zero Bubble Pipeline Parallelism* (ICLR 2024), sec. 2.
    """
    m = pipeline.microbatches
    orders: Orders = {}
    for s, device in enumerate(pipeline.devices):
        forwards = min(m, depth * (pipeline.num_stages - s) - (depth - 1))
        order = [Slot("F", s, k) for k in range(forwards)]
        weights = 0
        for k in range(m):
            order.append(Slot("I", s, k))
            if k + 1 - weights > depth * s:
                order.append(Slot("W", s, weights))
                weights += 1
            if forwards < m:
                order.append(Slot("F", s, forwards))
                forwards += 1
        order += [Slot("W", s, k) for k in range(weights, m)]
        orders[device] = order
    return orders


def interleaved_order(pipeline: Pipeline) -> Orders:
    """Interleaved 1F1B: the stages of a device take turns, p microbatches each.

    Device d of p with v stages warms up with 2(p - 1 - d) + (v - 1)p forwards, then one
    forward and one backward in turn; backwards visit the stages from the last.

    Source: Narayanan et al., *Efficient Large-Scale Language Model Training* (SC 2021);
    for m that p does not divide, the rounds of the next multiple of p.
    """
    homes = looped(pipeline, "interleaved")
    p, m = len(homes), pipeline.microbatches
    rounds = range(0, m, p)
    orders: Orders = {}
    for d, (device, stages) in enumerate(pipeline.stages_on.items()):
        turns = [(s, g + k) for g in rounds for s in stages for k in range(p)]
        backs = [(s, g + k) for g in rounds for s in stages[::-1] for k in range(p)]
        warm = min(len(turns), 2 * (p - 1 - d) + (len(stages) - 1) * p)
        order = [Slot("F", *turn) for turn in turns[:warm]]
        for i, back in enumerate(backs):
            order += [Slot("F", *turn) for turn in turns[warm + i : warm + i + 1]]
            order += _backward(*back)
        orders[device] = [slot for slot in order if slot.microbatch < m]
    return orders


def dualpipe_v_order(pipeline: Pipeline) -> Orders:
    """DualPipeV: a V of two stages a device, F of one in turn with I, W of the other.

    A forward and a backward that run at once there run one after the other here. W is
    put off only where the published schedule says so. Needs 2p microbatches
    on p devices; with fewer the rest is left out.

    Source: DeepSeek-AI, *DualPipe* (2025), "DualPipeV": the eight steps of its code.
    """
    pairs = folded(pipeline, "dualpipe-v")
    m = pipeline.microbatches
    orders = {}
    for d, device in enumerate(pipeline.stages_on):
        order = _DualPipeV(pairs[d], d, len(pairs), max(m, 2 * len(pairs))).order()
        orders[device] = [slot for slot in order if slot.microbatch < m]
    return orders


class _DualPipeV:
    """The order of device d of p, for at least 2p microbatches."""

    def __init__(self, stages: tuple[int, int], d: int, p: int, m: int) -> None:
        self._stages, self._d, self._p, self._m = stages, d, p, m
        self._order: list[Slot] = []
        self._done = {(kind, c): 0 for kind in "FI" for c in (0, 1)}
        self._waiting: deque[Slot] = deque()

    def order(self) -> list[Slot]:
        later = self._p - 1 - self._d
        self._warm_up(later)
        for _ in range(self._m - 2 * self._p + self._d + 1):
            self._forward(0)
            self._backward(1)
            self._forward(1)
            self._backward(0)
        for _ in range(later):
            self._backward(1)
            self._forward(1)
            self._backward(0)
        self._cool_down(later)
        return self._order

    def _warm_up(self, later: int) -> None:
        for _ in range(2 * later):
            self._forward(0)
        for _ in range(self._d + 1):
            self._forward(0)
            self._forward(1)
        for _ in range(later):
            self._backward(1, parted=True)
            self._weight()
            self._forward(1)

    def _cool_down(self, later: int) -> None:
        """Part W from I in the second half, to fill the waits that follow."""
        half, odd = divmod(self._d + 1, 2)[0], self._d % 2
        for i in range(self._d + 1):
            self._backward(1, parted=i > half or (i == half and bool(odd)))
            self._backward(0, parted=i >= half)
        for _ in range(later):
            self._weight()
            self._backward(0, parted=True)
        while self._waiting:
            self._weight()

    def _next(self, kind: str, chunk: int) -> Slot:
        k = self._done[kind, chunk]
        self._done[kind, chunk] += 1
        return Slot(kind, self._stages[chunk], k)

    def _forward(self, chunk: int) -> None:
        self._order.append(self._next("F", chunk))

    def _backward(self, chunk: int, *, parted: bool = False) -> None:
        slot = self._next("I", chunk)
        self._order.append(slot)
        self._waiting.append(slot._replace(kind="W"))
        if not parted:
            self._order.append(self._waiting.pop())

    def _weight(self) -> None:
        self._order.append(self._waiting.popleft())
