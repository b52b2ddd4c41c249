"""Lower bounds of a synchronous pipeline's period or makespan, greatest first."""

from __future__ import annotations

from dataclasses import replace

from lpsched.analysis.certified import Bound, certified
from lpsched.analysis.chain import Chain, chain_of
from lpsched.analysis.pipeline import pipeline_of
from lpsched.analysis.synchronous.drain import drain_bound
from lpsched.analysis.synchronous.idle import idle_bound
from lpsched.analysis.synchronous.paths import longest_paths, path_bound
from lpsched.analysis.synchronous.ramp import ramp_bound
from lpsched.analysis.synchronous.room import Room, room_of
from lpsched.core.graph import Graph
from lpsched.errors import NoScheduleError, UnsupportedError

__all__ = ["chain_bounds", "pipeline_bounds", "rooms_of"]

#: Of more microbatches times stages squared than this, paths are followed only over
#: twice as many as memory lets be in flight: less the work of a microbatch each, bounds
#: do not grow any more from there on.
_MOST_NODES = 200_000


def rooms_of(chain: Chain) -> tuple[Room, ...]:
    """Room of every stage.

    Raises
    ------
    NoScheduleError
        A device has no room for a single microbatch of its stage.
    """
    rooms = tuple(room_of(chain, s) for s in range(chain.num_stages))
    for stage, room in enumerate(rooms):
        if room.cap < 1:
            text = f"stage {stage} has no room for one microbatch: {room.limit} units"
            raise NoScheduleError(f"{text}, and it needs {_need(room)}")
    return rooms


def _need(room: Room) -> int:
    held = room.memory
    return held.forward + max(held.during_forward, held.during_input_grad)


def chain_bounds(chain: Chain) -> tuple[Bound, ...]:
    """Lower bounds of the period, in ticks: with flush, of the makespan.

    ``work`` (the load of a device), ``idle`` (A) and ``drain`` (C), each of a stage,
    ``path`` and ``ramp`` (J). They hold for unequal stages; of microbatches that
    differ they use the least times, for which index order costs nothing.

    Raises
    ------
    NoScheduleError
        A device has no room for a single microbatch of its stage.
    """
    rooms = rooms_of(chain)
    stages = range(chain.num_stages)
    count = chain.microbatches
    if count * len(rooms) ** 2 > _MOST_NODES:
        count = min(count, 2 * max(room.cap for room in rooms))
    paths = longest_paths(chain, rooms, count)
    followed = {"microbatches": count} if count < chain.microbatches else {}
    found = [_bound("path", path_bound(chain, paths), **followed)]
    for s in stages:
        values = {
            "work": chain.offset(s) + chain.load[s],
            "idle": idle_bound(chain, rooms, s, paths),
            "drain": drain_bound(chain, rooms, s),
        }
        found += [
            _bound(rule, value, stage=s, **(followed if rule == "idle" else {}))
            for rule, value in values.items()
        ]
    found.sort(key=lambda bound: -bound.value)
    least = ramp_bound(chain, rooms, found[0].value)
    if least > found[0].value:
        found.insert(0, _bound("ramp", least, refused=least - 1))
    return tuple(found)


def pipeline_bounds(graph: Graph, objective: str = "period") -> tuple[Bound, ...]:
    """Best bound by each rule if the graph is a pipeline with a device for each stage.

    Parameters
    ----------
    objective : str
        ``period`` or ``makespan``. An iteration's makespan obeys the bounds with
        flush, whether the graph flushes or not.

    Returns
    -------
    tuple of Bound
        Greatest first; empty for any other graph, and if memory rules out everything.
    """
    try:
        chain = chain_of(pipeline_of(graph))
        if objective == "makespan":
            chain = replace(chain, flush=True)
        found = chain_bounds(chain)
    except (UnsupportedError, NoScheduleError):
        return ()
    best: dict[str, Bound] = {}
    for bound in found:
        rule = (bound.proof.certificate or {})["rule"]
        best.setdefault(rule, replace(bound, objective=objective))
    return tuple(best.values())


def _bound(rule: str, value: int, **where: int) -> Bound:
    return certified("period", "pipeline", value, {"rule": rule, **where})
