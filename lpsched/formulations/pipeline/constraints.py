"""The rules of the counting model, one function each, for one stage or all."""

from __future__ import annotations

from itertools import combinations

from lpsched.formulations.pipeline.variables import KINDS, Variables

__all__ = [
    "add_exclusive",
    "add_memory",
    "add_order",
    "add_precedence",
    "add_span",
    "add_timing",
    "add_transitivity",
]

#: The pairs of kinds whose order is open, the later one of F, I, W first.
_PAIRS = (("I", "F"), ("W", "F"), ("W", "I"))


def add_order(x: Variables, stage: int) -> None:
    r"""Orders agree with the index order of each kind, and with each other.

    .. math:: [a_{j+1} < b_i] \Rightarrow [a_j < b_i] \Rightarrow [a_j < b_{i+1}],
        \qquad [W_j < F_i] \Rightarrow [I_j < F_i] \wedge [W_j < I_i]

    for every open pair of kinds a, b.
    """
    cp, m = x.cp, x.chain.microbatches
    for a, b in _PAIRS:
        for j, i in combinations(range(m), 2):
            if j + 1 < i:
                more = x.precedes(a, j + 1, b, i, stage)
                cp.add_implication(more, x.precedes(a, j, b, i, stage))
            if i + 1 < m:
                later = x.precedes(a, j, b, i + 1, stage)
                cp.add_implication(x.precedes(a, j, b, i, stage), later)
    for j, i in combinations(range(m), 2):
        early = x.precedes("W", j, "F", i, stage)
        cp.add_implication(early, x.precedes("I", j, "F", i, stage))
        cp.add_implication(early, x.precedes("W", j, "I", i, stage))


def add_transitivity(x: Variables, stage: int) -> None:
    r"""With ops of no duration on a stage, times alone do not rule out circular orders.

    .. math:: [W_j < F_i] \wedge [F_i < I_k] \Rightarrow [W_j < I_k], \qquad
        [W_j < I_k] \wedge [I_k < F_i] \Rightarrow [W_j < F_i], \qquad j < k < i

    All other triples follow from `add_order`.
    """
    if all(x.ticks(kind, stage) > 0 for kind in KINDS):
        return
    for j, k, i in combinations(range(x.chain.microbatches), 3):
        weight = x.precedes("W", j, "F", i, stage)
        inner = x.precedes("W", j, "I", k, stage)
        gradient = x.precedes("I", k, "F", i, stage)
        x.cp.add_bool_or(~weight, gradient, inner)
        x.cp.add_bool_or(~inner, ~gradient, weight)


def add_timing(x: Variables, stage: int) -> None:
    r"""A start is what ran before on the stage, and idle ticks between 0 and D.

    .. math:: s_v = s_{F_0} + f\,n_F(v) + b\,n_I(v) + w\,n_W(v) + d_v,
        \qquad 0 \le d_v \le D

    with n the counts of ops that precede v. Linear relaxations see the load this way.
    """
    first, idle = x.start["F", stage, 0], x.idle(stage)
    for kind in KINDS:
        for i in range(x.chain.microbatches):
            busy = sum(
                x.ticks(other, stage) * x.before(other, kind, i, stage)
                for other in KINDS
            )
            name = f"idle before {kind}{stage}@{i}"
            waited = x.cp.new_int_var(0, idle, name)
            x.cp.add(x.start[kind, stage, i] == first + busy + waited)


def add_exclusive(x: Variables, stage: int) -> None:
    r"""Ops of a stage do not overlap, and orders mean what they say.

    .. math:: [a_j < b_i] \Rightarrow s_{b_i} \ge s_{a_j} + t_a, \qquad
        \neg [a_j < b_i] \Rightarrow s_{a_j} \ge s_{b_i} + t_b
    """
    cp, m = x.cp, x.chain.microbatches
    for kind in KINDS:
        ticks = x.ticks(kind, stage)
        for i in range(1, m):
            before = x.start[kind, stage, i - 1]
            cp.add(x.start[kind, stage, i] >= before + ticks)
    for a, b in _PAIRS:
        for j, i in combinations(range(m), 2):
            literal = x.precedes(a, j, b, i, stage)
            one, other = x.start[a, stage, j], x.start[b, stage, i]
            after = cp.add(other >= one + x.ticks(a, stage))
            after.only_enforce_if(literal)
            ahead = cp.add(one >= other + x.ticks(b, stage))
            ahead.only_enforce_if(~literal)
    cp.add_no_overlap(
        cp.new_fixed_size_interval_var(
            x.start[kind, stage, i], ticks, f"{kind}{stage}@{i}"
        )
        for kind in KINDS
        if (ticks := x.ticks(kind, stage)) > 0
        for i in range(m)
    )


def add_memory(x: Variables, stage: int) -> None:
    r"""The level before each op leaves room for what it needs while it runs.

    .. math:: a\,n_F(v) + b\,n_I(v) - (a + b)\,n_W(v) + \mathrm{need}(v) \le L

    Linear, since it counts. An F needs a and what it holds only while it runs.
    """
    held, limit = x.chain.memory[stage], x.chain.room[stage]
    if limit is None:
        return
    needs = {
        "F": held.forward + held.during_forward,
        "I": held.during_input_grad,
        "W": held.during_weight_grad,
    }
    for kind in KINDS:
        for i in range(x.chain.microbatches):
            level = (
                held.forward * x.before("F", kind, i, stage)
                + held.input_grad * x.before("I", kind, i, stage)
                - held.weight_grad * x.before("W", kind, i, stage)
            )
            x.cp.add(level + needs[kind] <= limit)


def add_precedence(x: Variables) -> None:
    r"""Data travel down and gradients back up; F, I and W of a microbatch in order.

    .. math:: F_{s+1,i} \ge F_{s,i} + f_s + c_s, \quad
        I_{s,i} \ge I_{s+1,i} + b_{s+1} + c'_s, \quad
        W_{s,i} \ge I_{s,i} + b_s \ge F_{s,i} + f_s + b_s
    """
    chain, cp, start = x.chain, x.cp, x.start
    for i in range(chain.microbatches):
        for s in range(chain.num_stages):
            cp.add(start["I", s, i] >= start["F", s, i] + x.ticks("F", s))
            cp.add(start["W", s, i] >= start["I", s, i] + x.ticks("I", s))
        for s in range(chain.num_stages - 1):
            down, up = chain.down[s] // x.unit, chain.up[s] // x.unit
            arrival = start["F", s, i] + x.ticks("F", s) + down
            cp.add(start["F", s + 1, i] >= arrival)
            back = start["I", s + 1, i] + x.ticks("I", s + 1) + up
            cp.add(start["I", s, i] >= back)


def add_span(x: Variables) -> None:
    r"""Each stage's last W ends within its span of its first F, or all within T.

    Without flush the first F of stage 0 starts at 0 (rotation).
    """
    chain, last = x.chain, x.chain.microbatches - 1
    if not chain.flush:
        x.cp.add(x.start["F", 0, 0] == 0)
    for s in range(chain.num_stages):
        end = x.start["W", s, last] + x.ticks("W", s)
        begin = chain.offset(s) // x.unit if chain.flush else x.start["F", s, 0]
        x.cp.add(end <= begin + x.spans[s])
