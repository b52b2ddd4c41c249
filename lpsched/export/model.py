"""The integer program of a graph at one period, as LP or MPS text."""

from __future__ import annotations

from typing import Literal

from lpsched.core.graph import Graph
from lpsched.formulations.api import Request

__all__ = ["model_text"]


def model_text(
    graph: Graph,
    kind: Literal["lp", "mps"],
    *,
    period: int | None = None,
    minimise: str | None = None,
) -> str:
    """Write exactly the model that the `ilp` back end solves.

    Parameters
    ----------
    period : int, optional
        The period that the model is for, in ticks; default: the best lower bound,
        which is where the search begins.
    minimise : str, optional
        ``communication``, ``staleness``, ``peak_memory`` or ``makespan``; default:
        none, any schedule will do.
    """
    from lpsched.analysis.bounds import period_bound  # noqa: PLC0415 - loads solvers
    from lpsched.formulations import ilp  # noqa: PLC0415 - loads solvers

    at = period if period is not None else period_bound(graph).value
    return ilp.model_text(Request(graph=graph, period=at, minimise=minimise), kind)
