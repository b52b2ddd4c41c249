"""`lpsched schema`: the JSON Schema of a document."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import BaseModel

from lpsched.cli.options import Manner
from lpsched.cli.output import print_json
from lpsched.core.io import (
    GraphDocument,
    InstanceDocument,
    NetworkDocument,
    ScheduleDocument,
)

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched schema network"

_DOCUMENTS: dict[str, type[BaseModel]] = {
    "network": NetworkDocument,
    "instance": InstanceDocument,
    "graph": GraphDocument,
    "schedule": ScheduleDocument,
}


def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help=f"One of {', '.join(_DOCUMENTS)}.")
    ],
    *,
    manner: Manner,  # noqa: ARG001 - a schema is JSON however it is asked for
) -> None:
    """Print the JSON Schema of a document: network, instance, graph, schedule."""
    if name not in _DOCUMENTS:
        expected = ", ".join(_DOCUMENTS)
        raise typer.BadParameter(f"expected one of {expected}, got {name!r}")
    schema = _DOCUMENTS[name].model_json_schema(by_alias=True)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    print_json({"$schema": dialect, "$id": f"lpsched/{name}/1", **schema})
