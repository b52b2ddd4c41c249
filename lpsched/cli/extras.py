"""Optional packages: asked for before work that needs them begins."""

from __future__ import annotations

import importlib.util

from lpsched.errors import MissingExtraError

__all__ = ["require_torch"]


def require_torch() -> None:
    """Refuse to go on without PyTorch; say how to get it.

    Raises
    ------
    MissingExtraError
        It is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError(package="torch", extra="torch")
