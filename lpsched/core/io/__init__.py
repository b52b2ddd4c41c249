"""Documents: JSON and YAML in, canonical JSON out, checked at the border."""

from lpsched.core.io.faults import validate
from lpsched.core.io.files import (
    document_text,
    graph_digest,
    load_graph,
    load_schedule,
    save_graph,
    save_schedule,
    write_bytes,
    write_text,
)
from lpsched.core.io.graph_document import (
    GraphDocument,
    checked,
    digest,
    graph_from_document,
    graph_to_document,
)
from lpsched.core.io.parse import parse_text, read_document, read_text
from lpsched.core.io.schedule_document import (
    ScheduleDocument,
    result_to_document,
    schedule_from_document,
    schedule_to_document,
)

__all__ = [
    "GraphDocument",
    "ScheduleDocument",
    "checked",
    "digest",
    "document_text",
    "graph_digest",
    "graph_from_document",
    "graph_to_document",
    "load_graph",
    "load_schedule",
    "parse_text",
    "read_document",
    "read_text",
    "result_to_document",
    "save_graph",
    "save_schedule",
    "schedule_from_document",
    "schedule_to_document",
    "validate",
    "write_bytes",
    "write_text",
]
