"""Why PyTorch could not run a table of actions: every reason, with rank and step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from lpsched.analysis.actions.deadlock import deadlock_faults, partner, source_of
from lpsched.core.actions import COMMUNICATION, COMPUTE, Action, Cell, Table
from lpsched.errors import Fault, FormatError

__all__ = ["action_faults", "check_actions"]

_Where = dict[Action, Cell]


def check_actions(
    table: Table, *, source: str, microbatches: int | None = None
) -> None:
    """Raise every fault of a table.

    Raises
    ------
    FormatError
        With all of `action_faults`.
    """
    faults = action_faults(table, microbatches=microbatches)
    if faults:
        raise FormatError(faults, source=source)


def action_faults(table: Table, *, microbatches: int | None = None) -> list[Fault]:
    """List all that keeps PyTorch from running a table, or lets it compute nonsense.

    PyTorch's own check looks for the number of ranks, one rank a stage, how many
    microbatches each stage has, and F before I before W. This one also finds repeated
    and missing actions, microbatches out of range, blank cells among communication,
    unpaired or misplaced SEND and RECV, deadlocks, and forwards of the last stage out
    of order, whose losses PyTorch would confuse.

    Parameters
    ----------
    microbatches : int, optional
        How many there have to be; by default one more than the greatest number.
    """
    count = table.microbatches if microbatches is None else microbatches
    where, faults = _first_uses(table)
    faults += _home_faults(table)
    faults += _range_faults(table, count)
    faults += _whole_faults(table, where, count)
    faults += _order_faults(table)
    if table.has_communication:
        faults += _communication_faults(table, where)
    return faults or list(deadlock_faults(table))


def _first_uses(table: Table) -> tuple[_Where, list[Fault]]:
    """Find the cell of each action; complain of those that come again."""
    where: _Where = {}
    faults = []
    for cell, action in table.placed():
        if action in where and action.kind not in ("UNSHARD", "RESHARD"):
            text = f"{action} is repeated: it stands at {where[action].place} already"
            faults.append(Fault(cell.place, text))
        where.setdefault(action, cell)
    return where, faults


def _home_faults(table: Table) -> Iterator[Fault]:
    """Complain of rows without work, of stages on two ranks and of missing ones."""
    for rank, row in enumerate(table.rows):
        if not any(cell.actions for cell in row):
            text = "no action: PyTorch takes a blank line for one more rank"
            yield Fault(f"rank {rank}", text)
    told = set()
    for cell, action in table.placed():
        home = table.rank_of_stage[action.stage]
        if home != cell.rank and (action.stage, cell.rank) not in told:
            told.add((action.stage, cell.rank))
            text = f"{action}: stage {action.stage} is on rank {home}, and on one only"
            yield Fault(cell.place, text)
    missing = [s for s in range(table.stages) if s not in table.rank_of_stage]
    if missing:
        yield Fault("", f"no rank runs stage {_some(missing)}")


def _range_faults(table: Table, count: int) -> Iterator[Fault]:
    """Complain of microbatches beyond the last."""
    for cell, action in table.placed():
        if action.microbatch is not None and action.microbatch >= count:
            expected = f"expected a microbatch from 0 to {count - 1}"
            yield Fault(cell.place, f"{action}: {expected}, got {action.microbatch}")


def _whole_faults(table: Table, where: _Where, count: int) -> Iterator[Fault]:
    """Complain of stages that lack a forward or backward pass, or have two."""
    numbers: defaultdict[tuple[int, str], set[int]] = defaultdict(set)
    for stage, kind, m in where:
        if m is not None and kind in COMPUTE:
            numbers[stage, kind].add(m)
    for stage, rank in sorted(table.rank_of_stage.items()):
        place = f"rank {rank}, stage {stage}"
        f, i, w, b = (numbers[stage, kind] for kind in "FIWB")
        for name, found in (("F", f), ("backward pass (I and W, or B)", i | w | b)):
            missing = [m for m in range(min(count, 10_000)) if m not in found]
            if missing:
                yield Fault(place, f"no {name} of microbatch {_some(missing)}")
        if i - w:
            yield Fault(place, f"I without W for microbatch {_some(sorted(i - w))}")
        if w - i:
            yield Fault(place, f"W without I for microbatch {_some(sorted(w - i))}")
        if b & (i | w):
            twice = _some(sorted(b & (i | w)))
            yield Fault(place, f"both B and I or W for microbatch {twice}")


def _order_faults(table: Table) -> Iterator[Fault]:
    """Complain of steps before what they need from their own stage."""
    before = {"I": "F", "B": "F", "W": "I"}
    for row in table.rows:
        done: set[Action] = set()
        losses = -1
        for cell in row:
            for action in cell.actions:
                kind, m = action.kind, action.microbatch
                if kind in before:
                    need = action._replace(kind=before[kind])
                    if need not in done:
                        yield Fault(cell.place, f"{action} comes before its {need}")
                elif kind == "F" and action.stage == table.stages - 1 and m is not None:
                    if m < losses:
                        text = (
                            f"{action}: the last stage must run its forwards in the "
                            "order of the microbatches, for PyTorch numbers the losses"
                            " as they come"
                        )
                        yield Fault(cell.place, text)
                    losses = max(losses, m)
                done.add(action)


# -- communication -----------------------------------------------------------------


def _communication_faults(table: Table, where: _Where) -> Iterator[Fault]:
    for row in table.rows:
        for cell in row:
            if not cell.actions:
                text = "a blank cell, which only a table without communication may have"
                yield Fault(cell.place, text)
    yield from _needless_faults(table)
    for cell, action in table.placed():
        need = source_of(action, table.stages)
        homes = table.rank_of_stage
        if need is None or homes.get(need.stage, cell.rank) == cell.rank:
            continue
        received = Action(action.stage, f"RECV_{'F' if need.kind == 'F' else 'B'}")
        received = received._replace(microbatch=action.microbatch)
        if not _is_before(where.get(received), cell):
            yield Fault(cell.place, f"{action} lacks {received} before it")
        sent = partner(received)
        made = where.get(need) or where.get(need._replace(kind="B"))
        if sent not in where:
            text = f"{action} needs {sent}, which rank {homes[need.stage]} never runs"
            yield Fault(cell.place, text)
        elif made is not None and not _is_before(made, where[sent]):
            yield Fault(where[sent].place, f"{sent} comes before what it sends")


def _is_before(first: Cell | None, second: Cell) -> bool:
    return first is not None and first.step < second.step


def _needless_faults(table: Table) -> Iterator[Fault]:
    """Complain of SEND and RECV that reach no stage on another rank."""
    homes = table.rank_of_stage
    last = {
        stage: cell for cell, (stage, kind, _) in table.placed() if kind in ("W", "B")
    }
    for cell, action in table.placed():
        if action.kind in COMMUNICATION:
            other = partner(action).stage
            if other not in homes:
                yield Fault(cell.place, f"{action}: there is no stage {other}")
            elif homes[other] == cell.rank:
                text = f"{action}: stage {other} is on the same rank"
                yield Fault(cell.place, text)
        elif action.kind == "REDUCE_GRAD":
            ends = last.get(action.stage)
            if ends is None or ends.step > cell.step:
                text = f"{action} comes before the last gradient of its stage"
                yield Fault(cell.place, text)


def _some(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    more = len(numbers) - 5
    return f"{shown} and {more} more" if more > 0 else shown
