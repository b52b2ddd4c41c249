"""Whether the ranks of a table wait for each other for ever."""

from __future__ import annotations

from collections.abc import Iterator

from lpsched.core.actions import COMMUNICATION, Action, Cell, Table
from lpsched.errors import Fault

__all__ = ["deadlock_faults", "partner", "source_of"]


def source_of(action: Action, stages: int) -> Action | None:
    """Return what a forward or backward step waits for at the stage next to it.

    The gradient comes from I, or from B, which a table has in its place; None at
    either end of the pipeline, and for W.
    """
    stage, kind, m = action
    if kind == "F" and stage > 0:
        return Action(stage - 1, "F", m)
    if kind in ("I", "B") and stage < stages - 1:
        return Action(stage + 1, "I", m)
    return None


def partner(action: Action) -> Action:
    """Return the RECV of a SEND, at the stage next to it, and the other way round."""
    stage, kind, m = action
    verb, _, what = kind.partition("_")
    other = "RECV" if verb == "SEND" else "SEND"
    forward = (what == "F") == (verb == "SEND")
    return Action(stage + (1 if forward else -1), f"{other}_{what}", m)


def deadlock_faults(table: Table) -> Iterator[Fault]:
    """Run the table without times; complain of each rank that does not reach its end.

    A rank runs its cells in order, each when all that its actions wait for is done.
    Where the table says what is sent, a SEND and its RECV happen together, as if
    nothing were buffered: what then ends, ends on any network. Only for tables
    without the faults of `check`.
    """
    run = _Run(table)
    while run.advance():
        pass
    for cell, missing in run.stuck():
        waits = " and ".join(map(str, missing))
        yield Fault(cell.place, f"a deadlock: {cell} waits for {waits} for ever")


class _Run:
    """Where each rank is, and what is done."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._next = [0 for _ in table.rows]
        self._done: set[Action] = set()

    def advance(self) -> bool:
        """Let every rank go as far as it can; tell whether any went."""
        moved = False
        for rank in range(len(self._next)):
            while (cell := self._cell(rank)) is not None and not self._missing(cell):
                self._pass(rank)
                for action in cell.actions:
                    if action.kind in COMMUNICATION:
                        self._pass(self._table.rank_of_stage[partner(action).stage])
                moved = True
        return moved

    def stuck(self) -> Iterator[tuple[Cell, list[Action]]]:
        """Return the cell that each rank waits at, with what it waits for."""
        for rank in range(len(self._next)):
            cell = self._cell(rank)
            if cell is not None:
                yield cell, self._missing(cell)

    def _cell(self, rank: int) -> Cell | None:
        row = self._table.rows[rank]
        return row[self._next[rank]] if self._next[rank] < len(row) else None

    def _pass(self, rank: int) -> None:
        cell = self._cell(rank)
        self._done.update(() if cell is None else cell.actions)
        self._next[rank] += 1

    def _missing(self, cell: Cell) -> list[Action]:
        return [
            need for a in cell.actions if (need := self._need(a)) and not self._is(need)
        ]

    def _need(self, action: Action) -> Action | None:
        if action.kind in COMMUNICATION:
            return partner(action)
        need = source_of(action, self._table.stages)
        homes = self._table.rank_of_stage
        if need is None or not self._table.has_communication:
            return need
        # What comes from elsewhere is received in an earlier cell of this row.
        return need if homes[need.stage] == homes[action.stage] else None

    def _is(self, need: Action) -> bool:
        """Tell whether it is done, or a partner is ready for it right now."""
        if need.kind in COMMUNICATION:
            cell = self._cell(self._table.rank_of_stage[need.stage])
            return cell is not None and need in cell.actions
        both = {need, need._replace(kind="B")} if need.kind == "I" else {need}
        return not both.isdisjoint(self._done)
