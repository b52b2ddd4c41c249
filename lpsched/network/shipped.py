"""The networks that come with lpsched, by name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from lpsched.core.network import Network
from lpsched.errors import Fault, FormatError

__all__ = ["find_shipped", "load_shipped", "shipped_names", "shipped_text"]

_SUFFIX = ".yaml"


def shipped_names() -> tuple[str, ...]:
    """Names of the networks that come with lpsched, sorted."""
    return tuple(sorted(name for name, _file in _shipped()))


def shipped_text(name: str) -> str:
    """Return the file of a shipped network, as it was written.

    Raises
    ------
    FormatError
        No network of this name is shipped.
    """
    for known, file in _shipped():
        if known == name:
            return file.read_text(encoding="utf-8")
    text = f"no network of this name is shipped; there are {', '.join(shipped_names())}"
    raise FormatError([Fault("", text)], source=name)


def load_shipped(name: str) -> Network:
    """Read a shipped network: ``load_shipped("vgg16")``.

    Raises
    ------
    FormatError
        No network of this name is shipped.
    """
    from lpsched.core.io import network_from_document, parse_text  # noqa: PLC0415 - pydantic loads only where a file is read

    source = f"{name}{_SUFFIX}"
    return network_from_document(
        parse_text(shipped_text(name), source=source), source=source
    )


def find_shipped(name: str) -> Network | None:
    """Read a shipped network; None if no network of this name is shipped.

    For readers of instances: ``load_instance(path, resolve=find_shipped)``.
    """
    return load_shipped(name) if name in shipped_names() else None


def _shipped() -> Iterator[tuple[str, Traversable]]:
    for file in _folder().iterdir():
        if file.name.endswith(_SUFFIX):
            yield file.name.removesuffix(_SUFFIX), file


def _folder() -> Traversable:
    """Return the installed package's folder, else that of a source checkout."""
    package = files("lpsched")
    installed = package / "data" / "models"
    if installed.is_dir():
        return installed
    return Path(str(package)).parent / "models"
