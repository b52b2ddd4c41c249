"""A partition as Megatron's ``--pipeline-model-parallel-layout``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from lpsched.errors import Fault, InstanceError
from lpsched.network.decoders import tokens_of

__all__ = ["layout_text", "megatron_layout"]


def megatron_layout(
    stages: Sequence[Sequence[str]], ranks: Sequence[int] | None = None
) -> str:
    """Write stages of layers as a layout string such as ``Et*2|(t*2|)*3,tL``.

    Parameters
    ----------
    stages : sequence of sequence of str
        Names of the layers of each stage, in the order of the forward pass; see
        `lpsched.network.decoders.tokens_of` for what each is.
    ranks : sequence of int, optional
        Rank of each stage. Megatron has stage s on rank s mod P.

    Raises
    ------
    InstanceError
        Blocks cut in two, or stages in another place than Megatron's.
    """
    tokens = tokens_of([name for stage in stages for name in stage])
    faults = []
    stage_of = {name: i for i, stage in enumerate(stages) for name in stage}
    rows = [""] * len(stages)
    for token in tokens:
        homes = sorted({stage_of[name] for name in token.layers})
        rows[homes[0]] += token.letter
        if len(homes) > 1:
            where = ", ".join(map(str, homes))
            text = f"{token.layers[0]} to {token.layers[-1]} are one {token.letter!r}"
            faults.append(Fault(f"stages {where}", f"{text}, which cannot be cut"))
    if ranks is not None:
        count = 1 + max(ranks, default=0)
        faults += [
            Fault(
                f"stage {stage}",
                f"is on rank {rank}, and Megatron has it on rank {stage % count}",
            )
            for stage, rank in enumerate(ranks)
            if rank != stage % count
        ]
        if len(stages) % count:
            text = f"expected as many stages on each of {count} ranks"
            faults.append(Fault("stages", f"{text}, got {len(stages)} in all"))
    if faults:
        raise InstanceError(faults)
    return layout_text(rows)


def layout_text(rows: Sequence[str]) -> str:
    """Write the letters of each stage, repetitions as products.

    >>> layout_text(["Ett", "tt", "tt", "tt", "tL"])
    'Et*2|(t*2|)*3,tL'
    """
    parts = []
    ended = [f"{_stage(row)}|" for row in rows[:-1]]
    for text, alike in groupby(ended):
        times = len(list(alike))
        parts.append(text if times == 1 else f"({text})*{times},")
    return ("".join(parts) + _stage(rows[-1])).rstrip(",") if rows else ""


def _stage(letters: str) -> str:
    pieces = []
    for letter, alike in groupby(letters):
        times = len(list(alike))
        pieces.append(letter if times == 1 else f"{letter}*{times}")
    # A comma keeps a number from a letter, for people.
    return "".join(
        piece + ("," if "*" in piece and i < len(pieces) - 1 else "")
        for i, piece in enumerate(pieces)
    )
