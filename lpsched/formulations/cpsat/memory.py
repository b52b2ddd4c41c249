"""The memory rule: tensor copies alive at every phase, exactly, and residents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ortools.sat.python.cp_model import IntervalVar, IntVar

from lpsched.analysis.at_period import Arc
from lpsched.formulations.cpsat.objective import add_receives
from lpsched.formulations.cpsat.variables import Expression, Literal, Variables

__all__ = ["add_memory", "add_peak", "memory_in_use"]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Life:
    """A copy's life of q T + r ticks from a phase: q copies, and one more within r."""

    birth: IntVar
    most_whole: int
    whole: IntVar
    rest: IntVar
    end: IntVar


@dataclass(frozen=True, kw_only=True, eq=False)
class _Load:
    """What a device holds: `steady` all the time, `tasks` (interval, size) in turn."""

    steady: list[Expression] = field(default_factory=list)
    tasks: list[tuple[IntervalVar, int]] = field(default_factory=list)


def add_memory(x: Variables, in_use: dict[int, Expression]) -> None:
    r"""A device never holds more than its memory.

    .. math:: M_p \le memory_p

    with M_p of `memory_in_use`.
    """
    for p, peak in in_use.items():
        limit = x.scope.at.graph.devices[p].memory
        if limit is not None:
            x.cp.add(peak <= limit // x.scope.unit_of("peak_memory"))


def add_peak(x: Variables, in_use: dict[int, Expression]) -> Expression:
    r"""Highest peak of a device.

    .. math:: M \ge M_p \qquad \forall p
    """
    most = _most_units(x)
    peak = x.cp.new_int_var(0, most, "peak_memory")
    for device in in_use.values():
        x.cp.add(peak >= device)
    return peak


def memory_in_use(x: Variables) -> dict[int, Expression]:
    r"""Return a bound of each followed device's peak that its minimum attains.

    A copy of tensor i that lives :math:`\ell = q T + r` ticks, 0 <= r < T, from phase
    b on is q copies at every phase (iterations overlap) and one more at the phases
    b .. b + r modulo T:

    .. math:: M_p = \sum_j resident_j\,\rho_{jp} + \sum_{copies} size_i\,q_i + W_p,
        \qquad \text{cumulative}\{[b, b + r), [b + T, b + T + r)\} \le W_p

    On the line, the times T .. 2T - 1 see exactly what is alive at each phase, and
    no time sees more. Lives are bounded from below by what formats.md counts; longer
    ones never hold less, so the least M_p is the peak itself.
    """
    loads = {p: _Load() for p in x.scope.memory}
    for i, tensor in enumerate(x.scope.at.graph.tensors):
        producer = x.scope.at.op_numbers[tensor.producer]
        if tensor.size > 0 and x.scope.occupies(producer):
            add_receives(x, i)
            _add_home(x, i, producer, loads)
            _add_away(x, i, producer, loads)
    return {p: _in_use(x, p, load) for p, load in loads.items()}


def _in_use(x: Variables, p: int, load: _Load) -> Expression:
    """Residents, steady copies and the peak W of the others."""
    total, unit = list(load.steady), x.scope.unit_of("peak_memory")
    for j, resident in enumerate(x.scope.at.graph.residents):
        ops = [x.scope.at.op_numbers[op] for op in resident.ops]
        users = [x.on[v, p] for v in ops if (v, p) in x.on]
        if users and resident.size:
            pays = x.cp.new_bool_var(f"resident[{j},{p}]")
            for user in users:
                x.cp.add_implication(user, pays)
            total.append(resident.size // unit * pays)
    sizes = [size for _, size in load.tasks]
    peak = x.cp.new_int_var(0, sum(sizes) // 2, f"wrapped[{p}]")
    x.cp.add_cumulative([task for task, _ in load.tasks], sizes, peak)
    return sum(total) + peak


def _most_units(x: Variables) -> int:
    """Return more than any device can hold within the windows of lives."""
    graph = x.scope.at.graph
    total = sum(resident.size for resident in graph.residents)
    for i, tensor in enumerate(graph.tensors):
        total += tensor.size * (2 + 2 * (_longest_life(x, i) // x.scope.period))
    return total // x.scope.unit_of("peak_memory")


def _longest_life(x: Variables, tensor: int) -> int:
    """Bound of the life of a copy: to the last use or arrival in the windows."""
    at, windows = x.scope.at, x.scope.windows
    u = at.op_numbers[at.graph.tensors[tensor].producer]
    longest = at.most_durations()
    most = int(longest[u]) + int(at.transfers[tensor].max())
    for arc in _uses(x, tensor):
        k = x.scope.delays[arc.name][1] if arc.name is not None else arc.low
        room = int(windows.high[arc.dst] - windows.low[u] + longest[arc.dst])
        most = max(most, room + k * x.scope.period)
    return most


def _uses(x: Variables, tensor: int) -> Iterator[Arc]:
    """Uses of a tensor on devices."""
    for arc in x.scope.arcs:
        if arc.tensor == tensor and x.scope.occupies(arc.dst):
            yield arc


def _use_end(x: Variables, arc: Arc) -> Expression:
    r"""End of a use of iteration 0's copy: :math:`s_v + t_v + k\,T`."""
    ticks = x.iterations(arc) * x.scope.period
    return x.start[arc.dst] + x.duration(arc.dst) + ticks


def _new_life(x: Variables, name: str, birth: IntVar, longest: int) -> _Life:
    T = x.scope.period
    most = longest // T
    whole = x.cp.new_int_var(0, most, f"whole[{name}]")
    rest = x.cp.new_int_var(0, T - 1, f"rest[{name}]")
    end = x.cp.new_int_var(0, 2 * T - 2, f"end[{name}]")
    x.cp.add(end == birth + rest)
    return _Life(birth=birth, most_whole=most, whole=whole, rest=rest, end=end)


def _lives(
    x: Variables, life: _Life, ticks: Expression, condition: Sequence[Literal]
) -> None:
    """Under a condition, the life is at least so long: ``q T + r >= ticks``."""
    length = life.whole * x.scope.period + life.rest
    x.cp.add(length >= ticks).only_enforce_if(condition)


def _add_home(x: Variables, i: int, u: int, loads: dict[int, _Load]) -> None:
    r"""Copy at the producer u: from its start to end, last use, last transfer's end.

    .. math:: \ell \ge t_u, \quad \ell \ge s_v + t_v + k T - s_u \;(z_{uv}), \quad
        \ell \ge t_u + c_{pq} \;(on_{up} \wedge y_{iq})
    """
    homes = [p for p in loads if (u, p) in x.on]
    if not homes:
        return
    life = _new_life(x, f"{i}", x.phase[u], _longest_life(x, i))
    _lives(x, life, x.duration(u), [])
    for arc in _uses(x, i):
        if arc.dst == u or x.scope.windows.may_share[u, arc.dst]:
            together = [] if arc.dst == u else [x.together(u, arc.dst)]
            _lives(x, life, _use_end(x, arc) - x.start[u], together)
    for p in homes:
        for q, sent in x.receives[i].items():
            c = int(x.scope.at.transfers[i][p, q])
            if p != q and c:
                _lives(x, life, x.duration(u) + c, [sent, x.on[u, p]])
        _hold(x, loads[p], life, i, p, x.on[u, p])


def _add_away(x: Variables, i: int, u: int, loads: dict[int, _Load]) -> None:
    r"""Copy on another device q: from the producer's end to last use and arrival.

    .. math:: \ell \ge c_{pq} \;(on_{up} \wedge y_{iq}), \quad
        \ell \ge s_v + t_v + k T - (s_u + t_u) \;(on_{vq} \wedge y_{iq})
    """
    away = {q: sent for q, sent in x.receives[i].items() if q in loads}
    for q, sent in away.items():
        life = _new_life(x, f"{i},{q}", _end_phase(x, u), _longest_life(x, i))
        for p in x.scope.domain[u]:
            c = int(x.scope.at.transfers[i][p, q])
            if p != q and c:
                _lives(x, life, c, [sent, x.on[u, p]])
        for arc in _uses(x, i):
            if (arc.dst, q) in x.on:
                used = _use_end(x, arc) - x.start[u] - x.duration(u)
                _lives(x, life, used, [sent, x.on[arc.dst, q]])
        _hold(x, loads[q], life, i, q, sent)


def _end_phase(x: Variables, op: int) -> IntVar:
    r"""Phase of an op's end, :math:`(s_v + t_v) \bmod T`."""
    if op not in x.end_phase:
        T, windows = x.scope.period, x.scope.windows
        longest = int(x.scope.at.most_durations()[op])
        first, last = int(windows.low[op]) // T, int(windows.high[op] + longest) // T
        lap = x.cp.new_int_var(first, last, f"end_lap[{op}]")
        phase = x.cp.new_int_var(0, T - 1, f"end_phase[{op}]")
        x.cp.add(x.start[op] + x.duration(op) == T * lap + phase)
        x.end_phase[op] = phase
    return x.end_phase[op]


def _hold(x: Variables, load: _Load, life: _Life, i: int, p: int, on: Literal) -> None:
    """Let a device hold a copy if a literal says so."""
    T = x.scope.period
    size = x.scope.at.graph.tensors[i].size // x.scope.unit_of("peak_memory")
    name = f"{i},{p}"
    steady = x.cp.new_int_var(0, life.most_whole, f"steady[{name}]")
    x.cp.add(steady >= life.whole).only_enforce_if(on)
    load.steady.append(size * steady)
    for lap in (0, T):
        task = x.cp.new_optional_interval_var(
            life.birth + lap, life.rest, life.end + lap, on, f"copy[{name},{lap}]"
        )
        load.tasks.append((task, size))
