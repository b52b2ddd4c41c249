"""Graphs as the command line changes them: delays fixed, retimed, unfolded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lpsched.analysis.clock import min_period_retiming
from lpsched.analysis.dataflow import Node, to_networkx
from lpsched.analysis.delays import delay_values, fix_delays
from lpsched.analysis.registers import min_register_retiming
from lpsched.analysis.retiming import cutset_retiming, schedule_retiming
from lpsched.cli.options import parse_list
from lpsched.cli.problem import load_schedule_file
from lpsched.core.graph import DelayName, Graph
from lpsched.core.io import load_schedule, read_document
from lpsched.errors import Fault, FormatError, InstanceError, NoScheduleError

__all__ = [
    "DelaysOption",
    "NoRetimingError",
    "Retimer",
    "UnfoldOption",
    "chosen_delays",
    "fixed",
]

DelaysOption = Annotated[
    str | None,
    typer.Option(
        "--delays",
        metavar="FILE|min|max",
        help="Values of the named delays: a file of `name: value` or a schedule;"
        " or each delay's least or greatest.",
    ),
]
UnfoldOption = Annotated[
    int | None,
    typer.Option("--unfold", metavar="J", min=1, help="Put J iterations in a block."),
]


class NoRetimingError(NoScheduleError):
    """No retiming has the clock period asked for."""


def chosen_delays(graph: Graph, text: str | None) -> dict[DelayName, int]:
    """Read --delays for a graph, which needs it if it has named delays.

    Raises
    ------
    InstanceError, FormatError
        Naming each delay that has no value, or a value that is out of its range.
    """
    if text is None:
        missing = "a named delay; give it a value with --delays FILE, min or max"
        faults = [Fault(f"delays.{name}", missing) for name in graph.delays]
        if faults:
            raise InstanceError(faults)
        return {}
    if text == "min":
        return delay_values(graph, "min")
    if text == "max":
        return delay_values(graph, "max")
    return _read(Path(text), graph)


def _read(path: Path, graph: Graph) -> dict[DelayName, int]:
    """Read values from a mapping or a schedule; every fault of the file at once."""
    raw = read_document(path, expected="a mapping of names of delays to integers")
    if raw.get("schema") == "lpsched/schedule/1":
        return delay_values(graph, load_schedule(path).delays)
    faults = [
        Fault(f"delays.{name}", f"expected an integer >= 1, got {value!r}")
        for name, value in raw.items()
        if not isinstance(value, int) or isinstance(value, bool) or value < 1
    ]
    wrong = {fault.path for fault in faults}
    names = [name for name in raw if f"delays.{name}" not in wrong]
    try:
        values = delay_values(graph, {DelayName(name): raw[name] for name in names})
    except InstanceError as error:
        faults += (fault for fault in error.faults if fault.path not in wrong)
    else:
        if not faults:
            return values
    raise FormatError(faults, source=str(path))


def fixed(graph: Graph, values: Mapping[DelayName, int]) -> Graph:
    """Fix the named delays; a graph without any stays the document that was read."""
    return fix_delays(graph, values) if graph.delays else graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Retimer:
    """Which retiming the command line asks for; at most one way.

    Attributes
    ----------
    least : bool
        The least clock period, then the fewest registers.
    clock_period : int or None
        The fewest registers at this clock period, in ticks.
    cutset : str or None
        Ops that run an iteration later, as a comma list.
    laps : str or None
        A schedule whose laps it is.
    """

    least: bool = False
    clock_period: int | None = None
    cutset: str | None = None
    laps: str | None = None

    def __post_init__(self) -> None:
        ways = {
            "--retime": self.least,
            "--clock-period": self.clock_period is not None,
            "--cutset": self.cutset is not None,
            "--laps": self.laps is not None,
        }
        asked = [option for option, said in ways.items() if said]
        if len(asked) > 1:
            text = f"{' and '.join(asked)} are two ways to retime; choose one"
            raise typer.BadParameter(text)

    def retiming(self, graph: Graph) -> dict[Node, int] | None:
        """Find the retiming; None if none is asked for.

        Raises
        ------
        InstanceError
            If delays would become negative or ops are unknown.
        NoRetimingError
            If no retiming has the clock period.
        """
        if self.least:
            return _fewest(graph, min_period_retiming(graph)[0])
        if self.clock_period is not None:
            return _fewest(graph, self.clock_period)
        if self.cutset is not None:
            return cutset_retiming(graph, _ops_of(graph, self.cutset))
        if self.laps is not None:
            laps = schedule_retiming(load_schedule_file(self.laps))
            least = min(laps.values(), default=0)
            return {op: lap - least for op, lap in laps.items()}
        return None


def _ops_of(graph: Graph, text: str) -> tuple[str, ...]:
    """Read --cutset: ops of the graph."""
    names = parse_list(text)
    unknown = [name for name in names if name not in graph.op_by_id]
    if unknown:
        text = f"the graph has no op {', '.join(map(repr, unknown))}"
        raise typer.BadParameter(text, param_hint="--cutset")
    return names


def _fewest(graph: Graph, period: int) -> dict[Node, int]:
    # Order without data keeps no values; where there is nothing else it counts.
    counted = graph if graph.tensors else to_networkx(graph)
    found = min_register_retiming(counted, period)
    if found is None:
        least, _ = min_period_retiming(graph)
        text = f"no retiming has a clock period of {period}; the least is {least}"
        raise NoRetimingError(text)
    return found[1]
