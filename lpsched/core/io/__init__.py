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
    checked,
    digest,
    graph_from_document,
    graph_to_document,
)
from lpsched.core.io.graph_model import GraphDocument
from lpsched.core.io.instance_document import (
    InstanceDocument,
    instance_from_document,
)
from lpsched.core.io.load import AnyDocument, load_any, load_instance, load_network
from lpsched.core.io.network_document import (
    NetworkDocument,
    network_from_document,
)
from lpsched.core.io.network_writer import network_to_document, save_network
from lpsched.core.io.parse import (
    parse_json,
    parse_text,
    read_bytes,
    read_document,
    read_text,
)
from lpsched.core.io.schedule_document import (
    ScheduleDocument,
    result_to_document,
    schedule_from_document,
    schedule_to_document,
)

__all__ = [
    "AnyDocument",
    "GraphDocument",
    "InstanceDocument",
    "NetworkDocument",
    "ScheduleDocument",
    "checked",
    "digest",
    "document_text",
    "graph_digest",
    "graph_from_document",
    "graph_to_document",
    "instance_from_document",
    "load_any",
    "load_graph",
    "load_instance",
    "load_network",
    "load_schedule",
    "network_from_document",
    "network_to_document",
    "parse_json",
    "parse_text",
    "read_bytes",
    "read_document",
    "read_text",
    "result_to_document",
    "save_graph",
    "save_network",
    "save_schedule",
    "schedule_from_document",
    "schedule_to_document",
    "validate",
    "write_bytes",
    "write_text",
]
