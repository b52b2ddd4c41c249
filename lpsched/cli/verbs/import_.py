"""`lpsched import`: other tools' files as networks and graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from lpsched.analysis.actions import check_actions
from lpsched.cli.options import (
    DevicesOption,
    Manner,
    OutputOption,
    one_count,
    parse_list,
    parse_number,
)
from lpsched.cli.output import note, print_document, save_text, wrote
from lpsched.cli.problem import load_network_file, load_problem
from lpsched.core.graph import Graph
from lpsched.core.instance import CostModel
from lpsched.core.io import (
    document_text,
    graph_to_document,
    network_to_document,
    read_bytes,
    read_text,
    schedule_to_document,
)
from lpsched.core.network import Network
from lpsched.core.schedule import Schedule
from lpsched.network.coarsen import coarsened, with_costs
from lpsched.network.coarsen_graph import coarsened_graph
from lpsched.network.readers import (
    BackwardSplit,
    Imported,
    layout_instance,
    network_name,
    read_dnn_partitioning,
    read_graphml,
    read_megatron_layout,
    read_onnx,
    read_pipedream,
    read_torch_csv,
)
from lpsched.solve.actions import schedule_actions, unit_graph

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched import graph.txt --from pipedream -o measured.json"

_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the command line says of how to read."""

    split_backward: BackwardSplit = _HALF
    dims: Mapping[str, int] = field(default_factory=dict)
    unknown_zero: bool = False
    resources: Path | None = None
    graph: str | None = None
    network: str | None = None
    devices: int | None = None


#: What an import makes; an instance as its plain document.
Document = Network | Graph | Schedule | dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format that can be read, and the options that mean something for it."""

    read: Callable[[Path, Wishes], Imported[Document]]
    options: frozenset[str] = frozenset()


def _pipedream(file: Path, wishes: Wishes) -> Imported[Network]:
    return read_pipedream(
        read_text(file), source=str(file), split_backward=wishes.split_backward
    )


def _onnx(file: Path, wishes: Wishes) -> Imported[Network]:
    return read_onnx(
        read_bytes(file),
        source=str(file),
        dims=wishes.dims,
        unknown_zero=wishes.unknown_zero,
    )


def _dnn_partitioning(file: Path, _wishes: Wishes) -> Imported[Graph]:
    return read_dnn_partitioning(read_text(file), source=str(file))


def _graphml(file: Path, wishes: Wishes) -> Imported[Graph]:
    path = wishes.resources
    resources = None if path is None else read_text(path)
    return read_graphml(read_text(file), source=str(file), resources=resources)


def _torch_csv(file: Path, wishes: Wishes) -> Imported[Schedule]:
    """Read a table of actions, give it times and verify it."""
    table = read_torch_csv(read_text(file), source=str(file))
    remarks = []
    if wishes.graph is None:
        check_actions(table, source=str(file))
        graph = unit_graph(table, name=network_name(str(file)))
        remarks.append("costs are assumed: one tick each for F, I and W, none to send")
    else:
        graph = load_problem(wishes.graph, None).graph
    answer = schedule_actions(table, graph, source=str(file))
    return Imported(document=answer.require_schedule(), remarks=tuple(remarks))


def _megatron_layout(file: Path, wishes: Wishes) -> Imported[dict[str, Any]]:
    rows = read_megatron_layout(read_text(file), source=str(file))
    network = None if wishes.network is None else load_network_file(wishes.network)
    document = layout_instance(
        rows,
        name=network_name(str(file)),
        network=network,
        devices=wishes.devices or len(rows),
        source=str(file),
    )
    assumed = [f"{document['training']['microbatches']} microbatches are assumed"]
    if wishes.network is None:
        assumed.append("costs are assumed: one tick for each pass of each layer")
    return Imported(document=document, remarks=tuple(assumed))


_FORMATS: Mapping[str, Format] = {
    "pipedream": Format(
        read=_pipedream, options=frozenset({"--split-backward", "--coarsen"})
    ),
    "onnx": Format(
        read=_onnx, options=frozenset({"--coarsen", "--dims", "--unknown-zero"})
    ),
    "dnn-partitioning": Format(
        read=_dnn_partitioning, options=frozenset({"--coarsen"})
    ),
    "graphml": Format(read=_graphml, options=frozenset({"--resources"})),
    "torch-csv": Format(read=_torch_csv, options=frozenset({"--graph"})),
    "megatron-layout": Format(
        read=_megatron_layout, options=frozenset({"--network", "--devices"})
    ),
}


FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The other tool's file.", show_default=False),
]
FromOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help=f"One of {', '.join(_FORMATS)}.",
        show_default=False,
    ),
]
SplitOption = Annotated[
    str | None,
    typer.Option(
        "--split-backward",
        metavar="SHARE",
        help="pipedream: share of a backward time that is I, from 0 to 1 (default"
        " 0.5), or 'parameters': by the bytes that I and W write.",
    ),
]
CoarsenOption = Annotated[
    bool,
    typer.Option(
        "--coarsen",
        help="Merge what costs nothing or must sit together: the least period stays"
        " the same.",
    ),
]
LossOption = Annotated[
    str | None,
    typer.Option(
        "--coarsen-loss",
        metavar="F",
        help="Merge light layers too, as long as the least period grows by no more"
        " than this share.",
    ),
]
DimsOption = Annotated[
    str | None,
    typer.Option(
        "--dims", metavar="NAME=N,...", help="onnx: numbers for open dimensions."
    ),
]
UnknownOption = Annotated[
    bool,
    typer.Option(
        "--unknown-zero",
        help="onnx: take the cost of operators that are not known as zero.",
    ),
]

ResourcesOption = Annotated[
    Path | None,
    typer.Option(
        "--resources", metavar="XML", help="graphml: HatScheT's resource model."
    ),
]
GraphOption = Annotated[
    str | None,
    typer.Option(
        "--graph",
        metavar="FILE",
        help="torch-csv: the graph or instance that has the costs.",
    ),
]
NetworkOption = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="FILE",
        help="megatron-layout: the network whose layers the letters are.",
    ),
]


def command(
    *,
    file: FileArgument,
    format_name: FromOption,
    output: OutputOption = None,
    split_backward: SplitOption = None,
    coarsen: CoarsenOption = False,
    coarsen_loss: LossOption = None,
    dims: DimsOption = None,
    unknown_zero: UnknownOption = False,
    resources: ResourcesOption = None,
    graph: GraphOption = None,
    network: NetworkOption = None,
    devices: DevicesOption = None,
    manner: Manner,
) -> None:
    """Read another tool's file and write a network, a graph, or what else it holds.

    torch-csv: a schedule, with the least times for its order, verified.
    megatron-layout: an instance whose stages are those of the layout.

    Without -o it goes to stdout. What was left out, assumed or rounded is told on
    stderr.
    """
    said = {
        "--split-backward": split_backward is not None,
        "--coarsen": coarsen or coarsen_loss is not None,
        "--dims": dims is not None,
        "--unknown-zero": unknown_zero,
        "--resources": resources is not None,
        "--graph": graph is not None,
        "--network": network is not None,
        "--devices": devices is not None,
    }
    chosen = _format(format_name, [option for option, given in said.items() if given])
    wishes = Wishes(
        split_backward=_split(split_backward or "0.5"),
        dims=_dims(dims or ""),
        unknown_zero=unknown_zero,
        resources=resources,
        graph=graph,
        network=network,
        devices=one_count(devices),
    )
    epsilon = parse_number(coarsen_loss or "0", option="--coarsen-loss", most=1)
    imported = chosen.read(file, wishes)
    if said["--coarsen"]:
        imported = _coarse(imported, epsilon)
    text = document_text(_plain(imported.document))
    if output is None:
        print_document(text)
    else:
        save_text(output, text)
    for remark in imported.remarks:
        note(f"{file.name}: {remark}", quiet=manner.quiet)
    if output is not None:
        remarks = list(imported.remarks)
        wrote(output, manner, _summary(imported.document), remarks=remarks)


def _format(name: str, options: list[str]) -> Format:
    """Return a format by name; options that mean nothing to it are usage errors."""
    chosen = _FORMATS.get(name)
    if chosen is None:
        text = f"expected one of {', '.join(_FORMATS)}, got {name!r}"
        raise typer.BadParameter(text, param_hint="--from")
    for option in options:
        if option not in chosen.options:
            text = f"does not go with --from {name}"
            raise typer.BadParameter(text, param_hint=option)
    return chosen


def _plain(document: Document) -> dict[str, Any]:
    if isinstance(document, Network):
        return network_to_document(document)
    if isinstance(document, Graph):
        return graph_to_document(document)
    if isinstance(document, Schedule):
        return schedule_to_document(document)
    return document


def _split(text: str) -> BackwardSplit:
    if text == "parameters":
        return "parameters"
    return parse_number(text, option="--split-backward", most=1)


def _dims(text: str) -> dict[str, int]:
    """Read ``batch=8,tokens=128``."""
    found: dict[str, int] = {}
    for part in parse_list(text):
        name, _, number = part.rpartition("=")
        if not name or not number.isdecimal() or not 0 < int(number[:20]) < 2**31:
            expected = "expected NAME=N, separated by commas, N from 1 to 2^31 - 1"
            raise typer.BadParameter(f"{expected}; got {part!r}", param_hint="--dims")
        found[name] = int(number)
    return found


def _coarse(imported: Imported[Document], epsilon: Fraction) -> Imported[Document]:
    """Merge layers or ops, and say how many and at what cost."""
    document = imported.document
    if isinstance(document, Graph):
        return _coarse_graph(imported.remarks, document, epsilon)
    if not isinstance(document, Network):  # its format does not take the option
        return imported
    remarks = list(imported.remarks)
    if any(layer.type is not None for layer in document.layers):
        document = with_costs(document, CostModel(model="macs"))
        remarks.append("times are MACs: a layer that is merged has no type any more")
    found = coarsened(document, epsilon=epsilon)
    counts = f"{len(document.layers)} layers to {len(found.network.layers)}"
    hidden = f"{int(found.hidden)} {document.size_unit} of activations inside them"
    remarks += [
        f"coarsened: {counts}; {_bound(found.loss)}",
        f"{hidden} are not seen any more: no communication, no memory",
    ]
    return Imported(document=found.network, remarks=tuple(remarks))


def _coarse_graph(
    remarks: tuple[str, ...], graph: Graph, epsilon: Fraction
) -> Imported[Graph]:
    found = coarsened_graph(graph, epsilon=epsilon)
    counts = f"{len(graph.ops)} ops to {len(found.graph.ops)}"
    told = f"coarsened: {counts}; {_bound(found.loss)}"
    return Imported(document=found.graph, remarks=(*remarks, told))


def _bound(loss: Fraction) -> str:
    if loss == 0:
        return "the least period stays the same (free delays and memory)"
    share = f"{100 * float(loss):.3g} %"
    return f"the least period grows by at most {share} (free delays and memory)"


def _summary(document: Document) -> str:
    if isinstance(document, Schedule):
        return f"a schedule of {len(document.ops)} ops, period {document.period:,}"
    if isinstance(document, dict):
        return f"an instance of {len(document['placement']['stages'])} stages"
    if isinstance(document, Graph):
        counts = (
            f"a graph of {len(document.ops)} ops on {len(document.devices)} devices"
        )
    else:
        counts = f"a network of {len(document.layers)} layers"
    if document.time_unit is None:
        return f"{counts}, costs by the cost model"
    return f"{counts}, time in {document.time_unit}, sizes in {document.size_unit}"
