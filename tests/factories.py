"""Small graphs and schedules made by hand, for every test folder.

Random ones stand in `random_cases`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from lpsched.core.graph import (
    Consumer,
    Delay,
    DelayName,
    Device,
    DeviceId,
    Graph,
    Link,
    Op,
    OpId,
    Tensor,
    TensorId,
)
from lpsched.core.io import checked, graph_digest
from lpsched.core.schedule import Placed, Schedule

__all__ = [
    "devices_of",
    "make_graph",
    "make_op",
    "make_schedule",
    "make_tensor",
    "training_chain",
]

#: A use of a tensor: op, (op, delay) or (op, delay, lag).
Use = str | tuple[str, int | str] | tuple[str, int | str, int]


def devices_of(
    count: int, *, memory: int | Sequence[int | None] | None = None
) -> tuple[Device, ...]:
    """Devices d0, d1, ... with one memory limit or one each."""
    limits = memory if isinstance(memory, Sequence) else [memory] * count
    return tuple(Device(id=DeviceId(f"d{i}"), memory=limits[i]) for i in range(count))


def make_op(
    name: str,
    duration: int | Mapping[str, int],
    *,
    kind: str = "X",
    devices: Iterable[str] | None = None,
) -> Op:
    """Build an op; `devices` empty for one that occupies none."""
    return Op(
        id=OpId(name),
        kind=kind,
        duration=duration
        if isinstance(duration, int)
        else {DeviceId(d): t for d, t in duration.items()},
        devices=None if devices is None else tuple(map(DeviceId, devices)),
    )


def make_tensor(name: str, size: int, producer: str, *uses: Use) -> Tensor:
    """Build a tensor; a use is an op, (op, delay) or (op, delay, lag)."""
    return Tensor(
        id=TensorId(name),
        size=size,
        producer=OpId(producer),
        consumers=tuple(_consumer(use) for use in uses),
    )


def _consumer(use: Use) -> Consumer:
    if isinstance(use, str):
        return Consumer(op=OpId(use))
    op, delay, *lag = use
    return Consumer(
        op=OpId(op),
        delay=delay if isinstance(delay, int) else DelayName(delay),
        lag=lag[0] if lag else 0,
    )


def make_graph(
    ops: Mapping[str, int] | Iterable[Op],
    tensors: Iterable[Tensor] = (),
    *,
    devices: int | tuple[Device, ...] = 1,
    **fields: Any,  # noqa: ANN401 - any field of Graph
) -> Graph:
    """Build a graph and check its references; ops may be given as name: duration."""
    made = (
        tuple(make_op(name, ticks) for name, ticks in ops.items())
        if isinstance(ops, Mapping)
        else tuple(ops)
    )
    graph = Graph(
        name="made",
        devices=devices_of(devices) if isinstance(devices, int) else devices,
        ops=made,
        tensors=tuple(tensors),
    )
    return checked(graph.replace(**fields))


def make_schedule(
    graph: Graph,
    period: int,
    ops: Mapping[str, tuple[str | None, int]],
    **delays: int,
) -> Schedule:
    """Build a schedule of `graph`, valid or not, from name: (device, start)."""
    return Schedule(
        graph=graph.name,
        graph_digest=graph_digest(graph),
        period=period,
        ops={
            OpId(op): Placed(None if device is None else DeviceId(device), start)
            for op, (device, start) in ops.items()
        },
        delays={DelayName(name): value for name, value in delays.items()},
    )


def training_chain(
    layers: int,
    *,
    devices: int = 2,
    delay_max: int | None = None,
    link: Link | None = None,
    rng: Random | None = None,
) -> Graph:
    """The asynchronous training graph of a chain of layers, as formats.md has it.

    F, I (from the second layer on) and W per layer, outputs saved. Without `rng`,
    every duration is 2 and every size 4; with it, 1 to 6 and 1 to 16.
    """

    def draw(fixed: int, most: int) -> int:
        return fixed if rng is None else rng.randint(1, most)

    ops, tensors = [], []
    for n in range(1, layers + 1):
        kinds = "FIW" if n > 1 else "FW"
        for kind in kinds:
            op = make_op(f"{kind}{n}", draw(2, 6), kind=kind)
            ops.append(dataclasses.replace(op, layer=str(n)))
        ahead = [f"F{n + 1}", f"W{n + 1}"] if n < layers else []
        own = [f"I{n}"] if n > 1 else []
        a, w = draw(4, 16), draw(4, 16)
        tensors.append(make_tensor(f"a{n}", a, f"F{n}", *ahead, *own, f"W{n}"))
        if n > 1:
            below = [f"I{n - 1}"] if n > 2 else []
            uses = [*below, f"W{n - 1}"]
            tensors.append(make_tensor(f"g{n}", a, f"I{n}", *uses))
        reads: list[Use] = [(f"F{n}", f"d{n}"), *((op, f"d{n}") for op in own)]
        tensors.append(make_tensor(f"w{n}", w, f"W{n}", *reads, (f"W{n}", 1)))
    return make_graph(
        ops,
        tensors,
        devices=devices,
        name=f"chain{layers}",
        link=link or Link(),
        delays={DelayName(f"d{n}"): Delay(max=delay_max) for n in range(1, layers + 1)},
    )
