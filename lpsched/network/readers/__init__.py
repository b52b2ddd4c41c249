"""Readers of other tools' files; each imports its optional package when called."""

from lpsched.network.readers.dnn_partitioning import read_dnn_partitioning
from lpsched.network.readers.graphml import read_graphml
from lpsched.network.readers.megatron_layout import (
    layout_instance,
    read_megatron_layout,
)
from lpsched.network.readers.onnx import read_onnx
from lpsched.network.readers.pipedream import BackwardSplit, read_pipedream
from lpsched.network.readers.source import Imported, network_name
from lpsched.network.readers.torch_csv import read_torch_csv

__all__ = [
    "BackwardSplit",
    "Imported",
    "layout_instance",
    "network_name",
    "read_dnn_partitioning",
    "read_graphml",
    "read_megatron_layout",
    "read_onnx",
    "read_pipedream",
    "read_torch_csv",
]
