"""Heuristics as published, and list scheduling: functions from graph to schedule."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lpsched.heuristics.annealing import freshen
from lpsched.heuristics.layered import (
    layerpipe,
    layerpipe_inter,
    layerpipe_intra,
    pipedream,
)
from lpsched.heuristics.list_scheduling import list_schedule
from lpsched.heuristics.method import Method
from lpsched.heuristics.sequential import sequential
from lpsched.heuristics.synchronous import SYNCHRONOUS_METHODS

__all__ = [
    "METHODS",
    "Method",
    "freshen",
    "layerpipe",
    "layerpipe_inter",
    "layerpipe_intra",
    "list_schedule",
    "pipedream",
    "sequential",
]

#: Every heuristic by name, in the order in which they are shown.
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in (
            Method(
                name="sequential",
                function=sequential,
                summary="everything on one device",
            ),
            Method(
                name="pipedream",
                function=pipedream,
                summary="layers in contiguous stages, backward in one piece",
            ),
            Method(
                name="layerpipe-intra",
                function=layerpipe_intra,
                summary="F, I and W in layer order, cut into contiguous pieces",
            ),
            Method(
                name="layerpipe-inter",
                function=layerpipe_inter,
                summary="the same with the second part of I a layer earlier",
            ),
            Method(
                name="layerpipe",
                function=layerpipe,
                summary="the better of layerpipe-intra and layerpipe-inter",
            ),
            Method(
                name="list",
                function=list_schedule,
                timed=list_schedule,
                summary="list scheduling: balanced loads, modulo scheduling",
            ),
            *SYNCHRONOUS_METHODS,
        )
    }
)
