"""The least period of a graph whose delays are free: pure load balancing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lpsched.analysis.sites import Sites
from lpsched.core.graph import DeviceId, Graph, OpId
from lpsched.core.result import Proof, Stop
from lpsched.formulations.api import Limits, Progress
from lpsched.formulations.balance.bounds import (
    raise_by_assignment,
    raise_by_packing,
    raise_by_work,
    raise_to_unit,
)
from lpsched.formulations.balance.construct import greedy, multifit
from lpsched.formulations.balance.exact import (
    search_neighbourhoods,
    search_patterns,
    search_units,
)
from lpsched.formulations.balance.improve import descend
from lpsched.formulations.balance.items import read_problem
from lpsched.formulations.balance.state import State
from lpsched.formulations.deadline import Deadline

__all__ = ["BalanceOutcome", "balance"]


@dataclass(frozen=True, kw_only=True)
class BalanceOutcome:
    """The best placement found and how good it is.

    Attributes
    ----------
    placement : mapping of OpId to DeviceId
        A device for every op that occupies one.
    period : int
        The greater of its highest load and the lower bound that was given, in ticks
        (at least 1).
    bound : int
        Proved lower bound of the period, in ticks.
    proved : bool
        Whether the two are equal.
    proof : Proof
        Of the best bound found here; its value is less than `bound` where the one
        that was given is better. Kind ``resource``, ``assignment`` or ``packing``,
        with a certificate, ``exhaustion``, or ``trivial`` for 1.
    """

    placement: Mapping[OpId, DeviceId]
    period: int
    bound: int
    proved: bool
    stop: Stop
    proof: Proof
    stats: Mapping[str, Any] = field(default_factory=dict)


def balance(
    graph: Graph,
    limits: Limits,
    *,
    lower: int = 0,
    upper: Mapping[OpId, DeviceId] | None = None,
    progress: Progress | None = None,
    interrupt: threading.Event | None = None,
) -> BalanceOutcome:
    r"""Place ops so that the highest load of a device is least.

    .. math:: \min_{x} \max_d \sum_{v : x_v = d} t_v(d)

    over the placements x that keep each op to its devices and colocated ops together.
    This is the least period where delays are free (`has_free_delays`). First come
    quick placements and bounds with certificates; then CP-SAT searches the ways to
    fill a device at the best bound, parts of the placement, and all placements.
    Reproducible for the same graph, seed and workers unless the time limit is hit.

    Parameters
    ----------
    limits : Limits
        Options: ``packing`` (bounds by weighing items), ``patterns`` (search of ways
        to fill a device), ``chains`` (items that divide each other counted together),
        ``symmetry`` (alike devices in order of load).
    lower : int
        A lower bound of the period proved elsewhere, in ticks.
    upper : mapping, optional
        A placement to start from.
    progress : callable, optional
        Called with period and bound whenever one improves, also from another thread.
    interrupt : threading.Event, optional
        Once set, the search ends within a fraction of a second.

    Returns
    -------
    BalanceOutcome
        Whenever the search ends, a placement and a bound that hold.

    Raises
    ------
    NoScheduleError
        If ops that must share a device have none in common.
    UnsupportedError
        If all durations together exceed 2^53 ticks.
    ValueError
        If `upper` is no legal placement.
    SolverError
        If CP-SAT contradicts what has been proved.
    """
    deadline = Deadline(limits.seconds, interrupt)
    sites = Sites.of(graph)
    state = State(
        sites,
        read_problem(sites),
        limits=limits,
        deadline=deadline,
        lower=lower,
        progress=progress,
    )
    if upper is not None:
        state.offer(state.problem.where(upper), given=upper)
    state.offer(greedy(state.problem))
    raise_by_work(state)
    for step in _STEPS:
        if not state.is_over:
            step(state)
    return BalanceOutcome(
        placement=state.placement,
        period=state.period,
        bound=state.bound,
        proved=state.is_proved,
        stop=Stop.PROVED if state.is_proved else deadline.stop,
        proof=state.proof,
        stats={**state.stats, "seconds": deadline.elapsed},
    )


def _improve(state: State) -> None:
    """Improve the best placement by local search."""
    where = descend(
        state.problem, state.where, goal=state.goal, deadline=state.deadline
    )
    state.offer(where)


def _refit(state: State) -> None:
    """Fit the items anew into the least capacity, and improve that."""
    where = multifit(
        state.problem,
        state.weights,
        low=state.goal,
        high=state.highest,
        deadline=state.deadline,
    )
    if where is not None:
        better = descend(state.problem, where, goal=state.goal, deadline=state.deadline)
        state.offer(better)


#: Quick steps first; each ends early once the best placement is proved.
_STEPS: tuple[Callable[[State], None], ...] = (
    _improve,
    raise_by_assignment,
    _refit,
    raise_by_packing,
    raise_to_unit,
    search_patterns,
    search_neighbourhoods,
    search_units,
)
