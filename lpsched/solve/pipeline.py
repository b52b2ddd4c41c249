"""Synchronous pipelines: their own bounds, constructions and counting model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lpsched.analysis.bounds import objective_bounds
from lpsched.analysis.chain import Chain, chain_of, lanes_of
from lpsched.analysis.pipeline import Pipeline, Slot, pipeline_of
from lpsched.analysis.synchronous import chain_bounds, rooms_of
from lpsched.core.graph import Graph
from lpsched.core.result import Proof, Status
from lpsched.core.schedule import Schedule
from lpsched.errors import NoScheduleError, UnsupportedError
from lpsched.formulations.api import Limits
from lpsched.heuristics.synchronous import SYNCHRONOUS_METHODS
from lpsched.heuristics.synchronous.constructions import (
    Construction,
    constructions,
    dispatched,
)
from lpsched.heuristics.synchronous.orders import Orders
from lpsched.heuristics.synchronous.scheduled import timed
from lpsched.solve.relax import with_at_most
from lpsched.solve.search import Search
from lpsched.verify import verify

__all__ = ["read_pipeline", "search_pipeline", "with_microbatches"]

#: Share of the time that constructions may take if they do not meet the bound.
_CONSTRUCTION_SHARE = 0.3

#: The general models are not tried on pipelines of more ops.
_MOST_OPS = 3_000

#: From so many ops on constructions are ranked on few microbatches first.
_MANY_OPS = 10_000

#: Microbatches that such a trial has beyond the most that are in flight.
_MORE_THAN_CAP = 8

#: Seconds of the first trial of a period; doubled when all trials were too short.
_FIRST_TRIAL = 2.0


def read_pipeline(graph: Graph) -> Pipeline | None:
    """Read a synchronous pipeline on fixed stages; None if the graph is none."""
    try:
        return pipeline_of(graph)
    except UnsupportedError:
        return None


def _chain(pipeline: Pipeline) -> Chain | None:
    try:
        return chain_of(pipeline)
    except UnsupportedError:
        return None


def search_pipeline(search: Search, pipeline: Pipeline, *, seconds: float) -> bool:
    """Bound the period of a pipeline, construct schedules, and close what gap is left.

    With a device for each stage: the bounds of `chain_bounds`, orders from
    `constructions` until one meets them, then the counting model at periods between
    (backends ``auto`` and ``cpsat``); the general models have nothing to add then. With
    several stages on a device: the bounds of any graph, the published methods and list
    scheduling, and with flush the counting model. The makespan of an iteration is
    bounded likewise.

    Parameters
    ----------
    pipeline : Pipeline
        The search's graph.
    seconds : float
        How long to go on if nothing is proved.

    Returns
    -------
    bool
        False if it is proved that no schedule exists.
    """
    end = search.remaining - seconds
    cap = _memory_cap(search, pipeline)
    if cap is not None:
        pipeline = pipeline_of(with_at_most(search.graph, cap))
    chain = _chain(pipeline)
    if chain is None:
        return _search_placed(search, pipeline, end)
    search.period_searched = True
    try:
        _bound(search, chain, cap)
    except NoScheduleError:
        return False
    if "period" not in search.params.objective:
        _offer_methods(search)
        return True
    bound = search.bounds["period"]
    if search.cap is not None and bound > search.cap:
        return False
    search.report("period", "constructing schedules")
    share = _CONSTRUCTION_SHARE if _is_countable(search, chain) else 1.0
    pause = search.remaining - share * (search.remaining - end)
    for construction in _ranked(search, chain, pause):
        orders = construction.function(pipeline, chain, bound)
        if orders is not None:
            _offer(search, pipeline, orders, construction.name)
        if search.proved("period") or search.stopped or search.remaining < pause:
            break
    if _is_countable(search, chain):
        _Closing(search, pipeline, chain).run(end)
    return True


def _search_placed(search: Search, pipeline: Pipeline, end: float) -> bool:
    """Search a pipeline with several stages on a device."""
    _bound_generally(search)
    _offer_methods(search)
    for orders in dispatched(pipeline):
        if search.proved("period") or search.stopped:
            break
        _offer(search, pipeline, orders, "dispatch")
    try:
        lanes = lanes_of(pipeline)
    except UnsupportedError:
        search.period_searched = len(search.graph.ops) > _MOST_OPS
        return True
    search.period_searched = True
    if "period" in search.params.objective and _is_countable(search, lanes):
        _Closing(search, pipeline, lanes).run(end)
    return True


def _is_countable(search: Search, chain: Chain) -> bool:
    """Whether a gap is left that the counting model may close."""
    from lpsched.formulations.pipeline import (  # noqa: PLC0415 - loads a solver
        MAX_ORDERS,
        num_orders,
    )

    asked = search.params.backend in ("auto", "cpsat")
    return asked and not search.proved("period") and num_orders(chain) <= MAX_ORDERS


def _ranked(search: Search, chain: Chain, pause: float) -> list[Construction]:
    """Constructions in their order; on many microbatches, by what they do on few.

    Head and tail are the same from a little more than the cap of microbatches in flight
    on, so that what is best there is tried first on all of them.
    """
    found = list(constructions(search.params.seed))
    few = max(room.cap for room in rooms_of(chain)) + _MORE_THAN_CAP
    if len(search.graph.ops) < _MANY_OPS or 2 * few > chain.microbatches:
        return found
    graph = with_microbatches(search.graph, few)
    pipeline = pipeline_of(graph)
    short = chain_of(pipeline)
    bound = chain_bounds(short)[0].value
    half = (search.remaining + pause) / 2
    ranks = dict.fromkeys(range(len(found)), math.inf)
    for i, construction in enumerate(found):
        if search.remaining < half or search.stopped:
            break
        orders = construction.function(pipeline, short, bound)
        schedule = None if orders is None else _timed(pipeline, orders)
        if schedule is not None and not verify(graph, schedule):
            ranks[i] = schedule.period
            if schedule.period == bound:
                break
    return [found[i] for i in sorted(ranks, key=lambda i: (ranks[i], i))]


def with_microbatches(graph: Graph, count: int) -> Graph:
    """Return a pipeline's graph with its first microbatches alone."""
    kept = {op.id for op in graph.ops if (op.microbatch or 0) < count}
    return graph.replace(
        ops=tuple(op for op in graph.ops if op.id in kept),
        tensors=tuple(
            replace(t, consumers=tuple(c for c in t.consumers if c.op in kept))
            for t in graph.tensors
            if t.producer in kept
        ),
        dependences=tuple(
            d for d in graph.dependences if d.src in kept and d.dst in kept
        ),
        colocate=tuple(tuple(op for op in g if op in kept) for g in graph.colocate),
        residents=tuple(
            replace(r, ops=tuple(op for op in r.ops if op in kept))
            for r in graph.residents
        ),
    )


def _memory_cap(search: Search, pipeline: Pipeline) -> int | None:
    """Memory that may be used at most: as asked, or the least if that comes first.

    One microbatch after the other takes the least where a stage is alone.
    """
    if search.params.objective[0] != "peak_memory":
        return search.params.at_most.get("peak_memory")
    for bound in objective_bounds(search.graph, "peak_memory"):
        search.raise_bound("peak_memory", bound.value, bound.proof)
    orders: Orders = {device: [] for device in pipeline.stages_on}
    for m in range(pipeline.microbatches):
        for kind, stages in (("F", 1), ("I", -1), ("W", -1)):
            for s in range(pipeline.num_stages)[::stages]:
                orders[pipeline.devices[s]].append(Slot(kind, s, m))
    _offer(search, pipeline, orders, "one at a time")
    if search.proved("peak_memory"):
        return search.best_values["peak_memory"]
    return search.params.at_most.get("peak_memory")


def _bound(search: Search, chain: Chain, cap: int | None) -> None:
    """Raise the bounds of the period and of the makespan.

    With flush they are one and the same; without, an iteration's makespan obeys the
    bounds with flush all the same. What holds given a cap on the memory, which the
    verifier cannot see, is a solver's word.
    """
    for objective in ("period", "makespan"):
        if objective not in search.params.objective:
            continue
        flushed = chain if objective == "period" else replace(chain, flush=True)
        best = chain_bounds(flushed)[0]
        proof = best.proof
        if cap is not None:
            given = {"given": {"peak_memory": cap}, "kind": proof.kind}
            proof = Proof(kind="exhaustion", value=best.value, certificate=given)
        search.raise_bound(objective, best.value, proof)


def _bound_generally(search: Search) -> None:
    """Raise the bounds that hold for any graph."""
    for objective in ("period", "makespan"):
        if objective in search.params.objective:
            best = objective_bounds(search.graph, objective)[0]
            search.raise_bound(objective, best.value, best.proof)


def _offer_methods(search: Search) -> None:
    for method in SYNCHRONOUS_METHODS:
        if search.stopped:
            return
        try:
            search.offer(method.function(search.graph), by=method.name)
        except (UnsupportedError, NoScheduleError):
            continue  # it is for another placement, or needs more memory


def _offer(search: Search, pipeline: Pipeline, orders: Orders, name: str) -> None:
    """Offer what an order gives if it is shorter than the best and fits."""
    schedule = _timed(pipeline, orders)
    if schedule is None:
        return
    best = search.best_values.get("period")
    first = search.params.objective[0] == "period"
    if first and best is not None and schedule.period >= best:
        return
    search.offer_if_valid(schedule, by=name)


def _timed(pipeline: Pipeline, orders: Orders) -> Schedule | None:
    try:
        return timed(pipeline, orders)
    except NoScheduleError:
        return None  # the stages wait for each other


@dataclass
class _Closing:
    """Trials of the counting model between what is refuted and what is found.

    Attributes
    ----------
    high : int or None
        Least period known to be possible for microbatches all alike: if they differ
        the model can only refute.
    """

    search: Search
    pipeline: Pipeline
    chain: Chain
    high: int | None = None

    def run(self, end: float) -> None:
        """Try periods until the bound is met, or until `end` seconds remain."""
        self.search.searched("cpsat")
        budget = _FIRST_TRIAL
        trials = [self._low()]
        while self._is_open():
            decided = False
            for period in trials:
                left = self.search.remaining - end
                if left <= 0 or self.search.stopped:
                    return
                decided = self._try(period, min(budget, left))
                if decided:
                    break
            if not decided:
                budget *= 2
            trials = list(self._trials())

    def _is_open(self) -> bool:
        return not self.search.proved("period") and self._low() != self.high

    def _low(self) -> int:
        return self.search.bounds["period"]

    def _trials(self) -> Iterator[int]:
        """The middle of what is open, then further out, then both of its ends."""
        low, best = self._low(), self.search.best_values.get("period")
        tops = [t for t in (best, self.high) if t is not None]
        top = min(tops, default=2 * low) - 1
        middle = (low + top) // 2
        points = (middle, (low + middle) // 2, (middle + top) // 2, low, top)
        yield from dict.fromkeys(points)

    def _try(self, period: int, seconds: float) -> bool:
        """Refute a period or find a schedule of it; False if time ran out."""
        from lpsched.formulations.pipeline import solve_chain_at_period  # noqa: PLC0415 - loads solvers

        search = self.search
        search.report("period", f"trying period {period}")
        limits = Limits(
            seconds=seconds, seed=search.params.seed, workers=search.params.workers
        )
        outcome = solve_chain_at_period(
            self.chain,
            period,
            limits,
            hint=self._hint(),
            interrupt=search.interrupt,
        )
        if outcome.status is Status.INFEASIBLE:
            certificate = {"solver": "cpsat", "refuted": period}
            proof = Proof(kind="exhaustion", value=period + 1, certificate=certificate)
            search.raise_bound("period", period + 1, proof)
        elif outcome.orders is not None:
            self.high = period
            self._offer_orders(outcome.orders)
        return outcome.status is not Status.UNKNOWN

    def _offer_orders(self, orders: Sequence[Sequence[tuple[str, int, int]]]) -> None:
        slots = {
            device: [Slot(*op) for op in order]
            for device, order in zip(self.pipeline.stages_on, orders, strict=True)
        }
        _offer(self.search, self.pipeline, slots, "counting")

    def _hint(self) -> list[list[tuple[str, int, int]]] | None:
        """Orders of the best schedule, device by device."""
        best = self.search.best
        return None if best is None else orders_in(self.pipeline, best)


def orders_in(
    pipeline: Pipeline, schedule: Schedule
) -> list[list[tuple[str, int, int]]]:
    """Read each device's order off a schedule: kind, stage and microbatch.

    The microbatches of a kind and stage are numbered by start. A slot without an op is
    put where what it waits for stands.
    """
    found = []
    for stages in pipeline.stages_on.values():
        keys: list[tuple[int, int, int, str, int]] = []
        for stage in stages:
            starts = [0] * pipeline.microbatches
            for rank, kind in enumerate("FIW"):
                ops = pipeline.ops[kind][stage]
                starts = [
                    old if op is None else schedule.ops[op].start
                    for op, old in zip(ops, starts, strict=True)
                ]
                keys += [
                    (s, rank, m, kind, stage) for m, s in enumerate(sorted(starts))
                ]
        found.append([(kind, stage, m) for _, _, m, kind, stage in sorted(keys)])
    return found
