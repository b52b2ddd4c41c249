r"""Devices on which an item would leave too little for the others.

Let :math:`y_d \ge 0` be weights of the devices and :math:`v_i = \min_d y_d t_i(d)`. If
no load is above T, then

.. math:: \sum_i \bigl( y_{x_i} t_i(x_i) - v_i \bigr)
   \;\le\; S := T \sum_d y_d - \sum_i v_i ,

since the left side is the weighted sum of the loads less :math:`\sum_i v_i`. No term is
negative: an item never runs where its own term is above S. On equal devices with equal
weights all terms are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lpsched.formulations.balance.items import Problem, Profile

__all__ = ["prune"]


def prune(problem: Problem, weights: Sequence[int], load: int) -> Problem:
    """Forbid what no placement with all loads <= `load`, in units, can contain.

    Parameters
    ----------
    weights : sequence of int
        y, one per device.
    """
    values = [
        min(y * t for y, t in zip(weights, profile, strict=True) if t is not None)
        for profile in problem.profiles
    ]
    slack = load * sum(weights) - sum(values)

    def kept(profile: Profile, value: int) -> Profile:
        return tuple(
            t if t is not None and t <= load and y * t - value <= slack else None
            for y, t in zip(weights, profile, strict=True)
        )

    profiles = tuple(map(kept, problem.profiles, values))
    return replace(problem, profiles=profiles)
