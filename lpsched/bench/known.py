"""Best known values: what a run improves, and how it is written back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from lpsched.bench.cases import find_cases
from lpsched.bench.row import Row, Verdict
from lpsched.core.instance import Known
from lpsched.core.io import document_text, parse_text, read_text, write_text
from lpsched.errors import SolverError

__all__ = ["improved", "store_known", "update"]


def update(row: Row) -> bool:
    """Write what a run improved into its instance file; tell whether anything did.

    The file is read again: it may have been improved since, or be of another problem.
    """
    (case,) = find_cases([row.file])
    if case.digest != row.digest:
        return False
    return store_known(row.file, improved(case.instance.known, row))


def improved(stored_values: Mapping[str, Known], row: Row) -> dict[str, Known]:
    """Return the best of what is stored and what a run found; never a worse value.

    Up to the first objective in which they differ, the better bound counts; from there
    on the entries of whichever is better, for they go together.
    """
    known = dict(stored_values)
    if not row.verified or row.verdict is Verdict.FAILED:
        return known
    for name, value in row.objective.items():
        found = Known(
            value=value,
            bound=row.bound.get(name),
            proof=row.proof.get(name),
            method=row.method,
            seconds=round(row.seconds, 1),
        )
        stored = known.get(name)
        if stored is None:
            known[name] = found
            continue
        known[name] = _merged(stored, found)
        if value < stored.value:
            rest = list(row.objective)[list(row.objective).index(name) + 1 :]
            known = {key: k for key, k in known.items() if key not in rest}
        elif value > stored.value:
            break
    return known


def _merged(stored: Known, found: Known) -> Known:
    """Return the better value with the better bound, which hold for the same."""
    if _strength(found) > _strength(stored):
        best = found if found.value <= stored.value else stored
        return replace(best, bound=found.bound, proof=found.proof)
    best = found if found.value < stored.value else stored
    return replace(best, bound=stored.bound, proof=stored.proof)


def _strength(known: Known) -> tuple[int, bool, bool]:
    """Rank bounds; among equals a certificate beats a solver's word."""
    bound = -1 if known.bound is None else known.bound
    has_certificate = known.proof not in (None, "exhaustion")
    return bound, has_certificate, known.seconds is not None


def store_known(path: str | Path, known: Mapping[str, Known]) -> bool:
    """Write best known values into an instance file; tell whether anything changed.

    Of a YAML file only the lines of its `known` are touched.
    """
    text = read_text(path)
    document = parse_text(text, source=str(path))
    plain = {name: _plain(entry) for name, entry in known.items()}
    if document.get("known", {}) == plain:
        return False
    wanted = {**document, "known": plain}
    new = _spliced(text, plain) if _is_block(text, path) else document_text(wanted)
    if parse_text(new, source=str(path)) != wanted:
        raise SolverError(f"{path}: its `known` cannot be rewritten")
    write_text(path, new)
    return True


def _plain(known: Known) -> dict[str, Any]:
    return {key: value for key, value in asdict(known).items() if value is not None}


def _is_block(text: str, path: str | Path) -> bool:
    """Tell whether a file is YAML with a key on a line."""
    return not str(path).endswith(".json") and not text.lstrip().startswith("{")


def _spliced(text: str, known: Mapping[str, Mapping[str, Any]]) -> str:
    """Replace the lines of the key `known`, or add them at the end."""
    lines = text.splitlines()
    tree = YAML().load(text)
    begin = end = len(lines)
    if isinstance(tree, CommentedMap) and "known" in tree:
        begins = sorted(tree.lc.key(key)[0] for key in tree)
        begin = tree.lc.key("known")[0]
        end = next((line for line in begins if line > begin), len(lines))
        while end > begin + 1 and _is_remark(lines[end - 1]):
            end -= 1
    block = ["known:"]
    for name, entry in known.items():
        inner = ", ".join(f"{key}: {value}" for key, value in entry.items())
        block.append(f"  {name}: {{{inner}}}")
    return "\n".join([*lines[:begin], *block, *lines[end:]]) + "\n"


def _is_remark(line: str) -> bool:
    """Tell whether a line belongs to what comes after it."""
    return not line.strip() or line.startswith("#")
