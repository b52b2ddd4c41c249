"""Megatron's pipeline layout strings: the letters of each stage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lpsched.core.io import network_to_document
from lpsched.core.network import Network
from lpsched.network.decoders import LETTERS, tokens_of
from lpsched.network.readers.source import FaultLog, seen

__all__ = ["layout_instance", "read_megatron_layout"]

#: More letters than these are taken for a mistake.
MAX_LETTERS = 100_000
_GROUP = re.compile(r"\(([^()]+)\)\*(\d{1,6})")
_NAMES = {"E": "embedding", "t": "h", "m": "mtp", "L": "loss"}
_LETTER = re.compile(r"([^()*\d])\*(\d{1,6})")


def read_megatron_layout(text: str, *, source: str) -> tuple[str, ...]:
    """Read a layout such as ``Et*2|(t*2|)*3,tL``: a string of letters for each stage.

    Megatron's rules: commas mean nothing; ``(x)*n`` and ``x*n`` repeat; ``|`` ends a
    stage; the first letter is E, the last one L, each once; every m is after every t.

    Raises
    ------
    FormatError
        With what is wrong.
    """
    log = FaultLog(source)
    plain = re.sub(r"[,\s]", "", text.strip().strip("\"'"))
    for pattern in (_GROUP, _LETTER):
        if sum(int(n) * len(x) for x, n in pattern.findall(plain)) > MAX_LETTERS:
            raise log.fail("", f"expected at most {MAX_LETTERS:,} letters")
        plain = pattern.sub(lambda match: match[1] * int(match[2]), plain)
    rows = plain.split("|")
    for i, row in enumerate(rows):
        unknown = sorted(set(row) - set(LETTERS))
        if unknown:
            expected = "expected E, t, m, L, products and |"
            log.add(f"stage {i}", f"{expected}, got {seen(''.join(unknown))}")
    log.check()
    letters = "".join(rows)
    if not re.fullmatch(r"Et*m*L", letters):
        text = "expected one E, then every t, then every m, then one L"
        raise log.fail("", f"{text}, got {seen(letters)}")
    return tuple(rows)


def layout_instance(
    rows: Sequence[str],
    *,
    name: str,
    network: Network | None,
    devices: int,
    source: str,
) -> dict[str, Any]:
    """Build the document of an instance: the stages of a layout, in a loop on devices.

    Parameters
    ----------
    network : Network or None
        Whose layers the letters are, in topological order; None for layers of one tick
        a pass.

    Raises
    ------
    FormatError
        The layout has other letters than the network's layers, stages without layers,
        or no whole number of stages for each device.
    """
    log = FaultLog(source)
    letters = "".join(rows)
    if network is None:
        names = [f"{_NAMES[letter]}{i}" for i, letter in enumerate(letters)]
        groups: list[tuple[str, ...]] = [(one,) for one in names]
        given: Any = _unit_network(names, name)
    else:
        given = network_to_document(network)
        tokens = tokens_of([layer.name for layer in network.ordered_layers])
        groups = [token.layers for token in tokens]
        has = "".join(token.letter for token in tokens)
        if has != letters:
            text = (
                f"the network's layers are {seen(has)}, the layout has {seen(letters)}"
            )
            log.add("", text)
    if len(rows) % devices:
        log.add("", f"{len(rows)} stages cannot be shared out evenly to {devices}")
    for i, row in enumerate(rows):
        if not row:
            log.add(f"stage {i}", "is empty, and an instance has layers in every stage")
    log.check()
    stages = _stages(rows, groups)
    return {
        "schema": "lpsched/instance/1",
        "name": name,
        "network": given,
        "devices": devices,
        "training": {"mode": "synchronous", "microbatches": 2 * len(rows)},
        "placement": {"rule": "stages", "stages": stages, "arrangement": "loop"},
    }


def _stages(rows: Sequence[str], groups: Sequence[Sequence[str]]) -> list[list[str]]:
    """Layers of each stage: as many groups as it has letters."""
    ends = [sum(map(len, rows[: i + 1])) for i in range(len(rows))]
    return [
        [layer for group in groups[end - len(row) : end] for layer in group]
        for row, end in zip(rows, ends, strict=True)
    ]


def _unit_network(names: Sequence[str], name: str) -> dict[str, Any]:
    costs = {"forward": 1, "input_grad": 1, "weight_grad": 1}
    layers = [{"name": one, **costs} for one in names]
    return {"schema": "lpsched/network/1", "name": name, "layers": layers}
