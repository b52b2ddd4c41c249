"""Least communication where memory or delays bind: placements in order, then times."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from lpsched.analysis.at_period import at_period
from lpsched.analysis.equal_devices import equal_devices
from lpsched.analysis.metrics import measure
from lpsched.analysis.timing import complete
from lpsched.core.graph import Delay, DeviceId, Graph, OpId
from lpsched.core.result import Status, Stop
from lpsched.core.schedule import Schedule
from lpsched.formulations.api import Backend, Limits, Outcome, Progress, Request
from lpsched.formulations.deadline import Deadline
from lpsched.formulations.known import known_schedule
from lpsched.formulations.partition.least import PartitionOutcome, least_communication
from lpsched.formulations.partition.reading import read_graph
from lpsched.verify import verify

__all__ = ["InTurn"]

#: Work that the other back end may take for the times of a placement: some seconds. No
#: time, so that the same search goes the same way everywhere.
_WORK = 0.6
#: By how much named delays may exceed those of a schedule without memory limits, while
#: times are only sought, and the work for it: with few delays to choose from they are
#: found much sooner.
_LONGER = ((0, 1.2), (1, 0.6))
#: Parts of the memory, one in so many, that are held back to find some schedule.
_MARGINS = (256, 128, 64, 32, 16, 8, 4)
#: Share of the time left that a search for a placement may take: for the best one, and
#: for any.
_SHARE, _SHARE_OF_ANY = 0.7, 0.2


@dataclass(kw_only=True)
class InTurn:
    """A search for the first placement by communication that another one can time.

    What a device needs at the least is known for each set of ops; that the placement
    of least communication within it has times that keep the memory, is not. If it has
    none it is forbidden, and the next one sought. Likewise where delays have limits:
    then loads alone are known. One that is left undecided bounds what is proved.

    Attributes
    ----------
    known : Schedule or None
        The best schedule.
    refused : list of placements
        Those that have no times, as far as is known.
    undecided : int or None
        The least communication among those of which it is not known.
    """

    request: Request
    limits: Limits
    deadline: Deadline
    timed_by: Backend
    progress: Progress | None
    interrupt: threading.Event | None
    known: Schedule | None = None
    refused: list[Mapping[OpId, DeviceId]] = field(default_factory=list)
    undecided: int | None = None
    stats: dict[str, Any] = field(default_factory=lambda: {"placements": 0})

    def run(self) -> Outcome:
        """Take placement after placement, until one has times or none is left."""
        self.known = known_schedule(self.request)
        bound = self.request.lower
        while not self._is_enough(bound):
            found = self._placement(self.request.graph, bound, _SHARE)
            if found.infeasible:
                return self._exhausted()
            bound = max(bound, found.bound or 0)
            if self._is_enough(bound):
                break
            if found.placement is None or self._is_known(found):
                return self._ended(bound)
            self._try(found)
            if self.known is None and len(self.refused) == 1:
                self._hold_back()
        return self._exhausted(bound)

    # -- what is asked and known -----------------------------------------------
    def _most(self) -> int | None:
        """Greatest communication of interest; None if any is."""
        most = [self.request.at_most.get("communication")]
        if self.known is not None and self.request.minimise:
            most.append(self._value() - 1)
        return min((m for m in most if m is not None), default=None)

    def _value(self) -> int:
        if self.known is None:
            raise ValueError("no schedule is known")
        return measure(self.request.graph, self.known).communication

    def _is_enough(self, bound: int) -> bool:
        """Whether the schedule known will do, or there is none of interest."""
        if self.known is not None and self.request.minimise is None:
            return True
        most = self._most()
        return most is not None and bound > most

    def _is_known(self, found: PartitionOutcome) -> bool:
        """Whether a search ended without anything of interest."""
        most = self._most()
        return found.value is not None and most is not None and found.value > most

    @cached_property
    def _is_symmetric(self) -> bool:
        """Whether devices that take like loads can be swapped in time, too.

        If not, a placement that has no times leaves open whether it has some on other
        devices, but is not sought again.
        """
        graph, period = self.request.graph, self.request.period
        alike = read_graph(graph, period).devices
        return len(equal_devices(at_period(graph, period))) <= len(alike)

    # -- the search ------------------------------------------------------------
    def _placement(self, graph: Graph, lower: int, share: float) -> PartitionOutcome:
        """Ask for the placement of least communication that is not refused yet."""
        return least_communication(
            replace(self.request, graph=graph, lower=lower, hint=self.known),
            replace(self.limits, seconds=share * self.deadline.left),
            forbidden=self.refused,
            progress=self._report,
            interrupt=self.interrupt,
        )

    def _report(self, _value: int | None, bound: int | None) -> None:
        if self.progress is not None and self.request.minimise is not None:
            bounds = [b for b in (bound, self.undecided) if b is not None]
            value = None if self.known is None else self._value()
            self.progress(value, min(bounds, default=None))

    def _try(self, found: PartitionOutcome) -> None:
        """Give a placement times, or refuse it."""
        placement = found.placement or {}
        self.stats["placements"] += 1
        timed = self._timed(placement)
        if timed.schedule is not None:
            self.known = timed.schedule
            return
        self.refused.append(placement)
        if timed.status is not Status.INFEASIBLE or not self._is_symmetric:
            values = [v for v in (self.undecided, found.value) if v is not None]
            self.undecided = min(values)

    def _hold_back(self) -> None:
        """Look for some schedule: placements that need less memory than there is."""
        graph = self.request.graph
        if all(device.memory is None for device in graph.devices):
            return
        for part in _MARGINS:
            if self.deadline.over or self.known is not None:
                return
            devices = tuple(
                replace(d, memory=None if d.memory is None else _less(d.memory, part))
                for d in graph.devices
            )
            tighter = graph.replace(devices=devices)
            found = self._placement(tighter, 0, _SHARE_OF_ANY)
            if found.infeasible:
                return
            if found.placement is not None and not self._is_known(found):
                self._try(found)

    def _timed(self, placement: Mapping[OpId, DeviceId]) -> Outcome:
        """Find times for a placement, or prove that there are none."""
        request = self.request
        loose = complete(
            request.graph, placement, request.period, over=lambda: self.deadline.over
        )
        asked = replace(
            request, minimise=None, at_most={}, lower=0, placement=placement, hint=loose
        )
        if loose is not None and not verify(request.graph, loose):
            return _found(loose)
        for more, work in _LONGER:
            if loose is not None and not self.deadline.over:
                graph = _with_delays(request.graph, loose, more)
                outcome = self._ask(replace(asked, graph=graph), work)
                if outcome.schedule is not None:
                    return outcome
        return self._ask(asked, _WORK)

    def _ask(self, asked: Request, work: float) -> Outcome:
        limits = replace(self.limits, seconds=max(0.05, self.deadline.left), work=work)
        return self.timed_by(asked, limits, interrupt=self.interrupt)

    # -- the end ---------------------------------------------------------------
    def _exhausted(self, bound: int | None = None) -> Outcome:
        """Answer when no placement of interest is left but the undecided ones."""
        if self.known is not None:
            return self._ended(self._value() if bound is None else bound)
        if self.undecided is None:
            return self._outcome(Status.INFEASIBLE)
        return self._outcome(Status.UNKNOWN, self.undecided)

    def _ended(self, bound: int) -> Outcome:
        """Answer with what is known, and what is proved of the rest."""
        if self.known is None:
            bounds = [b for b in (bound, self.undecided) if b is not None]
            return self._outcome(Status.UNKNOWN, min(bounds))
        if self.request.minimise is None:
            return self._outcome(Status.OPTIMAL)
        value = self._value()
        least = min(b for b in (bound, self.undecided, value) if b is not None)
        status = Status.OPTIMAL if least == value else Status.FEASIBLE
        return self._outcome(status, least)

    def _outcome(self, status: Status, bound: int | None = None) -> Outcome:
        is_settled = status in (Status.OPTIMAL, Status.INFEASIBLE)
        return Outcome(
            status=status,
            stop=Stop.PROVED if is_settled else self.deadline.stop,
            schedule=self.known,
            bound=bound,
            seconds=self.deadline.elapsed,
            stats=self.stats,
        )


def _less(memory: int, part: int) -> int:
    return memory - -(-memory // part)


def _found(schedule: Schedule) -> Outcome:
    return Outcome(status=Status.OPTIMAL, stop=Stop.PROVED, schedule=schedule)


def _with_delays(graph: Graph, schedule: Schedule, more: int) -> Graph:
    """Return the graph with no delays much longer than a schedule's."""
    delays = {}
    for name, delay in graph.delays.items():
        most = schedule.delays[name] + more
        capped = most if delay.max is None else min(most, delay.max)
        delays[name] = Delay(min=delay.min, max=capped)
    return graph.replace(delays=delays)
