"""Layers of a transformer as Megatron's tokens: embedding, decoders, MTP, loss."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from lpsched.errors import Fault, InstanceError

__all__ = ["LETTERS", "Token", "tokens_of"]

#: Embedding, transformer decoder, multi-token prediction, loss.
LETTERS = "EtmL"
_NUMBERED = re.compile(r"([A-Za-z_-]*?)[_-]?(\d+)(?:[_-].*)?")


class Token(NamedTuple):
    """A letter of Megatron's layout and the layers it stands for."""

    letter: str
    layers: tuple[str, ...]


def tokens_of(layers: Sequence[str]) -> tuple[Token, ...]:
    """Sort the layers of a chain of blocks into tokens, by their names.

    Numbered blocks are decoders: ``h0_attn`` and ``h0_fc`` are one, ``block3`` another;
    those whose name begins with ``mtp`` are MTP. What precedes them is the embedding,
    what follows them the loss. If nothing precedes, the first block is the embedding,
    and if nothing follows, the last one is the loss; the same holds of the layers if
    none is numbered.

    Raises
    ------
    InstanceError
        Too few layers for an embedding, a decoder and a loss; decoders that are not in
        a row.

    Examples
    --------
    >>> [(t.letter, len(t.layers)) for t in tokens_of(["wte", "h0_a", "h0_b", "head"])]
    [('E', 1), ('t', 2), ('L', 1)]
    """
    blocks = [
        (key if key != ("", "") else None, tuple(names))
        for key, names in groupby(layers, key=_block)
    ]
    numbered = [i for i, (key, _) in enumerate(blocks) if key is not None]
    if not numbered:
        blocks = [(("", str(i)), (name,)) for i, name in enumerate(layers)]
        numbered = list(range(len(blocks)))
    first, last = numbered[0], numbered[-1]
    first, last = max(first, 1), min(last, len(blocks) - 2)
    faults = _faults([key for key, _ in blocks[first : last + 1]], layers)
    if faults:
        raise InstanceError(faults)
    middle = tuple(Token(_letter(key), own) for key, own in blocks[first : last + 1])
    before = tuple(name for _, own in blocks[:first] for name in own)
    after = tuple(name for _, own in blocks[last + 1 :] for name in own)
    return (Token("E", before), *middle, Token("L", after))


def _block(name: str) -> tuple[str, str]:
    """Prefix and number of a block's layer; both empty for other layers."""
    match = _NUMBERED.fullmatch(name)
    return (match[1], match[2]) if match else ("", "")


def _letter(key: tuple[str, str] | None) -> str:
    return "m" if key is not None and key[0].lower().startswith("mtp") else "t"


def _faults(
    keys: Sequence[tuple[str, str] | None], layers: Sequence[str]
) -> list[Fault]:
    if not keys:
        text = "expected an embedding, a decoder and a loss at least"
        return [Fault("layers", f"{text}, got {len(layers)} layers")]
    if None in keys:
        return [Fault("layers", "expected the numbered blocks in a row")]
    if len(set(keys)) < len(keys):
        return [Fault("layers", "expected the layers of a block in a row")]
    return []
