"""Exact costs to integer ticks, once, by a stated rule; the error is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from lpsched.core.graph import DeviceId
from lpsched.core.instance import CostModel, RoundingRule
from lpsched.core.limits import MAX_INTEGER
from lpsched.core.network import Amount
from lpsched.network.costs import LayerCosts

__all__ = [
    "DeltaTicks",
    "LayerTicks",
    "Rounder",
    "Rounding",
    "Scale",
    "Ticks",
    "chosen_tick",
    "shares",
    "ticks_of",
]

Key = TypeVar("Key")

#: Ticks of an op, on any device or per device.
Ticks = int | Mapping[DeviceId, int]

#: A tick chosen for costs with decimals divides their sum into no more than this:
#: one far finer than any measurement only makes numbers that solvers dislike.
MAX_CHOSEN_TICKS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """One kind of quantity in integers: how it was rounded and what that cost.

    Attributes
    ----------
    unit : str
        The unit of the exact values.
    tick : Fraction
        What the integer 1 stands for, in that unit.
    greatest_error, total_error : Fraction
        Greatest and summed ``|rounded - exact|`` over layers and kinds of op (over
        devices too, where times differ), in that unit.
    """

    unit: str
    tick: Fraction
    greatest_error: Fraction = Fraction(0)
    total_error: Fraction = Fraction(0)

    @property
    def text(self) -> str:
        """The unit of the integers, for a graph: ``10000 MAC``."""
        return self.unit if self.tick == 1 else f"{_decimal(self.tick)} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounding:
    """How a graph's integers came from a network's costs.

    Attributes
    ----------
    rule : str
        ``nearest`` (halves up) or ``up``; a device's speed always rounds up once
        more, by less than a tick an op.
    least : int
        Fewest ticks of any work that is more than zero.
    time, size : Scale
        What was done to times and to sizes.
    """

    rule: RoundingRule
    least: int
    time: Scale
    size: Scale

    def as_document(self) -> dict[str, Any]:
        """Plain data for `result.rounding`; fractions as strings."""
        return {
            "rule": self.rule,
            "least": self.least,
            **{name: _scale(getattr(self, name)) for name in ("time", "size")},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaTicks:
    """`lpsched.core.network.MemoryDeltas` in integers."""

    forward: int
    input_grad: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTicks:
    """`lpsched.network.costs.LayerCosts` in integers."""

    forward: Ticks
    input_grad: Ticks | None
    weight_grad: Ticks | None
    update: Ticks | None
    output: int
    parameters: int
    memory: DeltaTicks | None = None


def shares(total: int, parts: int) -> tuple[int, ...]:
    """Share an integer: the first ``total mod parts`` parts get one more.

    >>> shares(7, 3)
    (3, 2, 2)
    """
    share, more = divmod(total, parts)
    return tuple(share + (i < more) for i in range(parts))


def ticks_of(
    costs: Mapping[Key, LayerCosts], model: CostModel, *, time_unit: str, size_unit: str
) -> tuple[dict[Key, LayerTicks], Rounding]:
    """Round the costs of every layer to ticks.

    An op kind's total for a layer is rounded first; its parts share the integer.
    Work that is more than zero gets at least `model.least` ticks. Without a tick
    given, 1 unit is taken where every value is whole, else the coarsest power of
    ten that writes every value exactly, or the finest of which at most 10**9 make
    up the sum. A sum beyond the greatest integer of a file makes the tick coarser.
    """
    times = [t for c in costs.values() for t in _times(c)]
    sizes = [s for c in costs.values() for s in _sizes(c)]
    time = Rounder(model.tick or chosen_tick(times), model.rounding, model.least)
    size = Rounder(model.size_tick or chosen_tick(sizes), model.rounding, 0)
    found = {
        name: LayerTicks(
            forward=time.amount(c.forward),
            input_grad=time.optional(c.input_grad),
            weight_grad=time.optional(c.weight_grad),
            update=time.optional(c.update),
            output=size.number(c.output),
            parameters=size.number(c.parameters),
            memory=_deltas(c, size),
        )
        for name, c in costs.items()
    }
    rounding = Rounding(
        rule=model.rounding,
        least=model.least,
        time=time.scale(time_unit),
        size=size.scale(size_unit),
    )
    return found, rounding


def _times(costs: LayerCosts) -> Iterable[Amount]:
    times = (costs.forward, costs.input_grad, costs.weight_grad, costs.update)
    return (time for time in times if time is not None)


def _sizes(costs: LayerCosts) -> Iterable[Fraction]:
    yield from (costs.output, costs.parameters)
    if costs.memory is not None:
        yield from (costs.memory.forward, abs(costs.memory.input_grad))


def _deltas(costs: LayerCosts, size: Rounder) -> DeltaTicks | None:
    """Round what is taken and what is given back alike."""
    if costs.memory is None:
        return None
    input_grad = size.number(abs(costs.memory.input_grad))
    return DeltaTicks(
        forward=size.number(costs.memory.forward),
        input_grad=-input_grad if costs.memory.input_grad < 0 else input_grad,
    )


def chosen_tick(amounts: Iterable[Amount]) -> Fraction:
    """Choose a tick: see `ticks_of`."""
    values = [v for a in amounts for v in _numbers(a)]
    total = sum(values)
    tick = Fraction(1)
    while total / tick * 10 <= MAX_CHOSEN_TICKS and not _is_exact(values, tick):
        tick /= 10
    while total / tick > MAX_INTEGER:
        tick *= 10
    return tick


def _is_exact(values: Iterable[Fraction], tick: Fraction) -> bool:
    return all((v / tick).denominator == 1 for v in values)


def _numbers(amount: Amount) -> Iterable[Fraction]:
    return amount.values() if isinstance(amount, Mapping) else (amount,)


class Rounder:
    """Rounds by one rule and keeps account of the error."""

    def __init__(self, tick: Fraction, rule: RoundingRule, least: int) -> None:
        self._tick, self._rule, self._least = tick, rule, least
        self._greatest = self._total = Fraction(0)

    def number(self, value: Fraction) -> int:
        """Return the ticks of one value."""
        ticks = value / self._tick
        nearest = (2 * ticks + 1) // 2
        rounded = int(nearest if self._rule == "nearest" else -(-ticks // 1))
        if value > 0:
            rounded = max(rounded, self._least)
        error = abs(rounded * self._tick - value)
        self._greatest = max(self._greatest, error)
        self._total += error
        return rounded

    def amount(self, amount: Amount) -> Ticks:
        """Ticks of one value, or per device."""
        if isinstance(amount, Mapping):
            return {DeviceId(k): self.number(v) for k, v in amount.items()}
        return self.number(amount)

    def optional(self, amount: Amount | None) -> Ticks | None:
        """Ticks of an op that may not exist."""
        return None if amount is None else self.amount(amount)

    def scale(self, unit: str) -> Scale:
        """Account for everything rounded so far."""
        return Scale(
            unit=unit,
            tick=self._tick,
            greatest_error=self._greatest,
            total_error=self._total,
        )


def _scale(scale: Scale) -> dict[str, str]:
    return {
        "unit": scale.unit,
        "tick": str(scale.tick),
        "greatest_error": str(scale.greatest_error),
        "total_error": str(scale.total_error),
    }


def _decimal(number: Fraction) -> str:
    """Write a fraction with decimals where they end, else as a fraction."""
    twos_and_fives = number.denominator
    for prime in (2, 5):
        while twos_and_fives % prime == 0:
            twos_and_fives //= prime
    if twos_and_fives > 1:
        return str(number)
    digits = 0
    while (number * 10**digits).denominator > 1:
        digits += 1
    whole = str((number * 10**digits).numerator).rjust(digits + 1, "0")
    return f"{whole[:-digits]}.{whole[-digits:]}" if digits else whole
