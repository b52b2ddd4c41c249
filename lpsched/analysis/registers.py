"""Retiming for the fewest registers at a clock period, shared at each fan-out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy

from lpsched.analysis.clock import Circuit, retime_feasible
from lpsched.analysis.dataflow import AnyGraph, Arc, Node, flow_of, require_fixed_delays
from lpsched.analysis.linear import LinearProgram, Row
from lpsched.analysis.retiming import apply_retiming
from lpsched.core.graph import Graph, TensorId
from lpsched.errors import SolverError

__all__ = ["min_register_retiming", "num_registers"]


def num_registers(graph: AnyGraph, *, by_size: bool = False) -> int:
    r"""Count the registers that hold values from one iteration to a later one.

    .. math:: \sum_a \max_{(u, v) \in a} k(u \to v)

    over the tensors a of a `Graph` (its plain dependences hold nothing), or over the
    nodes of a networkx graph with all their outgoing edges: consumers of one value
    share its registers.

    Parameters
    ----------
    by_size : bool, optional
        Count each register of a `Graph` as often as its tensor's size, in the graph's
        size unit.

    Raises
    ------
    InstanceError
        If the graph has named delays; fix them first.
    """
    require_fixed_delays(graph)
    flow = flow_of(graph)
    chains = _chains(graph, flow.arcs, by_size=by_size)
    return sum(c.size * max(arc.delay for arc in c.arcs) for c in chains)


def min_register_retiming(
    graph: AnyGraph, period: int, *, by_size: bool = False
) -> tuple[int, dict[Node, int]] | None:
    r"""Find the retiming of a clock period at most `period` with the fewest registers.

    With R(a) the lap at which the last consumer of value a takes it, and u its
    producer,

    .. math:: \min \sum_a size_a \, (R_a - r_u) \quad\text{s.t.}\quad
       R_a - r_v \ge k(u \to v), \;
       r_v - r_u \ge -k(u \to v), \;
       r_v - r_u \ge 1 - W(u, v) \text{ where } D(u, v) > c

    All rows are differences, so that every vertex is integral: a linear program by
    HiGHS, its solution checked in integers. Of the last kind only those rows are
    added, round by round, that the solution so far breaks: one for each delay-free
    path that is too long.

    Parameters
    ----------
    period : int
        The clock period c, in ticks.
    by_size : bool, optional
        Weigh registers by their tensor's size, as `num_registers` does.

    Returns
    -------
    tuple of int and dict, or None
        The number of registers and the retiming (least lap 0); None if no retiming
        has this clock period.

    Raises
    ------
    LoopWithoutDelayError
        If a loop takes time but carries no delay.
    InstanceError
        If the graph has named delays; fix them first.

    Notes
    -----
    Source: Leiserson and Saxe, *Retiming synchronous circuitry* (1991), sec. 8, with
    its mirror vertices as the R.
    """
    if retime_feasible(graph, period) is None:
        return None
    circuit = Circuit.of(graph)
    program = _program(circuit, _chains(graph, circuit.arcs, by_size=by_size))
    laps, value = _minimise(circuit, program, period)
    retiming = circuit.named(laps)
    count = num_registers(apply_retiming(graph, retiming), by_size=by_size)
    if abs(count - value) > 0.5:
        raise SolverError(f"HiGHS claims {value} registers, not {count}")
    return count, retiming


def _minimise(
    circuit: Circuit, program: LinearProgram, period: int
) -> tuple[list[int], float]:
    """Solve, adding a row for each path that is too long, until none is."""
    known: set[tuple[int, int, int]] = set()
    while True:
        solution = program.minimise()
        if solution is None:
            raise SolverError("HiGHS finds no retiming where FEAS has one")
        laps = [round(x) for x in solution.x[: len(circuit.times)]]
        broken = circuit.timing(laps).too_long(period)
        if not broken:
            return laps, solution.value
        rows = {(v, u, 1 + laps[v] - laps[u]) for v, u in broken.items()} - known
        if not rows:
            raise SolverError("HiGHS breaks a row of its linear program")
        known |= rows
        program.add(_difference(*row) for row in sorted(rows))


def _program(circuit: Circuit, chains: Sequence[_Chain]) -> LinearProgram:
    """Laps of the nodes, then of the chains' ends; delays stay >= 0."""
    num_nodes = len(circuit.times)
    cost = [0] * num_nodes + [chain.size for chain in chains]
    rows = [
        _difference(arc.dst, arc.src, -arc.delay)
        for arc in circuit.arcs
        if arc.src != arc.dst
    ]
    for i, chain in enumerate(chains, start=num_nodes):
        cost[chain.arcs[0].src] -= chain.size
        rows += [_difference(i, arc.dst, arc.delay) for arc in chain.arcs]
    program = LinearProgram(cost, lower=-highspy.kHighsInf)
    program.add(rows)
    return program


def _difference(i: int, j: int, least: int) -> Row:
    """``x_i - x_j >= least``."""
    return Row((i, j), (1.0, -1.0), float(least))


@dataclass(frozen=True, slots=True)
class _Chain:
    """Registers in a row behind one value: its size, and the edges that tap it."""

    size: int
    arcs: tuple[Arc, ...]


def _chains(graph: AnyGraph, arcs: tuple[Arc, ...], *, by_size: bool) -> list[_Chain]:
    """Group arcs by the value that they carry."""
    if not isinstance(graph, Graph):
        fans: dict[int, list[Arc]] = {}
        for arc in arcs:
            fans.setdefault(arc.src, []).append(arc)
        return [_Chain(1, tuple(fan)) for fan in fans.values()]
    by_key = {arc.key: arc for arc in arcs}
    taps: dict[TensorId, list[Arc]] = {}
    for index, edge in enumerate(graph.edges):
        if edge.tensor is not None and index in by_key:
            taps.setdefault(edge.tensor.id, []).append(by_key[index])
    sizes = {tensor.id: tensor.size for tensor in graph.tensors}
    return [
        _Chain(sizes[tensor] if by_size else 1, tuple(fan))
        for tensor, fan in taps.items()
    ]
