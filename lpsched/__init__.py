"""lpsched: find, prove and explain schedules for pipelined training.

`lpsched.solve.solve` and `lpsched.verify.verify` are imported from their modules, whose
names they share.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lpsched._version import __version__

if TYPE_CHECKING:
    from lpsched.analysis.explain import explain
    from lpsched.analysis.metrics import measure
    from lpsched.core.answer import Answer
    from lpsched.core.graph import Graph
    from lpsched.core.io import (
        load_graph,
        load_instance,
        load_network,
        load_schedule,
        save_graph,
        save_schedule,
    )
    from lpsched.core.result import Result, Status
    from lpsched.core.schedule import Schedule
    from lpsched.network import compile_instance, compile_network, load_shipped
    from lpsched.solve import SolveParams, compare, solve_by_method

__all__ = [
    "Answer",
    "Graph",
    "Result",
    "Schedule",
    "SolveParams",
    "Status",
    "__version__",
    "compare",
    "compile_instance",
    "compile_network",
    "explain",
    "load_graph",
    "load_instance",
    "load_network",
    "load_schedule",
    "load_shipped",
    "measure",
    "save_graph",
    "save_schedule",
    "solve_by_method",
]

#: Where each public name lives. A name loads its module on first use, so that reading
#: or verifying a file does not wait for the solvers.
_HOMES = {
    "Answer": "core.answer",
    "Graph": "core.graph",
    "Result": "core.result",
    "Schedule": "core.schedule",
    "SolveParams": "solve",
    "Status": "core.result",
    "compare": "solve",
    "compile_instance": "network",
    "compile_network": "network",
    "explain": "analysis.explain",
    "load_graph": "core.io",
    "load_instance": "core.io",
    "load_network": "core.io",
    "load_schedule": "core.io",
    "load_shipped": "network",
    "measure": "analysis.metrics",
    "save_graph": "core.io",
    "save_schedule": "core.io",
    "solve_by_method": "solve",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'lpsched' has no attribute {name!r}")
    value = getattr(import_module(f"lpsched.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
