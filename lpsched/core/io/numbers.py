"""Real-valued fields of the documents, read as the exact numbers people wrote."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from lpsched.core.io.faults import branch
from lpsched.core.io.fields import Count, Identifier, Whole
from lpsched.core.limits import MAX_INTEGER
from lpsched.core.network import Amount, Cost

__all__ = [
    "CostField",
    "NumberField",
    "PositiveNumberField",
    "RealField",
    "ShareField",
    "SpeedField",
    "exact",
    "exact_amount",
    "exact_cost",
    "plain_number",
]


def exact(number: float | str) -> Fraction:
    """Return the number as written: 0.1 is one tenth, not its nearest double."""
    return Fraction(repr(number) if isinstance(number, float) else number)


def plain_number(number: Fraction) -> int | float:
    """Return an integer where the number is one, else the nearest double."""
    return number.numerator if number.denominator == 1 else float(number)


def exact_amount(value: float | dict[str, int | float]) -> Amount:
    """One exact number, or one per device."""
    if isinstance(value, dict):
        return {name: exact(number) for name, number in value.items()}
    return exact(value)


def exact_cost(
    value: float | dict[str, int | float] | tuple[int | float, ...],
) -> Cost:
    """One exact number, one per device, or one per microbatch."""
    if isinstance(value, tuple):
        return tuple(map(exact, value))
    return exact_amount(value)


def _number_kind(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    # Not "<integer>": its faults would ask for an integer where any number is right.
    return branch("whole") if type(value) is int else branch("real")


def _cost_kind(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    if isinstance(value, dict):
        return branch("map")
    return branch("list") if isinstance(value, tuple) else _number_kind(value)


def _share_kind(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    return branch("fraction") if isinstance(value, str) else _number_kind(value)


def _share(value: str) -> str:
    if not re.fullmatch("[0-9]{1,15}/[1-9][0-9]{0,14}", value):
        raise ValueError('expected a number >= 0 or a fraction such as "1/50"')
    return value


def _speed(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    # Short digits only: Fraction("1e999999999") would fill the memory.
    if not isinstance(value, str) or not re.fullmatch(
        "[1-9][0-9]{0,14}(/[1-9][0-9]{0,14})?", value
    ):
        raise ValueError('expected an integer >= 1 or a fraction such as "3/2"')
    return value


def _speed_kind(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    return branch("integer") if type(value) is int else branch("fraction")


_Real = Annotated[float, Field(ge=0, le=MAX_INTEGER, allow_inf_nan=False)]
_Signed = Annotated[float, Field(ge=-MAX_INTEGER, le=MAX_INTEGER, allow_inf_nan=False)]

#: A number >= 0, whole or not.
NumberField = Annotated[
    Annotated[Count, Tag(branch("whole"))] | Annotated[_Real, Tag(branch("real"))],
    Discriminator(_number_kind),
]
#: A number of either sign, whole or not.
RealField = Annotated[
    Annotated[Whole, Tag(branch("whole"))] | Annotated[_Signed, Tag(branch("real"))],
    Discriminator(_number_kind),
]
#: A number > 0, whole or not.
PositiveNumberField = Annotated[
    Annotated[int, Field(gt=0, le=MAX_INTEGER), Tag(branch("whole"))]
    | Annotated[
        float, Field(gt=0, le=MAX_INTEGER, allow_inf_nan=False), Tag(branch("real"))
    ],
    Discriminator(_number_kind),
]
#: A number >= 0, which a fraction in quotes states exactly where a decimal cannot.
ShareField = Annotated[
    Annotated[Count, Tag(branch("whole"))]
    | Annotated[_Real, Tag(branch("real"))]
    | Annotated[str, AfterValidator(_share), Tag(branch("fraction"))],
    Discriminator(_share_kind),
]
#: A time: one number, one per device, or one per microbatch.
CostField = Annotated[
    Annotated[Count, Tag(branch("whole"))]
    | Annotated[_Real, Tag(branch("real"))]
    | Annotated[dict[Identifier, NumberField], Tag(branch("map"))]
    | Annotated[tuple[NumberField, ...], Tag(branch("list"))],
    Discriminator(_cost_kind),
]
SpeedField = Annotated[
    Annotated[int, Field(ge=1, le=MAX_INTEGER), Tag(branch("integer"))]
    | Annotated[str, BeforeValidator(_speed), Tag(branch("fraction"))],
    Discriminator(_speed_kind),
]
