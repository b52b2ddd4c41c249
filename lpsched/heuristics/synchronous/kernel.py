"""The steady state: one microbatch as a modulo schedule, unrolled for any M."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lpsched.analysis.chain import Chain
from lpsched.analysis.pipeline import Pipeline, Slot
from lpsched.heuristics.synchronous.orders import Orders

__all__ = ["LAPS", "Kernel", "kernel_of", "unrolled"]

#: Extra laps that F's, and then I's, may take from each stage to the next.
LAPS = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 1), (2, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Starts of microbatch 0; that of microbatch i is i periods later.

    Attributes
    ----------
    period : int
        Ticks between a microbatch and the next.
    forward, input_grad, weight_grad : tuple of int
        Starts by stage; modulo the period the three do not overlap.
    """

    period: int
    forward: tuple[int, ...]
    input_grad: tuple[int, ...]
    weight_grad: tuple[int, ...]


def kernel_of(
    chain: Chain, *, laps: tuple[int, int] = (0, 0), late: bool = False
) -> Kernel | None:
    """Find a modulo schedule of one microbatch that fits the memory.

    Its period is the work of the busiest stage. Without extra laps its latency is
    least, and where the memory does not suffice for that its period is longer.

    Parameters
    ----------
    laps : tuple of int
        Whole periods more that F's, and I's, take from stage to stage: microbatches in
        flight help over warm-up and drain.
    late : bool
        Whether to put each W off for as many periods as the memory allows, to be left
        for the drain.

    Returns
    -------
    Kernel or None
        None if the memory does not suffice for the laps.
    """
    busiest = max(1, *(chain.work(s) for s in range(chain.num_stages)))
    found = _kernel(chain, busiest, laps)
    if laps == (0, 0):
        found = _shortest(chain, found)
    elif not _fits(chain, found):
        return None
    return _late(chain, found) if late else found


def _shortest(chain: Chain, kernel: Kernel) -> Kernel:
    """Kernel of light speed and of the least period that fits, by bisection."""
    low = high = kernel.period
    while not _fits(chain, kernel):
        low, high = high, 2 * high
        kernel = _kernel(chain, high, (0, 0))
    while high - low > 1:
        middle = (low + high) // 2
        trial = _kernel(chain, middle, (0, 0))
        if _fits(chain, trial):
            high, kernel = middle, trial
        else:
            low = middle
    return kernel


def _kernel(chain: Chain, period: int, laps: tuple[int, int]) -> Kernel:
    """F's down the stages at light speed, then I's back, each W as soon as it fits."""
    last = chain.num_stages - 1
    forward = [0]
    for s in range(last):
        wait = chain.forward[s] + chain.down[s] + laps[0] * period
        forward.append(forward[-1] + wait)
    back, weight = [0] * (last + 1), [0] * (last + 1)
    for s in range(last, -1, -1):
        if s == last:
            ready = forward[s] + chain.forward[s]
        else:
            ready = back[s + 1] + chain.input_grad[s + 1] + chain.up[s]
            ready += laps[1] * period
        back[s], weight[s] = _placed(chain, s, period, forward[s], ready)
    return Kernel(
        period=period,
        forward=tuple(forward),
        input_grad=tuple(back),
        weight_grad=tuple(weight),
    )


def _placed(
    chain: Chain, stage: int, period: int, forward: int, ready: int
) -> tuple[int, int]:
    """Earliest I from `ready` on that leaves room for W beside F, and that W.

    I begins at once, or it touches F, or W fits exactly between it and F: moving an I
    that does none of these earlier changes nothing else.
    """
    f = chain.forward[stage]
    b, w = chain.input_grad[stage], chain.weight_grad[stage]
    phases = (ready, forward + f, forward - b, forward + f + w, forward - b - w)
    starts = sorted({ready + (phase - ready) % period for phase in phases})
    for start in starts:
        before = (start - forward) % period - f  # free ticks from F's end to I
        after = period - f - b - before  # free ticks from I's end to F
        if before >= 0 and after >= 0 and max(before, after) >= w:
            end = start + b
            return start, end if after >= w else end + after + f
    raise ValueError(f"stage {stage} has more work than {period} ticks")


def _late(chain: Chain, kernel: Kernel) -> Kernel:
    """Put each W off for as many periods as the memory allows."""
    weights = list(kernel.weight_grad)
    for s in range(chain.num_stages):
        if chain.room[s] is None or chain.memory[s].weight_grad == 0:
            continue
        while _fits_stage(chain, _moved(kernel, s, weights[s] + kernel.period), s):
            weights[s] += kernel.period
    return replace(kernel, weight_grad=tuple(weights))


def _moved(kernel: Kernel, stage: int, start: int) -> Kernel:
    weights = list(kernel.weight_grad)
    weights[stage] = start
    return replace(kernel, weight_grad=tuple(weights))


def _fits(chain: Chain, kernel: Kernel) -> bool:
    return all(_fits_stage(chain, kernel, s) for s in range(chain.num_stages))


def _fits_stage(chain: Chain, kernel: Kernel, stage: int) -> bool:
    r"""Tell whether the level before each op of microbatch 0 leaves room for it.

    At tick x, ops that take t from s on have run for
    :math:`\lfloor (x - s - t) / P \rfloor + 1` more microbatches than before number 0.
    """
    room, held = chain.room[stage], chain.memory[stage]
    if room is None:
        return True
    starts = {
        "F": (kernel.forward[stage], chain.forward[stage]),
        "I": (kernel.input_grad[stage], chain.input_grad[stage]),
        "W": (kernel.weight_grad[stage], chain.weight_grad[stage]),
    }
    needs = {
        "F": held.forward + held.during_forward,
        "I": held.during_input_grad,
        "W": held.during_weight_grad,
    }
    for kind, (tick, _) in starts.items():
        done = [(tick - s - t) // kernel.period + 1 for s, t in starts.values()]
        if held.level(*done) + needs[kind] > room:
            return False
    return True


def unrolled(pipeline: Pipeline, kernel: Kernel) -> Orders:
    """Order of each device when every microbatch runs a period after the one before.

    Timed exactly, warm-up and drain close up as far as the order allows. Of ops that
    start together those of no duration come first.
    """
    rows = {
        "F": kernel.forward,
        "I": kernel.input_grad,
        "W": kernel.weight_grad,
    }
    orders: Orders = {}
    for stage, device in enumerate(pipeline.devices):
        starts = [
            (starts[stage] + m * kernel.period, ticks > 0, m, rank, kind)
            for rank, (kind, starts) in enumerate(rows.items())
            for m, ticks in enumerate(pipeline.ticks[kind][stage])
        ]
        orders[device] = [Slot(kind, stage, m) for *_, m, _, kind in sorted(starts)]
    return orders
