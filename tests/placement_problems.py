"""Placement problems, random and of VGG-16, and their optima by brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from random import Random

from factories import devices_of, make_graph, make_op, make_tensor

from lpsched.core.graph import Delay, DelayName, DeviceId, Graph, OpId
from lpsched.formulations.partition.problem import (
    DeviceGroup,
    Message,
    Problem,
    Share,
    merged_messages,
)

__all__ = [
    "all_partitions",
    "brute_force_cost",
    "least_placement",
    "limited",
    "random_placement_graph",
    "random_problem",
    "vgg16_problem",
]


def random_problem(
    rng: Random, *, most_items: int = 7, most_devices: int = 3, twins: bool = False
) -> Problem:
    """Draw items, one or two groups of devices, and messages between items.

    Some items take no time, some may not run everywhere, some messages come from
    outside. With `twins`, loads and sizes are few, so that items tend to be alike.
    """
    n = rng.randint(1, most_items)
    ticks = (0, 1, 2) if twins else (0, 0, 1, 2, 3, 4, 5)
    loads: list[int | None] = [rng.choice(ticks) for _ in range(n)]
    groups = [DeviceGroup(count=rng.randint(1, most_devices), loads=tuple(loads))]
    if rng.random() < 0.3:
        others = [
            None if rng.random() < 0.2 else rng.choice([t, t, rng.choice(ticks)])
            for t in loads
        ]
        groups.append(DeviceGroup(count=1, loads=tuple(others)))
    messages = []
    for _ in range(rng.randint(0, 2 * n)):
        source = None if rng.random() < 0.1 else rng.randrange(n)
        targets = frozenset(rng.sample(range(n), rng.randint(1, min(3, n))))
        size = rng.choice((1, 2)) if twins else rng.randint(1, 9)
        messages.append(Message(size=size, source=source, targets=targets - {source}))
    total = sum(t for t in loads if t is not None)
    fair = -(-total // sum(group.count for group in groups))
    return Problem(
        period=max(1, fair + rng.randint(-1, 3)),
        num_items=n,
        groups=tuple(groups),
        messages=merged_messages(messages),
    )


def limited(problem: Problem, rng: Random) -> Problem:
    """Let items need memory, in one or two stocks, and limit what devices have."""
    n = problem.num_items
    stocks = [
        tuple(
            Share(
                size=rng.randint(1, 9),
                items=frozenset(rng.sample(range(n), rng.randint(1, min(3, n)))),
            )
            for _ in range(rng.randint(1, 2 * n))
        )
        for _ in range(rng.randint(1, 2))
    ]
    total = max(sum(share.size for share in stock) for stock in stocks)
    groups = [
        replace(group, memory=rng.choice([None, *[rng.randint(total // 4, total)] * 3]))
        for group in problem.groups
    ]
    return replace(problem, groups=tuple(groups), stocks=tuple(stocks))


def all_partitions(problem: Problem) -> Iterator[tuple[frozenset[int], ...]]:
    """Every way to put the items on the devices that holds the loads."""
    for devices in product(range(problem.num_devices), repeat=problem.num_items):
        placed = tuple(
            frozenset(i for i, d in enumerate(devices) if d == device)
            for device in range(problem.num_devices)
        )
        if problem.holds(placed):
            yield placed


def brute_force_cost(problem: Problem) -> int | None:
    """Least cost of a partition; None if there is none."""
    costs = (sum(map(problem.cost, placed)) for placed in all_partitions(problem))
    return min(costs, default=None)


def random_placement_graph(rng: Random) -> Graph:
    """Draw a graph whose placement has something of everything.

    Ops of duration 0, of a duration per device, of some devices only, of none;
    colocation; tensors of several consumers.
    """
    devices = devices_of(rng.randint(1, 3))
    names = [device.id for device in devices]
    ops = []
    for i in range(rng.randint(1, 7)):
        choices = [None, None, None, rng.sample(names, 1), names[:2], []]
        allowed: Sequence[DeviceId] | None = rng.choice(choices)
        duration: int | dict[str, int] = rng.randint(0, 3)
        if rng.random() < 0.2 and allowed != []:
            duration = {d: rng.randint(1, 3) for d in allowed or names}
        ops.append(make_op(f"v{i}", duration, devices=allowed))
    ids = [op.id for op in ops]
    tensors = [
        make_tensor(
            f"x{k}",
            rng.randint(0, 9),
            rng.choice(ids),
            *((use, "d") for use in rng.sample(ids, rng.randint(1, min(3, len(ids))))),
        )
        for k in range(rng.randint(0, 8))
    ]
    placed = [op.id for op in ops if op.devices != ()]
    colocate = [tuple(rng.sample(placed, 2))] if len(placed) > 2 else []
    return make_graph(
        ops,
        tensors,
        devices=devices,
        delays={DelayName("d"): Delay()},
        colocate=tuple(colocate if rng.random() < 0.4 else []),
    )


def least_placement(graph: Graph, period: int) -> int | None:
    """Least communication of a placement with loads <= T, by trying all.

    Measured as formats.md says: a tensor's size once for each device other than the
    producer's that has a consumer. None if no placement has such loads.
    """
    choices = [graph.allowed(op.id) or (None,) for op in graph.ops]
    return min(
        (
            _communication(graph, placement)
            for devices in product(*choices)
            if _is_legal(
                graph,
                period,
                placement := dict(zip(graph.op_by_id, devices, strict=True)),
            )
        ),
        default=None,
    )


def _is_legal(
    graph: Graph, period: int, placement: Mapping[OpId, DeviceId | None]
) -> bool:
    if any(len({placement[op] for op in group}) > 1 for group in graph.colocate):
        return False
    loads: Counter[DeviceId | None] = Counter()
    for op, device in placement.items():
        loads[device] += graph.duration(op, device)
    return all(load <= period for device, load in loads.items() if device is not None)


def _communication(graph: Graph, placement: Mapping[OpId, DeviceId | None]) -> int:
    total = 0
    for tensor in graph.tensors:
        home = placement[tensor.producer]
        users = {placement[consumer.op] for consumer in tensor.consumers}
        total += tensor.size * len(users - {home, None} if home is not None else ())
    return total


#: Output channels, input channels and output width of each convolution of VGG-16, and
#: inputs and outputs of its linear layers (Simonyan and Zisserman, arXiv 1409.1556).
_CONVOLUTIONS = (
    *((64, 3, 224), (64, 64, 224), (128, 64, 112), (128, 128, 112)),
    *((256, 128, 56), (256, 256, 56), (256, 256, 56)),
    *((512, 256, 28), (512, 512, 28), (512, 512, 28)),
    *((512, 512, 14), (512, 512, 14), (512, 512, 14)),
)
_LINEAR = ((25088, 4096), (4096, 4096), (4096, 1000))


def vgg16_problem(
    devices: int, *, slack: int, halves: bool = False, shares: bool = False
) -> Problem:
    """Return VGG-16 as `placement-bounds` has it, at a limit over the fair load.

    F, I and W per weighted layer, nothing saved; durations max(1, round(MAC / 10^7)),
    sizes round(elements / 10^3). With `halves`, I is in two halves of
    max(1, round(MAC / (2 * 10^7))) ticks and half the sizes, rounded down; with
    `shares` too, in the exact shares of formats.md.

    Parameters
    ----------
    slack : int
        In percent of the total load divided by the devices, rounded up.
    """
    layers = [
        (o * i * 9 * w * w, o * i * 9, o * w * w) for o, i, w in _CONVOLUTIONS
    ] + [(i * o, i * o, o) for i, o in _LINEAR]
    parts = 2 if halves or shares else 1
    number: dict[str, int] = {}
    loads: list[int] = []

    def add(name: str, ticks: int) -> None:
        number[name] = len(loads)
        loads.append(ticks)

    for k, (work, _, _) in enumerate(layers):
        whole = max(1, _rounded(work, 10**7))
        half = max(1, _rounded(work, 2 * 10**7))
        add(f"F{k}", whole)
        for part in range(parts if k else 0):
            given = [whole] if parts == 1 else [whole - whole // 2, whole // 2]
            add(f"I{k}.{part}", half if halves else given[part])
        add(f"W{k}", whole)
    period = -(-sum(loads) // devices) * (100 + slack) // 100
    return Problem(
        period=period,
        num_items=len(loads),
        groups=(DeviceGroup(count=devices, loads=tuple(loads)),),
        messages=merged_messages(_vgg16_messages(layers, number, parts, halves)),
    )


def _rounded(value: int, by: int) -> int:
    return (2 * value + by) // (2 * by)


def _vgg16_messages(
    layers: list[tuple[int, int, int]],
    number: dict[str, int],
    parts: int,
    halves: bool,  # noqa: FBT001 - one of the problem's own
) -> Iterator[Message]:
    """Yield activations, gradients and weights, the latter two in a slice per part."""

    def message(size: int, source: str, *targets: str) -> Message:
        users = frozenset(number[t] for t in targets)
        return Message(size=size, source=number[source], targets=users)

    def sizes(size: int) -> list[int]:
        if parts == 1:
            return [size]
        return [size // 2] * 2 if halves else [size - size // 2, size // 2]

    last = len(layers) - 1
    for k, (_, parameters, outputs) in enumerate(layers):
        own = [f"I{k}.{part}" for part in range(parts)] if k else []
        ahead = [f"F{k + 1}", f"W{k + 1}"] if k < last else [*own, f"W{k}"]
        a, w = _rounded(outputs, 10**3), _rounded(parameters, 10**3)
        yield message(a, f"F{k}", *ahead)
        for part in range(parts if k < last else 0):
            yield message(sizes(a)[part], f"I{k + 1}.{part}", *own, f"W{k}")
        if not own:
            yield message(w, f"W{k}", f"F{k}")
        for part, op in enumerate(own):
            yield message(sizes(w)[part], f"W{k}", f"F{k}", op)
