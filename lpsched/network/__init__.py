"""From a network and a training regime to the graph that is scheduled."""

from lpsched.network.compile import Compiled, compile_instance, compile_network
from lpsched.network.shipped import (
    find_shipped,
    load_shipped,
    shipped_names,
    shipped_text,
)
from lpsched.network.ticks import Rounding, Scale

__all__ = [
    "Compiled",
    "Rounding",
    "Scale",
    "compile_instance",
    "compile_network",
    "find_shipped",
    "load_shipped",
    "shipped_names",
    "shipped_text",
]
