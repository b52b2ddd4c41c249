"""Readers of other tools' files; each imports its optional package when called."""

from lpsched.network.readers.dnn_partitioning import read_dnn_partitioning
from lpsched.network.readers.graphml import read_graphml
from lpsched.network.readers.onnx import read_onnx
from lpsched.network.readers.pipedream import BackwardSplit, read_pipedream
from lpsched.network.readers.source import Imported

__all__ = [
    "BackwardSplit",
    "Imported",
    "read_dnn_partitioning",
    "read_graphml",
    "read_onnx",
    "read_pipedream",
]
