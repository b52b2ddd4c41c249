"""The page: template, style, script, data and plotly in one file."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from lpsched._version import __version__
from lpsched.core.graph import Graph
from lpsched.errors import MissingExtraError, UnsupportedError
from lpsched.plot.captions import facts
from lpsched.report import tables
from lpsched.report.case import Case
from lpsched.report.run import run_of
from lpsched.solve import Row

__all__ = ["check_report", "render"]

STATIC = files("lpsched.report") / "static"
#: In the order in which they are read.
SCRIPTS = ("table.js", "run.js", "highlight.js", "chart.js", "front.js", "page.js")
#: Charts that are open when the page is; readers open the others.
OPEN = ("optimal", "pipedream", "1f1b")


def check_report(path: str | Path | None = None) -> None:
    """Check that a report can be made; for checks before long work.

    Raises
    ------
    UnsupportedError
        If `path`, the file to write, is no .html.
    MissingExtraError
        If plotly or jinja2 is not installed.
    """
    if path is not None and Path(path).suffix.lower() != ".html":
        kind = Path(path).suffix or "a file without extension"
        raise UnsupportedError(f"{path}: a report is a page, no {kind}; use .html")
    for package in ("plotly", "jinja2"):
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise MissingExtraError(package=package, extra="plot") from error


def render(cases: Sequence[Case], *, iterations: int | None = None) -> str:
    """Return a page that needs nothing from elsewhere; the same for the same input.

    Parameters
    ----------
    iterations
        How many each chart unrolls; None for prologue, some periods and epilogue.

    Raises
    ------
    UnsupportedError
        Without any case, or with too many bars.
    MissingExtraError
        If plotly or jinja2 is not installed.
    """
    check_report()
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - reports only
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - both are optional

    if not cases:
        raise UnsupportedError("nothing to report: no schedule, no problem")
    environment = Environment(
        loader=PackageLoader("lpsched.report", "static"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    runs: list[dict[str, Any]] = []
    return environment.get_template("page.html").render(
        title=", ".join(dict.fromkeys(case.title for case in cases)),
        style=(STATIC / "page.css").read_text("utf-8"),
        summary=tables.comparison(cases),
        cases=[_case(case, runs, iterations) for case in cases],
        plotly=get_plotlyjs(),
        script="\n".join((STATIC / name).read_text("utf-8") for name in SCRIPTS),
        data=_safe_json({"runs": runs, "fronts": _fronts(cases)}),
        version=__version__,
    )


def _case(
    case: Case, runs: list[dict[str, Any]], iterations: int | None
) -> dict[str, Any]:
    """Return what the template says of a case; add its charts' data to `runs`."""
    drawn = [row for row in case.rows if row.schedule is not None]
    opened = [row.method for row in drawn if row.method in OPEN]
    opened = opened or [row.method for row in drawn[:1]]
    base = next((r for r in drawn if r.method == case.rows.baseline), None)
    methods = []
    for row in drawn:
        methods.append(
            {
                "number": len(runs),
                "open": row.method in opened,
                **_method(row, base or drawn[0]),
            }
        )
        schedule = row.require_schedule()
        runs.append(run_of(row.method, case.graph, schedule, iterations))
    return {
        "title": case.title,
        "methods": methods,
        "front": None if case.front is None else tables.front(case.front),
        "notes": [tables.provenance(case), tables.origin(case)],
    }


def _method(row: Row, base: Row) -> dict[str, Any]:
    schedule = row.require_schedule()
    return {
        "name": row.method,
        "facts": facts(
            row.graph, schedule, (base.method, base.graph, base.require_schedule())
        ),
        "idle": tables.idle(row.graph, schedule),
        "kept": tables.kept(row.graph, schedule),
    }


def _fronts(cases: Sequence[Case]) -> list[dict[str, Any]]:
    fronts = [case.front for case in cases if case.front is not None]
    return [
        {
            "x": front.objectives[0],
            "y": front.objectives[1],
            "units": [_unit(front.graph, name) for name in front.objectives],
            "points": [
                [*(str(p.objective[name]) for name in front.objectives), p.proved]
                for p in front.points
            ],
        }
        for front in fronts
    ]


def _unit(graph: Graph, objective: str) -> str:
    if objective in ("period", "makespan"):
        return graph.time_unit
    return "" if objective == "staleness" else graph.size_unit


def _safe_json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
