"""Files that other tools read."""

from lpsched.export.dot import dot_text
from lpsched.export.frames import to_pandas
from lpsched.export.graphml import graphml_text
from lpsched.export.megatron_layout import megatron_layout
from lpsched.export.model import model_text
from lpsched.export.perfetto import perfetto_text
from lpsched.export.torch_csv import torch_csv_text

__all__ = [
    "dot_text",
    "graphml_text",
    "megatron_layout",
    "model_text",
    "perfetto_text",
    "to_pandas",
    "torch_csv_text",
]
