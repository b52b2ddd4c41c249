"""Retiming for the least clock period (Leiserson and Saxe)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import networkx as nx

from lpsched.analysis.critical_path import critical_path
from lpsched.analysis.cycles import max_cycle_ratio, predecessor_cycles
from lpsched.analysis.dataflow import (
    AnyGraph,
    Arc,
    Flow,
    Node,
    flow_of,
    require_fixed_delays,
)

__all__ = ["Circuit", "Timing", "min_period_retiming", "retime_feasible"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """A dataflow graph of fixed delays whose loops all carry delay.

    Loops of delay 0 take no time and cannot be moved apart by a retiming; each is one
    node here.

    Attributes
    ----------
    times : tuple of int
        Duration of each node.
    arcs : tuple of Arc
        Between nodes; keys as in the graph's `flow_of`.
    node_of : mapping
        The node that stands for each name.
    """

    times: tuple[int, ...]
    arcs: tuple[Arc, ...]
    node_of: dict[Node, int]

    @classmethod
    def of(cls, graph: AnyGraph) -> Circuit:
        """Read a graph.

        Raises
        ------
        LoopWithoutDelayError
            If a loop takes time but carries no delay.
        InstanceError
            If the graph has named delays, or attributes that are no integers.
        """
        require_fixed_delays(graph)
        critical_path(graph)  # refuses loops that take time without delay
        flow = flow_of(graph)
        part = _delay_free_parts(flow)
        times = [0] * (max(part, default=-1) + 1)
        for node, time in enumerate(flow.times):
            times[part[node]] = max(times[part[node]], time)
        return cls(
            times=tuple(times),
            arcs=tuple(
                arc._replace(src=part[arc.src], dst=part[arc.dst])
                for arc in flow.arcs
                if part[arc.src] != part[arc.dst] or arc.delay > 0
            ),
            node_of={name: part[node] for node, name in enumerate(flow.nodes)},
        )

    def named(self, laps: list[int]) -> dict[Node, int]:
        """Name the nodes of a retiming, the least lap moved to 0."""
        least = min(laps, default=0)
        return {name: laps[node] - least for name, node in self.node_of.items()}

    def timing(self, laps: Sequence[int]) -> Timing:
        """Follow the delay-free paths of the circuit retimed by `laps`."""
        num_nodes = len(self.times)
        after: list[list[Arc]] = [[] for _ in range(num_nodes)]
        waits = [0] * num_nodes
        for arc in self.arcs:
            if arc.delay + laps[arc.dst] == laps[arc.src]:
                after[arc.src].append(arc)
                waits[arc.dst] += 1
        begins = [0] * num_nodes
        previous = list(range(num_nodes))
        ready = [node for node in range(num_nodes) if waits[node] == 0]
        for node in ready:
            for arc in after[node]:
                reached = begins[node] + arc.weight
                if reached > begins[arc.dst]:
                    begins[arc.dst] = reached
                    previous[arc.dst] = node
                waits[arc.dst] -= 1
                if waits[arc.dst] == 0:
                    ready.append(arc.dst)
        ends = [b + t for b, t in zip(begins, self.times, strict=True)]
        return Timing(begins=begins, ends=ends, previous=previous)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When each node runs within a clock period, as early as it can.

    Attributes
    ----------
    begins, ends : sequence of int
        In ticks.
    previous : sequence of int
        The node before on a longest delay-free path; the node itself where it begins.
    """

    begins: Sequence[int]
    ends: Sequence[int]
    previous: Sequence[int]

    @property
    def period(self) -> int:
        """The clock period."""
        return max(self.ends, default=0)

    def too_long(self, period: int) -> dict[int, int]:
        """For each node that ends after `period`, where a path begins that is too long.

        The shortest such path along `previous`.
        """
        found = {}
        for node, end in enumerate(self.ends):
            if end > period:
                origin = node
                while end - self.begins[origin] <= period:
                    origin = self.previous[origin]
                found[node] = origin
        return found


def _delay_free_parts(flow: Flow) -> list[int]:
    """Number of the delay-free strongly connected part of each node."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(flow.nodes)))
    graph.add_edges_from((a.src, a.dst) for a in flow.arcs if a.delay == 0)
    part = [0] * len(flow.nodes)
    for number, nodes in enumerate(nx.strongly_connected_components(graph)):
        for node in nodes:
            part[node] = number
    return part


def min_period_retiming(graph: AnyGraph) -> tuple[int, dict[Node, int]]:
    """Find the least clock period that retiming reaches, and a retiming for it.

    Bisection over `retime_feasible`, from the greater of the longest node and the
    iteration bound's ceiling to the present clock period.

    Returns
    -------
    tuple of int and dict
        The clock period, in ticks, and the retiming (least lap 0).

    Raises
    ------
    LoopWithoutDelayError
        If a loop takes time but carries no delay.
    InstanceError
        If the graph has named delays; fix them first.

    Notes
    -----
    A schedule may have a shorter period still, since its ops may wrap past the end
    of the period (correlator: 10 instead of 13). Source: Leiserson and Saxe,
    *Retiming synchronous circuitry* (1991), sec. 7, with FEAS as test.
    """
    circuit = Circuit.of(graph)
    bare = [arc._replace(weight=circuit.times[arc.src]) for arc in circuit.arcs]
    bound = max_cycle_ratio(len(circuit.times), bare).value
    laps = [0] * len(circuit.times)
    low = max(ceil(bound or 0), max(circuit.times, default=0))
    high = circuit.timing(laps).period
    while low < high:
        middle = (low + high) // 2
        better = _feasible(circuit, middle, laps)
        if better is None:
            low = middle + 1
        else:
            laps, high = better, circuit.timing(better).period
    return high, circuit.named(laps)


def retime_feasible(graph: AnyGraph, period: int) -> dict[Node, int] | None:
    r"""Find a retiming under which no delay-free path is longer than `period`.

    It solves Leiserson and Saxe's difference constraints

    .. math:: r(u) - r(v) \le k(u \to v), \qquad
       r(u) - r(v) \le W(u, v) - 1 \text{ where } D(u, v) > c

    without forming W and D (see `path_matrices` for these): their algorithm FEAS
    delays every node that ends too late by one iteration, which relaxes exactly the
    constraints that are broken. It ends early, as Bellman-Ford may, when the
    constraints that moved the nodes last close a cycle.

    Parameters
    ----------
    graph : Graph or networkx.MultiDiGraph
        With fixed delays. A `Graph` counts least durations, lags, and transfers that
        no placement avoids.
    period : int
        The clock period c, in ticks.

    Returns
    -------
    dict or None
        The retiming (least lap 0), or None if there is none.

    Raises
    ------
    LoopWithoutDelayError
        If a loop takes time but carries no delay.
    InstanceError
        If the graph has named delays; fix them first.

    Notes
    -----
    Source: Leiserson and Saxe, *Retiming synchronous circuitry* (1991), sec. 7.
    """
    circuit = Circuit.of(graph)
    laps = _feasible(circuit, period)
    return None if laps is None else circuit.named(laps)


def _feasible(
    circuit: Circuit, period: int, start: Sequence[int] = ()
) -> list[int] | None:
    """Least laps, at least those of `start`, under which no path is too long.

    The least laps for a longer period are a good start: shorter ones only need more.
    A cycle of what moved the nodes last shows that there are none, from any start:
    each such node v lies at most at r(u) - W(u, v) + 1 by its origin u, and one of
    them lay below.
    """
    num_nodes = len(circuit.times)
    laps = list(start) or [0] * num_nodes
    moved_by = [-1] * num_nodes
    while late := circuit.timing(laps).too_long(period):
        for node, origin in late.items():
            laps[node] += 1
            moved_by[node] = origin
        if predecessor_cycles(range(num_nodes), moved_by):
            return None
    return laps
