"""The user's MODULE:FUNCTION: found without PyTorch, called, blamed for its errors."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import cast

from lpsched.errors import Fault, InstanceError, LpschedError

__all__ = ["blaming", "load_function", "require_source"]


def require_source(spec: str) -> None:
    """Refuse a MODULE:FUNCTION whose module or file is not there, importing nothing.

    Raises
    ------
    InstanceError
        It is not of this form, or there is no such module or file.
    """
    place, _ = _parts(spec)
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise InstanceError([Fault("", f"there is no file {place}")], source=spec)
        return
    _look_here()
    root = place.partition(".")[0]
    if root not in sys.modules and (not root or importlib.util.find_spec(root) is None):
        raise _no_module(root, spec)


def load_function(spec: str) -> Callable[[], object]:
    """Import a MODULE:FUNCTION, or FILE.py:FUNCTION.

    Raises
    ------
    InstanceError
        There is no such function, or its module cannot be imported.
    """
    require_source(spec)
    place, name = _parts(spec)
    with blaming(f"importing {place}", source=spec):
        module = _module(place, spec)
    function = getattr(module, name, None)
    if not callable(function):
        text = f"{place} has no function {name!r}"
        raise InstanceError([Fault("", text)], source=spec)
    return cast("Callable[[], object]", function)


@contextmanager
def blaming(what: str, *, source: str | None = None) -> Iterator[None]:
    """Tell errors of the user's own code as bad input, with the line they come from.

    Raises
    ------
    InstanceError
        In place of whatever was raised inside, but for lpsched's own errors.
    """
    try:
        yield
    except LpschedError:
        raise
    except (Exception, SystemExit) as error:
        said = next(iter(str(error).strip().splitlines()), "")
        reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
        text = f"{what} failed with {reason}{_line_of(error)}"
        raise InstanceError([Fault("", text)], source=source) from error


def _line_of(error: BaseException) -> str:
    """Where an error comes from: the innermost line of code that is not installed."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_file() and not _is_installed(Path(frame.filename))
    ]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _is_installed(path: Path) -> bool:
    """Tell whether a file is of a library or of lpsched itself."""
    roots = [*map(Path, (sys.prefix, sys.base_prefix)), Path(__file__).parents[1]]
    return any(path.resolve().is_relative_to(root.resolve()) for root in roots)


def _parts(spec: str) -> tuple[str, str]:
    place, _, name = spec.rpartition(":")
    if not place or not name:
        text = f"expected MODULE:FUNCTION or FILE.py:FUNCTION, got {spec!r}"
        raise InstanceError([Fault("", text)])
    return place, name


def _look_here() -> None:
    """Find modules of this folder, as `python -m` does."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def _module(place: str, spec: str) -> ModuleType:
    if not place.endswith(".py"):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            raise _no_module(error.name, spec) from error
    path = Path(place)
    name = f"_lpsched_model_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise InstanceError([Fault("", f"there is no file {path}")], source=spec)
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


def _no_module(name: str | None, spec: str) -> InstanceError:
    text = f"no module {name!r} here or among those installed"
    return InstanceError([Fault("", text)], source=spec)
