"""Schedules of synchronous pipelines, as published and as constructed for a bound."""

from lpsched.heuristics.synchronous.methods import (
    SYNCHRONOUS_METHODS,
    dualpipe_v,
    gpipe,
    interleaved,
    one_f_one_b,
    zb_auto,
    zb_h1,
    zb_h2,
    zb_v,
)

__all__ = [
    "SYNCHRONOUS_METHODS",
    "dualpipe_v",
    "gpipe",
    "interleaved",
    "one_f_one_b",
    "zb_auto",
    "zb_h1",
    "zb_h2",
    "zb_v",
]
