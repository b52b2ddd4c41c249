"""Running CBC on a PuLP model: as a process of its own, stopped when asked."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import pulp

from lpsched.errors import SolverError, SolverUnavailableError
from lpsched.formulations.ilp.solved import ABSOLUTE_GAP, INTEGRALITY, Solved, Watch

__all__ = ["cbc_path", "run_cbc"]

#: Seconds that CBC gets to write down what it has when stopped.
GRACE = 5.0

_LOWER_BOUND = re.compile(r"^Lower bound:\s+(\S+)", re.MULTILINE)
_NODES = re.compile(r"^Enumerated nodes:\s+(\d+)", re.MULTILINE)


@cache
def cbc_path() -> str:
    """Path of a CBC that runs here: one on the search path, or PuLP's own.

    Raises
    ------
    SolverUnavailableError
        There is none.
    """
    bundled = getattr(getattr(pulp, "PULP_CBC_CMD", None), "pulp_cbc_path", None)
    for path in (shutil.which("cbc"), bundled):
        if path is not None and _runs(path):
            return str(path)
    raise SolverUnavailableError(
        "CBC does not run on this machine; install it (coin-or-cbc), or use HiGHS"
    )


def _runs(path: str) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 - the solver's own path
            [path, "-quit"], capture_output=True, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def run_cbc(problem: pulp.LpProblem, watch: Watch, *, seed: int) -> Solved:
    """Solve a PuLP problem with CBC, on one thread.

    PuLP writes the model and reads the solution; the process is run here so that it
    can be stopped. An interrupted CBC writes its incumbent before it ends.

    Raises
    ------
    SolverError
        CBC fails.
    SolverUnavailableError
        It does not run here.
    """
    path = cbc_path()
    with tempfile.TemporaryDirectory() as folder:
        model, solution = Path(folder) / "model.mps", Path(folder) / "solution.txt"
        log = Path(folder) / "log.txt"
        _, variables, rows, _ = problem.writeMPS(str(model), rename=1)
        command = [
            *(path, str(model), "-timeMode", "elapsed", "-sec", f"{watch.seconds:.3f}"),
            *("-ratio", "0", "-allow", str(ABSOLUTE_GAP), "-randomCbcSeed", str(seed)),
            *("-integerTolerance", str(INTEGRALITY)),
            *("-solve", "-printingOptions", "all", "-solution", str(solution)),
        ]
        with log.open("w") as out:
            process = subprocess.Popen(  # noqa: S603 - the solver's own path
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
            _wait(process, watch)
        text = log.read_text(errors="replace")
        if not solution.exists():
            if watch.is_over:
                return Solved(is_complete=False)
            raise SolverError(f"CBC wrote no solution; its log ends: {text[-300:]!r}")
        reader = pulp.COIN_CMD(path=path)
        status, values, _, _, _, found = reader.readsol_MPS(
            str(solution), problem, problem.variables(), variables, rows
        )
    return _solved(problem, status, found, values, text)


def _wait(process: subprocess.Popen[bytes], watch: Watch) -> None:
    """Wait for the end; on an interrupt ask for one, then insist."""
    while process.poll() is None:
        if watch.interrupt.is_set() or watch.is_overdue(GRACE):
            process.send_signal(signal.SIGINT)
            break
        time.sleep(0.02)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _solved(
    problem: pulp.LpProblem,
    status: int,
    found: int,
    values: dict[str, float],
    log: str,
) -> Solved:
    """Read PuLP's two codes: what was proved, and whether there are values."""
    bound, nodes = _LOWER_BOUND.search(log), _NODES.search(log)
    count = None if nodes is None else int(nodes[1])
    if status == pulp.LpStatusInfeasible:
        return Solved(is_complete=True, nodes=count)
    has_values = found in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)
    return Solved(
        is_complete=found == pulp.LpSolutionOptimal,
        values=[values[x.name] for x in problem.variables()] if has_values else None,
        bound=None if bound is None else float(bound[1]),
        nodes=count,
    )
