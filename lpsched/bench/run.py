"""Solve cases, one after the other or several at once in processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing.connection import Connection

from lpsched._version import __version__
from lpsched.bench.cases import Case
from lpsched.bench.row import Row, Verdict, judged
from lpsched.core.answer import Answer
from lpsched.core.result import Stop
from lpsched.errors import (
    InstanceError,
    NoScheduleError,
    SolverError,
    UnsupportedError,
)
from lpsched.network import compile_instance
from lpsched.solve import SolveParams, solve

__all__ = ["run_case", "run_cases"]

OnRow = Callable[[Row], None]

#: Seconds between looks at what workers and users are doing.
_PULSE = 0.2
#: Seconds that an interrupted search has to come to its end.
_GRACE = 10.0


def run_case(
    case: Case, params: SolveParams, *, interrupt: threading.Event | None = None
) -> Row | None:
    """Solve one instance with the objectives that it states, and judge the answer.

    The row is None if the search was interrupted before its end.
    """
    instance = case.instance
    started = time.perf_counter()
    try:
        params = replace(
            params,
            objective=instance.objective,
            period_slack=instance.period_slack,
            max_period=instance.max_period,
        )
        graph = compile_instance(instance).graph
        answer = solve(graph, params, interrupt=interrupt)
    except (InstanceError, UnsupportedError, NoScheduleError) as error:
        row = _row(case, params, Verdict.REFUSED)
        return replace(row, reason=str(error), known=dict(instance.known))
    except SolverError as error:
        row = _row(case, params, Verdict.FAILED)
        return replace(row, reason=str(error), known=dict(instance.known))
    if answer.result.stop is Stop.INTERRUPTED:
        return None
    row = _with_answer(_row(case, params, Verdict.NEW), answer, instance.objective)
    seconds = time.perf_counter() - started
    return judged(replace(row, seconds=round(seconds, 3)), instance.known)


def _row(case: Case, params: SolveParams, verdict: Verdict) -> Row:
    return Row(
        instance=case.instance.name,
        file=case.file,
        verdict=verdict,
        status=str(verdict),
        digest=case.digest,
        time_limit=params.time_limit,
        seed=params.seed,
        workers=params.workers,
        version=__version__,
    )


def _with_answer(row: Row, answer: Answer, names: Sequence[str]) -> Row:
    """Add what was found; a facade's schedule has been verified."""
    result = answer.result
    values = result.objective
    return replace(
        row,
        status=str(result.status),
        objective={name: int(values[name]) for name in names if name in values},
        bound=dict(result.bound),
        proof={name: proof.kind for name, proof in result.proof.items()},
        method=result.method,
        verified=answer.schedule is not None,
        reason=None if answer.conflict is None else str(answer.conflict["reason"]),
    )


def run_cases(
    cases: Sequence[Case],
    params: SolveParams | None = None,
    *,
    jobs: int = 1,
    on_row: OnRow | None = None,
    interrupt: threading.Event | None = None,
) -> list[Row]:
    """Solve cases; return their rows in the order of the cases.

    Parameters
    ----------
    params : SolveParams, optional
        Limits and seed; objectives are each instance's own.
    jobs : int
        How many are solved at once, each in a process of its own if more than one.
    on_row : callable, optional
        Called with each row as it is done.
    interrupt : threading.Event, optional
        Once set, no case is begun, those under way are given up, and the rows done
        are returned.

    Raises
    ------
    SolverError
        A process died, for want of memory as a rule.
    """
    params = params or SolveParams()
    interrupt = interrupt or threading.Event()
    rows: dict[str, Row] = {}

    def keep(row: Row | None) -> None:
        if row is not None:
            rows[row.file] = row
            if on_row is not None:
                on_row(row)

    if jobs == 1 or len(cases) < 2:
        for case in cases:
            if not interrupt.is_set():
                keep(run_case(case, params, interrupt=interrupt))
    else:
        _in_processes(cases, params, min(jobs, len(cases)), keep, interrupt)
    return [rows[case.file] for case in cases if case.file in rows]


def _in_processes(
    cases: Sequence[Case],
    params: SolveParams,
    jobs: int,
    keep: Callable[[Row | None], None],
    interrupt: threading.Event,
) -> None:
    context = multiprocessing.get_context("spawn")
    # Workers wait for the pipe's other end to close: it does if this process dies, too.
    # (An event would hang here once a worker that waits for it has died.)
    reader, writer = context.Pipe(duplex=False)
    with (
        ProcessPoolExecutor(
            jobs, mp_context=context, initializer=_begin_worker, initargs=(reader,)
        ) as pool,
        writer,
    ):
        with _ctrl_c_blocked():
            pending = {pool.submit(_work, case, params) for case in cases}
        while pending:
            done, pending = wait(pending, _PULSE, return_when=FIRST_COMPLETED)
            for future in done:
                if not future.cancelled():
                    keep(_outcome(future, interrupt))
            if interrupt.is_set():
                writer.close()
                for future in pending:
                    future.cancel()
        pool.shutdown()


@contextlib.contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Block Ctrl-C for processes begun here: the parent answers it for all."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _outcome(future: Future[Row | None], interrupt: threading.Event) -> Row | None:
    try:
        return future.result()
    except BrokenProcessPool as error:
        if interrupt.is_set():
            return None
        text = "a process died while it solved an instance: out of memory?"
        raise SolverError(f"{text} Fewer --jobs need less.") from error


#: Set in a worker when its search is to end.
_interrupt = threading.Event()


def _begin_worker(reader: Connection) -> None:
    """Leave Ctrl-C to the parent; end when it closes its end of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()


def _watch(reader: Connection) -> None:
    reader.poll(None)
    _interrupt.set()
    time.sleep(_GRACE)
    os._exit(1)


def _work(case: Case, params: SolveParams) -> Row | None:
    return run_case(case, params, interrupt=_interrupt)
