"""Giving named delays their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from lpsched.core.graph import DelayName, Graph
from lpsched.errors import Fault, InstanceError

__all__ = ["delay_values", "fix_delays"]


def delay_values(
    graph: Graph, values: Mapping[DelayName, int] | Literal["min", "max"] = "min"
) -> dict[DelayName, int]:
    """Choose a value for every named delay, in iterations.

    Parameters
    ----------
    values : mapping, "min" or "max"
        A value for every named delay (a schedule's ``delays``), or each delay's own
        least or greatest.

    Raises
    ------
    InstanceError
        If a value is missing, out of its range, for a delay that the graph does not
        have, or asked for as the maximum of a delay without one; with every such
        fault.
    """
    if values == "min":
        chosen = {name: delay.min for name, delay in graph.delays.items()}
    elif values == "max":
        tops = {name: delay.max for name, delay in graph.delays.items()}
        chosen = {name: top for name, top in tops.items() if top is not None}
    else:
        chosen = dict(values)
    missing = "has no maximum" if values == "max" else "needs a value"
    faults = [*_faults(graph, chosen, missing)]
    if faults:
        raise InstanceError(faults)
    return chosen


def fix_delays(
    graph: Graph, values: Mapping[DelayName, int] | Literal["min", "max"] = "min"
) -> Graph:
    """Return the graph with every named delay replaced by an integer.

    Values and errors as in `delay_values`.
    """
    chosen = delay_values(graph, values)

    def fixed(delay: int | DelayName) -> int:
        return delay if isinstance(delay, int) else chosen[delay]

    return graph.replace(
        delays={},
        tensors=tuple(
            replace(
                tensor,
                consumers=tuple(
                    replace(use, delay=fixed(use.delay)) for use in tensor.consumers
                ),
            )
            for tensor in graph.tensors
        ),
        dependences=tuple(
            replace(order, delay=fixed(order.delay)) for order in graph.dependences
        ),
    )


def _faults(
    graph: Graph, chosen: Mapping[DelayName, int], missing: str
) -> Iterator[Fault]:
    for name in chosen:
        if name not in graph.delays:
            yield Fault(f"delays.{name}", "the graph has no such delay")
    for name, delay in graph.delays.items():
        value = chosen.get(name)
        if value is None:
            yield Fault(f"delays.{name}", missing)
        elif value < delay.min:
            yield Fault(f"delays.{name}", f"expected >= {delay.min}, got {value}")
        elif delay.max is not None and value > delay.max:
            yield Fault(f"delays.{name}", f"expected <= {delay.max}, got {value}")
