"""`lpsched solve`: the best schedule, with its proof."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from lpsched.analysis.unfolding import unfold
from lpsched.cli.exits import ExitCode, code_of_status
from lpsched.cli.front import find_front, save_front, show_front
from lpsched.cli.options import (
    DevicesOption,
    FileArgument,
    LimitOption,
    Manner,
    MaxPeriodOption,
    MaxReceivedOption,
    ParetoOption,
    SeedOption,
    SlackOption,
    WorkersOption,
    one_count,
    parse_list,
    parse_number,
)
from lpsched.cli.output import (
    complain,
    complain_of,
    note,
    note_all,
    number,
    percent,
    print_json,
    print_table,
    require_writable,
    save_text,
)
from lpsched.cli.problem import Problem, load_problem, load_schedule_file
from lpsched.cli.rewrites import DelaysOption, UnfoldOption, chosen_delays, fixed
from lpsched.cli.running import run
from lpsched.cli.verbs.build import rounding_sentence
from lpsched.core.answer import Answer
from lpsched.core.graph import DelayName, Graph
from lpsched.core.io import (
    document_text,
    graph_digest,
    result_to_document,
    schedule_to_document,
)
from lpsched.core.result import relative_gap
from lpsched.core.schedule import Schedule
from lpsched.plot import check_front_output
from lpsched.solve import Report, SolveParams, solve, solve_by_method
from lpsched.solve.unfolded import solve_unfolded
from lpsched.verify import verify

__all__ = ["EXAMPLE", "command"]

EXAMPLE = "lpsched solve models/vgg16.yaml --devices 8 -o best.json"


def command(
    *,
    file: FileArgument,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Schedule file to write.")
    ] = None,
    devices: DevicesOption = None,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            help="Comma list, each before the next: period, communication, staleness,"
            " peak_memory, makespan.",
        ),
    ] = None,
    period_slack: SlackOption = "0",
    max_period: MaxPeriodOption = None,
    max_received: MaxReceivedOption = None,
    backend: Annotated[
        str, typer.Option("--backend", help="auto, cpsat, ilp or partition.")
    ] = "auto",
    ilp_solver: Annotated[
        str, typer.Option("--ilp-solver", help="For --backend ilp: highs or cbc.")
    ] = "highs",
    method: Annotated[
        str | None, typer.Option("--method", help="A heuristic instead of the solver.")
    ] = None,
    hint: Annotated[
        str | None, typer.Option("--hint", help="A schedule to start from.")
    ] = None,
    fix: Annotated[
        str | None, typer.Option("--fix", help="A schedule whose placements to keep.")
    ] = None,
    pareto: ParetoOption = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="With --pareto: the front as CSV.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="With --pareto: its picture, .png, .svg or .pdf."),
    ] = None,
    unfold_by: UnfoldOption = None,
    delays: DelaysOption = None,
    time_limit: LimitOption = 60.0,
    seed: SeedOption = 0,
    workers: WorkersOption = 1,
    manner: Manner,
) -> None:
    """Find the best schedule of a network, instance or graph, and prove it.

    Exit 0: proved optimal. 3: proved infeasible. 4: a schedule, not proved. 5: none
    found in time. 130: interrupted; the best schedule so far is written.
    """
    require_writable(output, csv, plot)
    _check_pareto(
        pareto,
        wants={"--csv": csv, "--plot": plot},
        refuses={
            "--output": output,
            "--objective": objective,
            "--method": method,
            "--unfold": unfold_by,
        },
    )
    solver_only = {
        "--max-period": max_period,
        "--max-received": max_received,
        "--hint": hint,
        "--fix": fix,
        "--period-slack": None if period_slack == "0" else period_slack,
        "--backend": None if backend == "auto" else backend,
    }
    _refuse_with_method(method, solver_only)
    problem = load_problem(file, one_count(devices))
    note_all(problem.notes, quiet=manner.quiet)
    plain, values = problem.graph, {}
    if unfold_by is not None or delays is not None:
        values = chosen_delays(plain, delays)
        problem = _unfolded(problem, values, unfold_by or 1)
    slack = parse_number(period_slack, option="--period-slack")
    params = SolveParams(
        objective=_objective(objective, problem),
        backend=backend,
        period_slack=slack or problem.period_slack or Fraction(0),
        max_period=max_period if max_period is not None else problem.max_period,
        max_received=max_received,
        hint=None if hint is None else load_schedule_file(hint),
        fix=None if fix is None else load_schedule_file(fix),
        time_limit=time_limit,
        seed=seed,
        workers=workers,
        options={"cbc": True} if _is_cbc(ilp_solver) else {},
    )
    _remark_hint(problem.graph, params.hint, manner)
    if pareto is not None:
        raise typer.Exit(_front(problem.graph, pareto, params, manner, csv, plot))

    def work(report: Report, interrupt: threading.Event) -> Answer:
        if method is not None:
            return solve_by_method(problem.graph, method, interrupt=interrupt)
        if unfold_by is None:
            return solve(problem.graph, params, report=report, interrupt=interrupt)
        found = solve_unfolded(
            plain, unfold_by, params, delays=values, report=report, interrupt=interrupt
        )
        if found.folded is not None and unfold_by > 1:
            note(_alike(found.folded.period), quiet=manner.quiet)
        return found.answer

    answer, interrupted = run(work, manner, title=problem.graph.name)
    answer = _with_problem(answer, problem)
    _write(answer, output, manner)
    _show(answer, problem, manner)
    if interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if method is None:
        raise typer.Exit(code_of_status(str(answer.result.status)))


def _front(
    graph: Graph,
    names: str,
    params: SolveParams,
    manner: Manner,
    csv: Path | None,
    plot: Path | None,
) -> int:
    """Find a front, print it and write its files; return the exit code."""
    front, code = find_front(graph, names, params, manner)
    if manner.json:
        print_json(front.document())
    else:
        show_front(front)
    save_front(front, manner, csv=csv, plot=plot)
    return code


def _check_pareto(
    pareto: str | None, *, wants: Mapping[str, object], refuses: Mapping[str, object]
) -> None:
    """Refuse options that only a front has, or that it has not, or cannot draw."""
    others = wants if pareto is None else refuses
    given = [name for name, value in others.items() if value is not None]
    if given:
        text = "is for --pareto" if pareto is None else "does not go with --pareto"
        raise typer.BadParameter(text, param_hint=given[0])
    if (plot := wants["--plot"]) is not None:
        check_front_output(str(plot))


def _unfolded(
    problem: Problem, delays: Mapping[DelayName, int], iterations: int
) -> Problem:
    """Fix the delays and put several iterations in a block; its cap grows with it."""
    cap = problem.max_period
    return replace(
        problem,
        graph=unfold(fixed(problem.graph, delays), iterations),
        max_period=None if cap is None else cap * iterations,
    )


def _remark_hint(graph: Graph, hint: Schedule | None, manner: Manner) -> None:
    """Say which rules a hint breaks: the search starts from it all the same."""
    if hint is None:
        return
    bare = replace(
        hint,
        graph=graph.name,
        graph_digest=graph_digest(graph),
        graph_document=graph,
        result=None,
    )
    rules = dict.fromkeys(violation.rule for violation in verify(graph, bare))
    if rules:
        text = f"the hint breaks rules ({', '.join(rules)}): no schedule, but a start"
        note(text, quiet=manner.quiet)


def _alike(period: int) -> str:
    return (
        f"all iterations run alike, each {number(period)} after the one before: the"
        " graph itself has a schedule of this period"
    )


def _refuse_with_method(method: str | None, options: Mapping[str, object]) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given and method is not None:
        raise typer.BadParameter(
            f"a heuristic takes no {', '.join(given)}", param_hint="--method"
        )


def _is_cbc(name: str) -> bool:
    if name not in ("highs", "cbc"):
        raise typer.BadParameter(
            f"expected highs or cbc, got {name!r}", param_hint="--ilp-solver"
        )
    return name == "cbc"


def _objective(text: str | None, problem: Problem) -> tuple[str, ...]:
    if text is not None:
        return parse_list(text)
    return problem.objective or SolveParams().objective


def _with_problem(answer: Answer, problem: Problem) -> Answer:
    """Keep with the answer how costs became ticks and which layers a stage has."""
    result = replace(answer.result, rounding=problem.rounding)
    if problem.stages is not None:
        stages = [list(layers) for layers in problem.stages]
        result = replace(result, stats={**(result.stats or {}), "stages": stages})
    schedule = answer.schedule
    return replace(
        answer,
        result=result,
        schedule=None if schedule is None else schedule.with_result(result),
    )


def _write(answer: Answer, output: Path | None, manner: Manner) -> None:
    if output is None:
        return
    if answer.schedule is None:
        complain(f"no schedule, so {output} is not written")
        return
    save_text(output, document_text(schedule_to_document(answer.schedule)))
    note(f"{output} written", quiet=manner.quiet)


def _say_why(answer: Answer) -> None:
    """Say which rules conflict, or what the back end cannot do."""
    complain_of(answer.conflict)
    reason = (answer.result.stats or {}).get("unsupported")
    if reason is not None:
        complain(f"not searched to the end: {reason}")


def _show(answer: Answer, problem: Problem, manner: Manner) -> None:
    result = answer.result
    if not manner.quiet:
        _say_why(answer)
    if manner.json:
        document = result_to_document(result)
        if answer.conflict is not None:
            document.setdefault("stats", {})["conflict"] = dict(answer.conflict)
        print_json(document)
        return
    if answer.schedule is None and answer.conflict is None:
        least = number(result.bound.get("period"))
        complain(f"no schedule within the limit; the period is at least {least}")
    if answer.schedule is None:
        return
    rows = []
    for name, value in result.objective.items():
        if isinstance(value, int):
            bound = result.bound.get(name)
            proof = result.proof.get(name)
            gap = percent(relative_gap(value, bound), 2) if bound is not None else "–"
            kind = proof.kind if proof is not None else "–"
            rows.append([name, number(value), number(bound), gap, kind])
    per_iteration = result.objective.get("iteration_period")
    if problem.graph.unfolding > 1 and per_iteration is not None:
        rows.append(["iteration_period", str(per_iteration), "–", "–", "–"])
    columns = [
        ("objective", "left"),
        ("value", "right"),
        ("bound", "right"),
        ("gap", "right"),
        ("proof", "left"),
    ]
    seconds = result.seconds or 0.0
    title = (
        f"{problem.graph.name}: {result.status} by {result.method} in {seconds:.1f} s"
        f" (time in {problem.graph.time_unit}, sizes in {problem.graph.size_unit})"
    )
    print_table(columns, rows, title=title)
    if problem.rounding is not None and manner.verbose:
        note(rounding_sentence(problem.rounding))
