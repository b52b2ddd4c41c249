"""The greatest numbers that any document may hold."""

from __future__ import annotations

__all__ = ["MAX_DEVICES", "MAX_INTEGER", "MAX_UNFOLDED_OPS"]

#: The greatest magnitude of any integer in a file (exact in JSON readers and in
#: the 64-bit sums of the solvers).
MAX_INTEGER = 2**53 - 1

#: More devices than this are taken for a mistake.
MAX_DEVICES = 10_000

#: A graph unfolded to more ops than this would keep every analysis busy for minutes.
MAX_UNFOLDED_OPS = 100_000
