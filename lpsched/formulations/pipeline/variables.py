"""The variables of the counting model: starts, and what precedes what on a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import gcd
from typing import NamedTuple, TypeAlias

from ortools.sat.python.cp_model import BoolVarT, CpModel, IntVar, LinearExpr

from lpsched.analysis.chain import Chain

__all__ = [
    "Expression",
    "Order",
    "Row",
    "Variables",
    "comes_before",
    "create_variables",
    "unit_of",
]

Expression: TypeAlias = LinearExpr | int

#: The order of two ops: a literal, or what is known of it.
Order: TypeAlias = BoolVarT | bool


class Row(NamedTuple):
    """The ops of one kind of a stage, in index order."""

    kind: str
    stage: int


def comes_before(a: Row, b: Row) -> bool:
    """Whether an op of `a` always precedes that of `b` of the same microbatch.

    F's go down the stages, I's back up; a W follows its I, and nothing follows it.
    """
    if a.kind == "W":
        return False
    if b.kind == "W":
        return a.kind == "F" or a.stage >= b.stage
    if a.kind == "F":
        return b.kind == "I" or a.stage < b.stage
    return b.kind == "I" and a.stage > b.stage


@dataclass(frozen=True, kw_only=True, eq=False)
class Variables:
    r"""Variables of a chain of stages with m microbatches at a period T.

    ==========  ====================  =============================================
    symbol      domain                meaning
    ==========  ====================  =============================================
    s_v         [light speed, end]    start of op v, in units
    a_j < b_i   0, 1                  op j of row a precedes op i of row b, for rows
                                      of one device: j < i if a comes after b, all j
                                      and i if neither comes before the other
    ==========  ====================  =============================================

    Every other order of two ops of a device is known: in index order within a row, and
    by `comes_before`.

    Attributes
    ----------
    unit : int
        Ticks of one unit of time: every duration and transfer is a multiple.
    span : int
        T, in units.
    """

    cp: CpModel
    chain: Chain
    unit: int
    span: int
    start: dict[tuple[Row, int], IntVar] = field(default_factory=dict)
    order: dict[tuple[Row, int, Row, int], BoolVarT] = field(default_factory=dict)

    def rows(self, lane: int) -> list[Row]:
        """Rows of a device."""
        return [Row(kind, s) for s in self.chain.lanes[lane] for kind in "FIW"]

    def pairs(self, lane: int) -> Iterator[tuple[Row, Row]]:
        """Pairs of rows of a device whose order is open, as the variables have them."""
        for a, b in combinations(self.rows(lane), 2):
            yield (b, a) if comes_before(a, b) else (a, b)

    def ticks(self, row: Row) -> int:
        """Duration of an op of a row, in units."""
        chain = self.chain
        times = {"F": chain.forward, "I": chain.input_grad, "W": chain.weight_grad}
        return times[row.kind][row.stage] // self.unit

    def begin(self, lane: int) -> int:
        """Units of an iteration that pass before a device can start."""
        return self.chain.offset(min(self.chain.lanes[lane])) // self.unit

    def idle(self, lane: int) -> int:
        """D, in units: what the work of a device leaves of its span."""
        stages, chain = self.chain.lanes[lane], self.chain
        work = sum(chain.microbatches * chain.work(s) + chain.update[s] for s in stages)
        return self.span - self.begin(lane) - work // self.unit

    def precedes(self, a: Row, j: int, b: Row, i: int) -> Order:
        """Literal of the order of two ops of a device, or what is known of it."""
        if a == b:
            return j < i
        if (literal := self.order.get((a, j, b, i))) is not None:
            return literal
        if (literal := self.order.get((b, i, a, j))) is not None:
            return ~literal
        return comes_before(a, b)

    def before(self, a: Row, b: Row, i: int) -> Expression:
        """How many ops of row a precede op i of row b."""
        m = self.chain.microbatches
        literals = [self.precedes(a, j, b, i) for j in range(m)]
        known = sum(x for x in literals if isinstance(x, bool))
        return known + LinearExpr.sum([x for x in literals if not isinstance(x, bool)])


def unit_of(chain: Chain) -> int:
    """Greatest divisor of every duration and transfer.

    Constraints bound differences of starts by sums of these and T; rounding all starts
    down to multiples shows that ⌊T / unit⌋ units allow what T ticks do.
    """
    times = (
        chain.forward,
        chain.input_grad,
        chain.weight_grad,
        chain.update,
        chain.down,
        chain.up,
    )
    return max(1, gcd(*(ticks for row in times for ticks in row)))


def create_variables(cp: CpModel, chain: Chain, period: int) -> Variables | None:
    r"""Create starts and orders; None if the work of a device does not fit into T.

    Without flush starts lie in 0 .. 2T: with the first F of stage 0 at 0 and least
    starts elsewhere, F(s, 0) is no later than I(0, 0) <= T, and stage s ends at most T
    after it.
    """
    unit = unit_of(chain)
    x = Variables(cp=cp, chain=chain, unit=unit, span=period // unit)
    lanes, m = range(len(chain.lanes)), chain.microbatches
    if min(x.idle(lane) for lane in lanes) < 0:
        return None
    horizon = x.span if chain.flush else 2 * x.span
    for lane in lanes:
        for row in x.rows(lane):
            s = row.stage
            early = (sum(chain.forward[:s]) + sum(chain.down[:s])) // unit
            for i in range(m):
                name = f"{row.kind}{s}@{i}"
                x.start[row, i] = cp.new_int_var(early, horizon, name)
        for a, b in x.pairs(lane):
            for i in range(m):
                for j in range(i if comes_before(b, a) else m):
                    name = f"{a.kind}{a.stage}@{j}<{b.kind}{b.stage}@{i}"
                    x.order[a, j, b, i] = cp.new_bool_var(name)
    return x
