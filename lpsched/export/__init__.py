"""Files that other tools read."""

from lpsched.export.model import model_text

__all__ = ["model_text"]
