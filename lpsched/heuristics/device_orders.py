"""The order of ops on each device, packed: its cost, and small changes of it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from lpsched.analysis.precedence import topological_order
from lpsched.core.graph import DelayName, DeviceId, Graph, OpId
from lpsched.core.schedule import Schedule

__all__ = ["DeviceOrders", "Orders"]

#: Numbers of ops by number of device, in the order in which they run.
Orders: TypeAlias = "dict[int, list[int]]"

#: Weight of the exact waits, in periods, beside the staleness, which goes in steps.
SMOOTH = 0.3
#: Share of the trials that keep every op on its device, and of those that move two.
STAY, TWO = 0.35, 0.25


class DeviceOrders:
    """Each device runs its ops from phase 0 without a gap; its load is at most T.

    Ops of no duration or without a device are in no order: they run when they can.
    Delays are free: starts are longest paths over the edges that bind, each rounded up
    to its op's phase.
    """

    def __init__(self, graph: Graph, schedule: Schedule) -> None:
        self._graph, self._schedule = graph, schedule
        self._period = schedule.period
        binding = [
            edge
            for edge in graph.edges
            if not isinstance(edge.delay, str) and edge.src != edge.dst
        ]
        self._ops = topological_order(graph, binding)
        number = {op: i for i, op in enumerate(self._ops)}
        places = [schedule.ops[op].device for op in self._ops]
        self._times = [
            graph.duration(op, device)
            for op, device in zip(self._ops, places, strict=True)
        ]
        self._into: list[list[tuple[int, int]]] = [[] for _ in self._ops]
        for edge in binding:
            ticks = self._times[number[edge.src]] + edge.lag
            ticks -= int(edge.delay) * self._period
            self._into[number[edge.dst]].append((number[edge.src], ticks))
        self._into = _needed(self._into)
        self._reads = self._named(number)
        self._orders = self._read(schedule)
        self._device = {i: p for p, order in self._orders.items() for i in order}
        self._placed = sorted(self._device)
        self._free = [self._is_free(op) for op in self._ops]
        self._phase: list[int | None] = [None] * len(self._ops)
        self._load = dict.fromkeys(self._orders, 0)
        for p in self._orders:
            self._pack(p)

    def _read(self, schedule: Schedule) -> Orders:
        """Order the ops of each device by their phases."""
        numbers = {device: i for i, device in enumerate(self._graph.device_ids)}
        orders: Orders = {p: [] for p in numbers.values()}
        by_phase = sorted(
            range(len(self._ops)), key=lambda i: schedule.phase(self._ops[i])
        )
        for i in by_phase:
            device = schedule.ops[self._ops[i]].device
            if device is not None and self._times[i] > 0:
                orders[numbers[device]].append(i)
        return orders

    def _named(
        self, number: Mapping[OpId, int]
    ) -> list[tuple[int, list[tuple[int, int, int]]]]:
        """Least value and uses (source, target, ticks) of each named delay."""
        ranges = self._graph.delays
        uses: dict[DelayName, list[tuple[int, int, int]]] = {d: [] for d in ranges}
        for edge in self._graph.edges:
            if isinstance(edge.delay, str):
                src = number[edge.src]
                use = (src, number[edge.dst], self._times[src] + edge.lag)
                uses[edge.delay].append(use)
        return [(ranges[name].min, found) for name, found in uses.items()]

    def _is_free(self, op: OpId) -> bool:
        """Tell whether an op runs as long on every device, and alone chooses one."""
        graph = self._graph
        return (
            isinstance(graph.op_by_id[op].duration, int)
            and len(graph.allowed(op)) == len(graph.devices)
            and all(op not in group for group in graph.colocate)
        )

    def _pack(self, device: int) -> None:
        tick = 0
        for i in self._orders[device]:
            self._phase[i] = tick
            tick += self._times[i]
        self._load[device] = tick

    # -- what it costs -------------------------------------------------------------
    def cost(self) -> tuple[float, int]:
        """Cost for annealing, and the staleness, in iterations."""
        period, starts = self._period, self._starts()
        staleness = waits = 0
        for least, uses in self._reads:
            wait = max((starts[u] + t - starts[v] for u, v, t in uses), default=0)
            staleness += max(least, -(-wait // period)) - 1
            waits += max(wait, 0)
        return staleness + SMOOTH * waits / period, staleness

    def _starts(self, phases: Sequence[int | None] | None = None) -> list[int]:
        period, phase = self._period, self._phase if phases is None else phases
        starts = [0] * len(self._ops)
        for i, into in enumerate(self._into):
            begin = 0
            for u, ticks in into:
                reached = starts[u] + ticks
                begin = max(begin, reached)
            slot = phase[i]
            starts[i] = begin if slot is None else begin + (slot - begin) % period
        return starts

    # -- what can be changed -------------------------------------------------------
    def trial(self, rng: random.Random) -> Orders | None:
        """Change something small; return the orders before, or None if it cannot be."""
        if not self._placed:
            return None
        kind, op = rng.random(), rng.choice(self._placed)
        if kind < STAY:
            return self._shift(op, rng)
        other = rng.choice(self._placed)
        if self._device[op] == self._device[other]:
            return None
        group = [other]
        if kind > 1 - TWO:
            second = rng.choice(self._orders[self._device[other]])
            group += [second] if second != other else []
        return self._exchange(op, group)

    def _shift(self, op: int, rng: random.Random) -> Orders:
        device = self._device[op]
        order = self._orders[device]
        before = {device: list(order)}
        order.remove(op)
        order.insert(rng.randrange(len(order) + 1), op)
        self._pack(device)
        return before

    def _exchange(self, op: int, group: list[int]) -> Orders | None:
        """Let an op and a group on another device change places; else move the op."""
        here, there = self._device[op], self._device[group[0]]
        if not all(self._free[i] for i in (op, *group)):
            return None
        more = sum(self._times[i] for i in group) - self._times[op]
        room_here = self._period - self._load[here]
        room_there = self._period - self._load[there]
        place = self._orders[there].index(group[0])
        if more > room_here or -more > room_there:
            if self._times[op] > room_there:
                return None
            group = []
        before = {p: list(self._orders[p]) for p in (here, there)}
        at = self._orders[here].index(op)
        self._orders[here][at : at + 1] = group
        left = [i for i in self._orders[there] if i not in group]
        left.insert(min(place, len(left)), op)
        self._orders[there] = left
        self._settle((here, there))
        return before

    def _settle(self, devices: tuple[int, ...]) -> None:
        for device in devices:
            for i in self._orders[device]:
                self._device[i] = device
            self._pack(device)

    def regroup(self) -> None:
        """Exchange ops of equal duration so that each device has its share of the time.

        Of those that may move, in the order in which they could run at the earliest,
        the first go to the first device, as many as it had, and so on; each device runs
        its ops in that order. Loads stay.
        """
        heads = self._starts(phases=[None] * len(self._ops))
        alike: dict[int, list[int]] = {}
        for i in sorted(self._placed, key=lambda i: (heads[i], i)):
            if self._free[i]:
                alike.setdefault(self._times[i], []).append(i)
        for device, order in self._orders.items():
            taken = [
                alike[self._times[i]].pop(0) if self._free[i] else i for i in order
            ]
            self._orders[device] = sorted(taken, key=lambda i: (heads[i], i))
        self._settle(tuple(self._orders))

    def snapshot(self) -> Orders:
        """Return the orders as they are, for `restore`."""
        return {device: list(order) for device, order in self._orders.items()}

    def restore(self, orders: Orders) -> None:
        """Take orders back: all, or those of some devices."""
        for device, order in orders.items():
            self._orders[device] = list(order)
        self._settle(tuple(orders))

    # -- what comes of it ----------------------------------------------------------
    def placement(self) -> dict[OpId, DeviceId | None]:
        """Device of every op."""
        names = self._graph.device_ids
        return {
            op: names[self._device[i]]
            if i in self._device
            else self._schedule.ops[op].device
            for i, op in enumerate(self._ops)
        }

    def phases(self) -> dict[OpId, int]:
        """Phase of every op that is in an order, in ticks."""
        return {
            op: phase
            for op, phase in zip(self._ops, self._phase, strict=True)
            if phase is not None
        }


def _needed(into: list[list[tuple[int, int]]]) -> list[list[tuple[int, int]]]:
    """Leave out arcs that a longer path implies; nodes are in topological order."""
    kept: list[list[tuple[int, int]]] = [[] for _ in into]
    for u in range(len(into)):
        reach = {u: 0}
        for v in range(u + 1, len(into)):
            direct = max((t for w, t in into[v] if w == u), default=None)
            around = max(
                (reach[w] + t for w, t in into[v] if w != u and w in reach),
                default=None,
            )
            longest = [ticks for ticks in (direct, around) if ticks is not None]
            if longest:
                reach[v] = max(longest)
            if direct is not None and (around is None or around < direct):
                kept[v].append((u, direct))
    return kept
