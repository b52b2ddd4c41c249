"""Less staleness at the same period: ops change places and devices, by annealing."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable

from lpsched.analysis.freedom import has_free_delays
from lpsched.analysis.timing import least_staleness_laps, retime
from lpsched.core.graph import Graph
from lpsched.core.schedule import Schedule
from lpsched.heuristics.device_orders import DeviceOrders
from lpsched.heuristics.method import verified

__all__ = ["freshen"]

#: Trials of the first round; each goes on from the best and is twice as long as the one
#: before, up to the last length, at which rounds end once one gains nothing.
FIRST_TRIALS, MOST_TRIALS = 12_500, 400_000
#: Heat at the begin and the end of a round, in iterations of staleness.
HOT, COLD = 1.0, 0.05
#: Trials between two looks at the clock.
LOOK = 64


def freshen(
    graph: Graph,
    schedule: Schedule,
    *,
    enough: int = 0,
    seconds: float = 60.0,
    seed: int = 0,
    interrupt: threading.Event | None = None,
) -> Schedule:
    """Look for a schedule of the same period with less staleness.

    Each device runs its ops from phase 0 without a gap. A trial moves an op to another
    place on its device, to another device with room, or against one or two ops of
    another; starts are longest paths. By simulated annealing, in rounds; of the best
    orders each named delay gets its least value.

    Applies where delays are free (`has_free_delays`), none of the named ones has an
    upper limit, and transfers take no time. Elsewhere, and where nothing better is
    found, the schedule comes back as it is.

    Parameters
    ----------
    schedule : Schedule
        Of this graph, valid.
    enough : int
        A staleness, such as a lower bound, at which it ends.
    seconds : float
        After which it ends, if no round without gain has ended it before; in that case
        the same seed gives the same schedule.
    """
    if not _applies(graph):
        return schedule
    end = time.perf_counter() + seconds

    def is_over() -> bool:
        stopped = interrupt is not None and interrupt.is_set()
        return stopped or time.perf_counter() > end

    orders = DeviceOrders(graph, schedule)
    given, (cost, _) = orders.snapshot(), orders.cost()
    orders.regroup()
    if orders.cost()[0] > cost:
        orders.restore(given)
    run = _Run(orders, random.Random(seed), enough, is_over)
    run.anneal()
    placement, phases = run.orders.placement(), run.orders.phases()
    found = retime(graph, schedule.period, placement, phases)
    if found is None:
        return schedule
    found = least_staleness_laps(graph, found)
    better = sum(found.delays.values()) < sum(schedule.delays.values())
    return verified(graph, found) if better else schedule


def _applies(graph: Graph) -> bool:
    links = (graph.link, *graph.links.values())
    return (
        has_free_delays(graph)
        and all(delay.max is None for delay in graph.delays.values())
        and all(link.latency == 0 and link.units_per_tick is None for link in links)
    )


class _Run:
    """One annealing: the orders, and the best of them seen."""

    def __init__(
        self,
        orders: DeviceOrders,
        rng: random.Random,
        enough: int,
        is_over: Callable[[], bool],
    ) -> None:
        self.orders = orders
        self._rng = rng
        self._enough = enough
        self._is_over = is_over
        self._best = orders.snapshot()
        _, self._least = orders.cost()

    def anneal(self) -> None:
        """Go on in rounds; end with the best orders."""
        trials, gaining = FIRST_TRIALS, True
        while (gaining or trials < MOST_TRIALS) and not self._ends():
            gaining = self._round(trials)
            trials = min(2 * trials, MOST_TRIALS)

    def _ends(self) -> bool:
        return self._least <= self._enough or self._is_over()

    def _round(self, trials: int) -> bool:
        """Anneal once from the best, back to the best; tell whether it gained."""
        first = self._least
        cost, _ = self.orders.cost()
        for trial in range(trials):
            if trial % LOOK == 0 and self._ends():
                break
            undo = self.orders.trial(self._rng)
            if undo is None:
                continue
            heat = HOT * (COLD / HOT) ** (trial / trials)
            new, staleness = self.orders.cost()
            if new > cost and self._rng.random() >= math.exp((cost - new) / heat):
                self.orders.restore(undo)
                continue
            cost = new
            if staleness < self._least:
                self._least, self._best = staleness, self.orders.snapshot()
        self.orders.restore(self._best)
        return self._least < first
