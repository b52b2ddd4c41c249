"""The back end: build, run a solver, read its answer honestly."""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from lpsched.core.result import Status, Stop
from lpsched.core.schedule import Schedule
from lpsched.errors import SolverError, UnsupportedError
from lpsched.formulations.api import Limits, Outcome, Progress, Request
from lpsched.formulations.ilp.build import Model, build
from lpsched.formulations.ilp.cbc import run_cbc
from lpsched.formulations.ilp.extract import extract, figure_value
from lpsched.formulations.ilp.highs import run_highs
from lpsched.formulations.ilp.hint import starting_point
from lpsched.formulations.ilp.solved import ABSOLUTE_GAP, Solved, Watch

__all__ = ["model_text", "solve_at_period", "write_model"]

#: Longest period, in units of time, that floating point may decide (`INTEGRALITY`).
LONGEST_PERIOD = 1_000_000

#: What floating point may add to a bound, per unit of it.
BOUND_TOLERANCE = 1e-6


def solve_at_period(
    request: Request,
    limits: Limits,
    *,
    progress: Progress | None = None,
    interrupt: threading.Event | None = None,
) -> Outcome:
    """Search for a schedule of one period with an integer program.

    Parameters
    ----------
    limits : Limits
        ``options["cbc"]`` chooses CBC instead of HiGHS; the other options are those
        of `build`. One thread, whatever `workers` says.

    Raises
    ------
    SolverError
        The solver failed or contradicts itself; the error keeps the model.
    SolverUnavailableError
        CBC was asked for and does not run here.
    UnsupportedError
        Times too long to be decided in floating point.
    """
    begun = time.monotonic()
    model = build(request, limits.options)
    _check_times(model)
    built = time.monotonic()
    watch = Watch(
        deadline=begun + limits.seconds,
        interrupt=interrupt or threading.Event(),
        tell=_teller(model, progress),
    )
    try:
        solved = _run(model, limits, watch)
        status, schedule, bound = _read(model, solved)
    except SolverError as error:
        raise SolverError(str(error), model=_text(model, "lp")) from error
    stop = Stop.INTERRUPTED if watch.interrupt.is_set() else Stop.TIME_LIMIT
    if status in (Status.OPTIMAL, Status.INFEASIBLE):
        stop = Stop.PROVED
    return Outcome(
        status=status,
        stop=stop,
        schedule=schedule,
        bound=bound,
        seconds=time.monotonic() - begun,
        stats={
            "solver": "cbc" if limits.options.get("cbc", False) else "highs",
            "variables": model.problem.numVariables(),
            "rows": model.problem.numConstraints(),
            "nodes": solved.nodes,
            "build_seconds": round(built - begun, 3),
            "solve_seconds": round(time.monotonic() - built, 3),
        },
    )


def _run(model: Model, limits: Limits, watch: Watch) -> Solved:
    if limits.options.get("cbc", False):
        return run_cbc(model.problem, watch, seed=limits.seed)
    begin = starting_point(model) if limits.options.get("hint", True) else {}
    return run_highs(model.problem, watch, seed=limits.seed, begin=begin)


def model_text(
    request: Request,
    kind: Literal["lp", "mps"],
    options: Mapping[str, bool] | None = None,
) -> str:
    """Return the model that `solve_at_period` solves, as an LP or MPS file.

    Variables and rows are named after ops and devices (``start_F1``, ``on_F1_d0``,
    ``order_F1_W2``); times are in units of the gcd of all of them.
    """
    return _text(build(request, options), kind)


def write_model(request: Request, path: Path) -> None:
    """Write the model of a request to a file ending in .lp or .mps.

    Raises
    ------
    UnsupportedError
        Another ending.
    """
    kinds: dict[str, Literal["lp", "mps"]] = {".lp": "lp", ".mps": "mps"}
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise UnsupportedError(f"{path.name}: models are written as .lp or .mps")
    path.write_text(model_text(request, kind), encoding="utf-8")


def _text(model: Model, kind: Literal["lp", "mps"]) -> str:
    """PuLP writes to files only."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{kind}"
        if kind == "lp":
            model.problem.writeLP(str(path))
        else:
            model.problem.writeMPS(str(path))
        return path.read_text(encoding="utf-8")


def _check_times(model: Model) -> None:
    period = model.scope.at.period
    if model.scope.is_timed and period > LONGEST_PERIOD:
        raise UnsupportedError(
            f"the ilp back end decides in floating point: a period of {period} units "
            f"(of {model.scope.at.unit} ticks) is longer than {LONGEST_PERIOD}; use "
            "cpsat, or a longer tick"
        )


def _teller(
    model: Model, progress: Progress | None
) -> Callable[[float | None, float | None], None]:
    """Translate a solver's figures into those of the objective."""

    def tell(value: float | None, bound: float | None) -> None:
        if progress is not None and model.objective is not None:
            incumbent = None if value is None else round(value) * model.unit
            progress(incumbent, _bound(model, bound))

    return tell


def _bound(model: Model, bound: float | None) -> int | None:
    """Round up a bound: the objective's variable is an integer."""
    lower = model.scope.request.lower
    if model.objective is None:
        return None
    if bound is None:
        return lower
    whole = math.ceil(bound - BOUND_TOLERANCE * max(1.0, abs(bound)))
    return max(lower, whole * model.unit)


def _read(model: Model, solved: Solved) -> tuple[Status, Schedule | None, int | None]:
    """Status, schedule and bound that a run amounts to.

    Raises
    ------
    SolverError
        The bound lies above the value, or not at it although it is called optimal.
    """
    if solved.values is None:
        if solved.is_complete:
            return Status.INFEASIBLE, None, None
        return Status.UNKNOWN, None, _bound(model, solved.bound)
    schedule = extract(model, solved.values)
    if model.objective is None:
        return Status.OPTIMAL, schedule, None
    value = figure_value(model, solved.values)
    bound = _bound(model, solved.bound)
    if bound is not None and bound > value:
        name = model.scope.request.minimise
        raise SolverError(f"a bound of {bound} on {name}, and a value of {value}")
    if solved.is_complete:
        _check_optimal(model, value, solved.bound)
        bound = value
    status = Status.OPTIMAL if bound == value else Status.FEASIBLE
    return status, schedule, bound


def _check_optimal(model: Model, value: int, bound: float | None) -> None:
    """Refuse values called optimal that lie above the solver's own bound."""
    if bound is None:
        return
    tolerance = BOUND_TOLERANCE * max(1.0, abs(bound))
    if value / model.unit - bound > ABSOLUTE_GAP + tolerance:
        name = model.scope.request.minimise
        raise SolverError(
            f"{name} {value} is called optimal, with a bound of {bound * model.unit}"
        )
