"""Field types shared by the documents, and the base of every document model."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from lpsched.core.io.faults import branch
from lpsched.core.limits import MAX_INTEGER

__all__ = [
    "MAX_INTEGER",
    "NOT_EMPTY",
    "Count",
    "DelayField",
    "Document",
    "DurationField",
    "Identifier",
    "Name",
    "Positive",
    "Whole",
]


class Document(BaseModel):
    """A mapping of a file: unknown keys refused, no silent conversion."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, populate_by_name=True
    )


def _not_empty(value: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    if value == ():
        raise ValueError("expected at least one entry")
    return value


#: For lists: refuses an empty one, and only when its entries are right.
NOT_EMPTY = AfterValidator(_not_empty)

Whole = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Positive = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
Name = Annotated[str, Field(min_length=1)]
Identifier = Annotated[str, Field(min_length=1)]


def _duration_kind(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    return branch("map") if isinstance(value, dict) else branch("integer")


def _delay_kind(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    return branch("name") if isinstance(value, str) else branch("integer")


DurationField = Annotated[
    Annotated[Count, Tag(branch("integer"))]
    | Annotated[dict[Identifier, Count], Tag(branch("map"))],
    Discriminator(_duration_kind),
]
DelayField = Annotated[
    Annotated[Count, Tag(branch("integer"))]
    | Annotated[Identifier, Tag(branch("name"))],
    Discriminator(_delay_kind),
]
