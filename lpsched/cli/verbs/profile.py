"""`lpsched profile`: a PyTorch model as a network, measured or counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpsched.cli.extras import require_torch
from lpsched.cli.options import Manner, SeedOption
from lpsched.cli.output import (
    complain,
    note,
    number,
    percent,
    print_json,
    print_table,
    require_writable,
    save_text,
)
from lpsched.core.io import document_text, network_to_document
from lpsched.network.readers import network_name
from lpsched.replay.source import require_source

if TYPE_CHECKING:
    from lpsched.replay.profile import Profile

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched profile mymodel.py:build -o mymodel.json"


def command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="What makes the model: a chain of blocks and the input of a"
            " microbatch; or FILE.py:FUNCTION.",
            show_default=False,
        ),
    ],
    *,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Network file to write.")
    ],
    analytic: Annotated[
        bool,
        typer.Option(
            "--analytic", help="Count FLOP on the meta device, and measure nothing."
        ),
    ] = False,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Runs whose median is taken.")
    ] = 20,
    threads: Annotated[
        int, typer.Option("--threads", min=1, help="Threads of PyTorch.")
    ] = 1,
    seed: SeedOption = 0,
    manner: Manner,
) -> None:
    """Measure a model's forward passes and its two gradients apart, block by block.

    FUNCTION returns a pair: an nn.Sequential or a list of blocks, and the input of one
    microbatch; or an lpsched.replay.model.Model, which can name split points. Times are
    whole nanoseconds, sizes bytes.
    """
    require_writable(output)
    require_torch()
    require_source(model)
    import torch  # noqa: PLC0415 - optional

    from lpsched.replay.model import load_chain  # noqa: PLC0415 - needs torch
    from lpsched.replay.profile import (  # noqa: PLC0415 - needs torch
        count_work,
        measure_times,
    )

    if analytic:
        profile = count_work(load_chain(model, device="meta", seed=seed))
    else:
        torch.set_num_threads(threads)
        profile = measure_times(load_chain(model, seed=seed), runs=repeats)
    place = model.rpartition(":")[0].removesuffix(".py").replace(".", "/")
    network = replace(profile.network, name=network_name(place))
    save_text(output, document_text(network_to_document(network)))
    for warning in profile.warnings:
        complain(f"warning: {warning}")
    for remark in profile.remarks:
        note(remark, quiet=manner.quiet)
    note(f"{output} written", quiet=manner.quiet)
    _show(profile, manner)


def _show(profile: Profile, manner: Manner) -> None:
    if manner.json:
        print_json(
            {
                "warnings": list(profile.warnings),
                "samples": [
                    {
                        "layer": layer,
                        "pass": kind,
                        "value": sample.value,
                        "spread": float(sample.spread),
                    }
                    for (layer, kind), sample in profile.samples.items()
                ],
            }
        )
        return
    network = profile.network
    columns = [("layer", "left")]
    for kind in "FIW":
        columns += [(kind, "right"), ("spread", "right")]
    columns += [("output", "right"), ("parameters", "right")]
    rows = []
    for layer in network.layers:
        row = [layer.name]
        for kind in "FIW":
            sample = profile.samples.get((layer.name, kind))
            row += (
                ["–", ""]
                if sample is None
                else [number(sample.value), percent(float(sample.spread), 0)]
            )
        sizes = (layer.output, layer.parameters)
        rows.append([*row, *(number(None if s is None else int(s)) for s in sizes)])
    title = f"times in {network.time_unit}, sizes in {network.size_unit}"
    print_table(columns, rows, title=title)
