"""lpsched: find, prove and explain schedules for pipelined training."""

from lpsched._version import __version__

__all__ = ["__version__"]
