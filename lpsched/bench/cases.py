"""The instances in files and folders."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lpsched.core.instance import Instance
from lpsched.core.io import instance_from_document, read_document
from lpsched.errors import Fault, FormatError
from lpsched.network import find_shipped

__all__ = ["Case", "find_cases"]

_SCHEMA = "lpsched/instance/1"
_SUFFIXES = (".json", ".yaml", ".yml")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A stored instance and where it is stored.

    Attributes
    ----------
    digest : str
        Of everything that is solved: the same for the same problem, whatever is known
        of it.
    """

    file: str
    instance: Instance
    digest: str


def find_cases(paths: Iterable[str | Path]) -> tuple[Case, ...]:
    """Read every instance that is named or lies in a folder that is named.

    A folder's files of other schemas (networks, graphs, tables) are no cases.

    Raises
    ------
    FormatError
        With the faults of every file that cannot be read, a file named that is no
        instance, and a folder without any.
    """
    cases: dict[str, Case] = {}
    faults: list[Fault] = []
    for path in map(Path, paths):
        found, wrong = 0, len(faults)
        for file in _files(path):
            try:
                case = _case(file, named=file == path)
            except FormatError as error:
                faults += [Fault(f"{file}", str(fault)) for fault in error.faults]
                continue
            if case is not None:
                cases[case.file] = case
                found += 1
        if path.is_dir() and not found and len(faults) == wrong:
            faults.append(Fault(str(path), f"no instance ({_SCHEMA}) in this folder"))
    if faults:
        raise FormatError(faults)
    return tuple(cases.values())


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.rglob("*")):
        if file.suffix in _SUFFIXES and file.is_file():
            yield file


def _case(file: Path, *, named: bool) -> Case | None:
    """Read a file; None if it is no instance and was not asked for by name."""
    raw = read_document(file)
    if raw.get("schema") != _SCHEMA:
        if not named:
            return None
        text = f"expected an instance ({_SCHEMA}), got {raw.get('schema')!r}"
        raise FormatError([Fault("schema", text)], source=str(file))
    instance = instance_from_document(
        raw, source=str(file), folder=file.parent, resolve=find_shipped
    )
    problem = repr(replace(instance, known={}))
    digest = hashlib.sha256(problem.encode()).hexdigest()
    return Case(file=str(file), instance=instance, digest=f"sha256:{digest}")
