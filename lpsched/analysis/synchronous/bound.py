"""Lower bounds of a synchronous pipeline's period or makespan, greatest first."""

from __future__ import annotations

from lpsched.analysis.certified import Bound, certified
from lpsched.analysis.chain import Chain
from lpsched.analysis.synchronous.drain import drain_bound
from lpsched.analysis.synchronous.idle import idle_bound
from lpsched.analysis.synchronous.paths import longest_paths, path_bound
from lpsched.analysis.synchronous.ramp import ramp_bound
from lpsched.analysis.synchronous.room import Room, room_of
from lpsched.errors import NoScheduleError

__all__ = ["chain_bounds", "rooms_of"]

#: Paths are followed over so many microbatches beyond three times the greatest cap:
#: head and tail have come to rest long before, and all paths repeat from there.
_MORE = 16


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
    count = min(chain.microbatches, 3 * max(room.cap for room in rooms) + _MORE)
    paths = longest_paths(chain, rooms, count)
    found = [_bound("path", path_bound(chain, paths), None)]
    for s in stages:
        values = {
            "work": chain.offset(s) + chain.load[s],
            "idle": idle_bound(chain, rooms, s, paths),
            "drain": drain_bound(chain, rooms, s),
        }
        found += [_bound(rule, value, s) for rule, value in values.items()]
    found.sort(key=lambda bound: -bound.value)
    least = ramp_bound(chain, rooms, found[0].value)
    if least > found[0].value:
        found.insert(0, _bound("ramp", least, None))
    return tuple(found)


def _bound(rule: str, value: int, stage: int | None) -> Bound:
    where = {} if stage is None else {"stage": stage}
    return certified("period", "pipeline", value, {"rule": rule, **where})
