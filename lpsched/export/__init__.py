"""Files that other tools read."""

from lpsched.export.dot import dot_text
from lpsched.export.frames import to_pandas
from lpsched.export.graphml import graphml_text
from lpsched.export.model import model_text

__all__ = ["dot_text", "graphml_text", "model_text", "to_pandas"]
