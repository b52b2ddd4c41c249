"""A schedule as a starting point for the solver."""

from __future__ import annotations

from collections.abc import Mapping

from lpsched.core.graph import DeviceId, OpId
from lpsched.core.schedule import Schedule
from lpsched.formulations.ilp.build import Model
from lpsched.formulations.ilp.scope import Scope
from lpsched.formulations.ilp.tightening import twins

__all__ = ["starting_point"]


def starting_point(model: Model) -> Mapping[str, int]:
    """Values of placements, starts, orders and delays, by name, from the hint.

    Empty if there is no hint, it has a longer period, or its ops or devices are not
    those of the request. The values need not be feasible: a solver that cannot
    complete them drops them.
    """
    scope, x = model.scope, model.variables
    hint = scope.request.hint
    if hint is None or hint.period > scope.request.period:
        return {}
    devices = _devices(scope, hint)
    if devices is None:
        return {}
    values = {on.name: int(devices[v] == p) for (v, p), on in x.on.items()}
    if not scope.is_timed:
        return values
    starts = _starts(scope, hint)
    values |= {start.name: starts[v] for v, start in x.start.items()}
    for (u, v), order in x.order.items():
        low, high = scope.order_range(u, v)
        lap = (starts[u] - starts[v]) // scope.at.period
        values[order.name] = min(max(lap, low), high)
    for (u, v), same in x.same.items():
        values[same.name] = int(devices[u] == devices[v])
    return values


def _devices(scope: Scope, hint: Schedule) -> dict[int, int] | None:
    """Device number of each op, identical devices renamed by first use."""
    at = scope.at
    numbers: dict[DeviceId | None, int] = {
        device: p for p, device in enumerate(at.graph.device_ids)
    }
    numbers[None] = at.num_devices
    ids: list[OpId] = [op.id for op in at.graph.ops]
    if any(op not in hint.ops or hint.ops[op].device not in numbers for op in ids):
        return None
    chosen = {v: numbers[hint.ops[op].device] for v, op in enumerate(ids)}
    for group in twins(scope):
        used = dict.fromkeys(p for p in chosen.values() if p in group)
        renamed = dict(
            zip([*used, *(p for p in group if p not in used)], group, strict=True)
        )
        chosen = {v: renamed.get(p, p) for v, p in chosen.items()}
    return chosen


def _starts(scope: Scope, hint: Schedule) -> dict[int, int]:
    r"""Starts at this period, in units, rotated into the windows.

    A schedule of period T' gives one of T >= T' by keeping lap and phase of each end:
    :math:`e' = e + (T - T') \lfloor e / T' \rfloor`. Rounding down to whole units
    keeps all differences, which are whole units. Then all ops turn until one anchor
    starts at 0, and components by whole periods until theirs start in [0, T).
    """
    at, windows = scope.at, scope.windows
    longer = scope.request.period - hint.period
    starts = {}
    for v, op in enumerate(at.graph.ops):
        placed = hint.ops[op.id]
        duration = at.graph.duration(op.id, placed.device)
        end = placed.start + duration
        end += longer * (end // hint.period)
        starts[v] = (end - duration) // at.unit
    if windows is None:
        return starts
    anchors = {v: int(windows.anchor[v]) for v in starts}
    main = next(
        (a for a in anchors.values() if windows.low[a] == windows.high[a] == 0), 0
    )
    turned = {v: start - starts[main] for v, start in starts.items()}
    T = at.period
    return {v: start - T * (turned[anchors[v]] // T) for v, start in turned.items()}
