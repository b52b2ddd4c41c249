"""A pipeline in the few numbers that bounds and counting need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lpsched.analysis.pipeline import Pipeline, Slot
from lpsched.core.graph import DeviceId, OpId, Tensor
from lpsched.errors import UnsupportedError

__all__ = [
    "Chain",
    "StageMemory",
    "chain_of",
    "device_room",
    "lanes_of",
    "stage_memory",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMemory:
    r"""What a microbatch holds on the device of its stage.

    With n F's, i I's and w W's done, a device alone with its stage holds at least

    .. math:: a n + b i - (a + b) w, \qquad a = \text{forward}, b = \text{input\_grad}

    and while an op runs also what it needs then.

    Attributes
    ----------
    forward : int
        a: held from the start of F on.
    input_grad : int
        b: what I takes, less what it gives back at its end; may be negative.
    during_forward, during_input_grad, during_weight_grad : int
        Held in addition to the level before (and to a, for F) while the op runs.
    """

    forward: int = 0
    input_grad: int = 0
    during_forward: int = 0
    during_input_grad: int = 0
    during_weight_grad: int = 0

    @property
    def weight_grad(self) -> int:
        """Return a + b, which W gives back."""
        return self.forward + self.input_grad

    def level(self, forwards: int, input_grads: int, weight_grads: int) -> int:
        """Units held after so many F, I and W."""
        return (
            self.forward * forwards
            + self.input_grad * input_grads
            - self.weight_grad * weight_grads
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Stages in a row, all microbatches alike; times by stage, in ticks.

    Attributes
    ----------
    forward, input_grad, weight_grad : tuple of int
        f, b and w: the least times of any microbatch.
    update : tuple of int
        u.
    load : tuple of int
        All work of the stage in an iteration, u included.
    down, up : tuple of int
        Transfers to the next stage and back from it, one fewer than stages.
    memory : tuple of StageMemory
        What a microbatch holds at least.
    room : tuple of (int or None)
        Memory of the stage's device for this, weights and sums deducted; None: no
        limit.
    flush : bool
        Whether the makespan counts rather than the longest span of a stage.
    homes : tuple of int or None
        The number of each stage's device; None: each has its own.
    """

    microbatches: int
    forward: tuple[int, ...]
    input_grad: tuple[int, ...]
    weight_grad: tuple[int, ...]
    update: tuple[int, ...]
    load: tuple[int, ...]
    down: tuple[int, ...]
    up: tuple[int, ...]
    memory: tuple[StageMemory, ...]
    room: tuple[int | None, ...]
    flush: bool = False
    homes: tuple[int, ...] | None = None

    @property
    def lanes(self) -> tuple[tuple[int, ...], ...]:
        """Stages of each device."""
        homes = self.homes or tuple(range(self.num_stages))
        return tuple(
            tuple(s for s, home in enumerate(homes) if home == d)
            for d in sorted(set(homes))
        )

    @property
    def num_stages(self) -> int:
        """Stages in the row."""
        return len(self.forward)

    def work(self, stage: int) -> int:
        """P = f + b + w, the ticks of a microbatch."""
        return self.forward[stage] + self.input_grad[stage] + self.weight_grad[stage]

    def offset(self, stage: int) -> int:
        r"""Ticks of an iteration that pass before a stage can start.

        With flush :math:`\sum_{t < s} (f_t + c_t)`, for the makespan counts from the
        first start of all; else 0, for a stage's span counts from its own.
        """
        if not self.flush:
            return 0
        return sum(self.forward[:stage]) + sum(self.down[:stage])


def chain_of(pipeline: Pipeline) -> Chain:
    """Reduce a pipeline with a device for each stage to least times and sizes.

    Every schedule of the pipeline obeys these.

    Raises
    ------
    UnsupportedError
        A device has several stages, a W does not follow its I or is missing, or
        (without flush) an iteration may begin on a stage before the last has ended.
    """
    if len(pipeline.stages_on) < pipeline.num_stages:
        raise UnsupportedError("these bounds need a device for each stage")
    return _reduced(pipeline)


def lanes_of(pipeline: Pipeline) -> Chain:
    """Reduce a pipeline likewise, with several stages on a device if it flushes.

    Without flush the iterations of different stages of a device may overlap, which a
    chain does not tell.

    Raises
    ------
    UnsupportedError
        As `chain_of`, but for several stages on a device with flush.
    """
    if len(pipeline.stages_on) == pipeline.num_stages:
        return _reduced(pipeline)
    if not pipeline.graph.flush:
        raise UnsupportedError("with several stages on a device this needs flush")
    number = {device: d for d, device in enumerate(pipeline.stages_on)}
    homes = tuple(number[device] for device in pipeline.devices)
    return replace(_reduced(pipeline), homes=homes)


def _reduced(pipeline: Pipeline) -> Chain:
    graph, stages = pipeline.graph, range(pipeline.num_stages)
    _check_order(pipeline)
    rows = {k: tuple(map(min, pipeline.ticks[k])) for k in "FIW"}
    update = tuple(pipeline.update_ticks(s) for s in stages)
    totals = [sum(sum(pipeline.ticks[k][s]) for k in "FIW") for s in stages]
    held = stage_memory(pipeline)
    return Chain(
        microbatches=pipeline.microbatches,
        forward=rows["F"],
        input_grad=rows["I"],
        weight_grad=rows["W"],
        update=update,
        load=tuple(t + u for t, u in zip(totals, update, strict=True)),
        down=pipeline.down,
        up=pipeline.up,
        memory=tuple(held[s] for s in stages),
        room=tuple(device_room(pipeline, home) for home in pipeline.devices),
        flush=graph.flush,
    )


def _check_order(pipeline: Pipeline) -> None:
    """Refuse pipelines whose stages need not run F, I, W and U in this order."""
    joined = {(e.src, e.dst, e.delay) for e in pipeline.graph.edges}
    for stage, update in enumerate(pipeline.updates):
        for m in range(pipeline.microbatches):
            ops = [pipeline.op(Slot(kind, stage, m)) for kind in "FIW"]
            if ops[1] and ops[2] and (ops[1], ops[2], 0) not in joined:
                text = f"{ops[2]!r} need not wait for {ops[1]!r}"
                raise UnsupportedError(f"these bounds need I before W: {text}")
            last = ops[2] or ops[1]
            if last is None:
                text = f"these bounds need an I or W on stage {stage}"
                raise UnsupportedError(text)
            if pipeline.graph.flush:
                continue
            if (last, update, 0) not in joined or (update, ops[0], 1) not in joined:
                text = f"an iteration of stage {stage} need not wait for the last one"
                raise UnsupportedError(f"these bounds need one at a time: {text}")


def device_room(pipeline: Pipeline, device: DeviceId) -> int | None:
    """Memory of a device, less what it holds at every moment; None for no limit."""
    graph = pipeline.graph
    limit = next(d.memory for d in graph.devices if d.id == device)
    if limit is None:
        return None
    stages = pipeline.stages_on[device]
    mine = {op.id for op in graph.ops if op.stage in stages}
    updates = {pipeline.updates[s] for s in stages}
    residents = [r.size for r in graph.residents if not mine.isdisjoint(r.ops)]
    weights = [t.size for t in graph.tensors if t.producer in updates and _stays(t)]
    return limit - sum(residents) - sum(weights)


def _stays(tensor: Tensor) -> bool:
    """Whether each copy lives until the next one has been made."""
    return any(use.op == tensor.producer and use.delay == 1 for use in tensor.consumers)


def stage_memory(pipeline: Pipeline) -> dict[int, StageMemory]:
    """Least memory of a microbatch on each stage's device.

    What another stage makes counts from its use on, what another stage uses to the
    end of the op that made it.
    """
    stages, count = range(pipeline.num_stages), pipeline.microbatches
    spans: dict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0] * count)
    for tensor, stage, m, first, last in _holdings(pipeline):
        spans[stage, first, last][m] += tensor.size

    def least(stage: int, first: str, last: str) -> int:
        return min(spans[stage, first, last])

    found = {}
    for s in stages:
        grown, freed = least(s, "I", "W"), least(s, "F", "I")
        found[s] = StageMemory(
            forward=freed + least(s, "F", "W"),
            input_grad=grown - freed,
            during_forward=least(s, "F", "F"),
            during_input_grad=grown + least(s, "I", "I"),
            during_weight_grad=least(s, "W", "W"),
        )
    return found


def _holdings(pipeline: Pipeline) -> Iterator[tuple[Tensor, int, int, str, str]]:
    """Tensors held at each stage: by which microbatch, from which kind to which."""
    slot_of: Mapping[OpId, Slot] = {
        op: Slot(kind, stage, m)
        for kind, rows in pipeline.ops.items()
        for stage, row in enumerate(rows)
        for m, op in enumerate(row)
        if op is not None
    }
    for tensor in pipeline.graph.tensors:
        maker = slot_of.get(tensor.producer)
        if maker is None or tensor.size == 0:
            continue
        kinds: dict[int, set[str]] = {maker.stage: {maker.kind}}
        for use in tensor.consumers:
            user = slot_of.get(use.op)
            same = user is not None and user.microbatch == maker.microbatch
            if user is not None and same and use.delay == 0:
                kinds.setdefault(user.stage, set()).add(user.kind)
        for stage, held in kinds.items():
            ends = [kind for kind in "FIW" if kind in held]
            yield tensor, stage, maker.microbatch, ends[0], ends[-1]
