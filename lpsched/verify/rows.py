"""A synchronous pipeline as a row of stages, read off a graph for its certificates.

What is read holds for every schedule of the graph: least ticks, least transfers, and
the memory that a microbatch holds at least. Least ticks make all microbatches alike, so
that they may be taken in index order within a kind: sorting the starts of a kind keeps
every rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lpsched.core.graph import Graph, OpId, Tensor
from lpsched.verify.evidence import RefusedError
from lpsched.verify.runs import transfer_ticks

__all__ = ["Row", "Stage", "read_row"]

#: Kinds in the order in which a stage runs them; a fused B stands for I.
_KINDS = ("F", "I", "W")

_Step = tuple[str, int, int]  # kind, stage, microbatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    r"""A stage, alone on its device.

    Attributes
    ----------
    f, b, w, u : int
        Least ticks of F, I and W of a microbatch, and of U.
    load : int
        All its work in an iteration.
    taken, given : int
        What F takes and holds, and what of it I gives back; less than 0 if I takes
        more. W gives back the rest.
    with_f, with_i : int
        What F and I need besides while they run.
    limit : int or None
        Memory for all this.
    """

    f: int
    b: int
    w: int
    u: int
    load: int
    taken: int
    given: int
    with_f: int
    with_i: int
    limit: int | None

    @property
    def work(self) -> int:
        """Least ticks of a microbatch."""
        return self.f + self.b + self.w

    def cap(self, microbatches: int) -> int:
        r"""Return K: F(j) can only start after I(j - K) has ended.

        If q I's have ended, no more W's have, and the level at F(j) is
        ``taken * (j + 1 - q)`` or more, which with what F needs besides must fit.
        Likewise at the start of I(k) no more than K + k F's have started.
        """
        if self.limit is None:
            return microbatches
        free = self.limit - max(self.with_f, self.with_i)
        if self.taken == 0:
            return microbatches if free >= 0 else 0
        return max(0, min(microbatches, free // self.taken))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Stages one after the other; least ticks down to the next one, and back up."""

    microbatches: int
    stages: tuple[Stage, ...]
    down: tuple[int, ...]
    up: tuple[int, ...]


def read_row(graph: Graph, *, closed: bool) -> Row:
    """Read the stages of a graph.

    Parameters
    ----------
    closed : bool
        Whether an iteration has to end on a stage before the next begins there, so
        that the span of a stage is at most the period.

    Raises
    ------
    RefusedError
        The graph is something else.
    """
    return _Reader(graph).row(closed=closed)


class _Reader:
    """Steps of the graph, and the edges between them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._ops: dict[_Step, OpId] = {}
        self._updates: dict[int, OpId] = {}
        self._homes: dict[int, str] = {}
        for op in graph.ops:
            if op.stage is None or op.devices is None or len(op.devices) != 1:
                raise RefusedError(f"op {op.id!r} has no stage on one device")
            if self._homes.setdefault(op.stage, op.devices[0]) != op.devices[0]:
                raise RefusedError(f"stage {op.stage} is on several devices")
            if op.kind == "U":
                self._updates[op.stage] = op.id
            elif op.microbatch is None or op.kind not in ("F", "I", "W", "B"):
                raise RefusedError(f"op {op.id!r} is no step of a microbatch")
            else:
                kind = "I" if op.kind == "B" else op.kind
                step = kind, op.stage, op.microbatch
                if self._ops.setdefault(step, op.id) != op.id:
                    raise RefusedError(f"op {op.id!r} is a step for the second time")
        self._check_whole()
        self._stays = self._staying()
        self._waits = dict(self._read_waits())

    def _check_whole(self) -> None:
        self._count = 1 + max((m for _, _, m in self._ops), default=-1)
        self._stages = range(len(self._homes))
        kinds = {(kind, s) for kind, s, _ in self._ops}
        whole = len(self._ops) == len(kinds) * self._count
        alone = len(set(self._homes.values())) == len(self._homes)
        if not whole or not alone or set(self._homes) != set(self._stages):
            raise RefusedError("expected stages 0, 1, ... alone on devices, all whole")
        for s in self._stages:
            if ("F", s) not in kinds or not {("I", s), ("W", s)} & kinds:
                raise RefusedError(f"stage {s} lacks F, or both I and W")
        self._kinds = kinds

    def _read_waits(self) -> Iterator[tuple[tuple[OpId, OpId, int], int]]:
        """Longest wait from the end of one op to the start of another, by delay."""
        longest: dict[tuple[OpId, OpId, int], int] = {}
        known = self._graph.op_by_id
        for edge in self._graph.edges:
            if not isinstance(edge.delay, int):
                raise RefusedError("a delay is not fixed")
            wait = edge.lag
            if edge.tensor is not None:
                one, other = known[edge.src].devices, known[edge.dst].devices
                if one and other:
                    size = edge.tensor.size
                    wait += transfer_ticks(self._graph, size, one[0], other[0])
            key = edge.src, edge.dst, edge.delay
            longest[key] = max(wait, longest.get(key, wait))
        yield from longest.items()

    def row(self, *, closed: bool) -> Row:
        last = self._stages[-1]
        self._least("F", last, self._first_back(last), last)
        for s in self._stages:
            if {("I", s), ("W", s)} <= self._kinds:
                self._least("I", s, "W", s)
            if closed:
                self._check_closed(s)
        pairs = [(s, s + 1) for s in self._stages[:-1]]
        held = _holdings(self._graph, self._ops)
        return Row(
            microbatches=self._count,
            stages=tuple(self._stage(s, held) for s in self._stages),
            down=tuple(self._least("F", s, "F", t) for s, t in pairs),
            up=tuple(self._least("I", t, self._first_back(s), s) for s, t in pairs),
        )

    def _first_back(self, s: int) -> str:
        return "I" if ("I", s) in self._kinds else "W"

    def _least(self, kind: str, s: int, then: str, t: int) -> int:
        """Least wait over all microbatches; each must have one."""
        waits = [
            self._waits.get((self._ops[kind, s, m], self._ops[then, t, m], 0))
            for m in range(self._count)
            if (kind, s) in self._kinds
        ]
        known = [wait for wait in waits if wait is not None]
        if not known or len(known) < len(waits):
            raise RefusedError(f"{then} of stage {t} need not wait for {kind} of {s}")
        return min(known)

    def _check_closed(self, s: int) -> None:
        """U after the last step of each microbatch, and before the next F's."""
        update = self._updates.get(s)
        last = "W" if ("W", s) in self._kinds else "I"
        for m in range(self._count):
            ends, begins = self._ops[last, s, m], self._ops["F", s, m]
            if (
                update is None
                or (ends, update, 0) not in self._waits
                or (update, begins, 1) not in self._waits
            ):
                raise RefusedError(f"iterations may overlap on stage {s}")

    def _ticks(self, op: OpId) -> int:
        found = self._graph.op_by_id[op]
        if isinstance(found.duration, int):
            return found.duration
        return found.duration[found.devices[0]] if found.devices else 0

    def _stage(self, s: int, held: Mapping[tuple[int, str, str], int]) -> Stage:
        ticks = {
            kind: [
                self._ticks(self._ops[kind, s, m])
                for m in range(self._count)
                if (kind, s) in self._kinds
            ]
            for kind in _KINDS
        }
        least = {kind: min(row, default=0) for kind, row in ticks.items()}
        update = self._updates.get(s)
        u = 0 if update is None else self._ticks(update)
        grown, given = held.get((s, "I", "W"), 0), held.get((s, "F", "I"), 0)
        return Stage(
            f=least["F"],
            b=least["I"],
            w=least["W"],
            u=u,
            load=sum(map(sum, ticks.values())) + u,
            taken=given + held.get((s, "F", "W"), 0),
            given=given - grown,
            with_f=held.get((s, "F", "F"), 0),
            with_i=grown + held.get((s, "I", "I"), 0),
            limit=self._room(s),
        )

    def _room(self, s: int) -> int | None:
        """Memory of a stage's device, less what stays there at all times."""
        home = self._homes[s]
        limit = next(d.memory for d in self._graph.devices if d.id == home)
        return None if limit is None else limit - self._stays.get(s, 0)

    def _staying(self) -> dict[int, int]:
        """Residents by stage, and weights that live until U has made the next ones."""
        graph, known = self._graph, self._graph.op_by_id
        found: dict[int, int] = dict.fromkeys(self._homes, 0)
        for resident in graph.residents:
            for stage in {known[op].stage for op in resident.ops}:
                if stage is not None:
                    found[stage] += resident.size
        updates = {op: s for s, op in self._updates.items()}
        for tensor in graph.tensors:
            s = updates.get(tensor.producer)
            own = (c.delay for c in tensor.consumers if c.op == tensor.producer)
            if s is not None and 1 in own:
                found[s] += tensor.size
        return found


def _holdings(
    graph: Graph, ops: Mapping[_Step, OpId]
) -> dict[tuple[int, str, str], int]:
    """Least units of a microbatch held at a stage, from one kind to another.

    At home a tensor lives from its producer's start on, elsewhere from its first use
    at the latest; in both places to the end of its last use.
    """
    step_of = {op: step for step, op in ops.items()}
    count = 1 + max(m for _, _, m in ops)
    sizes: dict[tuple[int, str, str], list[int]] = {}
    for tensor in graph.tensors:
        if (maker := step_of.get(tensor.producer)) is None:
            continue
        for s, kinds in _places(tensor, maker, step_of).items():
            ends = [kind for kind in _KINDS if kind in kinds]
            row = sizes.setdefault((s, ends[0], ends[-1]), [0] * count)
            row[maker[2]] += tensor.size
    return {key: min(row) for key, row in sizes.items()}


def _places(
    tensor: Tensor, maker: _Step, step_of: Mapping[OpId, _Step]
) -> dict[int, set[str]]:
    """Kinds that make or use a tensor within its microbatch, by stage."""
    kind, stage, microbatch = maker
    found = {stage: {kind}}
    for use in tensor.consumers:
        user = step_of.get(use.op)
        if user is not None and user[2] == microbatch and use.delay == 0:
            found.setdefault(user[1], set()).add(user[0])
    return found
