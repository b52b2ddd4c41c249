"""Workloads of the dnn-partitioning package (Tarnawski et al.) as graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lpsched.core.graph import (
    Consumer,
    Device,
    DeviceId,
    Graph,
    Link,
    Op,
    OpId,
    Resident,
    Tensor,
    TensorId,
)
from lpsched.core.io import parse_json, validate
from lpsched.core.io.numbers import exact
from lpsched.core.io.plain import as_tuples
from lpsched.core.limits import MAX_INTEGER
from lpsched.core.order import topological_order
from lpsched.errors import Fault
from lpsched.network.readers.json_lines import with_lines
from lpsched.network.readers.source import (
    MAX_FAULTS,
    MAX_NODES,
    FaultLog,
    Imported,
    network_name,
    unique_names,
)
from lpsched.network.ticks import Rounder, chosen_tick

__all__ = ["read_dnn_partitioning"]

#: More devices than this are taken for a mistake.
MOST_DEVICES = 1000
#: More edges than this are taken for a mistake.
MAX_EDGES = 1_000_000
#: More durations than this are taken for a mistake.
MAX_DURATIONS = 10_000_000

Amount = Annotated[float, Field(ge=0, le=10**15, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]
Flag = bool | Literal[0, 1]


class _Part(BaseModel):
    """A mapping of the file; keys for people are passed over."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class _Node(_Part):
    id: Number
    supported: Flag = Field(alias="supportedOnFpga")
    cpu: Amount = Field(alias="cpuLatency")
    fpga: Amount = Field(alias="fpgaLatency")
    backward: Flag = Field(alias="isBackwardNode")
    size: Amount
    color: Number | None = Field(default=None, alias="colorClass")
    name: str | None = None


class _Edge(_Part):
    source: Number = Field(alias="sourceId")
    target: Number = Field(alias="destId")
    cost: Amount


class _Workload(_Part):
    limit: Amount = Field(alias="maxSizePerFPGA")
    fpgas: Annotated[int, Field(ge=0, le=MOST_DEVICES)] = Field(alias="maxFPGAs")
    cpus: Annotated[int, Field(ge=0, le=MOST_DEVICES)] = Field(alias="maxCPUs")
    nodes: tuple[_Node, ...]
    edges: tuple[_Edge, ...]


def read_dnn_partitioning(text: str, *, source: str) -> Imported[Graph]:
    """Read a workload for accelerators and CPUs as a graph.

    - A node is an op of kind F or B. It takes its latency on each kind of device, and
      CPUs only where accelerators do not support it. Ops of one colour class are
      colocated and labelled as one layer.
    - An edge's cost is the time that the output takes between an accelerator and the
      memory of the CPUs. From one accelerator to another it is paid at both ends, one
      after the other; among CPUs nothing moves. So an output of cost c ticks is a
      tensor of size 2c, and links carry 1 unit a tick between accelerators, 2 between
      an accelerator and a CPU, and all at once between CPUs. Where the edges of a node
      differ, the greatest cost counts.
    - In the paper's model the costs load the devices; here transfers run beside the
      work, and splits need not be contiguous. So the least period of this graph is a
      lower bound of the paper's max-load, equal where no cost is paid.
    - Sizes count if all nodes together exceed an accelerator's memory: each node takes
      its size where it runs. The paper's model counts no outputs as memory; they are
      made so small beside a byte that the limit keeps its meaning.
    - Latencies become ticks of a power of ten: the coarsest that is exact, or the
      finest of which at most 10^9 make up all of them; work that takes time takes a
      tick. There are no weights to wait for: iterations only share the devices.

    Source: Tarnawski et al., *Efficient algorithms for device placement of DNN graph
    operators* (NeurIPS 2020), and its repository's README.

    Raises
    ------
    FormatError
        With every fault, its line and its path.
    """
    raw = parse_json(text, source=source)
    log = FaultLog(source)
    for key, most in (("nodes", MAX_NODES), ("edges", MAX_EDGES)):
        if isinstance(raw.get(key), list) and len(raw[key]) > most:
            raise log.fail(key, f"more than {most:,}: taken for a mistake")
    workload, faults = validate(_Workload, as_tuples(raw))
    faults = faults or list(_faults(workload))
    if faults:
        for fault in with_lines(faults[:MAX_FAULTS], text):
            log.add(fault.path, fault.message)
        log.untold = len(faults) - len(log.faults)
        raise log.error()
    writer = _Writer(workload)
    graph = writer.graph(network_name(source))
    return Imported(document=graph, remarks=tuple(writer.remarks()))


def _faults(workload: _Workload) -> Iterator[Fault]:
    """What the parts of a workload say of each other."""
    devices = workload.fpgas + workload.cpus
    if not workload.nodes:
        yield Fault("nodes", "expected at least one node")
    if devices == 0:
        yield Fault("maxFPGAs", "there is no device: maxFPGAs and maxCPUs are 0")
    if len(workload.nodes) * devices > MAX_DURATIONS:
        text = f"more than {MAX_DURATIONS:,} pairs of a node and a device"
        yield Fault("nodes", f"{text}: taken for a mistake")
    yield from _node_faults(workload)
    yield from _edge_faults(workload)


def _node_faults(workload: _Workload) -> Iterator[Fault]:
    first: dict[int, int] = {}
    for i, node in enumerate(workload.nodes):
        if first.setdefault(node.id, i) != i:
            text = f"{node.id} is the id of nodes[{first[node.id]}] already"
            yield Fault(f"nodes[{i}].id", text)
        if workload.fpgas and not node.supported and not workload.cpus:
            yield Fault(f"nodes[{i}]", "runs on CPUs only, and maxCPUs is 0")


def _edge_faults(workload: _Workload) -> Iterator[Fault]:
    known = {node.id for node in workload.nodes}
    places: dict[tuple[str, str], int] = {}
    for i, edge in enumerate(workload.edges):
        places.setdefault((str(edge.source), str(edge.target)), i)
        for key, end in (("sourceId", edge.source), ("destId", edge.target)):
            if end not in known:
                yield Fault(f"edges[{i}].{key}", f"no node has the id {end}")
    _, cycle = _order(workload)
    if cycle:
        i = places[cycle[0], cycle[1 % len(cycle)]]
        names = [*cycle[:6], *(["..."] if len(cycle) > 6 else []), cycle[0]]
        yield Fault(f"edges[{i}]", f"the edges form a cycle: {' -> '.join(names)}")


def _order(workload: _Workload) -> tuple[Sequence[str], Sequence[str]]:
    """Ids in topological order, or a cycle of them; edges of unknown ids aside."""
    before: dict[str, list[str]] = {str(node.id): [] for node in workload.nodes}
    for edge in workload.edges:
        if str(edge.target) in before and str(edge.source) in before:
            before[str(edge.target)].append(str(edge.source))
    return topological_order(before)


class _Writer:
    """Writes a workload without faults as a graph."""

    def __init__(self, workload: _Workload) -> None:
        self._workload = workload
        by_id = {str(node.id): node for node in workload.nodes}
        self._nodes = [by_id[name] for name in _order(workload)[0]]
        names = unique_names(node.name or f"node{node.id}" for node in self._nodes)
        self._names = {n.id: m for n, m in zip(self._nodes, names, strict=True)}
        self._fpgas = [DeviceId(f"fpga{i}") for i in range(workload.fpgas)]
        self._cpus = [DeviceId(f"cpu{i}") for i in range(workload.cpus)]
        times = [2 * exact(edge.cost) for edge in workload.edges]
        for node in self._nodes:
            times += [exact(node.fpga)] if node.supported and self._fpgas else []
            times += [exact(node.cpu)] if self._cpus else []
        self._ticks = Rounder(chosen_tick(times), "nearest", 1)
        self._memory: _Memory | None = None
        self._uneven = 0

    def graph(self, name: str) -> Graph:
        """Return the graph."""
        ops = tuple(self._op(node) for node in self._nodes)
        tensors = tuple(self._tensors())
        self._memory = self._limit(sum(tensor.size for tensor in tensors))
        limit = None if self._memory is None else self._memory.limit
        groups: dict[int, list[OpId]] = {}
        for node in self._nodes:
            if node.color is not None:
                groups.setdefault(node.color, []).append(self._id(node.id))
        return Graph(
            name=name,
            devices=(
                *(Device(id=device, memory=limit) for device in self._fpgas),
                *(Device(id=device) for device in self._cpus),
            ),
            ops=ops,
            tensors=tensors,
            link=Link(units_per_tick=1),
            links=dict(self._links()),
            colocate=tuple(tuple(g) for g in groups.values() if len(g) > 1),
            residents=tuple(self._residents()),
            time_unit=self._ticks.scale("unit").text,
            size_unit="transfer tick",
        )

    def remarks(self) -> Iterator[str]:
        """Yield what was left out, assumed or rounded."""
        counts = f"{len(self._fpgas)} accelerators, {len(self._cpus)} CPUs"
        yield f"{len(self._nodes)} nodes, {len(self._workload.edges)} edges; {counts}"
        scale = self._ticks.scale("unit")
        if scale.total_error:
            worst, total = float(scale.greatest_error), float(scale.total_error)
            yield f"rounding of latencies: at most {worst:g}, {total:g} in all"
        if self._uneven:
            text = f"{self._uneven} nodes have edges of different cost"
            yield f"{text}: the greatest counts"
        if self._memory is None:
            yield "all nodes together fit one accelerator: memory is not limited"
        else:
            yield f"memory: {self._memory.per_byte} units stand for a byte of a node"

    def _id(self, number: int) -> OpId:
        return OpId(self._names[number])

    def _op(self, node: _Node) -> Op:
        name = self._names[node.id]
        on_fpga = bool(self._fpgas) and bool(node.supported)
        duration: int | Mapping[DeviceId, int]
        if not on_fpga or not self._cpus:
            duration = self._ticks.number(exact(node.fpga if on_fpga else node.cpu))
        else:
            fpga = self._ticks.number(exact(node.fpga))
            cpu = self._ticks.number(exact(node.cpu))
            duration = dict.fromkeys(self._fpgas, fpga) | dict.fromkeys(self._cpus, cpu)
        return Op(
            id=OpId(name),
            kind="B" if node.backward else "F",
            duration=duration,
            devices=None if on_fpga or not self._fpgas else tuple(self._cpus),
            layer=name if node.color is None else f"class{node.color}",
        )

    def _tensors(self) -> Iterator[Tensor]:
        costs: dict[int, dict[int, Fraction]] = {}
        for edge in self._workload.edges:
            readers = costs.setdefault(edge.source, {})
            cost = exact(edge.cost)
            readers[edge.target] = max(cost, readers.get(edge.target, cost))
        for node in self._nodes:
            readers = costs.get(node.id, {})
            if readers:
                self._uneven += len(set(readers.values())) > 1
                yield Tensor(
                    id=TensorId(f"a{self._names[node.id]}"),
                    size=self._ticks.number(2 * max(readers.values())),
                    producer=self._id(node.id),
                    consumers=tuple(Consumer(op=self._id(n)) for n in readers),
                )

    def _links(self) -> Iterator[tuple[tuple[DeviceId, DeviceId], Link]]:
        """Yield the links of CPUs, which differ from those of accelerators."""
        for cpu in self._cpus:
            for fpga in self._fpgas:
                yield (cpu, fpga), Link(units_per_tick=2)
                yield (fpga, cpu), Link(units_per_tick=2)
            for other in self._cpus:
                if other != cpu:
                    yield (cpu, other), Link()

    def _limit(self, outputs: int) -> _Memory | None:
        """Return an accelerator's memory if it can run out, with room for outputs."""
        limit = exact(self._workload.limit)
        if not self._fpgas or sum(exact(n.size) for n in self._nodes) <= limit:
            return None
        per_byte = 10 ** max(0, 15 - len(str(int(limit))))
        return _Memory(per_byte=per_byte, limit=int(limit * per_byte) + 4 * outputs)

    def _residents(self) -> Iterator[Resident]:
        """Yield sizes, rounded up; one beyond the limit is not told how far."""
        if self._memory is None:
            return
        for node in self._nodes:
            size = -(-exact(node.size) * self._memory.per_byte // 1)
            most = self._memory.limit + 1
            if size:
                yield Resident(size=min(int(size), most), ops=(self._id(node.id),))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """An accelerator's memory in units of which many stand for a byte of a node.

    An output of n ticks takes 2n units, and the limit has room for four copies of all
    outputs: beside the bytes of nodes they are nothing.
    """

    per_byte: int
    limit: int
