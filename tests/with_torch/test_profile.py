"""Models as networks: exact counts, measured passes, split points, loud zeros."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch_models import perceptron, skipping, split, transformer

from lpsched import compile_network, load_network
from lpsched.cli import main
from lpsched.core.io import network_from_document, network_to_document
from lpsched.errors import InstanceError, UnsupportedError
from lpsched.network.decoders import tokens_of
from lpsched.replay.model import Model, chain_of, load_chain
from lpsched.replay.profile import count_work, measure_times


def test_work_is_counted_exactly_on_the_meta_device() -> None:
    """Batch 5: a linear layer of n by m takes 2·5·n·m FLOP in each pass it has.

    A convolution of 3 by 3 from 2 to 4 channels over 6 by 6 pixels with padding takes
    2·5·36·9·2·4 in each. Bytes: four a number.
    """
    blocks = [
        nn.Conv2d(2, 4, 3, padding=1),
        nn.Flatten(),
        nn.Linear(144, 7, bias=False),
        nn.Sequential(nn.Linear(7, 3), nn.Tanh(), nn.Linear(3, 2)),
    ]
    chain = chain_of((blocks, torch.ones(5, 2, 6, 6)), device="meta")
    profile = count_work(chain)
    found: list[object] = [
        (layer.forward, layer.input_grad, layer.weight_grad, layer.output)
        for layer in profile.network.layers
    ]
    conv, wide, small = 2 * 5 * 36 * 72, 2 * 5 * 144 * 7, 2 * 5 * (7 * 3 + 3 * 2)
    assert found == [
        (conv, None, conv, 4 * 5 * 144),
        (0, 0, None, 4 * 5 * 144),
        (wide, wide, wide, 4 * 5 * 7),
        (small, small, small, 4 * 5 * 2),
    ]
    assert [layer.parameters for layer in profile.network.layers] == [
        4 * (72 + 4),
        0,
        4 * 144 * 7,
        4 * (21 + 3 + 6 + 2),
    ]
    assert profile.network.time_unit == "FLOP"
    assert profile.network.batch == 5
    (warning,) = profile.warnings
    assert warning == "layer 'block1_Flatten' comes out as ZERO work in F, I"


def test_a_measured_network_has_the_passes_that_there_are_and_can_be_compiled() -> None:
    """No I in the first block, no W without parameters; what is saved between blocks.

    A Linear keeps its input, a Tanh its output.
    """
    torch.manual_seed(0)
    blocks = [nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)]
    profile = measure_times(chain_of((blocks, torch.randn(3, 4))), runs=5, warm_up=1)
    layers = profile.network.layers
    kinds = [kind for _, kind in profile.samples]
    assert kinds == ["F", "W", "F", "I", "F", "I", "W"]
    assert all(sample.value > 0 for sample in profile.samples.values())
    assert [layer.saves for layer in layers] == ["input", "output", "input"]
    assert [layer.output for layer in layers] == [96, 96, 24]
    document = network_to_document(profile.network)
    assert network_from_document(document, source="x") == profile.network
    graph = compile_network(profile.network, devices=2).graph
    assert graph.time_unit == "ns"
    assert sum(op.kind == "W" for op in graph.ops) == 2


def test_frozen_blocks_have_no_weight_gradient() -> None:
    blocks = [nn.Linear(4, 4), nn.Linear(4, 4)]
    for parameter in blocks[0].parameters():
        parameter.requires_grad_(requires_grad=False)
    network = count_work(chain_of((blocks, torch.ones(1, 4)))).network
    assert network.layers[0].weight_grad is None
    assert not network.layers[0].trainable
    assert network.layers[1].input_grad == 2 * 16


def test_blocks_of_a_sequence_are_the_letters_of_a_layout() -> None:
    blocks, example = transformer()
    chain = chain_of((nn.Sequential(*blocks), example))
    assert chain.names[1] == "block1_TransformerEncoderLayer"
    assert [token.letter for token in tokens_of(chain.names)] == ["E", "t", "t", "L"]
    named = nn.Sequential()
    named.add_module("a", nn.Linear(2, 2))
    assert chain_of((named, torch.ones(1, 2))).names == ("a",)


def test_a_module_is_cut_at_its_split_points() -> None:
    """The blocks together compute what the module does; their work is its layers'."""
    torch.manual_seed(1)
    made = split()
    chain = chain_of(made)
    assert chain.names == ("start", "middle", "last")
    value = made.example
    for block in chain.blocks:
        value = block(value)
    assert isinstance(made.model, nn.Module)
    assert torch.equal(value, made.model(made.example))
    network = count_work(chain).network
    assert [layer.forward for layer in network.layers] == [144, 144, 72]


def test_tensors_that_skip_a_block_make_no_chain() -> None:
    with pytest.raises(UnsupportedError, match="block 2 reads 2 tensors"):
        chain_of(skipping())


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (3, "expected a Model or a pair"),
        ((nn.Linear(2, 2), torch.ones(1, 2)), "needs split points"),
        (([nn.Linear(2, 2), 3], torch.ones(1, 2)), "expected modules only"),
        (([nn.Linear(2, 2)], torch.tensor(1.0)), "whose first axis is the batch"),
        (([nn.Linear(2, 2)], [1.0]), "whose first axis is the batch"),
        (([], torch.ones(1)), "has no blocks"),
        (
            Model(model=nn.Linear(2, 2), example=torch.ones(1, 2), split=["x"]),
            "no submodule 'x'",
        ),
    ],
)
def test_what_is_no_model_is_refused(made: object, message: str) -> None:
    with pytest.raises(InstanceError) as caught:
        chain_of(made)
    assert message in str(caught.value)


def test_a_block_of_two_outputs_is_refused() -> None:
    chain = chain_of(([nn.LSTM(2, 2)], torch.ones(1, 1, 2)))
    with pytest.raises(UnsupportedError, match="one tensor, got tuple"):
        measure_times(chain)


def test_models_are_the_same_in_every_process() -> None:
    one, two = (load_chain("torch_models:perceptron", seed=4) for _ in range(2))
    assert torch.equal(one.example, two.example)
    assert torch.equal(one.blocks[0][0].weight, two.blocks[0][0].weight)
    assert len(perceptron()[0]) == len(one.blocks)


def test_profiles_are_written_by_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Measured, counted with a warning, and of a file."""
    target = tmp_path / "net.json"
    argv = ["profile", "torch_models:transformer", "-o", str(target)]
    assert main([*argv, "--repeats", "3"]) == 0
    out, _ = capsys.readouterr()
    assert "block2_TransformerEncoderLayer" in out
    assert load_network(target).time_unit == "ns"
    assert load_network(target).name == "torch_models"
    assert main([*argv, "--analytic", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "warning: layer 'block0_Embedding' comes out as ZERO work in F, W" in err
    assert json.loads(out)["warnings"]
    assert load_network(target).time_unit == "FLOP"
    source = Path(__file__).with_name("torch_models.py")
    assert main(["profile", f"{source}:split", "-o", str(target), "--analytic"]) == 0
    assert main(["profile", "torch_models:nothing", "-o", str(target)]) == 2
    assert "torch_models:nothing: expected a Model" in capsys.readouterr().err
