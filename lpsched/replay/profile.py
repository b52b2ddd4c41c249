"""A PyTorch model as a network: measured times, or counted work on no device."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from lpsched.core.network import Layer, Network, Saves
from lpsched.replay.model import Chain
from lpsched.replay.passes import Shapes, passes, saved_bytes
from lpsched.replay.source import blaming

__all__ = ["Profile", "Sample", "count_work", "measure_times"]

#: What a network's layer saves, by the ends that its block keeps.
_SAVES: dict[frozenset[str], Saves] = {
    frozenset(): "none",
    frozenset({"input"}): "input",
    frozenset({"output"}): "output",
    frozenset({"input", "output"}): "both",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one pass of one block took.

    Attributes
    ----------
    value : int
        Nanoseconds (the lower median over runs), or FLOP.
    spread : Fraction
        Range of the middle half of the runs over the median; 0 of what is counted.
    """

    value: int
    spread: Fraction


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A network, and how sure its numbers are.

    Attributes
    ----------
    samples : mapping of (str, str) to Sample
        By layer and pass: F, I or W.
    warnings : tuple of str
        What must not be overlooked: work that comes out as zero.
    remarks : tuple of str
        What was left out.
    """

    network: Network
    samples: dict[tuple[str, str], Sample]
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def measure_times(chain: Chain, *, runs: int = 20, warm_up: int = 3) -> Profile:
    """Measure every block's F, I and W on this machine.

    Blocks run one by one on the example's shape; times are lower medians over `runs`,
    whole nanoseconds. Threads are as PyTorch has them set.
    """
    samples: dict[tuple[str, str], Sample] = {}
    shapes: dict[str, Shapes] = {}
    inside = 0
    saves: dict[str, Saves] = {}
    for name, value, run in _walk(chain):
        times: defaultdict[str, list[int]] = defaultdict(list)
        for i in range(warm_up + runs):
            shapes[name] = run(_timer(times if i >= warm_up else defaultdict(list)))
        for kind, found in times.items():
            samples[name, kind] = _median(found)
        ends, more = saved_bytes(_block(chain, name), value)
        inside += more
        saves[name] = _SAVES[ends]
    spread = max((s.spread for s in samples.values()), default=Fraction(0))
    text = (
        f"measured by PyTorch {torch.__version__} on the CPU, "
        f"{torch.get_num_threads()} threads: medians of {runs} runs; the middle half "
        f"of them spreads over at most {float(100 * spread):.0f} % of the median"
    )
    remarks = []
    if inside:
        remarks.append(
            f"{inside:,} bytes that blocks keep inside for their backward passes are "
            "not in the network, which has tensors between blocks only"
        )
    network = _network(chain, samples, shapes, unit="ns", origin=text, saves=saves)
    return Profile(
        network=network,
        samples=samples,
        warnings=tuple(_zero_work(network, samples)),
        remarks=tuple(remarks),
    )


def count_work(chain: Chain) -> Profile:
    """Count every block's FLOP, for a chain on the ``meta`` device.

    `FlopCounterMode` counts matrix products, convolutions and attention; all else is
    nothing to it, and blocks of nothing else get a warning.
    """
    samples: dict[tuple[str, str], Sample] = {}
    shapes: dict[str, Shapes] = {}
    for name, _, run in _walk(chain):
        counts: dict[str, int] = {}
        shapes[name] = run(_counter(counts))
        for kind, found in counts.items():
            samples[name, kind] = Sample(value=found, spread=Fraction(0))
    text = (
        f"counted by FlopCounterMode of PyTorch {torch.__version__} on meta tensors: "
        "matrix products, convolutions and attention"
    )
    network = _network(chain, samples, shapes, unit="FLOP", origin=text, saves={})
    warnings = tuple(_zero_work(network, samples))
    return Profile(network=network, samples=samples, warnings=warnings)


def _walk(
    chain: Chain,
) -> Iterator[tuple[str, torch.Tensor, Callable[[Any], Shapes]]]:
    """Each block's name, its input, and what runs its passes under a gauge."""
    value = chain.example
    for i, (name, block) in enumerate(zip(chain.names, chain.blocks, strict=True)):
        made: list[Shapes] = []

        def run(
            gauge: Any,  # noqa: ANN401 - a Gauge
            *,
            block: Any = block,  # noqa: ANN401 - bound for this round
            given: torch.Tensor = value,
            name: str = name,
            is_first: bool = i == 0,
            made: list[Shapes] = made,
        ) -> Shapes:
            with blaming(f"block {name!r}"):
                made.append(passes(block, given, gauge, is_first=is_first))
            return made[-1]

        yield name, value, run
        value = made[-1].output


def _block(chain: Chain, name: str) -> Any:  # noqa: ANN401 - a module
    return chain.blocks[chain.names.index(name)]


def _timer(times: defaultdict[str, list[int]]) -> Callable[[str, Any], Any]:
    def gauge(kind: str, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - as the work returns
        start = time.perf_counter_ns()
        result = work()
        times[kind].append(time.perf_counter_ns() - start)
        return result

    return gauge


def _counter(counts: dict[str, int]) -> Callable[[str, Any], Any]:
    def gauge(kind: str, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - as the work returns
        with FlopCounterMode(display=False) as counter:
            result = work()
        counts[kind] = counter.get_total_flops()
        return result

    return gauge


def _median(times: list[int]) -> Sample:
    middle = statistics.median_low(times)
    ordered = sorted(times)
    low, high = ordered[len(times) // 4], ordered[(3 * len(times) - 1) // 4]
    return Sample(value=middle, spread=Fraction(high - low, max(1, middle)))


def _network(
    chain: Chain,
    samples: dict[tuple[str, str], Sample],
    shapes: dict[str, Shapes],
    *,
    unit: str,
    origin: str,
    saves: dict[str, Saves],
) -> Network:
    layers = []
    before: tuple[str, ...] = ()
    for name, block in zip(chain.names, chain.blocks, strict=True):
        learned = sum(p.numel() * p.element_size() for p in block.parameters())
        output = shapes[name].output
        costs = {
            kind: Fraction(samples[name, kind].value)
            for kind in "FIW"
            if (name, kind) in samples
        }
        layers.append(
            Layer(
                name=name,
                inputs=before,
                forward=costs["F"],
                input_grad=costs.get("I"),
                weight_grad=costs.get("W"),
                output=Fraction(output.numel() * output.element_size()),
                parameters=Fraction(learned),
                saves=saves.get(name),
                trainable="W" in costs or learned == 0,
            )
        )
        before = (name,)
    return Network(
        name="profiled",
        layers=tuple(layers),
        batch=chain.example.shape[0],
        origin=origin,
        time_unit=unit,
        size_unit="byte",
    )


def _zero_work(
    network: Network, samples: dict[tuple[str, str], Sample]
) -> Iterator[str]:
    for layer in network.layers:
        kinds = [kind for kind in "FIW" if (layer.name, kind) in samples]
        empty = [kind for kind in kinds if samples[layer.name, kind].value == 0]
        if empty:
            passes = ", ".join(empty)
            yield f"layer {layer.name!r} comes out as ZERO work in {passes}"
