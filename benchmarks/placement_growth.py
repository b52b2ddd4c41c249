"""How the time to prove least communication grows: ops, devices, load resolution."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random

from benchmarks.registry import family, table
from lpsched.core.graph import DeviceId
from lpsched.core.instance import Instance
from lpsched.core.io import instance_from_document, load_instance
from lpsched.formulations.api import Limits, Request
from lpsched.formulations.partition import least_communication
from lpsched.network import compile_instance

#: The picture, in the folder that the benchmark runs in.
PICTURE = Path("placement-growth.png")

_VGG16 = Path(__file__).resolve().parents[1] / "instances/placement/vgg16-p8-5.yaml"
_SLACK = Fraction(5, 100)
_LAYERS = (6, 12, 24, 48, 96)
_DEVICES = (2, 3, 4, 6, 8, 10, 12)
_TICKS = (10**8, 10**7, 10**6, 10**5, 10**4)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One search.

    Attributes
    ----------
    across : int
        What is varied: ops, devices, or the load limit in ticks.
    seconds : float
        Of the processor, until a proof or the limit.
    """

    across: int
    seconds: float
    proved: bool
    value: int | None
    bound: int | None


@family("placement-growth")
def growth(seconds: float) -> None:
    """Random chains of more and more ops; VGG-16 on more devices, in finer ticks."""
    vgg16 = load_instance(_VGG16)
    series = {
        "ops, random chains on 8 devices": [
            _trial(_chain(layers), seconds, by_ops=True) for layers in _LAYERS
        ],
        "devices, VGG-16": [
            _trial(_on(vgg16, count), seconds, across=count) for count in _DEVICES
        ],
        "load limit in ticks, VGG-16 on 8 devices": [
            _trial(_in_ticks(vgg16, tick), seconds) for tick in _TICKS
        ],
    }
    for name, trials in series.items():
        rows = [
            [t.across, t.value, t.bound, t.proved, f"{t.seconds:.1f}"] for t in trials
        ]
        heads = (name.split(",")[0], "communication", "bound", "proved", "CPU s")
        table(f"{name}: 5 % over the fair load, limit {seconds:g} s each", heads, rows)
    _draw(series)


def _chain(layers: int) -> Instance:
    """F, I and W of 50 to 150 ticks a layer, sizes of 1 to 100."""
    rng = Random(layers)
    document = {
        "schema": "lpsched/instance/1",
        "name": f"chain-{layers}",
        "network": {
            "schema": "lpsched/network/1",
            "name": f"chain-{layers}",
            "layers": [
                {
                    "name": f"l{i}",
                    "forward": rng.randint(50, 150),
                    **({"input_grad": rng.randint(50, 150)} if i else {}),
                    "weight_grad": rng.randint(50, 150),
                    "output": rng.randint(1, 100),
                    "parameters": rng.randint(1, 100),
                }
                for i in range(layers)
            ],
        },
        "devices": 8,
        "training": {"split": {"I": 1}},
    }
    return instance_from_document(document)


def _on(instance: Instance, count: int) -> Instance:
    first = instance.devices[0]
    devices = tuple(replace(first, id=DeviceId(f"d{i}")) for i in range(count))
    return replace(instance, devices=devices)


def _in_ticks(instance: Instance, tick: int) -> Instance:
    return replace(instance, costs=replace(instance.costs, tick=Fraction(tick)))


def _trial(
    instance: Instance,
    seconds: float,
    *,
    across: int | None = None,
    by_ops: bool = False,
) -> Trial:
    """Search at 5 % over the fair load."""
    graph = compile_instance(instance).graph
    total = sum(op.duration for op in graph.ops if isinstance(op.duration, int))
    limit = int(-(-total // len(graph.devices)) * (1 + _SLACK))
    begun = time.process_time()
    request = Request(graph=graph, period=limit, minimise="communication")
    found = least_communication(request, Limits(seconds=seconds))
    where = len(graph.ops) if by_ops else limit
    return Trial(
        across=across or where,
        seconds=time.process_time() - begun,
        proved=found.proved,
        value=found.value,
        bound=found.bound,
    )


def _draw(series: dict[str, list[Trial]]) -> None:
    """Draw a panel a series, a mark a search: proved, impossible, or out of time."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional package

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    panels = figure.subplots(1, len(series), sharey=True)
    for axes, (name, trials) in zip(panels, series.items(), strict=True):
        axes.plot([t.across for t in trials], [t.seconds for t in trials], color="0.7")
        for trial in trials:
            axes.plot(trial.across, trial.seconds, **_mark(trial))
        axes.set_yscale("log")
        if "devices, " not in name:
            axes.set_xscale("log")
            axes.set_xticks(
                [t.across for t in trials], [f"{t.across:,}" for t in trials]
            )
            axes.minorticks_off()
        axes.set_xlabel(name)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("CPU seconds")
    text = "filled: proved; cross: none exists; hollow: out of time"
    panels[0].set_title(text, fontsize=8, loc="left")
    figure.savefig(PICTURE, dpi=150)


def _mark(trial: Trial) -> dict[str, str]:
    if not trial.proved:
        return {"marker": "o", "color": "#0072b2", "markerfacecolor": "white"}
    return {"marker": "o" if trial.value is not None else "x", "color": "#0072b2"}
