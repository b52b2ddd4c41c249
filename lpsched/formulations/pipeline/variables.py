"""The variables of the counting model: starts, and what precedes what on a stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import TypeAlias

from ortools.sat.python.cp_model import BoolVarT, CpModel, IntVar, LinearExpr

from lpsched.analysis.chain import Chain

__all__ = ["KINDS", "Expression", "Variables", "create_variables", "unit_of"]

KINDS = ("F", "I", "W")

Expression: TypeAlias = LinearExpr | int


@dataclass(frozen=True, kw_only=True, eq=False)
class Variables:
    r"""Variables of a chain of S stages and m microbatches at a period T.

    ============  ====================  =======================================  =======
    symbol        domain                meaning                                  count
    ============  ====================  =======================================  =======
    s_v           [light speed, end]    start of op v, in units                  3 S m
    I_j < F_i     0, 1; j < i           I(j) precedes F(i) on their stage        S m²/2
    W_j < F_i     0, 1; j < i           W(j) precedes F(i)                       S m²/2
    W_j < I_i     0, 1; j < i           W(j) precedes I(i)                       S m²/2
    ============  ====================  =======================================  =======

    Every other order of two ops of a stage is known: in index order within a kind, and
    F(i), I(i), W(i) one after the other.

    Attributes
    ----------
    unit : int
        Ticks of one unit of time: every duration and transfer is a multiple.
    spans : tuple of int
        Units that each stage's ops have from its first start; idle is what they leave.
    """

    cp: CpModel
    chain: Chain
    unit: int
    spans: tuple[int, ...]
    start: dict[tuple[str, int, int], IntVar] = field(default_factory=dict)
    order: dict[tuple[str, int, str, int, int], BoolVarT] = field(default_factory=dict)

    def ticks(self, kind: str, stage: int) -> int:
        """Duration of an op, in units."""
        chain = self.chain
        rows = {"F": chain.forward, "I": chain.input_grad, "W": chain.weight_grad}
        return rows[kind][stage] // self.unit

    def idle(self, stage: int) -> int:
        """D, in units."""
        work = self.chain.work(stage) // self.unit
        return self.spans[stage] - self.chain.microbatches * work

    def precedes(self, kind: str, j: int, other: str, i: int, stage: int) -> BoolVarT:
        """Literal of op j of `kind` before op i of a kind earlier in F, I, W."""
        return self.order[kind, j, other, i, stage]

    def before(self, kind: str, other: str, i: int, stage: int) -> Expression:
        """How many ops of `kind` precede op i of kind `other`."""
        m = self.chain.microbatches
        if kind == other:
            return i
        if KINDS.index(kind) > KINDS.index(other):
            return LinearExpr.sum(
                [self.precedes(kind, j, other, i, stage) for j in range(i)]
            )
        later = [self.precedes(other, i, kind, k, stage) for k in range(i + 1, m)]
        return m - LinearExpr.sum(later)


def unit_of(chain: Chain) -> int:
    """Greatest divisor of every duration and transfer.

    Constraints bound differences of starts by sums of these and T; rounding all starts
    down to multiples shows that ⌊T / unit⌋ units allow what T ticks do.
    """
    rows = (
        chain.forward,
        chain.input_grad,
        chain.weight_grad,
        chain.update,
        chain.down,
        chain.up,
    )
    return max(1, gcd(*(ticks for row in rows for ticks in row)))


def create_variables(cp: CpModel, chain: Chain, period: int) -> Variables | None:
    r"""Create starts and orders; None if the work of a stage does not fit into T.

    Without flush starts lie in 0 .. 2T: with the first F of stage 0 at 0 and least
    starts elsewhere, F(s, 0) is no later than I(0, 0) <= T, and stage s ends at most T
    after it.
    """
    unit = unit_of(chain)
    stages, m = range(chain.num_stages), chain.microbatches
    span = period // unit
    spans = tuple(span - (chain.offset(s) + chain.update[s]) // unit for s in stages)
    x = Variables(cp=cp, chain=chain, unit=unit, spans=spans)
    if min(x.idle(s) for s in stages) < 0:
        return None
    horizon = span if chain.flush else 2 * span
    for s in stages:
        early = (sum(chain.forward[:s]) + sum(chain.down[:s])) // unit
        for kind in KINDS:
            for i in range(m):
                x.start[kind, s, i] = cp.new_int_var(early, horizon, f"{kind}{s}@{i}")
        for kind, other in (("I", "F"), ("W", "F"), ("W", "I")):
            for i in range(m):
                for j in range(i):
                    name = f"{kind}{s}@{j}<{other}{s}@{i}"
                    x.order[kind, j, other, i, s] = cp.new_bool_var(name)
    return x
