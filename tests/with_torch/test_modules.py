"""The modules that need PyTorch, as `tests/test_package.py` has it for the others."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import lpsched.replay

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(lpsched.replay.__path__, "lpsched.replay.")
)


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_offers_exists(name: str) -> None:
    module = importlib.import_module(name)
    for public in module.__all__:
        assert hasattr(module, public), f"{name} lacks {public}"
