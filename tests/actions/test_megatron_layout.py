"""Megatron's layout strings, written and read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpsched import compile_instance, load_shipped
from lpsched.core.io import instance_from_document
from lpsched.errors import FormatError, InstanceError
from lpsched.export import megatron_layout
from lpsched.export.megatron_layout import layout_text
from lpsched.network.decoders import tokens_of
from lpsched.network.readers import layout_instance, read_megatron_layout


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        # The forms of Megatron's own guide and recipes, written out by hand.
        ("Et*2|(t*2|)*3,tL", ("Ett", "tt", "tt", "tt", "tL")),
        ("Et*3|(tt|)*29,m|L", ("Ettt", *["tt"] * 29, "m", "L")),
        ("E|(t|)*3,m|m||L", ("E", "t", "t", "t", "m", "m", "", "L")),
        ("E||t|L", ("E", "", "t", "L")),
        ("E(t|t)*2L\n", ("Et", "tt", "tL")),
    ],
)
def test_layouts_are_read_as_megatron_reads_them(
    text: str, rows: tuple[str, ...]
) -> None:
    assert read_megatron_layout(text, source="x") == rows


@given(
    st.integers(0, 40),
    st.integers(0, 3),
    st.lists(st.integers(0, 45), max_size=12).map(sorted),
)
def test_every_layout_comes_back(decoders: int, extra: int, cuts: list[int]) -> None:
    letters = "E" + "t" * decoders + "m" * extra + "L"
    ends = [min(cut, len(letters)) for cut in cuts]
    rows = [
        letters[i:j] for i, j in zip([0, *ends], [*ends, len(letters)], strict=True)
    ]
    assert list(read_megatron_layout(layout_text(rows), source="x")) == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Et|x|L", "stage 1: expected E, t, m, L, products and |, got 'x'"),
        ("t|L", "expected one E"),
        ("Et|t", "expected one E, then every t, then every m, then one L"),
        ("Em|t|L", "then every m"),
        ("E(t|*3L", "stage 0"),
        ("Et*999999,L", "expected at most 100,000 letters"),
        ("", "expected one E"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(FormatError, match="x: ") as caught:
        read_megatron_layout(text, source="x")
    assert message in str(caught.value)


def test_numbered_blocks_are_decoders_and_the_rest_embedding_and_loss() -> None:
    names = ["tokens", "positions", "h0_attn", "h0_mlp", "h1_attn", "h1_mlp", "head"]
    stages = [names[:4], names[4:]]
    assert megatron_layout(stages, [0, 1]) == "Et|tL"
    blocks = [f"block{i}" for i in range(6)]  # the first and the last stand for E, L
    assert megatron_layout([blocks[:3], blocks[3:]]) == "Et*2|t*2,L"
    mtp = ["embedding", "h0", "h1", "mtp0", "loss"]
    assert megatron_layout([mtp[:2], mtp[2:]]) == "Et|tmL"


def test_the_blocks_of_a_shipped_network_are_found() -> None:
    """GPT-2 has 12 blocks of 7 layers, LLaMA-7B 32 of 9."""
    for name, blocks, layers in (("gpt2-small", 12, 7), ("llama-7b", 32, 9)):
        network = load_shipped(name)
        tokens = tokens_of([layer.name for layer in network.ordered_layers])
        assert [t.letter for t in tokens] == ["E", *"t" * blocks, "L"]
        assert {len(t.layers) for t in tokens[1:-1]} == {layers}


@pytest.mark.parametrize(
    ("stages", "ranks", "message"),
    [
        ([["e", "h0_a"], ["h0_b", "l"]], [0, 1], "stages 0, 1: h0_a to h0_b are one"),
        ([["e"], ["h0"], ["h1"], ["l"]], [0, 1, 1, 0], "stage 2: is on rank 1, and"),
        ([["e"], ["h0"], ["l"]], [0, 1, 0], "as many stages on each of 2 ranks"),
        ([["h0"], ["h1"]], [0, 1], "expected an embedding, a decoder and a loss"),
        ([["e", "h0", "x", "h1", "l"]], [0], "the numbered blocks in a row"),
        ([["e", "h0", "g1", "h0_b", "l"]], [0], "the layers of a block in a row"),
    ],
)
def test_partitions_that_megatron_cannot_have_are_refused(
    stages: list[list[str]], ranks: list[int], message: str
) -> None:
    with pytest.raises(InstanceError) as caught:
        megatron_layout(stages, ranks)
    assert message in str(caught.value)


def test_a_layout_becomes_an_instance_of_a_networks_layers() -> None:
    network = load_shipped("gpt2-small")
    rows = read_megatron_layout("E|(t*3|)*4,|L|", source="x")[:-1]
    document = layout_instance(
        [*rows[:5], "L"], name="made", network=network, devices=3, source="x"
    )
    instance = instance_from_document(document)
    compiled = compile_instance(instance)
    assert compiled.stages is not None
    assert [len(stage) for stage in compiled.stages] == [2, 21, 21, 21, 21, 2]
    assert megatron_layout(compiled.stages) == "E|(t*3|)*4,L"


def test_without_a_network_every_letter_is_a_layer() -> None:
    rows = read_megatron_layout("Et|tm|L", source="x")
    document = layout_instance(rows, name="made", network=None, devices=3, source="x")
    compiled = compile_instance(instance_from_document(document))
    assert compiled.stages is not None
    assert megatron_layout(compiled.stages, [0, 1, 2]) == "Et|tm|L"


@pytest.mark.parametrize(
    ("text", "devices", "message"),
    [
        ("E|t*12,L", 2, None),
        ("E|t*11,L", 2, "the network's layers are 'E"),
        ("E|t*12|L", 2, "3 stages cannot be shared out evenly to 2"),
        ("E||t*12|L", 2, "stage 1: is empty"),
    ],
)
def test_a_layout_of_another_network_is_refused(
    text: str, devices: int, message: str | None
) -> None:
    rows = read_megatron_layout(text, source="x")
    network = load_shipped("gpt2-small")

    def build() -> object:
        return layout_instance(
            rows, name="made", network=network, devices=devices, source="x"
        )

    if message is None:
        assert build()
        return
    with pytest.raises(FormatError) as caught:
        build()
    assert message in str(caught.value)
