"""Starts the ranks on this machine, as torchrun does, and gathers what they tell."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path

from torch.distributed.elastic.multiprocessing import (
    DefaultLogsSpecs,
    SignalException,
    Std,
)
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from lpsched.errors import RunError
from lpsched.replay.job import Job, Span
from lpsched.replay.worker import work

__all__ = ["launch"]

#: Where the launcher says that it ends ranks.
LOGGER = logging.getLogger("torch.distributed.elastic.multiprocessing.api")


def launch(jobs: Sequence[Job], *, seconds: int = 300) -> list[list[list[Span]]]:
    """Run jobs of one number of ranks, one after the other, in the same processes.

    What ranks print goes to files and is lost with them, except for a rank that fails.

    Parameters
    ----------
    seconds : int
        How long a rank waits for another before it gives up.

    Returns
    -------
    list
        For each job the spans of each rank.

    Raises
    ------
    RunError
        A rank failed.
    """
    ranks = {job.ranks for job in jobs}
    if len(ranks) != 1:
        raise ValueError(f"expected jobs of one number of ranks, got {sorted(ranks)}")
    # All ranks are on this machine: its name may not be known to any network.
    if sys.platform == "linux" and Path("/sys/class/net/lo").exists():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory(prefix="lpsched-ranks-") as folder:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=ranks.pop(),
            run_id=Path(folder).name,
            rdzv_backend="c10d",
            rdzv_endpoint="127.0.0.1:0",
            local_addr="127.0.0.1",
            max_restarts=0,
            monitor_interval=0.05,
            signals_to_handle="SIGTERM,SIGHUP,SIGQUIT",  # SIGINT is Python's
            logs_specs=DefaultLogsSpecs(log_dir=folder, redirects=Std.ALL),
        )
        try:
            with _signals_as_before(), _interrupts_for_parent_alone():
                found = elastic_launch(config, work)(list(jobs), seconds)
        except ChildFailedError as error:
            raise RunError(_reason(error)) from error
        except SignalException as error:
            raise KeyboardInterrupt from error
    return [[found[rank][i] for rank in sorted(found)] for i in range(len(jobs))]


@contextmanager
def _signals_as_before() -> Iterator[None]:
    """Give back the handlers of signals that the launcher takes and keeps."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    before = {number: signal.getsignal(number) for number in taken}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _interrupts_for_parent_alone() -> Iterator[None]:
    """Keep Ctrl-C from the ranks, which the parent ends by SIGTERM when it hears it.

    A terminal sends SIGINT to all of them, and ranks that import torch by then would
    each print a traceback. What the main thread blocks, the ranks that it starts block
    as well; another thread takes the signal, and Python handles it in the main one.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "pthread_sigmask"
    ):
        yield
        return
    resource_tracker.ensure_running()  # else it unblocks the signal when it starts
    level = LOGGER.level
    LOGGER.setLevel(logging.ERROR)  # that it closes processes is what was asked for
    over = threading.Event()
    threading.Thread(target=over.wait, daemon=True).start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        over.set()
        LOGGER.setLevel(level)


def _reason(error: ChildFailedError) -> str:
    """Say which rank failed first and with what, the last line of its traceback."""
    rank, failure = error.get_first_failure()
    message = failure.message
    if isinstance(message, dict):
        message = message.get("message", message)
    last = str(message).strip().splitlines()[-1:] or ["no message"]
    return f"rank {rank} failed: {last[0]}"
