"""Rows that only help the search: they cut off no schedule, or only its twins."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pulp

from lpsched.formulations.ilp.scope import Scope
from lpsched.formulations.ilp.variables import Variables

__all__ = ["add_neighbours", "add_symmetry", "twins"]


def add_neighbours(x: Variables) -> None:
    r"""Ops that must share a device by their windows (`Windows.must_share`) do.

    .. math:: on_{up} = on_{vp} \qquad \forall p
    """
    scope, windows = x.scope, x.scope.windows
    if windows is None:
        return
    for u, v in scope.paired:
        if windows.must_share(u, v):
            for p in sorted({*scope.places(u), *scope.places(v)}):
                left, right = x.on.get((u, p), 0), x.on.get((v, p), 0)
                pair = scope.op_id(u), scope.op_id(v)
                row = pulp.lpSum([left]) == right
                x.require(row, "neighbours", *pair, scope.at.device_id(p))


def add_symmetry(x: Variables) -> None:
    r"""Number identical devices by their first use.

    .. math:: on_{vq} \le \sum_{u < v} on_{up}

    for neighbours p < q in a class of identical devices: op v may be on q only if
    an earlier op is on p. Any schedule can be renamed to obey.
    """
    scope = x.scope
    for group in twins(scope):
        for p, q in pairwise(group):
            earlier: list[pulp.LpVariable] = []
            for v in range(scope.at.num_ops):
                if (v, q) in x.on:
                    x.require(
                        x.on[v, q] <= pulp.lpSum(earlier),
                        "first_use",
                        scope.op_id(v),
                        scope.at.device_id(q),
                    )
                if (v, p) in x.on:
                    earlier.append(x.on[v, p])


def twins(scope: Scope) -> list[list[int]]:
    """Classes of two or more devices that any renaming within leaves as they are.

    Same memory, same ops allowed, same durations, and links that do not tell them
    apart. Swapping two devices is then a symmetry; those of a class generate all
    renamings of it.
    """
    at = scope.at
    classes: list[list[int]] = []
    for p in range(at.num_devices):
        for group in classes:
            if _is_twin(scope, group[0], p):
                group.append(p)
                break
        else:
            classes.append([p])
    return [group for group in classes if len(group) > 1]


def _is_twin(scope: Scope, p: int, q: int) -> bool:
    at = scope.at
    if at.graph.devices[p].memory != at.graph.devices[q].memory:
        return False
    if (at.allowed[:, p] != at.allowed[:, q]).any():
        return False
    if (at.durations[:, p] != at.durations[:, q]).any():
        return False
    swapped = np.arange(at.num_devices + 1)
    swapped[[p, q]] = q, p
    return all(
        np.array_equal(times, times[np.ix_(swapped, swapped)]) for times in at.transfers
    )
