"""Small conversions of plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["as_tuples"]


def as_tuples(value: Any) -> Any:  # noqa: ANN401 - plain data
    """Lists as tuples, which pydantic's strict mode asks for."""
    if isinstance(value, Mapping):
        return {k: as_tuples(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return tuple(as_tuples(v) for v in value)
    return value
