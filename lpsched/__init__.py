"""lpsched: find, prove and explain schedules for pipelined training.

From a network to a proved schedule::

    from lpsched import SolveParams, compile_network, load_shipped
    from lpsched.solve import solve

    graph = compile_network(load_shipped("alexnet"), devices=4).graph
    answer = solve(graph, SolveParams(objective=("period",)))
    print(answer.result.status, answer.result.objective["period"])
    schedule = answer.require_schedule()

Read: `load_shipped` or `load_network` a network, `load_instance` an instance,
`load_graph` a graph, `load_schedule` a schedule; `from_networkx` takes yours.
`save_graph` and `save_schedule` write.

Compile: `compile_network` and `compile_instance` give a `Graph` with its rounding.

Solve: `lpsched.solve.solve` takes `SolveParams` and returns an `Answer`, which has a
`Result` (`Status`, bounds, proofs) and the `Schedule`; `solve_by_method` runs one of
the heuristics that `method_names` lists, `compare` all of them, as a `Comparison` of
`Row` after `Row`; `pareto_front` trades one objective for another, a `Front`.

Look: `measure` and `explain` a schedule; `gantt_picture`, `graph_picture` and
`front_picture` are images; `to_pandas` and `to_networkx` go on from there. In a
notebook answers, schedules, comparisons and graphs show themselves as tables and
charts.

Check: `lpsched.verify.verify` returns what is wrong with a schedule, nothing if valid.

`solve` and `verify` are imported from the packages whose names they share. All that is
raised on purpose is a `LpschedError`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lpsched._version import __version__

if TYPE_CHECKING:
    from lpsched.analysis.dataflow import to_networkx
    from lpsched.analysis.explain import explain
    from lpsched.analysis.from_networkx import from_networkx
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
    from lpsched.errors import LpschedError
    from lpsched.export import to_pandas
    from lpsched.network import compile_instance, compile_network, load_shipped
    from lpsched.plot import front_picture, gantt_picture, graph_picture
    from lpsched.solve import (
        Comparison,
        Front,
        Row,
        SolveParams,
        compare,
        method_names,
        pareto_front,
        solve_by_method,
    )

__all__ = [
    "Answer",
    "Comparison",
    "Front",
    "Graph",
    "LpschedError",
    "Result",
    "Row",
    "Schedule",
    "SolveParams",
    "Status",
    "__version__",
    "compare",
    "compile_instance",
    "compile_network",
    "explain",
    "from_networkx",
    "front_picture",
    "gantt_picture",
    "graph_picture",
    "load_graph",
    "load_instance",
    "load_network",
    "load_schedule",
    "load_shipped",
    "measure",
    "method_names",
    "pareto_front",
    "save_graph",
    "save_schedule",
    "solve_by_method",
    "to_networkx",
    "to_pandas",
]

#: Where each public name lives. A name loads its module on first use, so that reading
#: or verifying a file does not wait for the solvers.
_HOMES = {
    "Answer": "core.answer",
    "Comparison": "solve",
    "Front": "solve",
    "Graph": "core.graph",
    "LpschedError": "errors",
    "Result": "core.result",
    "Row": "solve",
    "Schedule": "core.schedule",
    "SolveParams": "solve",
    "Status": "core.result",
    "compare": "solve",
    "compile_instance": "network",
    "compile_network": "network",
    "explain": "analysis.explain",
    "from_networkx": "analysis.from_networkx",
    "front_picture": "plot",
    "gantt_picture": "plot",
    "graph_picture": "plot",
    "load_graph": "core.io",
    "load_instance": "core.io",
    "load_network": "core.io",
    "load_schedule": "core.io",
    "load_shipped": "network",
    "measure": "analysis.metrics",
    "method_names": "solve",
    "pareto_front": "solve",
    "save_graph": "core.io",
    "save_schedule": "core.io",
    "solve_by_method": "solve",
    "to_networkx": "analysis.dataflow",
    "to_pandas": "export",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'lpsched' has no attribute {name!r}")
    value = getattr(import_module(f"lpsched.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
