"""Pictures of schedules and graphs."""

from lpsched.plot.bars import Bar, bars
from lpsched.plot.gantt import SUFFIXES, check_output, draw

__all__ = ["SUFFIXES", "Bar", "bars", "check_output", "draw"]
