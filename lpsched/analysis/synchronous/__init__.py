"""Bounds of synchronous pipelines with a device for each stage."""

from lpsched.analysis.synchronous.bound import (
    chain_bounds,
    pipeline_bounds,
    rooms_of,
)
from lpsched.analysis.synchronous.drain import drain_bound, light_speed
from lpsched.analysis.synchronous.idle import heads, idle_bound, tails
from lpsched.analysis.synchronous.paths import Paths, longest_paths, path_bound
from lpsched.analysis.synchronous.ramp import Ramp, ramp_bound
from lpsched.analysis.synchronous.room import Room, room_of

__all__ = [
    "Paths",
    "Ramp",
    "Room",
    "chain_bounds",
    "drain_bound",
    "heads",
    "idle_bound",
    "light_speed",
    "longest_paths",
    "path_bound",
    "pipeline_bounds",
    "ramp_bound",
    "room_of",
    "rooms_of",
    "tails",
]
