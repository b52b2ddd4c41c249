"""The rules of the counting model, one function each, for one device or all."""

from __future__ import annotations

from itertools import combinations, permutations

from ortools.sat.python.cp_model import LinearExpr

from lpsched.formulations.pipeline.variables import (
    Order,
    Row,
    Variables,
    comes_before,
)

__all__ = [
    "add_exclusive",
    "add_memory",
    "add_order",
    "add_precedence",
    "add_span",
    "add_timing",
    "add_transitivity",
]


def _imply(x: Variables, given: Order, then: Order) -> None:
    """Add an implication unless either side is known."""
    if not isinstance(given, bool) and not isinstance(then, bool):
        x.cp.add_implication(given, then)


def add_order(x: Variables, lane: int) -> None:
    r"""Orders agree with the index order of each row, and with each other.

    .. math:: [a_{j+1} < b_i] \Rightarrow [a_j < b_i] \Rightarrow [a_j < b_{i+1}],
        \qquad [a_j < b_i] \Rightarrow [a'_j < b_i]

    for rows a, b of the device, and a' that comes before a.
    """
    count = range(x.chain.microbatches)
    for a, b in x.pairs(lane):
        for j in count:
            for i in count:
                if i + 1 in count:
                    literal = x.precedes(a, j, b, i)
                    _imply(x, literal, x.precedes(a, j, b, i + 1))
                if j + 1 in count:
                    more = x.precedes(a, j + 1, b, i)
                    _imply(x, more, x.precedes(a, j, b, i))
    for first, a, b in permutations(x.rows(lane), 3):
        if comes_before(first, a):
            for j in count:
                for i in count:
                    literal = x.precedes(a, j, b, i)
                    _imply(x, literal, x.precedes(first, j, b, i))


def add_transitivity(x: Variables, lane: int) -> None:
    r"""With ops of no duration, times alone do not rule out circular orders.

    .. math:: [W_j < F_i] \wedge [F_i < I_k] \Rightarrow [W_j < I_k], \qquad
        [W_j < I_k] \wedge [I_k < F_i] \Rightarrow [W_j < F_i], \qquad j < k < i

    On a device of one stage all other triples follow from `add_order`. With several
    stages nothing is added: orders that are circular are no orders, and show as such.
    """
    rows = x.rows(lane)
    if len(rows) > 3 or all(x.ticks(row) > 0 for row in rows):
        return
    forward, back, weight = rows
    for j, k, i in combinations(range(x.chain.microbatches), 3):
        outer = x.order[weight, j, forward, i]
        inner = x.order[weight, j, back, k]
        middle = x.order[back, k, forward, i]
        x.cp.add_bool_or(~outer, middle, inner)
        x.cp.add_bool_or(~inner, ~middle, outer)


def add_timing(x: Variables, lane: int) -> None:
    r"""A start is what ran before on the device, and idle ticks between 0 and D.

    .. math:: s_v = s_{F_0} + \sum_a t_a\,n_a(v) + d_v, \qquad 0 \le d_v \le D

    with n_a(v) the ops of row a that precede v, and F_0 the device's first op, on its
    first stage. Linear relaxations see the load this way.
    """
    rows = x.rows(lane)
    first, idle = x.start[rows[0], 0], x.idle(lane)
    for row in rows:
        for i in range(x.chain.microbatches):
            busy = sum(x.ticks(other) * x.before(other, row, i) for other in rows)
            name = f"idle before {row.kind}{row.stage}@{i}"
            waited = x.cp.new_int_var(0, idle, name)
            x.cp.add(x.start[row, i] == first + busy + waited)


def add_exclusive(x: Variables, lane: int) -> None:
    r"""Ops of a device do not overlap, and orders mean what they say.

    .. math:: [a_j < b_i] \Rightarrow s_{b_i} \ge s_{a_j} + t_a, \qquad
        \neg [a_j < b_i] \Rightarrow s_{a_j} \ge s_{b_i} + t_b
    """
    cp, m, rows = x.cp, x.chain.microbatches, x.rows(lane)
    for row in rows:
        for i in range(1, m):
            before = x.start[row, i - 1]
            cp.add(x.start[row, i] >= before + x.ticks(row))
    for (a, j, b, i), literal in x.order.items():
        if a in rows:
            one, other = x.start[a, j], x.start[b, i]
            cp.add(other >= one + x.ticks(a)).only_enforce_if(literal)
            cp.add(one >= other + x.ticks(b)).only_enforce_if(~literal)
    cp.add_no_overlap(
        cp.new_fixed_size_interval_var(
            x.start[row, i], x.ticks(row), f"{row.kind}{row.stage}@{i}"
        )
        for row in rows
        if x.ticks(row) > 0
        for i in range(m)
    )


def add_memory(x: Variables, lane: int) -> None:
    r"""The level before each op leaves room for what it needs while it runs.

    .. math:: \sum_s a_s n_{F_s}(v) + b_s n_{I_s}(v) - (a_s + b_s) n_{W_s}(v) +
        \mathrm{need}(v) \le L

    over the stages of the device. Linear, since it counts. An F needs a and what it
    holds only while it runs.
    """
    stages, memory = x.chain.lanes[lane], x.chain.memory
    limit = x.chain.room[stages[0]]
    if limit is None:
        return
    for row in x.rows(lane):
        held = memory[row.stage]
        need = {
            "F": held.forward + held.during_forward,
            "I": held.during_input_grad,
            "W": held.during_weight_grad,
        }[row.kind]
        for i in range(x.chain.microbatches):
            level = LinearExpr.sum(
                [
                    memory[s].forward * x.before(Row("F", s), row, i)
                    + memory[s].input_grad * x.before(Row("I", s), row, i)
                    - memory[s].weight_grad * x.before(Row("W", s), row, i)
                    for s in stages
                ]
            )
            x.cp.add(level + need <= limit)


def add_precedence(x: Variables) -> None:
    r"""Data travel down and gradients back up; F, I and W of a microbatch in order.

    .. math:: F_{s+1,i} \ge F_{s,i} + f_s + c_s, \quad
        I_{s,i} \ge I_{s+1,i} + b_{s+1} + c'_s, \quad
        W_{s,i} \ge I_{s,i} + b_s \ge F_{s,i} + f_s + b_s
    """
    chain, cp = x.chain, x.cp
    forward, back, weight = (
        [Row(kind, s) for s in range(chain.num_stages)] for kind in "FIW"
    )
    for i in range(chain.microbatches):
        for s in range(chain.num_stages):
            end = x.start[forward[s], i] + x.ticks(forward[s])
            cp.add(x.start[back[s], i] >= end)
            end = x.start[back[s], i] + x.ticks(back[s])
            cp.add(x.start[weight[s], i] >= end)
        for s in range(chain.num_stages - 1):
            down, up = chain.down[s] // x.unit, chain.up[s] // x.unit
            arrival = x.start[forward[s], i] + x.ticks(forward[s]) + down
            cp.add(x.start[forward[s + 1], i] >= arrival)
            arrival = x.start[back[s + 1], i] + x.ticks(back[s + 1]) + up
            cp.add(x.start[back[s], i] >= arrival)


def add_span(x: Variables) -> None:
    r"""Each stage's last W and U end within T of its first F, or of the start of all.

    Without flush the first F of stage 0 starts at 0 (rotation).
    """
    chain, last = x.chain, x.chain.microbatches - 1
    if not chain.flush:
        x.cp.add(x.start[Row("F", 0), 0] == 0)
    for s in range(chain.num_stages):
        weight = Row("W", s)
        end = x.start[weight, last] + x.ticks(weight) + chain.update[s] // x.unit
        begin = 0 if chain.flush else x.start[Row("F", s), 0]
        x.cp.add(end <= begin + x.span)
